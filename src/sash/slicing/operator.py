"""``sash.Operator``: general stream slicing in one process, batch by batch.

Rows wait in a buffer until a result is asked for, so that batches of any size cost about the same per row. A query that can be
answered from partials alone lives in a :class:`~sash.slicing.slice_state.SliceState` or, if its edges come with rows that are declared to
be in order, in an :class:`~sash.slicing.in_order.InOrderState`; one that needs rows in a :class:`~sash.slicing.row_state.RowState`. The
decision trees say which.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.errors import InvalidArgument, LateRow, SashError, unknown
from sash.functions.udaf import UserAggregate
from sash.plan.clock import ProcessingTime
from sash.plan.grouping import Grouping, grouping_of
from sash.plan.logical import NO_TIME, Plan, Query, calls_of, check_request, make_plan, make_query
from sash.plan.options import EMITS, LATES, check_duration_option
from sash.slicing import decisions, validation
from sash.slicing.descriptions import Asked, Options, of_request, to_request
from sash.slicing.emission import Emission
from sash.slicing.fragments import Layout
from sash.slicing.in_order import IN_ORDER, InOrderState
from sash.slicing.inputs import stored_form
from sash.slicing.intake import Intake, in_schema, to_batches
from sash.slicing.key_windows import KeyWindows
from sash.slicing.keys import KeyIndex, key_type, span_of
from sash.slicing.ordered_slices import KIND, OrderedSliceState
from sash.slicing.row_state import RowState
from sash.slicing.shapes import some_window_holds
from sash.slicing.slice_state import Home, SliceState
from sash.slicing.snapshots import pack, unpack
from sash.slicing.window_manager import State, Step, WindowManager
from sash.types import FAR_AHEAD, FAR_BACK, Duration
from sash.windows.base import Gaps, Periodic, RowsBefore, Window

Array = npt.NDArray[Any]

STATES: dict[str, Any] = {"slices": SliceState, KIND: OrderedSliceState, "rows": RowState, IN_ORDER: InOrderState}
STORES = ("auto", "lazy", "eager")
FEWEST_KEYS = 1 << 10
"""Up to so many keys are remembered whether they live or not."""
FACTS = ("watermark", "stepped", "newest", "dirty", "next_id", "keys_to_check")
"""What says how far a stream is."""


@dataclass
class Stats:
    """What an operator has seen and holds."""

    rows: int = 0
    late: int = 0
    ahead: int = 0
    without_time: int = 0
    slices: int = 0
    splits: int = 0
    merges: int = 0
    shifts: int = 0
    kept_rows: int = 0
    bytes: int = 0


class Operator:
    """All windows of all queries over one stream.

    >>> import sash
    >>> from sash import functions as S, windows as W
    >>> op = sash.Operator(windows={"ten": W.tumbling(10)}, aggs=[S.sum("v").alias("total")], time="t")
    >>> op.add([{"t": 1, "v": 5}, {"t": 12, "v": 1}])
    >>> op.add([{"t": 3, "v": 2}])
    >>> op.advance(10).to_pylist()
    [{'query': 'ten', 'window': {'start': 0, 'end': 10}, 'total': 7}]
    >>> op.close().to_pylist()
    [{'query': 'ten', 'window': {'start': 10, 'end': 20}, 'total': 1}]
    """

    def __init__(
        self,
        windows: Any,
        aggs: Any,
        by: Any = None,
        time: Any = None,
        order_by: Any = None,
        ordered: bool = False,
        store: str = "auto",
        lateness: Any = None,
        emit: str = "final",
        late: str = "drop",
        idle: Any = None,
        max_ahead: Any = None,
        watermark: Any = None,
    ) -> None:
        given = dict(windows) if isinstance(windows, dict) else {"window": windows}
        check_request(given, aggs)
        if time is None:
            raise InvalidArgument(NO_TIME)
        if emit not in EMITS:
            raise InvalidArgument(f"emit must be one of {', '.join(EMITS)}; not {emit!r}")
        if late not in LATES:
            raise InvalidArgument(f"late must be one of {', '.join(LATES)}; not {late!r}")
        if store not in STORES:
            raise InvalidArgument(f"store must be one of {', '.join(STORES)}; not {store!r}")
        if not isinstance(ordered, bool):
            raise InvalidArgument(f"ordered must be True or False, not {ordered!r}")
        if ordered and watermark is not None:
            raise InvalidArgument("watermark is for streams that may be out of order; with ordered=True every row is a watermark")
        options = Options(
            ordered, store, check_duration_option("lateness", lateness), emit, late, check_duration_option("idle", idle),
            check_duration_option("max_ahead", max_ahead), check_duration_option("watermark", watermark),
        )  # fmt: skip
        self._asked = Asked(given, aggs, by, time, order_by, options)
        self._plan: Plan | None = None
        self._intake: Intake | None = None
        self._clock = time if isinstance(time, ProcessingTime) else None
        self._watermark = FAR_BACK
        self._stepped = FAR_BACK
        """The watermark of the last step; while nothing is due, the watermark goes on without one."""
        self._newest = FAR_BACK
        self._dirty = FAR_AHEAD
        self._states: list[State] = []
        self._manager = WindowManager(emit)
        self._late: list[pa.Table] = []
        self._stats = Stats()
        self._next_id = 0
        self._last_seen = np.empty(0, np.int64)
        self._is_closed = False
        self._keys_to_check = FEWEST_KEYS
        self._grouping = Grouping((), {})
        self._own_schema: pa.Schema | None = None
        """The columns of the rows as they come, without computed keys."""
        self._undecided: list[pa.RecordBatch] = []
        """Rows that came before every column had a value to tell its type by."""
        self._due: int | None = None
        """Nothing that was there at the last step is due before this time (:meth:`_reach`); None if nobody has asked since."""
        self._session_due = FAR_AHEAD
        """No session of the rows that came since is due before this time."""
        self._latest_put = FAR_BACK
        self._shortest_gap: int | None = None
        self._key_slack = 2.0
        """By how much the keys that are remembered may outgrow those that lived when that was last looked at."""

    # Rows in.

    def add(self, batch: Any) -> pa.Table | None:
        """Take rows in: anything that speaks Arrow, or a list of dictionaries.

        In a declared in-order stream, and with ``watermark=``, the results come back.
        """
        self._check_open()
        if self._clock is not None:
            batch = self._stamped(batch)
        options = self._asked.options
        if self._intake is None:
            found = self._first(batch)
            if found is None:
                return self._results_of_nothing()
            batch = found
        elif self._grouping.computed:
            batch = self._keyed(to_batches(batch, self._own_schema))
        assert self._intake is not None
        if options.ordered:
            return self._step(max(self._watermark, self._put_in_order(batch)))
        span = self._intake.put(batch)
        if span is not None:
            self._arrived(*span)
        if self._intake.is_full or self._ahead is not None:  # what is too far ahead is seen by the clock of now
            self._flush()
        if options.watermark is None:
            return None
        newest = self._newest if self._ahead is not None else max(self._newest, span[1] if span is not None else FAR_BACK, self._latest_put)
        return self._advanced(max(self._watermark, newest - self._delay)) if newest > FAR_BACK else self._emission.nothing

    def _arrived(self, first: int, last: int) -> None:
        """Rows of these times wait: they may make something due."""
        self._latest_put = max(self._latest_put, last)
        if first < self._reach(self._watermark):
            self._flush()  # whether they are late is asked of the watermark that they met
            self._due = FAR_BACK
        elif self._shortest_gap is not None:
            self._session_due = min(self._session_due, first + self._shortest_gap + 1)

    def _first(self, given: Any) -> Any:
        """Plan for the first rows; None while some column has no value yet, and so no type: its rows wait."""
        batches = to_batches(given, None)
        schema = batches[0].schema
        if self._undecided:
            known = {f.name: f for f in self._undecided[0].schema}
            schema = pa.schema([known[f.name] if pa.types.is_null(f.type) and f.name in known else f for f in schema])
            if set(schema.names) != set(known):
                raise InvalidArgument(f"the batch has the columns {', '.join(schema.names)}; the first one had {', '.join(known)}")
        if any(pa.types.is_null(f.type) for f in schema) and not self._asked.options.ordered:
            typed = [in_schema(b, schema) for b in [*self._undecided, *batches]]
            self._undecided = typed
            return None
        return self._begin(schema, batches)

    def _begin(self, schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Table:
        """The columns are known: all rows that came so far. If they do not fit, the operator is as it was."""
        schema = pa.schema([f.with_type(pa.float64()) if self._is_number(f) else f for f in schema])
        rows = pa.Table.from_batches([in_schema(b, schema) for b in [*self._undecided, *batches]])
        try:
            self._grouping = grouping_of(self._asked.by, schema)
            self._own_schema = schema
            rows = self._grouping.with_keys(rows)
            self._start(rows.schema)
            assert self._intake is not None
            self._intake.checked(rows)
        except SashError:
            self._plan, self._intake, self._states = None, None, []
            raise
        self._undecided = []
        return rows

    def _is_number(self, field: pa.Field) -> bool:
        """Whether a column that has had no value will be taken for numbers: aggregates read it, and nothing else does."""
        asked = self._asked
        read = [text for call in calls_of(asked.aggs) for text in call.inputs]
        others = [asked.time, *(n for given in (asked.by, asked.order_by) for n in ([given] if isinstance(given, str) else given or []))]
        return bool(pa.types.is_null(field.type)) and field.name in read and field.name not in others

    def _keyed(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """Rows with their computed keys."""
        assert self._own_schema is not None
        return self._grouping.with_keys(pa.Table.from_batches([in_schema(b, self._own_schema) for b in batches]))

    def _decide(self) -> None:
        """A step is asked for: columns that have had no value count as doubles from now on."""
        if self._intake is None and self._undecided:
            rows = self._begin(self._undecided[0].schema, [])
            assert self._intake is not None
            span = self._intake.put(rows)
            if span is not None:
                self._arrived(*span)

    def _results_of_nothing(self) -> pa.Table | None:
        return None if self._asked.options.watermark is None else pa.table({})

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidArgument("the operator is closed; make a new one")

    def _start(self, schema: pa.Schema, homes: Callable[[int], Home] | None = None, plan: Plan | None = None) -> None:
        """The columns are known: plan, and make the states. With ``homes``, the slices of the n-th state live there."""
        asked, options = self._asked, self._asked.options
        time = asked.time if self._clock is None else self._clock.name
        if plan is None:
            plan = make_plan(schema, asked.windows, asked.aggs, self._grouping.names, time, asked.order_by)
        plan = replace(plan, named=True)
        self._emission = Emission(plan, options.emit)
        self._lateness = 0 if options.lateness is None else plan.measure.ticks(options.lateness, "lateness")
        self._idle = None if options.idle is None else plan.measure.ticks(options.idle, "idle")
        self._ahead = None if options.max_ahead is None else self._ahead_of(plan, options.max_ahead)
        self._delay = 0 if options.watermark is None else plan.measure.ticks(options.watermark, "watermark")
        self._keys = KeyIndex(schema, plan.by)
        self._plan = plan
        self._reads = list(plan.reads)
        forms = tuple(stored_form(c, plan.schema) for c in plan.columns)
        self._workload = decisions.Workload(options.ordered, forms, bool(plan.order_by), options.emit == "final")
        groups: dict[tuple[str, bool, bool], list[Query]] = {}
        for query in plan.queries:
            kind = self._kind(query.window)
            # Behind a store, slices in chunks are kept apart from those that are one chunk, since that is written whole.
            apart = homes is not None and kind == "slices" and not isinstance(query.shape, Periodic)
            groups.setdefault((kind, apart, self._starts_again(query.window)), []).append(query)
        for at in sorted(groups, key=lambda at: (list(STATES).index(at[0]), *at[1:])):
            home = homes(len(self._states)) if homes is not None and at[0] == "slices" else None
            self._states.append(self._state(at[0], plan.with_queries(tuple(groups[at])), home=home))
        self._intake = Intake(plan, self._latest)
        self._note_queries()

    def _note_queries(self) -> None:
        """Queries came, or went: the next step looks at all of them."""
        assert self._plan is not None
        self._shortest_gap = min((q.shape.gap for q in self._plan.queries if isinstance(q.shape, Gaps)), default=None)
        self._due = FAR_BACK

    def _next_due(self) -> int:
        """When something is due next, as far as that can be known without a look at rows."""
        if self._due is None:
            self._due = self._found_due()
        return min(self._due, self._session_due)

    def _found_due(self) -> int:
        """When something is due next of what was there at the last step."""
        assert self._plan is not None
        options = self._asked.options
        own = any(isinstance(c.call.aggregate, UserAggregate) for c in self._plan.columns)  # whose errors belong to the rows of one step
        changing = options.emit == "running" or (options.emit == "update" and any(q.window.never_ends for q in self._plan.queries))
        plain = self._idle is None and self._ahead is None and not options.ordered and not changing and not own
        after = self._reach(self._watermark)
        return min([state.next_due(after) for state in self._states], default=FAR_BACK) if plain else FAR_BACK

    def _reach(self, watermark: int) -> int:
        """Up to when windows are reported at a watermark: to the end of the lateness, or at once where they may be revised."""
        return watermark - self._lateness if self._asked.options.emit == "final" else watermark

    @property
    def _keeps_rows(self) -> bool:
        return any(state.keeps_rows for state in self._states)

    def _kind(self, window: Window) -> str:
        """What is kept for a window: slices, slices with their rows, or rows that are cut into slices when a window is due."""
        if not self.decision(window).yes:
            return "slices" if window.is_by_time else IN_ORDER
        sliced = window.is_by_time and (window.is_session or not window.never_ends)
        return KIND if sliced and all(form is not None for form in self._workload.forms) else "rows"

    def _starts_again(self, window: Window) -> bool:
        """Whether a key that was idle begins anew in a window, so that nothing may be left there for other queries."""
        return self._idle is not None and window.never_ends

    def _state(self, kind: str, plan: Plan, since: int = FAR_BACK, home: Home | None = None) -> State:
        settings = () if issubclass(STATES[kind], KeyWindows) else (self._asked.options.store, home)
        made: State = STATES[kind](plan, since, *settings)
        return made

    def _ahead_of(self, plan: Plan, limit: Duration) -> int:
        if plan.measure.nanos_per_tick is None:
            raise InvalidArgument(f"max_ahead compares with the clock; the time column is of type {plan.measure.type}")
        return plan.measure.ticks(limit, "max_ahead")

    def decision(self, window: Window) -> decisions.Answer:
        """Whether a window's rows must be kept (figure 4)."""
        return decisions.keeps_rows(self._workload, window)

    def _stamped(self, given: Any) -> pa.Table:
        """Rows with the time of now."""
        assert self._clock is not None
        schema = None
        if self._own_schema is not None:
            schema = pa.schema([f for f in self._own_schema if f.name != self._clock.name])
        batches = to_batches(given, schema)
        if self._clock.name in batches[0].schema.names:
            raise InvalidArgument(f"the rows have a column named {self._clock.name!r} already; use time={self._clock.name!r}, or rename it")
        return pa.Table.from_batches([self._clock.stamped(b, max(self._newest, 0)) for b in batches])

    def _put_in_order(self, given: Any) -> int:
        """Take rows in, or raise and take none; the time of the last."""
        assert self._plan is not None
        assert self._intake is not None
        arrived = self._intake.checked(given)
        ticks = np.concatenate([a.ticks for a in arrived])
        if self._ahead is not None:
            ticks = ticks[ticks <= self._latest()]
        steps = np.diff(ticks, prepend=self._newest)
        if np.any(steps < 0):
            at = int(np.argmax(steps < 0))
            before = self._newest if at == 0 else int(ticks[at - 1])
            raise LateRow(f"row {at} of the batch has the time {ticks[at]}, after {before}; the stream was declared to be in order")
        self._intake.put_checked(arrived)
        return int(ticks[-1]) if len(ticks) else FAR_BACK

    def _latest(self) -> int:
        """The latest time that is believed now."""
        assert self._plan is not None
        if self._ahead is None:
            return FAR_AHEAD
        return clock.time_ns() // (self._plan.measure.nanos_per_tick or 1) + self._ahead

    def _flush(self) -> None:
        """Put the rows that wait into slices."""
        taken = None if self._intake is None else self._intake.take()
        if taken is None:
            return
        assert self._plan is not None
        plan = self._plan
        table, ticks, oldest, newest = taken
        self._stats.rows += table.num_rows
        whole = table
        if len(self._reads) < table.num_columns:
            table = table.select(self._reads)
        if len(ticks) < table.num_rows:
            known = table.column(plan.time).is_valid()
            self._stats.without_time += table.num_rows - len(ticks)
            table, whole = table.filter(known), whole.filter(known)
        if self._ahead is not None and len(ticks):
            fine = ticks <= self._latest()
            if not fine.all():
                self._stats.ahead += int((~fine).sum())
                table, whole, ticks = table.filter(pa.array(fine)), whole.filter(pa.array(fine)), ticks[fine]
                oldest, newest = span_of(ticks)
        if not len(ticks):
            return
        codes = self._keys.encode(table)
        horizon = max(self._watermark - self._lateness, FAR_BACK)
        verdicts = [state.late(ticks, codes, horizon) for state in self._states] if oldest < horizon else []
        if verdicts:
            late = np.logical_and.reduce(verdicts)
            if late.any():
                missed = self._missed(late, ticks)
                self._stats.late += len(missed)
                if len(missed) and self._asked.options.late == "output":
                    self._late.append(whole.take(pa.array(missed)))
                fine = ~late
                table, ticks, codes = table.filter(pa.array(fine)), ticks[fine], codes[fine]
                verdicts = [verdict[fine] for verdict in verdicts]
                if not len(ticks):
                    return
                oldest, newest = span_of(ticks)
        ids = np.arange(self._next_id, self._next_id + len(ticks)) if self._keeps_rows else ticks
        commits = []  # all states first make what they need: a function of a user that raises leaves none of them changed
        last = len(self._states) - 1
        for k, state in enumerate(self._states):
            if verdicts and verdicts[k].any():
                # Too late for all that is asked here, but not for others.
                mine = ~verdicts[k]
                if mine.any():
                    rows = (table.filter(pa.array(mine)), ticks[mine], codes[mine], ids[mine], span_of(ticks[mine]))
                    commits.append(state.prepare(*rows, at_once=k == last))
            else:
                commits.append(state.prepare(table, ticks, codes, ids, (oldest, newest), at_once=k == last))
        for commit in commits:
            commit()
        self._next_id += len(ticks)
        self._newest, self._dirty = max(self._newest, newest), min(self._dirty, oldest)
        self._seen_now(codes, ticks)

    def add_fragments(self, table: pa.Table) -> None:
        """Take slices in that were made elsewhere, by the same queries and of rows that have a time (:mod:`sash.slicing.fragments`)."""
        assert self._plan is not None
        if not table.num_rows:
            return
        layout = Layout.of(self._plan, counted=True)
        new = layout.slices(
            table, self._keys.encode(table.select(list(self._plan.by))) if self._plan.by else np.zeros(len(table), np.int64)
        )
        self._stats.rows += int(new.count.sum())
        horizon = max(self._watermark - self._lateness, FAR_BACK)
        if int(new.first.min()) < horizon:
            late = np.ones(len(new), bool)
            for state in self._states:
                late &= state.late(new.last, new.key, horizon)
            self._stats.late += int(new.count[self._missed(late, new.last)].sum())
            new = new.take(np.flatnonzero(~late))
            if not len(new):
                return
        commits = []
        for state in self._states:
            assert isinstance(state, SliceState)
            commits.append(state.prepare_slices(new, only=len(self._states) == 1))
        for commit in commits:
            commit()
        self._newest, self._dirty = max(self._newest, int(new.last.max())), min(self._dirty, int(new.first.min()))
        self._seen_now(new.key, new.last)

    def _missed(self, late: Array, ticks: Array) -> Array:
        """The places of what came too late for a window: what no window would hold is never late."""
        assert self._plan is not None
        places = np.flatnonzero(late)
        return places[some_window_holds((q.shape for q in self._plan.queries), ticks[places])]

    def _seen_now(self, codes: Array, ticks: Array) -> None:
        """These keys have rows of these times."""
        if self._idle is not None:
            missing = self._keys.count - len(self._last_seen)
            self._last_seen = np.concatenate([self._last_seen, np.full(missing, FAR_BACK, np.int64)])
            np.maximum.at(self._last_seen, codes, ticks)

    # Results out.

    def advance(self, watermark: Any) -> pa.Table:
        """No row older than ``watermark`` is expected any more; what that makes ready comes back."""
        self._check_open()
        self._decide()
        if self._plan is None:
            raise InvalidArgument("advance needs a batch first: the time column's type is not known yet; add one, even an empty one")
        if self._asked.options.ordered:
            raise InvalidArgument("in a declared in-order stream every row is a watermark; add gives the results")
        assert self._intake is not None
        quick = self._intake.plain.tick(watermark)
        tick = self._plan.measure.tick(watermark, "watermark") if quick is None else quick
        if tick < self._watermark:
            raise InvalidArgument(f"watermark {watermark!r} lies before the one given last; a watermark only advances")
        if abs(tick) >= FAR_AHEAD >> 1:
            raise InvalidArgument(f"watermark {watermark!r} is too far away")
        return self._advanced(tick)

    def _advanced(self, watermark: int) -> pa.Table:
        """The results of a watermark; if nothing is due, rows just go on waiting."""
        assert self._intake is not None
        if self._intake.are_all_plain and self._reach(watermark) < self._next_due():
            self._watermark = watermark
            return self._emission.nothing
        return self._step(watermark)

    def close(self) -> pa.Table:
        """The stream has ended: all windows that are still open."""
        self._check_open()
        self._decide()
        if self._plan is None:
            self._is_closed = True
            return pa.table({})
        result = self._step(max(self._watermark, self._newest), closing=True)
        self._is_closed = True
        return result

    def _step(self, watermark: int, *, closing: bool = False) -> pa.Table:
        assert self._plan is not None
        self._flush()
        options = self._asked.options
        idle = np.empty(0, np.int64)
        if self._idle is not None and not closing:
            idle = self._idle_keys(self._idle, watermark - self._lateness)
        step = Step(self._stepped, watermark, self._lateness, options.emit, self._dirty, closing, idle)
        parts = []
        self._manager.begin()
        for state in self._states:
            view, reports = self._manager.reports(state, step, self._keys.count)
            if view is not None and reports:
                parts.append((state, view, reports))
        result = self._emission.table(self._keys, parts)
        self._manager.commit()
        self._watermark, self._stepped, self._dirty = watermark, watermark, FAR_AHEAD
        for state in self._states:
            state.evict(step.closed_now, self._keys.count, idle)
            if options.ordered and isinstance(state, SliceState):
                state.merge_at_ends(step.closed_before, step.closed_now)
        if len(idle):
            self._last_seen[idle] = FAR_BACK
            for query in self._plan.queries:
                if query.window.never_ends:
                    self._manager.forget(query.name, idle)
        if self._plan.by and self._keys.count > self._keys_to_check:
            self._forget_keys()
        self._due, self._session_due = None, FAR_AHEAD
        return result

    def _idle_keys(self, idle: int, horizon: int) -> Array:
        """The keys of which no row of the last while can come any more, and no edge is to come after their last row."""
        assert self._plan is not None
        seen = self._last_seen
        until = seen + idle
        for shape in (q.shape for q in self._plan.queries if isinstance(q.shape, RowsBefore)):
            until = np.maximum(until, seen - (seen - shape.offset) % shape.every + shape.every - 1)
        return np.flatnonzero((seen > FAR_BACK) & (until < horizon))

    def _forget_keys(self) -> None:
        """A key's state goes when its last window has closed: so do its name and number, once enough have gone."""
        live = [state.live_keys() for state in self._states]
        kept = np.unique(np.concatenate([*live, self._manager.live_keys()]).astype(np.int64))
        if len(kept) <= self._keys.count // 2:
            went = self._keys.keep(kept)
            for state in self._states:
                state.renumber(went, kept)
            self._manager.renumber(went)
            if self._idle is not None:
                self._last_seen = self._last_seen[kept]
        self._keys_to_check = max(FEWEST_KEYS, int(self._key_slack * self._keys.count))

    def late_rows(self) -> pa.Table:
        """The rows that came too late for all of their windows since this was last asked (with ``late="output"``)."""
        if self._asked.options.late != "output":
            raise InvalidArgument('late rows are only counted (op.stats.late); make the operator with late="output" to have them')
        self._flush()
        rows, self._late = self._late, []
        if rows:
            return pa.concat_tables(rows)
        return self._plan.schema.empty_table() if self._plan is not None else pa.table({})

    # Queries come and go.

    def add_query(self, name: str, window: Window) -> None:
        """Another query, which sees the rows from the newest one so far on; its windows start after that."""
        self._check_open()
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a query's name is text, not {name!r}")
        if not isinstance(window, Window) or window.is_trailing:
            raise InvalidArgument(f"a query needs a window for sash.aggregate, not {window!r}")
        if name in self._asked.windows:
            raise InvalidArgument(f"there is a query named {name!r} already")
        if self._plan is None:
            self._asked.windows[name] = window
            return
        query = make_query(name, window, self._plan.measure, self._plan.schema)
        emission = Emission(self._plan.with_queries((*self._plan.queries, query)), self._asked.options.emit)
        self._flush()
        since = self._newest + 1 if self._newest > FAR_BACK else FAR_BACK
        shares_slices = window.context == "context free" and hasattr(query.shape, "edges")
        if shares_slices:
            query = replace(query, since=since)
        plan = self._plan.with_queries((*self._plan.queries, query))
        self._emission = emission
        self._reads = list(plan.reads)
        self._asked.windows[name] = window
        self._plan = plan
        self._note_queries()
        assert self._intake is not None
        self._intake.with_queries(plan)
        kind = self._kind(window)
        homes = (s for s in self._states if type(s) is STATES[kind] and s.since == FAR_BACK)
        home = next((s for s in homes if not self._starts_again(s.plan.queries[0].window)), None)
        if kind != "rows" and home is not None and shares_slices:
            home.with_queries(home.plan.with_queries((*home.plan.queries, query)))
        else:
            self._states.append(self._state(kind, plan.with_queries((query,)), since))

    def remove_query(self, name: str) -> None:
        """A query less; what only it needed is dropped."""
        self._check_open()
        if not isinstance(name, str) or name not in self._asked.windows:
            raise unknown("query", name, self._asked.windows)
        if len(self._asked.windows) == 1:
            raise InvalidArgument("the last query cannot be removed; close the operator instead")
        del self._asked.windows[name]
        self._manager.given.pop(name, None)
        if self._plan is None:
            return
        self._flush()
        self._plan = self._plan.with_queries(tuple(q for q in self._plan.queries if q.name != name))
        self._note_queries()
        assert self._intake is not None
        self._intake.with_queries(self._plan)
        self._emission = Emission(self._plan, self._asked.options.emit)
        for state in list(self._states):
            rest = tuple(q for q in state.plan.queries if q.name != name)
            if not rest:
                self._states.remove(state)
            elif len(rest) < len(state.plan.queries):
                state.with_queries(state.plan.with_queries(rest))
                state.evict(max(self._watermark - self._lateness, FAR_BACK), self._keys.count, np.empty(0, np.int64))

    # Taking it elsewhere.

    def snapshot(self) -> bytes:
        """All state as bytes, for :meth:`restore`."""
        if self._is_closed:
            raise InvalidArgument("the operator is closed; there is nothing left to snapshot")
        self._decide()
        self._flush()
        header: dict[str, Any] = {"query": of_request(self._asked), "stats": vars(self._stats), "started": self._plan is not None}
        sections: dict[str, pa.Table] = {}
        if self._plan is not None:
            given = {name: [c.tolist() for c in columns] for name, columns in self._manager.save().items()}
            since = {q.name: q.since for q in self._plan.queries if q.since > FAR_BACK}
            header |= {
                **self._facts(), "since": since, "last_seen": self._last_seen.tolist(), "given": given, "states": [],
            }  # fmt: skip
            sections["schema"] = self._plan.schema.empty_table()
            sections["keys"] = pa.table(dict(zip(self._plan.by, self._keys.values, strict=True)))
            sections["late"] = pa.concat_tables(self._late) if self._late else self._plan.schema.empty_table()
            for k, state in enumerate(self._states):
                facts, table = state.save()
                header["states"].append({**facts, "queries": [q.name for q in state.plan.queries]})
                sections[f"state{k}"] = table
        return pack(header, sections)

    def _facts(self) -> dict[str, Any]:
        """How far the stream is, as plain data."""
        return {name: getattr(self, f"_{name}") for name in FACTS}

    def _recall(self, facts: dict[str, Any]) -> None:
        """What :meth:`_facts` gave."""
        for name in FACTS:
            setattr(self, f"_{name}", validation.tick(facts.get(name, getattr(self, f"_{name}")), "the state"))
        if "stepped" not in facts:  # older states are of operators that stepped each time
            self._stepped = self._watermark
        if self._stepped > self._watermark:
            raise validation.damaged("the state", "its last step lies after its watermark")

    def restore_keys(self, columns: list[pa.Array]) -> None:
        """Take over stored keys."""
        assert self._plan is not None
        types = [key_type(self._plan.schema.field(name).type) for name in self._plan.by]
        self._keys.restore(validation.keys(columns, types, "the state's keys"))

    @classmethod
    def restore(cls, snapshot: bytes, windows: Any = None, aggs: Any = None) -> Operator:
        """The operator again. Users' own windows and aggregates are code, so they are given once more; they must be the same."""
        header, sections = unpack(snapshot)
        with validation.reading("the snapshot"):
            op = cls(**to_request(header["query"], windows, aggs))
            op._stats = Stats(**{name: validation.whole(n, "the snapshot") for name, n in header["stats"].items()})
            if header["started"]:
                op._resume(header, sections)
        return op

    def _resume(self, header: dict[str, Any], sections: dict[str, pa.Table]) -> None:
        schema = sections["schema"].schema
        self._grouping = grouping_of(self._asked.by, schema, may_exist=True)
        self._own_schema = pa.schema([f for f in schema if f.name not in self._grouping.computed])
        self._start(schema)
        assert self._plan is not None
        what = "the snapshot"
        keys = [c.combine_chunks() for c in sections["keys"].columns]
        validation.no_key_twice(keys, what)
        self.restore_keys(keys)
        self._recall(header)
        since = {name: validation.tick(t, what) for name, t in header["since"].items()}
        self._plan = self._plan.with_queries(tuple(replace(q, since=since.get(q.name, FAR_BACK)) for q in self._plan.queries))
        self._last_seen = validation.numbers(header["last_seen"], what, most=self._keys.count)
        self._manager.load(header["given"], self._keys.count)
        late = validation.like(sections["late"], self._plan.schema, what)
        self._late = [late] if late.num_rows else []
        by_name = {q.name: q for q in self._plan.queries}
        self._states, kinds = [], {q.name: self._kind(q.window) for q in self._plan.queries}
        for k, facts in enumerate(header["states"]):
            kind = facts.get("kind") or ("rows" if facts["keeps_rows"] else "slices")
            if not facts["queries"] or any(kinds[n] != kind for n in facts["queries"]):
                raise validation.damaged(what, f"queries are kept as {kind!r} that should not be")
            queries = tuple(by_name.pop(n) for n in facts["queries"])
            state = self._state(kind, self._plan.with_queries(queries), validation.tick(facts["since"], what))
            state.load(facts, sections[f"state{k}"], self._keys.count)
            self._states.append(state)
        if by_name:
            raise validation.damaged(what, f"the query {next(iter(by_name))!r} has no state")
        self._note_queries()

    # Looking at it.

    @property
    def stats(self) -> Stats:
        """Rows seen, late, set aside; slices and rows held; splits, merges and shifts made; bytes."""
        self._flush()
        found = replace(self._stats)
        for state in self._states:
            for name, value in state.stats.items():
                setattr(found, name, getattr(found, name) + value)
            found.merges += state.merges
            found.splits += state.splits
            found.shifts += state.shifts
        return found

    def explain(self) -> str:
        """The answers of the decision trees for the current queries."""
        if self._plan is None:
            return "the columns are not known yet: add a batch"
        options = self._asked.options
        lines = [f"stream: {'declared in order' if options.ordered else 'out of order'}, emit {options.emit}, store {options.store}"]
        for query in self._plan.queries:
            keeps, splits = self.decision(query.window), decisions.needs_splits(self._workload, query.window)
            lines.append(f"query {query.name}: {query.window!r} ({query.window.context})")
            lines.append(f"  rows kept: {'yes' if keeps.yes else 'no'} ({keeps.why})")
            lines.append(f"  slices split: {'yes' if splits.yes else 'no'} ({splits.why})")
            for column, form in zip(self._plan.columns, self._workload.forms, strict=True):
                how = decisions.removal(self._workload, query.window, form)
                lines.append(f"  rows removed from slices of {column.call!r}: {how}")
        for state in self._states:
            if isinstance(state, RowState) and state.slices.largest is not None:
                lines.append(f"slices of rows: at most {2 * state.slices.largest} rows, because late rows had many read again")
            if isinstance(state, SliceState):
                lines.append(f"slices: {state.choice.algorithm} ({'; '.join(state.choice.reasons)})")
        return "\n".join(lines)
