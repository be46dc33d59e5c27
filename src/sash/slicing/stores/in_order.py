"""Slices without rows in a declared in-order stream, for windows whose edges are known when their rows arrive: row windows and
punctuation (figure 4: in order, only context aware windows need rows).

A slice has the rank of its first row, and whether a punctuation opens it. Rows of the newest time are retained as rows, since others of
that time may still arrive, and a punctuation among them opens the window that holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import validation
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import SortedRows, View
from sash.slicing.ingest.cut import gather_runs, join_runs
from sash.slicing.ingest.slices import Slices, joined, validated
from sash.slicing.partials.column_partials import Partials
from sash.slicing.partials.stored import Kernels, StoredPartials
from sash.slicing.rows import order
from sash.slicing.rows.inputs import stored_fields, stored_form
from sash.slicing.rows.timed import KeyedRows
from sash.slicing.stores.closing_marks import ClosingMarks, lengthened
from sash.slicing.stores.slice_store import Commit, Step, StepSlices, StoreState, StoreStats
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Shape

Array = npt.NDArray[Any]

ROW = "row:"


@dataclass(frozen=True)
class RankedSlices:
    """Slices by key, then rank; the rank of a slice's first row is its cell."""

    slices: Slices
    opens: Array
    """For each punctuation query and slice whether its first row opens a window."""

    def __len__(self) -> int:
        return len(self.slices)

    def take(self, places: Array) -> RankedSlices:
        """The slices at ``places``."""
        return RankedSlices(self.slices.take(places), self.opens[:, places])


