"""Retained rows: for windows that a late row may shift or split, and aggregates whose partials need their rows.

Rows are sorted by key, then time. Slices are cut from them at each step that may emit a window, and retained from step to step
(:class:`~sash.slicing.stores.row_slices.RowSlices`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import validation
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import RetainedRows, SortedRows, places_in_keys
from sash.slicing.rows import order
from sash.slicing.stores.closing_marks import ClosingMarks, horizon_of_rows, lengthened
from sash.slicing.stores.lineage import GrowingColumns, Lineage
from sash.slicing.stores.row_slices import RowSlices
from sash.slicing.stores.slice_store import Step, StepSlices, StoreState, StoreStats
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]


MOST_CHUNKS = 16
MANY_TIMES = 2
"""New rows are inserted into at least so many times as many old ones; with fewer, all are sorted."""


class SortedRowStore(ClosingMarks):
    """The slice store of sorted rows, with the marks of how far each key's windows are closed."""

    kind: ClassVar[str] = "rows"
    retains_rows: ClassVar[bool] = True
    row_number: ClassVar[str | None] = "\0ids"

    def __init__(self, plan: Plan, since: int = FAR_BACK) -> None:
        super().__init__(plan, since)
        self.table = plan.schema.empty_table().select(list(plan.reads))
        self.numbers_of_rows = GrowingColumns(3)
        """Ticks, codes and ids."""
        self.lineage = Lineage()
        """Where rows were when slices were last cut."""
        self.slices = RowSlices(plan)
        self.bases = np.empty(0, np.int64)
        """For each key how many of its rows were dropped, because row windows count from the first."""
        self.gone_until = np.empty(0, np.int64)
        """For each key the time of the last row that was dropped."""
        contexts = {id(q.shape): handler(q.shape).contexts(q.shape) for q in plan.queries}
        self.notices = {shape: notices for shape, notices in contexts.items() if notices is not None}

    @property
    def ticks(self) -> Array:
        """The rows' times."""
        return self.numbers_of_rows.column(0)

    @property
    def codes(self) -> Array:
        """The numbers of the rows' keys."""
        return self.numbers_of_rows.column(1)

    @property
    def ids(self) -> Array:
        """The rows' own numbers."""
        return self.numbers_of_rows.column(2)

    def _place_pending(self, horizon: int) -> None:
        """Insert the pending rows before ``horizon`` among the others: rows that arrive later come after them in time."""
        ready = self.pending.before(horizon)
        if ready is not None:
            # Rows of one time are in the order of arrival, so runs are joined in that order.
            self._place(*ready)

    def _place(self, table: pa.Table, ticks: Array, codes: Array, ids: Array) -> None:
        """Insert rows, each at its place in the order."""
        self._notice(ticks, codes)
        # With one key, the rows before the oldest new one stay where they are.
        unchanged = 0 if self.plan.by else int(np.searchsorted(self.ticks, ticks.min()))
        tail = pa.concat_tables([self.table.slice(unchanged), table]).combine_chunks()
        numbers = np.concatenate([self.numbers_of_rows.since(unchanged), np.stack([ticks, codes, ids])], axis=1)
        origin = np.concatenate([self.lineage.of(unchanged), np.full(len(ids), -1, np.int64)])
        places = self._order(tail, numbers, len(ids))
        if places is not None:
            tail, numbers, origin = tail.take(pa.array(places)), numbers.take(places, axis=1), origin[places]
        if unchanged:
            tail = pa.concat_tables([self.table.slice(0, unchanged), tail])
        self.table = tail if tail.num_columns == 0 or tail.column(0).num_chunks <= MOST_CHUNKS else tail.combine_chunks()
        self.numbers_of_rows.put(unchanged, numbers)
        self.lineage.put(unchanged, origin)

    def _order(self, table: pa.Table, numbers: Array, new: int) -> Array | None:
        """The permutation that sorts rows of which the last are ``new`` and the others in order; None if all are in order."""
        ticks, codes, _ = numbers
        old, keys = len(ticks) - new, int(codes.max()) + 1
        if self.plan.order_by or not self.plan.by or MANY_TIMES * new > old:
            return order.sorted_order(codes, keys, ticks, [arrow_column(table.column(name)) for name in self.plan.order_by])
        among = order.sorted_order(codes[old:], keys, ticks[old:], [])
        among = np.arange(old, old + new) if among is None else among + old
        offsets = np.searchsorted(codes[:old], np.arange(keys + 1)).astype(np.int64)
        before = places_in_keys(offsets, ticks[:old], codes[among], ticks[among] + 1)  # among rows of one time, the older ones come first
        return np.insert(np.arange(old), before, among)

    def _notice(self, ticks: Array, codes: Array) -> None:
        """Have users' own windows notified of a key's rows again if some are inserted between others."""
        if self.notices:
            offsets = np.searchsorted(self.codes, np.arange(int(codes.max()) + 2))
            filled = offsets[codes + 1] > offsets[codes]
            last = self.ticks[offsets[codes[filled] + 1] - 1]
            between = ticks[filled] <= last if self.plan.order_by else ticks[filled] < last
            for notices in self.notices.values():
                notices.show_again(np.unique(codes[filled][between]).tolist())

    def _grow(self, keys: int) -> None:
        super()._grow(keys)
        self.bases = lengthened(self.bases, keys, 0)
        self.gone_until = lengthened(self.gone_until, keys, FAR_BACK)

    def step(self, step: Step, keys: int) -> StepSlices | None:
        self._place_pending(horizon_of_rows(step))
        self._grow(keys)
        rows = self._rows(keys)
        queries = self._ending(step, rows) if step.only_ends else list(range(len(self.plan.queries)))
        if not queries:
            return None
        view, partials = self.slices.cut(self.plan, rows, self.lineage)
        self.lineage.look(len(self.ticks))
        return StepSlices(view, lambda: partials, queries, row_ids=self.ids)

    def _rows(self, keys: int) -> SortedRows:
        offsets = np.searchsorted(self.codes, np.arange(keys + 1)).astype(np.int64)
        return SortedRows(self.ticks, offsets, self.table, self.bases, self.notices)

    def _ending(self, step: Step, rows: SortedRows) -> list[int]:
        """The queries that may have a window that becomes final in a step."""
        after, until, keys = step.closed_before, step.closed_now, len(rows.key_offsets) - 1
        counts = rows.before(until) - rows.key_offsets[:-1] + self.bases[:keys]
        marks = {name: closed[:keys] for name, closed in self.closed.items()}
        queries = enumerate(self.plan.queries)
        return [k for k, q in queries if handler(q.shape).may_end(q.shape, marks[q.name], counts, after, until)]

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """For each row whether all of its windows are closed."""
        keys = max(int(codes.max(initial=-1)) + 1, len(self.bases))
        self._grow(keys)
        late, retained = np.ones(len(ticks), bool), self._retained(keys)
        for query in self.plan.queries:
            late &= handler(query.shape).late(query.shape, retained, self.closed[query.name][codes], ticks, codes, horizon)
        return late | (ticks < self.since)

    def _retained(self, keys: int) -> RetainedRows:
        return RetainedRows(self._rows(keys), self.bases, self.gone_until, self.pending.between)

    def evict(self, step: Step, keys: int) -> None:
        """Drop each key's rows before the first that an open window may need."""
        idle = step.idle
        self._grow(keys)
        if len(self.ticks):
            self._drop(step.closed_now, keys, idle)
        if len(idle) and self._starts_again:
            self.bases[idle] = 0
            self.gone_until[idle] = FAR_BACK
            self._begin_again(idle)
            for notices in self.notices.values():
                notices.forget(idle.tolist())

    def _drop(self, horizon: int, keys: int, idle: Array) -> None:
        rows = self._rows(keys)
        offsets = rows.key_offsets
        filled = np.flatnonzero(np.diff(offsets))
        retained = self._retained(keys)
        for query in self.plan.queries:
            marks = self.closed[query.name]
            marks[:keys] = handler(query.shape).advanced_marks(query.shape, rows, marks[:keys], horizon)
        # Rows are dropped from the front only, so that ranks and contexts stay valid. A row may still be inserted before one at or after
        # the horizon, and take its rank.
        first = rows.before(horizon)
        for query in self.plan.queries:
            needed = handler(query.shape).first_needed(query.shape, retained, self.closed[query.name][:keys], horizon)
            first = np.minimum(first, needed)
        first = np.clip(first, offsets[:-1], offsets[1:])
        if self._starts_again:
            first[idle] = offsets[idle + 1]
        gone = first - offsets[:-1]
        if not gone.any():
            return
        own = {id(q.shape): self.closed[q.name] for q in self.plan.queries if id(q.shape) in self.notices}
        after = {window: self.notices[window].after(rows, gone) for window in own}
        for window, closed in own.items():
            self.notices[window].drop(rows, gone, after[window], closed)
        self.bases[:keys] += gone
        some = np.flatnonzero(gone)
        self.gone_until[some] = np.maximum(self.gone_until[some], self.ticks[first[some] - 1])
        if len(filled) == 1:
            count = int(gone.sum())
            self.table = self.table.slice(count)
            self.numbers_of_rows.drop(count)
            self.lineage.drop(count)
        else:
            retained_places = np.flatnonzero(np.arange(len(self.ticks)) >= np.repeat(first, np.diff(offsets)))
            self.table = self.table.take(pa.array(retained_places)).combine_chunks()
            self.numbers_of_rows.put(0, self.numbers_of_rows.since(0).take(retained_places, axis=1))
            self.lineage.put(0, self.lineage.of(0)[retained_places])
        self.slices.dropped(self._rows(keys))

    @property
    def _starts_again(self) -> bool:
        """Whether all state of an idle key is dropped; queries for which that is so have a store of their own."""
        return all(query.window.never_ends for query in self.plan.queries)

    def with_queries(self, plan: Plan) -> None:
        """Serve other queries from now on."""
        self._serve(plan)
        self.table = self.table.select(list(plan.reads))
        self.notices = {id(q.shape): self.notices[id(q.shape)] for q in plan.queries if id(q.shape) in self.notices}

    def live_keys(self) -> Array:
        """The keys that have state; row windows count on, so their keys have state until they are idle."""
        counted = [self.closed[q.name] for q in self.plan.queries if handler(q.shape).counts_on]
        begun = np.flatnonzero(np.any([self.bases != 0, *(c != 0 for c in counted)], axis=0)) if counted else np.empty(0, np.int64)
        noticed = [np.flatnonzero(self.closed[q.name] > FAR_BACK) for q in self.plan.queries if id(q.shape) in self.notices]
        noticed += [notices.live_keys() for notices in self.notices.values()]
        return np.concatenate([self.codes, begun, *noticed, *self.pending.codes()])

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Replace key numbers by their new ones, which are in the same order."""
        self._grow(len(new_id_of))
        self.codes[:] = new_id_of[self.codes]
        self.pending.renumber(new_id_of)
        self.slices.renumber(new_id_of, retained)
        self.bases, self.gone_until = self.bases[retained], self.gone_until[retained]
        self.closed = {name: marks[retained] for name, marks in self.closed.items()}
        for notices in self.notices.values():
            notices.renumber(new_id_of, retained)

    def open_counts(self, horizon: int, newest: int) -> tuple[int, int]:
        """An estimate: one window of each query for each key that has rows."""
        return 0, len(np.unique(self.codes)) * len(self.plan.queries)

    def export(self) -> StoreState:
        """The rows: slices are cut from them again after an import."""
        self._place_pending(FAR_AHEAD)
        facts = {
            "keeps_rows": True, "since": self.since, "merges": self.slices.merges, "splits": self.slices.splits,
            "shifts": self.slices.shifts,
            "bases": self.bases.tolist(), "gone_until": self.gone_until.tolist(),
            "closed": self._exported_marks(),
            "notices": {q.name: self.notices[id(q.shape)].save() for q in self.plan.queries if id(q.shape) in self.notices},
        }  # fmt: skip
        extra = {"\0ticks": self.ticks, "\0codes": self.codes, "\0ids": self.ids}
        table = self.table
        for name, values in extra.items():
            table = table.append_column(name, pa.array(values, pa.int64()))
        return StoreState(self.kind, facts, table)

    def import_(self, state: StoreState, keys: int) -> None:
        """Continue from exported state, with so many keys."""
        what, facts = "the state's rows", state.facts
        assert state.table is not None
        table = state.table.combine_chunks()
        numbers = ["\0ticks", "\0codes", "\0ids"]
        whole, times = validation.rows(table.drop_columns(numbers), self.plan, what)
        for name in numbers:
            whole = whole.append_column(name, table.column(name))
        table = whole
        if not np.array_equal(times, validation.column(table, "\0ticks", what, low=FAR_BACK, high=FAR_AHEAD)):
            raise validation.damaged(what, "the times of rows are not those that it says")
        validation.column(table, "\0codes", what, low=0, high=keys)
        ids = validation.column(table, "\0ids", what, low=0, high=FAR_AHEAD)
        if len(np.unique(ids)) < len(ids):
            raise validation.damaged(what, "a row is there twice")
        if np.any(ids[1:] < ids[:-1]):  # by arrival first: that is the order of ties
            table = table.take(pa.array(np.argsort(ids)))
        ticks, codes, ids = (table.column(f"\0{n}").to_numpy().copy() for n in ("ticks", "codes", "ids"))
        if len(ids):
            self._place(table.drop_columns(["\0ticks", "\0codes", "\0ids"]), ticks, codes, ids)
        for query in self.plan.queries:
            if query.name in facts.get("notices", {}):
                self.notices[id(query.shape)].load(facts["notices"][query.name], keys)
        self.bases = validation.numbers(facts["bases"], what, most=keys, low=0)
        self.gone_until = validation.numbers(facts["gone_until"], what, most=keys)
        first = lengthened(self.bases, keys, 0)
        self._import_marks(facts["closed"], keys, first, first + np.bincount(self.codes, minlength=keys))
        counts = [validation.whole(n, what) for n in (facts["merges"], facts["splits"], facts.get("shifts", 0))]
        self.slices.merges, self.slices.splits, self.slices.shifts = counts

    def stats(self) -> StoreStats:
        s = self.slices
        return StoreStats(len(s), len(self.ticks) + self.pending.count, s.merges, s.splits, s.shifts)

    def nbytes(self) -> int:
        rows = self.table.nbytes + self.numbers_of_rows.nbytes + self.lineage.nbytes
        return int(rows + self.pending.nbytes + self.slices.nbytes)

    def explain(self) -> list[str]:
        if self.slices.largest is None:
            return []
        return [f"slices of rows: at most {2 * self.slices.largest} rows, because late rows had many read again"]
