"""Slices without rows in a declared in-order stream, for windows whose edges are known by the time their rows come: row windows and
punctuation (figure 4: in order, only context aware windows need rows).

A slice knows the rank of its first row, and whether a punctuation opens it. Rows of the newest time wait as rows, since others of that time
may still come, and a punctuation among them opens the window that holds them all.
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
class Opened:
    """Slices by key, then rank, which stands for their cell."""

    slices: Slices
    opens: Array
    """For each punctuation query and slice whether its first row opens a window."""

    def __len__(self) -> int:
        return len(self.slices)

    def take(self, places: Array) -> Opened:
        """The slices at ``places``."""
        return Opened(self.slices.take(places), self.opens[:, places])


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
        self.held = Opened(nothing, np.empty((len(self._marked), 0), bool))
        self.ranks = none
        """For each key the rank of the next row that gets its place."""
        self.newest = FAR_BACK
        self.merges = 0

    @property
    def _marked(self) -> list[Shape]:
        """The shapes whose windows are opened by what a row holds."""
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
        """Put rows into slices, but for those of the newest time."""
        ready = self.pending.before(self.newest)
        if ready is not None:
            table, ticks, codes, _ = ready
            self._grow(int(codes.max()) + 1)
            self.held = self._joined(self.held, *self._sliced(table, ticks, codes))
            self.ranks += np.bincount(codes, minlength=len(self.ranks))

    def _sliced(self, table: pa.Table, ticks: Array, codes: Array) -> tuple[Opened, Array]:
        """Rows as slices, and which of them start at an edge: others go on with what their key has."""
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
        held, states = gather_runs(self._kernels, inputs, offsets)
        key = codes[first]
        rank = self.ranks[key] + first - key_offsets[key]
        opens = np.array([handler(shape).opening_rows(shape, rows)[first] for shape in self._marked], bool).reshape(
            len(self._marked), len(first)
        )
        slices = Slices(key, rank, rows.ticks[first], rows.ticks[offsets[1:] - 1], np.diff(offsets), held, states)
        return Opened(slices, opens), edges[first]

    def _joined(self, old: Opened, new: Opened, begins: Array) -> Opened:
        """Slices with newer ones, of which those that start at no edge go on with the last of their key."""
        both = Opened(joined([old.slices, new.slices]), np.concatenate([old.opens, new.opens], axis=1))
        places = np.lexsort((both.slices.cell, both.slices.key))
        return self._grouped(both.take(places), np.append(np.ones(len(old), bool), begins)[places])

    def _grouped(self, slices: Opened, begins: Array) -> Opened:
        """Runs of a key's slices as one each: one begins at each of these, and at the first of a key."""
        key = slices.slices.key
        begins[:1] = True
        begins[1:] |= key[1:] != key[:-1]
        if begins.all():
            return slices
        first = np.flatnonzero(begins)
        return Opened(join_runs(self._kernels, slices.slices, np.append(first, len(slices)).astype(np.int64)), slices.opens[:, first])

    # What the window manager sees.

    def step(self, step: Step, keys: int) -> StepSlices | None:
        """All slices, those of pending rows among them."""
        self._place_pending()
        self._grow(keys)
        queries = self._ending(step, keys) if step.only_ends else list(range(len(self.plan.queries)))
        if not queries:
            return None
        pending, seen = self.pending.all(), self.held
        if pending is not None:
            seen = self._joined(seen, *self._sliced(*pending[:3]))
        s = seen.slices
        key_offsets = np.searchsorted(s.key, np.arange(keys + 1)).astype(np.int64)
        gone, filled = self.ranks[:keys].copy(), np.flatnonzero(np.diff(key_offsets))
        gone[filled] = s.cell[key_offsets[filled]]
        opens = dict(zip(self._marked, seen.opens, strict=True))
        view = View(key_offsets, s.first, s.first, s.last, s.count, gone=gone, opens=opens)
        return StepSlices(view, lambda: self._partials_over(s), queries)

    def _ending(self, step: Step, keys: int) -> list[int]:
        """Which queries may have a window that cannot change any more after a step."""
        counts = self.ranks[:keys] + sum(np.bincount(codes, minlength=keys) for codes in self.pending.codes())
        marks = {name: closed[:keys] for name, closed in self.closed.items()}
        after, until, queries = step.closed_before, step.closed_now, enumerate(self.plan.queries)
        return [k for k, q in queries if handler(q.shape).may_end(q.shape, marks[q.name], counts, after, until)]

    def _partials_over(self, slices: Slices) -> list[Partials]:
        parts = zip(self.plan.columns, self._kernels, slices.states, slices.held, strict=True)
        return [StoredPartials(column, kernels, states, held, None) for column, kernels, states, held in parts]

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """No row is late."""
        return ticks < self.since

    # Slices that go.

    def evict(self, step: Step, keys: int) -> None:
        """Drop what no open window needs, and the keys that are idle."""
        idle = step.idle
        self._grow(keys)
        s = self.held.slices
        needed = np.zeros(len(s), bool)
        for query in self.plan.queries:
            shape = query.shape
            needed |= handler(shape).needs_slice(shape, s.cell, s.count, s.first, self.closed[query.name][s.key])
        needed &= ~np.isin(s.key, idle)
        if not needed.all():
            self.held = self.held.take(np.flatnonzero(needed))
        self._merge()
        self.ranks[idle] = 0
        self._begin_again(idle)

    def _merge(self) -> None:
        """Join slices between which no window starts, nor ends that is to be given."""
        rank, key = self.held.slices.cell, self.held.slices.key
        begins = np.asarray(self.held.opens.any(axis=0))
        for query in self.plan.queries:
            begins |= handler(query.shape).starts_at(query.shape, rank, self.closed[query.name][key])
        before = len(self.held)
        self.held = self._grouped(self.held, begins)
        self.merges += before - len(self.held)

    def with_queries(self, plan: Plan) -> None:
        """Fewer queries from now on."""
        names = {q.name for q in plan.queries}
        left = [q.name in names for q in self.plan.queries if handler(q.shape).opened_by_rows]
        self._serve(plan)
        self.held = Opened(self.held.slices, self.held.opens[np.array(left, bool)])
        self._merge()

    # Keys, snapshots, and what is told of it.

    def live_keys(self) -> Array:
        """The keys that have something here; row windows count on, so theirs stay until they are idle."""
        return np.concatenate([self.held.slices.key, np.flatnonzero(self.ranks), *self.pending.codes()])

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Keys have new numbers, in the same order."""
        self._grow(len(new_id_of))
        s = self.held.slices
        self.held = Opened(s.rebuilt([new_id_of[s.key], *s.columns()[1:]]), self.held.opens)
        self.pending.renumber(new_id_of)
        self.ranks = self.ranks[retained]
        self.closed = {name: marks[retained] for name, marks in self.closed.items()}

    def open_counts(self, horizon: int, newest: int) -> tuple[int, int]:
        """As far as that shows: one of each query for each key."""
        return 0, len(np.unique(self.live_keys())) * len(self.plan.queries)

    def export(self) -> StoreState:
        """Slices and pending rows side by side, the shorter filled up with nulls."""
        columns = {f"c{k}": pa.array(c) for k, c in enumerate([*self.held.slices.columns(), *self.held.opens])}
        pending = self.pending.all()
        rows = 0 if pending is None else len(pending[1])
        if pending is not None:
            table, *numbers = pending
            columns |= {ROW + name: table.column(name).combine_chunks() for name in table.column_names}
            columns |= {f"n{k}": pa.array(n, pa.int64()) for k, n in enumerate(numbers)}
        length = max(len(self.held), rows)
        filled = {name: pa.concat_arrays([c, pa.nulls(length - len(c), c.type)]) for name, c in columns.items()}
        facts = {
            "kind": self.kind, "keeps_rows": False, "since": self.since, "merges": self.merges, "splits": 0, "newest": self.newest,
            "slices": len(self.held), "rows": rows, "ranks": self.ranks.tolist(),
            "closed": self._exported_marks(),
        }  # fmt: skip
        return StoreState(self.kind, facts, pa.table(filled))

    def import_(self, state: StoreState, keys: int) -> None:
        """Go on from exported data, with so many keys."""
        what, facts, table = "the state's slices", state.facts, state.table
        assert table is not None
        some, many = (validation.whole(facts[name], what, 0, table.num_rows) for name in ("slices", "rows"))
        held, rows = table.slice(0, some), table.slice(0, many)
        count = len(self.held.slices.columns())
        arrays = [arrow_column(held.column(f"c{k}")) for k in range(count + len(self._marked))]
        if any(a.null_count for a in arrays):
            raise validation.damaged(what, "a value is missing")
        columns = [a.to_numpy(zero_copy_only=False).copy() for a in arrays]
        opens = np.array(columns[count:], bool).reshape(len(self._marked), some)
        self.held = Opened(validated(columns[:count], self.held.slices, keys, what), opens)
        if many:
            names = list(self.plan.reads)
            pending, times = validation.rows(rows.select([ROW + n for n in names]).rename_columns(names), self.plan, "the state's rows")
            limits = [(FAR_BACK, FAR_AHEAD), (0, keys), (FAR_BACK, FAR_AHEAD)]
            numbers = [validation.column(rows, f"n{k}", what, low=low, high=high).copy() for k, (low, high) in enumerate(limits)]
            if not np.array_equal(times, numbers[0]):
                raise validation.damaged(what, "the times of rows are not those that it says")
            self.pending.add(pending, *numbers)
        self.newest, self.merges = validation.tick(facts["newest"], what), validation.whole(facts["merges"], what)
        self.ranks = validation.numbers(facts["ranks"], what, most=keys, low=0)
        after, there = lengthened(self.ranks, keys, 0), np.zeros(keys, np.int64)
        np.add.at(there, self.held.slices.key, self.held.slices.count)
        self._import_marks(facts["closed"], keys, after - there, after)

    def stats(self) -> StoreStats:
        """The rows of the newest time are retained."""
        return StoreStats(len(self.held), self.pending.count, self.merges, 0, 0)

    def nbytes(self) -> int:
        return self.held.slices.nbytes + self.held.opens.nbytes + self.ranks.nbytes + self.pending.nbytes

    def explain(self) -> list[str]:
        return []