class InOrderStore(ClosingMarks):
    """The slice store and slice manager for windows of rows that come in order."""

    kind: ClassVar[str] = "in order"
    retains_rows: ClassVar[bool] = False
    row_number: ClassVar[str | None] = None

    def __init__(self, plan: Plan, since: int = FAR_BACK) -> None:
        super().__init__(plan, since)
        forms = [stored_form(c, plan.schema) for c in plan.columns]
        self._forms = [form for form in forms if form is not None]
        assert len(self._forms) == len(forms)
        self._kernels = [Kernels(form) for form in self._forms]
        none = np.empty(0, np.int64)
        nothing = Slices(none, none, none, none, none, [none for _ in forms], [k.empty(0) for k in self._kernels])
        self.stored = RankedSlices(nothing, np.empty((len(self._marked), 0), bool))
        self.ranks = none
        """For each key the rank of the next row that is put into a slice."""
        self.newest = FAR_BACK
        self.merges = 0

    @property
    def _marked(self) -> list[Shape]:
        """The shapes whose windows are opened by the values of a row."""
        return [q.shape for q in self.plan.queries if handler(q.shape).opened_by_rows]

    def _grow(self, keys: int) -> None:
        super()._grow(keys)
        self.ranks = lengthened(self.ranks, keys, 0)

    # Rows to slices.

    def prepare(self, rows: KeyedRows, *, at_once: bool = False) -> Commit:
        wait = super().prepare(rows)

        def commit() -> None:
            wait()
            self.newest = max(self.newest, rows.last)

        return commit

    def _place_pending(self) -> None:
        """Put pending rows into slices, except those of the newest time."""
        ready = self.pending.before(self.newest)
        if ready is not None:
            table, ticks, codes, _ = ready
            self._grow(int(codes.max()) + 1)
            self.stored = self._joined(self.stored, *self._sliced(table, ticks, codes))
            self.ranks += np.bincount(codes, minlength=len(self.ranks))

    def _sliced(self, table: pa.Table, ticks: Array, codes: Array) -> tuple[RankedSlices, Array]:
        """Rows as slices, and for each whether it starts at an edge: otherwise it continues its key's last slice."""
        table = table.combine_chunks()
        places = order.sorted_order(codes, len(self.ranks), ticks, [arrow_column(table.column(n)) for n in self.plan.order_by])
        if places is not None:
            table, ticks, codes = table.take(pa.array(places)), ticks[places], codes[places]
        key_offsets = np.searchsorted(codes, np.arange(len(self.ranks) + 1)).astype(np.int64)
        rows = SortedRows(np.ascontiguousarray(ticks), key_offsets, table, self.ranks)
        edges = np.zeros(rows.count + 1, bool)
        for query in self.plan.queries:
            edges[handler(query.shape).cuts(query.shape, rows)] = True
        begins = edges.copy()
        begins[key_offsets] = True
        first = np.flatnonzero(begins[:-1])
        offsets = np.append(first, rows.count).astype(np.int64)
        inputs = [stored_fields(column, table, form) for column, form in zip(self.plan.columns, self._forms, strict=True)]
        included_counts, states = gather_runs(self._kernels, inputs, offsets)
        key = codes[first]
        rank = self.ranks[key] + first - key_offsets[key]
        opens = np.array([handler(shape).opening_rows(shape, rows)[first] for shape in self._marked], bool).reshape(
            len(self._marked), len(first)
        )
        slices = Slices(key, rank, rows.ticks[first], rows.ticks[offsets[1:] - 1], np.diff(offsets), included_counts, states)
        return RankedSlices(slices, opens), edges[first]

    def _joined(self, old: RankedSlices, new: RankedSlices, begins: Array) -> RankedSlices:
        """Slices and newer ones; a newer one that starts at no edge is joined to the last of its key."""
        both = RankedSlices(joined([old.slices, new.slices]), np.concatenate([old.opens, new.opens], axis=1))
        places = np.lexsort((both.slices.cell, both.slices.key))
        return self._grouped(both.take(places), np.append(np.ones(len(old), bool), begins)[places])

    def _grouped(self, slices: RankedSlices, begins: Array) -> RankedSlices:
        """Slices with each run joined to one; a run begins where ``begins`` says, and at each key's first slice."""
        key = slices.slices.key
        begins[:1] = True
        begins[1:] |= key[1:] != key[:-1]
        if begins.all():
            return slices
        first = np.flatnonzero(begins)
        return RankedSlices(join_runs(self._kernels, slices.slices, np.append(first, len(slices)).astype(np.int64)), slices.opens[:, first])

    # What the window manager sees.

    def step(self, step: Step, keys: int) -> StepSlices | None:
        """All slices, including those of pending rows."""
        self._place_pending()
        self._grow(keys)
        queries = self._ending(step, keys) if step.only_ends else list(range(len(self.plan.queries)))
        if not queries:
            return None
        pending, visible = self.pending.all(), self.stored
        if pending is not None:
            visible = self._joined(visible, *self._sliced(*pending[:3]))
        s = visible.slices
        key_offsets = np.searchsorted(s.key, np.arange(keys + 1)).astype(np.int64)
        gone, filled = self.ranks[:keys].copy(), np.flatnonzero(np.diff(key_offsets))
        gone[filled] = s.cell[key_offsets[filled]]
        opens = dict(zip(self._marked, visible.opens, strict=True))
        view = View(key_offsets, s.first, s.first, s.last, s.count, gone=gone, opens=opens)
        return StepSlices(view, lambda: self._partials_over(s), queries)

    def _ending(self, step: Step, keys: int) -> list[int]:
        """The queries that may have a window that becomes final in a step."""
        counts = self.ranks[:keys] + sum(np.bincount(codes, minlength=keys) for codes in self.pending.codes())
        marks = {name: closed[:keys] for name, closed in self.closed.items()}
        after, until, queries = step.closed_before, step.closed_now, enumerate(self.plan.queries)
        return [k for k, q in queries if handler(q.shape).may_end(q.shape, marks[q.name], counts, after, until)]

    def _partials_over(self, slices: Slices) -> list[Partials]:
        parts = zip(self.plan.columns, self._kernels, slices.states, slices.included_counts, strict=True)
        return [StoredPartials(column, kernels, states, included, None) for column, kernels, states, included in parts]

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """No row is late, except for queries that were added later."""
        return ticks < self.since

    # Eviction.

    def evict(self, step: Step, keys: int) -> None:
        """Drop what no open window needs, and the keys that are idle."""
        idle = step.idle
        self._grow(keys)
        s = self.stored.slices
        needed = np.zeros(len(s), bool)
        for query in self.plan.queries:
            shape = query.shape
            needed |= handler(shape).needs_slice(shape, s.cell, s.count, s.first, self.closed[query.name][s.key])
        needed &= ~np.isin(s.key, idle)
        if not needed.all():
            self.stored = self.stored.take(np.flatnonzero(needed))
        self._merge()
        self.ranks[idle] = 0
        self._begin_again(idle)

    def _merge(self) -> None:
        """Join slices between which no window starts, and none ends that is still to be emitted."""
        rank, key = self.stored.slices.cell, self.stored.slices.key
        begins = np.asarray(self.stored.opens.any(axis=0))
        for query in self.plan.queries:
            begins |= handler(query.shape).starts_at(query.shape, rank, self.closed[query.name][key])
        before = len(self.stored)
        self.stored = self._grouped(self.stored, begins)
        self.merges += before - len(self.stored)

    def with_queries(self, plan: Plan) -> None:
        """Serve fewer queries from now on."""
        names = {q.name for q in plan.queries}
        left = [q.name in names for q in self.plan.queries if handler(q.shape).opened_by_rows]
        self._serve(plan)
        self.stored = RankedSlices(self.stored.slices, self.stored.opens[np.array(left, bool)])
        self._merge()

    # Keys, snapshots and statistics.

    def live_keys(self) -> Array:
        """The keys that have state; row windows count on, so their keys have state until they are idle."""
        return np.concatenate([self.stored.slices.key, np.flatnonzero(self.ranks), *self.pending.codes()])

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Replace key numbers by their new ones, which are in the same order."""
        self._grow(len(new_id_of))
        s = self.stored.slices
        self.stored = RankedSlices(s.rebuilt([new_id_of[s.key], *s.columns()[1:]]), self.stored.opens)
        self.pending.renumber(new_id_of)
        self.ranks = self.ranks[retained]
        self.closed = {name: marks[retained] for name, marks in self.closed.items()}

    def open_counts(self, horizon: int, newest: int) -> tuple[int, int]:
        """An estimate: one window of each query for each key."""
        return 0, len(np.unique(self.live_keys())) * len(self.plan.queries)

    def export(self) -> StoreState:
        """Slices and pending rows as columns side by side; the shorter are padded with nulls."""
        columns = {f"c{k}": pa.array(c) for k, c in enumerate([*self.stored.slices.columns(), *self.stored.opens])}
        pending = self.pending.all()
        rows = 0 if pending is None else len(pending[1])
        if pending is not None:
            table, *numbers = pending
            columns |= {ROW + name: table.column(name).combine_chunks() for name in table.column_names}
            columns |= {f"n{k}": pa.array(n, pa.int64()) for k, n in enumerate(numbers)}
        length = max(len(self.stored), rows)
        filled = {name: pa.concat_arrays([c, pa.nulls(length - len(c), c.type)]) for name, c in columns.items()}
        facts = {
            "kind": self.kind, "keeps_rows": False, "since": self.since, "merges": self.merges, "splits": 0, "newest": self.newest,
            "slices": len(self.stored), "rows": rows, "ranks": self.ranks.tolist(),
            "closed": self._exported_marks(),
        }  # fmt: skip
        return StoreState(self.kind, facts, pa.table(filled))

    def import_(self, state: StoreState, keys: int) -> None:
        """Continue from exported state, with so many keys."""
        what, facts, table = "the state's slices", state.facts, state.table
        assert table is not None
        slice_count, row_count = (validation.whole(facts[name], what, 0, table.num_rows) for name in ("slices", "rows"))
        slices, rows = table.slice(0, slice_count), table.slice(0, row_count)
        count = len(self.stored.slices.columns())
        arrays = [arrow_column(slices.column(f"c{k}")) for k in range(count + len(self._marked))]
        if any(a.null_count for a in arrays):
            raise validation.damaged(what, "a value is missing")
        columns = [a.to_numpy(zero_copy_only=False).copy() for a in arrays]
        opens = np.array(columns[count:], bool).reshape(len(self._marked), slice_count)
        self.stored = RankedSlices(validated(columns[:count], self.stored.slices, keys, what), opens)
        if row_count:
            names = list(self.plan.reads)
            pending, times = validation.rows(rows.select([ROW + n for n in names]).rename_columns(names), self.plan, "the state's rows")
            limits = [(FAR_BACK, FAR_AHEAD), (0, keys), (FAR_BACK, FAR_AHEAD)]
            numbers = [validation.column(rows, f"n{k}", what, low=low, high=high).copy() for k, (low, high) in enumerate(limits)]
            if not np.array_equal(times, numbers[0]):
                raise validation.damaged(what, "the times of rows are not those that it says")
            self.pending.add(pending, *numbers)
        self.newest, self.merges = validation.tick(facts["newest"], what), validation.whole(facts["merges"], what)
        self.ranks = validation.numbers(facts["ranks"], what, most=keys, low=0)
        after, present = lengthened(self.ranks, keys, 0), np.zeros(keys, np.int64)
        np.add.at(present, self.stored.slices.key, self.stored.slices.count)
        self._import_marks(facts["closed"], keys, after - present, after)

    def stats(self) -> StoreStats:
        """The store's statistics; the rows of the newest time are retained."""
        return StoreStats(len(self.stored), self.pending.count, self.merges, 0, 0)

    def nbytes(self) -> int:
        return self.stored.slices.nbytes + self.stored.opens.nbytes + self.ranks.nbytes + self.pending.nbytes

    def explain(self) -> list[str]:
        return []
