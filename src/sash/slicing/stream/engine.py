"""The stream engine: adds batches to slice stores, and emits at each step the windows that are due.

An engine exists once the columns are known. Rows are buffered until a step needs them, so that batches of any size cost about the same per
row. A query that needs only partials has a store of slices; one that needs rows has a store that retains them (see
:mod:`sash.plan.choices.store_choice`).
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.errors import InvalidArgument
from sash.functions.udaf import UserAggregate
from sash.plan.choices import store_choice
from sash.plan.logical import Plan, make_query
from sash.plan.options import StreamOptions
from sash.slicing import validation
from sash.slicing.batch.fragments import Layout
from sash.slicing.bounds.handler import handler
from sash.slicing.persistence.engine_state import FEWEST_KEYS, Counts, EngineState, Position
from sash.slicing.rows.inputs import stored_form
from sash.slicing.rows.intake import Intake
from sash.slicing.rows.keys import KeyIndex, key_type, span_of
from sash.slicing.rows.timed import KeyedRows
from sash.slicing.stores.kinds import Home, make_store
from sash.slicing.stores.slice_store import SliceStore, Step
from sash.slicing.stream.due import NextDue
from sash.slicing.stream.emission import Emission
from sash.slicing.stream.lateness import LateRows, judge
from sash.slicing.stream.window_manager import WindowManager
from sash.types import FAR_AHEAD, FAR_BACK, Duration
from sash.windows.base import Window

Array = npt.NDArray[Any]

NO_KEYS = np.empty(0, np.int64)


class Engine:
    """All windows of all queries over one stream whose columns are known."""

    def __init__(self, plan: Plan, options: StreamOptions, homes: Callable[[int], Home] | None = None, key_slack: float = 2.0) -> None:
        """With ``homes``, the slices of the n-th store are stored in ``homes(n)``. ``key_slack`` is the factor by which keys may outgrow
        those that had state at the last check, before they are checked again."""
        self.options = options
        self.plan = plan = replace(plan, named=True)
        measure = plan.measure
        self._lateness = 0 if options.lateness is None else measure.ticks(options.lateness, "lateness")
        self._idle = None if options.idle is None else measure.ticks(options.idle, "idle")
        self._max_ahead = None if options.max_ahead is None else _ahead_of(plan, options.max_ahead)
        self._delay = 0 if options.watermark is None else measure.ticks(options.watermark, "watermark")
        self._key_slack = key_slack
        self.keys = KeyIndex(plan.schema, plan.by)
        self.position = Position(keys_to_check=FEWEST_KEYS)
        self.counts = Counts()
        self.late_rows = LateRows(retained=options.late == "output")
        self._last_seen = NO_KEYS
        self._emission = Emission(plan, options.emit)
        self._manager = WindowManager(options.emit)
        self._forms = tuple(stored_form(c, plan.schema) for c in plan.columns)
        self.workload = store_choice.Workload(options.ordered, self._forms, bool(plan.order_by), options.emit == "final")
        self.stores: list[SliceStore] = []
        self._make_stores(homes)
        self._intake = Intake(plan, self._latest)
        self._due = NextDue(min(plan.session_gaps, default=None))

    def _make_stores(self, homes: Callable[[int], Home] | None) -> None:
        """A store for each group of queries that can share one."""
        idle, in_chunks = self._idle is not None, homes is not None
        for group in store_choice.group_queries(self.workload, self.plan.queries, idle=idle, in_chunks=in_chunks):
            home = homes(len(self.stores)) if homes is not None and group.kind == "slices" else None
            self.stores.append(self._store(group.kind, self.plan.with_queries(group.queries), home=home))

    def _store(self, kind: str, plan: Plan, since: int = FAR_BACK, home: Home | None = None) -> SliceStore:
        return make_store(kind, plan, since, self.options, home)

    def _starts_again(self, window: Window) -> bool:
        """Whether all state of an idle key is dropped for a window, so that other queries may not share its store."""
        return self._idle is not None and window.never_ends

    # Rows in.

    def check(self, rows: Any) -> None:
        """Raise if rows do not fit the stream's columns, or windows cannot be computed around them."""
        self._intake.checked(rows)

    def add(self, batch: Any) -> pa.Table | None:
        """Buffer rows; in a declared in-order stream, and with ``watermark=``, returns the results."""
        if self.options.ordered:
            newest = self._intake.put_in_order(batch, self.position.newest)
            return self.step(max(self.position.watermark, newest))
        span = self._intake.put(batch)
        if span is not None:
            self._due.note_rows(*span)
            if span[0] < self._reach(self.position.watermark):
                self.flush()  # whether they are late depends on the current watermark
                self._due.look()
        if self._intake.is_full or self._max_ahead is not None:  # what is too far ahead depends on the current time
            self.flush()
        if self.options.watermark is None:
            return None
        newest = self.position.newest if self._max_ahead is not None else max(self.position.newest, self._due.newest)
        return self.advance(max(self.position.watermark, newest - self._delay)) if newest > FAR_BACK else self._emission.nothing

    def _latest(self) -> int:
        """The latest time that a row may have now."""
        if self._max_ahead is None:
            return FAR_AHEAD
        return clock.time_ns() // (self.plan.measure.nanos_per_tick or 1) + self._max_ahead

    def flush(self) -> None:
        """Add the buffered rows to the stores."""
        arrived = self._intake.take()
        if arrived is None:
            return
        plan, position = self.plan, self.position
        table, ticks, first, last = arrived
        self.counts.rows += table.num_rows
        whole = table
        if len(plan.reads) < table.num_columns:
            table = table.select(list(plan.reads))
        if len(ticks) < table.num_rows:
            known = table.column(plan.time).is_valid()
            self.counts.without_time += table.num_rows - len(ticks)
            table, whole = table.filter(known), whole.filter(known)
        if self._max_ahead is not None and len(ticks):
            in_range = ticks <= self._latest()
            if not in_range.all():
                self.counts.ahead += int((~in_range).sum())
                table, whole, ticks = table.filter(pa.array(in_range)), whole.filter(pa.array(in_range)), ticks[in_range]
                first, last = span_of(ticks)
        if not len(ticks):
            return
        rows = KeyedRows(table, ticks, self.keys.encode(table), ticks, first, last)
        late_for: list[Array] | None = None
        if rows.first < self.horizon:
            verdicts = judge(plan, self.stores, ticks, rows.codes, self.horizon)
            self.counts.late += len(verdicts.missed)
            self.late_rows.add(whole, verdicts.missed)
            rows, in_time = rows.where(~verdicts.dropped), ~verdicts.dropped
            late_for = [late[in_time] for late in verdicts.by_store]
            if not len(rows):
                return
        if any(store.retains_rows for store in self.stores):
            rows = replace(rows, ids=np.arange(position.next_id, position.next_id + len(rows)))
        commits = []  # all stores prepare first: if a user's function raises, none of them has changed
        for k, store in enumerate(self.stores):
            part = rows if late_for is None else rows.where(~late_for[k])  # too late for some queries, but not for others
            if len(part):
                commits.append(store.prepare(part, at_once=k == len(self.stores) - 1))
        for commit in commits:
            commit()
        position.next_id += len(rows)
        self._note_rows(rows.codes, rows.ticks, rows.first, rows.last)

    def add_slices(self, fragments: pa.Table) -> None:
        """Add slices that were computed elsewhere for the same queries (:mod:`sash.slicing.batch.fragments`)."""
        if not fragments.num_rows:
            return
        by = self.plan.by
        codes = self.keys.encode(fragments.select(list(by))) if by else np.zeros(fragments.num_rows, np.int64)
        new = Layout.of(self.plan, counted=True).slices(fragments, codes)
        self.counts.rows += int(new.count.sum())
        if int(new.first.min()) < self.horizon:
            verdicts = judge(self.plan, self.stores, new.last, new.key, self.horizon)
            self.counts.late += int(new.count[verdicts.missed].sum())
            new = new.take(np.flatnonzero(~verdicts.dropped))
            if not len(new):
                return
        commits = [store.prepare_slices(new, only=len(self.stores) == 1) for store in self.stores]
        for commit in commits:
            commit()
        self._note_rows(new.key, new.last, int(new.first.min()), int(new.last.max()))

    def _note_rows(self, codes: Array, ticks: Array, first: int, last: int) -> None:
        """Take note of added rows, by key and time."""
        position = self.position
        position.newest, position.dirty = max(position.newest, last), min(position.dirty, first)
        if self._idle is not None:
            missing = self.keys.count - len(self._last_seen)
            self._last_seen = np.concatenate([self._last_seen, np.full(missing, FAR_BACK, np.int64)])
            np.maximum.at(self._last_seen, codes, ticks)

    # Results out.

    @property
    def horizon(self) -> int:
        """The time up to which windows are closed."""
        return max(self.position.watermark - self._lateness, FAR_BACK)

    def tick(self, watermark: Any) -> int:
        """A watermark in the type or unit of the time column as a tick; raises if it lies before the last one."""
        quick = self._intake.python_rows.tick(watermark)
        tick = self.plan.measure.tick(watermark, "watermark") if quick is None else quick
        if tick < self.position.watermark:
            raise InvalidArgument(f"watermark {watermark!r} lies before the last one; a watermark only advances")
        if abs(tick) >= FAR_AHEAD >> 1:
            raise InvalidArgument(f"watermark {watermark!r} is too far away")
        return tick

    def advance(self, watermark: int) -> pa.Table:
        """Apply a watermark and return the results; if nothing is due, rows just stay buffered."""
        if self._intake.are_all_dictionaries and self._reach(watermark) < self._due.horizon(self._next_due):
            self.position.watermark = watermark
            return self._emission.nothing
        return self.step(watermark)

    def close(self) -> pa.Table:
        """End the stream and return the windows that are still open."""
        return self.step(max(self.position.watermark, self.position.newest), closing=True)

    def _reach(self, watermark: int) -> int:
        """The time up to which windows are emitted at a watermark: less the lateness, unless they may be revised."""
        return watermark - self._lateness if self.options.emit == "final" else watermark

    def _next_due(self) -> int:
        """When something is due next of the slices of the last step; at once where that depends on more than time."""
        options = self.options
        own = any(isinstance(c.call.aggregate, UserAggregate) for c in self.plan.columns)  # whose errors belong to the rows of one step
        changing = options.emit == "running" or (options.emit == "update" and any(q.window.never_ends for q in self.plan.queries))
        if own or changing or options.ordered or self._idle is not None or self._max_ahead is not None:
            return FAR_BACK
        after = self._reach(self.position.watermark)
        return min([store.next_due(after) for store in self.stores], default=FAR_BACK)

    def step(self, watermark: int, *, closing: bool = False) -> pa.Table:
        """Apply a watermark and return the results, whether anything is due or not."""
        self.flush()
        position = self.position
        idle = NO_KEYS if self._idle is None or closing else self._idle_keys(self._idle, watermark - self._lateness)
        step = Step(position.stepped, watermark, self._lateness, self.options.emit, position.dirty, closing, idle)
        self._manager.begin()
        parts = [part for part in (self._manager.part(store, step, self.keys.count) for store in self.stores) if part is not None]
        result = self._emission.table(self.keys, parts)
        self._manager.commit()
        position.watermark, position.stepped, position.dirty = watermark, watermark, FAR_AHEAD
        for store in self.stores:
            store.evict(step, self.keys.count)
        if len(idle):
            self._last_seen[idle] = FAR_BACK
            for query in self.plan.queries:
                if query.window.never_ends:
                    self._manager.forget_keys(query.name, idle)
        if self.plan.by and self.keys.count > position.keys_to_check:
            self._drop_keys()
        self._due.stepped()
        return result

    def _idle_keys(self, idle: int, horizon: int) -> Array:
        """The keys whose last row is more than ``idle`` ticks before the horizon, and that no edge to come depends on."""
        seen = self._last_seen
        until = seen + idle
        for shape in (q.shape for q in self.plan.queries):
            until = handler(shape).idle_until(shape, seen, until)
        return np.flatnonzero((seen > FAR_BACK) & (until < horizon))

    def _drop_keys(self) -> None:
        """Drop the keys that have no state any more, once these are half of all."""
        live = [store.live_keys() for store in self.stores]
        retained = np.unique(np.concatenate([*live, self._manager.live_keys()]).astype(np.int64))
        if len(retained) <= self.keys.count // 2:
            new_id_of = self.keys.retain(retained)
            for store in self.stores:
                store.renumber(new_id_of, retained)
            self._manager.renumber(new_id_of)
            if self._idle is not None:
                self._last_seen = self._last_seen[retained]
        self.position.keys_to_check = max(FEWEST_KEYS, int(self._key_slack * self.keys.count))

    # Queries are added and removed.

    def add_query(self, name: str, window: Window) -> None:
        """Serve another query, which sees the rows after the newest one so far."""
        query = make_query(name, window, self.plan.measure, self.plan.schema)
        emission = Emission(self.plan.with_queries((*self.plan.queries, query)), self.options.emit)
        self.flush()
        newest = self.position.newest
        since = newest + 1 if newest > FAR_BACK else FAR_BACK
        shares_slices = query.shape.has_known_edges
        if shares_slices:
            query = replace(query, since=since)
        plan = self.plan.with_queries((*self.plan.queries, query))
        self._emission = emission
        self._serve(plan)
        kind = store_choice.store_kind(self.workload, window)
        same = (s for s in self.stores if s.kind == kind and s.since == FAR_BACK)
        home = next((s for s in same if not self._starts_again(s.plan.queries[0].window)), None)
        if kind != "rows" and home is not None and shares_slices:
            home.with_queries(home.plan.with_queries((*home.plan.queries, query)))
        else:
            self.stores.append(self._store(kind, plan.with_queries((query,)), since))

    def remove_query(self, name: str) -> None:
        """Stop serving a query; what only it needed is dropped."""
        self._manager.forget_query(name)
        self.flush()
        self._serve(self.plan.with_queries(tuple(q for q in self.plan.queries if q.name != name)))
        self._emission = Emission(self.plan, self.options.emit)
        position = self.position
        now = Step(position.watermark, position.watermark, self._lateness, self.options.emit, position.dirty)
        for store in list(self.stores):
            rest = tuple(q for q in store.plan.queries if q.name != name)
            if not rest:
                self.stores.remove(store)
            elif len(rest) < len(store.plan.queries):
                store.with_queries(store.plan.with_queries(rest))
                store.evict(now, self.keys.count)

    def _serve(self, plan: Plan) -> None:
        self.plan = plan
        self._intake.with_queries(plan)
        self._due.follow(min(plan.session_gaps, default=None))

    # Export and import.

    def export(self) -> EngineState:
        """All that an engine of the same query needs to continue."""
        self.flush()
        return EngineState(
            self.position, self.counts, [store.export() for store in self.stores], [[q.name for q in s.plan.queries] for s in self.stores],
            self.keys.values, self.keys.renumbered, {q.name: q.since for q in self.plan.queries if q.is_late_comer},
            self._last_seen, self._manager.export(), self.late_rows.peek(self.plan.schema),
        )  # fmt: skip

    def import_(self, state: EngineState) -> None:
        """Continue from exported state; raises if it cannot be of this engine's query."""
        what, plan = "the state", self.plan
        types = [key_type(plan.schema.field(name).type) for name in plan.by]
        self.keys.restore(validation.keys(state.keys, types, "the state's keys"))
        self.position, self.counts = state.position, state.counts
        if len(state.last_seen) > self.keys.count or state.last_seen.dtype != np.int64:
            raise validation.damaged(what, "it has seen rows of keys that do not exist")
        self._last_seen = state.last_seen
        self._manager.import_(state.emitted, self.keys.count)
        if state.late_rows is not None:
            self.late_rows.restore(validation.like(state.late_rows, plan.schema, what))
        if state.queries is not None:
            self._serve(plan.with_queries(tuple(replace(q, since=state.since.get(q.name, FAR_BACK)) for q in plan.queries)))
            self._make_stores_again(state, state.queries)
        for store, stored in zip(self.stores, state.stores, strict=True):
            store.import_(stored, self.keys.count)
        self._due.look()

    def _make_stores_again(self, state: EngineState, store_queries: list[list[str]]) -> None:
        """Make the stores of exported state, which differ from a new engine's once queries are added or removed."""
        what = "the state"
        by_name = {q.name: q for q in self.plan.queries}
        kinds = {name: store_choice.store_kind(self.workload, q.window) for name, q in by_name.items()}
        self.stores = []
        for stored, names in zip(state.stores, store_queries, strict=True):
            if not names or any(kinds[n] != stored.kind for n in names):
                raise validation.damaged(what, f"queries are stored as {stored.kind!r} that should not be")
            queries = tuple(by_name.pop(n) for n in names)
            since = validation.tick(stored.facts["since"], what)
            self.stores.append(self._store(stored.kind, self.plan.with_queries(queries), since))
        if by_name:
            raise validation.damaged(what, f"the query {next(iter(by_name))!r} has no store")

    # Statistics.

    def open_counts(self) -> tuple[int, int]:
        """How many windows are not closed: those whose edges are known, keys not counted; and those of each key."""
        if self.horizon <= FAR_BACK:
            return 0, 0
        counts = [store.open_counts(self.horizon, self.position.newest) for store in self.stores]
        return sum(known for known, _ in counts), sum(own for _, own in counts)

    def explain(self) -> list[str]:
        """The outcomes of the decision trees for the current queries, as lines of text."""
        lines = []
        for query in self.plan.queries:
            keeps, splits = store_choice.keeps_rows(self.workload, query.window), store_choice.needs_splits(self.workload, query.window)
            lines.append(f"query {query.name}: {query.window!r} ({query.window.context})")
            lines.append(f"  rows kept: {'yes' if keeps.yes else 'no'} ({keeps.why})")
            lines.append(f"  slices split: {'yes' if splits.yes else 'no'} ({splits.why})")
            for column, form in zip(self.plan.columns, self._forms, strict=True):
                how = store_choice.removal(self.workload, query.window, form)
                lines.append(f"  rows removed from slices of {column.call!r}: {how}")
        return [*lines, *(line for store in self.stores for line in store.explain())]


def _ahead_of(plan: Plan, limit: Duration) -> int:
    if plan.measure.nanos_per_tick is None:
        raise InvalidArgument(f"max_ahead compares with the clock; the time column is of type {plan.measure.type}")
    return plan.measure.ticks(limit, "max_ahead")
