"""Slices without rows in a declared in-order stream, for windows whose edges are known by the time their rows come: row windows and
punctuation (figure 4: in order, only context aware windows need rows).

A slice knows the rank of its first row, and whether a punctuation opens it. Rows of the newest time wait as rows, since others of that time
may still come, and a punctuation among them opens the window that holds them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import order, validation
from sash.slicing.inputs import stored_fields, stored_form
from sash.slicing.key_windows import KeyWindows, lengthened
from sash.slicing.partials import Partials
from sash.slicing.shapes import handler, marked
from sash.slicing.slice_kernels import Kernels, StoredPartials, gathered, grouped
from sash.slicing.slices import Slices, joined
from sash.slicing.view import SortedRows, View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.base import Marks, Ranks

Array = npt.NDArray[Any]

IN_ORDER = "in order"
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
        """Some of them."""
        return Opened(self.slices.take(places), self.opens[:, places])


class InOrderState(KeyWindows):
    """The slice store and slice manager for windows of rows that come in order."""

    keeps_rows = False
    splits = 0
    shifts = 0

    def __init__(self, plan: Plan, since: int = FAR_BACK) -> None:
        super().__init__(plan, since)
        forms = [stored_form(c, plan.schema) for c in plan.columns]
        self._forms = [form for form in forms if form is not None]
        assert len(self._forms) == len(forms)
        self._kernels = [Kernels(form) for form in self._forms]
        none = np.empty(0, np.int64)
        nothing = Slices(none, none, none, none, none, [none for _ in forms], [k.empty(0) for k in self._kernels])
        self.held = Opened(nothing, np.empty((len(self._marks), 0), bool))
        self._seen = nothing
        """The slices that the last view was over."""
        self.ranks = none
        """For each key the rank of the next row that is settled."""
        self.newest = FAR_BACK
        self.merges = 0

    @property
    def _marks(self) -> list[Marks]:
        return [q.shape for q in self.plan.queries if isinstance(q.shape, Marks)]

    def _grown(self, keys: int) -> None:
        super()._grown(keys)
        self.ranks = lengthened(self.ranks, keys, 0)

    # Rows to slices.

    def prepare(
        self, table: pa.Table, ticks: Array, codes: Array, ids: Array, span: tuple[int, int], *, at_once: bool = False
    ) -> Callable[[], None]:
        wait = super().prepare(table, ticks, codes, ids, span)

        def commit() -> None:
            wait()
            self.newest = max(self.newest, span[1])

        return commit

    def settle(self, horizon: int) -> None:
        """Put rows into slices, but for those of the newest time, whatever is asked for."""
        ready = self.waiting.before(self.newest)
        if ready is not None:
            table, ticks, codes, _ = ready
            self._grown(int(codes.max()) + 1)
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
        held, states = gathered(self._kernels, inputs, offsets)
        key = codes[first]
        rank = self.ranks[key] + first - key_offsets[key]
        opens = np.array([marked(shape, rows)[first] for shape in self._marks], bool).reshape(len(self._marks), len(first))
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
        return Opened(grouped(self._kernels, slices.slices, np.append(first, len(slices)).astype(np.int64)), slices.opens[:, first])

    # What the window manager sees.

    def ending(self, after: int, until: int, keys: int) -> list[int]:
        """Which queries may have a window that cannot change any more."""
        self._grown(keys)
        counts = self.ranks[:keys] + sum(np.bincount(codes, minlength=keys) for _, _, codes, _ in self.waiting.runs)
        found = []
        for k, query in enumerate(self.plan.queries):
            shape = query.shape
            if not isinstance(shape, Ranks) or np.any(counts >= self.closed[query.name][:keys] * shape.every + shape.size):
                found.append(k)
        return found

    def view(self, keys: int) -> tuple[View, Array | None]:
        """All slices, those of the rows that wait among them."""
        self._grown(keys)
        waiting, seen = self.waiting.all(), self.held
        if waiting is not None:
            seen = self._joined(seen, *self._sliced(*waiting[:3]))
        self._seen = s = seen.slices
        key_offsets = np.searchsorted(s.key, np.arange(keys + 1)).astype(np.int64)
        gone, filled = self.ranks[:keys].copy(), np.flatnonzero(np.diff(key_offsets))
        gone[filled] = s.cell[key_offsets[filled]]
        return View(key_offsets, s.first, s.first, s.last, s.count, gone=gone, opens=dict(zip(self._marks, seen.opens, strict=True))), None

    def partials(self, view: View) -> list[Partials]:
        """Each aggregate over them."""
        parts = zip(self.plan.columns, self._kernels, self._seen.states, self._seen.held, strict=True)
        return [StoredPartials(column, kernels, states, held, None) for column, kernels, states, held in parts]

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """No row is late."""
        return ticks < self.since

    # Slices that go.

    def evict(self, horizon: int, keys: int, idle: Array) -> None:
        """Drop what no open window needs, and the keys that are idle."""
        self._grown(keys)
        s = self.held.slices
        needed = np.zeros(len(s), bool)
        for query in self.plan.queries:
            closed, shape = self.closed[query.name][s.key], query.shape
            needed |= s.cell + s.count > closed * shape.every if isinstance(shape, Ranks) else s.first >= closed
        needed &= ~np.isin(s.key, idle)
        if not needed.all():
            self.held = self.held.take(np.flatnonzero(needed))
        if any(isinstance(q.shape, Ranks) and q.shape.size % q.shape.every for q in self.plan.queries):
            self._merge()
        self.ranks[idle] = 0
        self._begin_again(idle)

    def _merge(self) -> None:
        """Join slices between which no window starts, nor ends that is to be given."""
        rank, key = self.held.slices.cell, self.held.slices.key
        begins = np.asarray(self.held.opens.any(axis=0))
        for query in (q for q in self.plan.queries if isinstance(q.shape, Ranks)):
            shape = query.shape
            number, beyond = np.divmod(rank - shape.size, shape.every)
            begins |= (rank % shape.every == 0) | ((beyond == 0) & (number >= self.closed[query.name][key]))
        before = len(self.held)
        self.held = self._grouped(self.held, begins)
        self.merges += before - len(self.held)

    def with_queries(self, plan: Plan) -> None:
        """Fewer queries from now on."""
        names = {q.name for q in plan.queries}
        left = [q.name in names for q in self.plan.queries if isinstance(q.shape, Marks)]
        self._ask(plan)
        self.held = Opened(self.held.slices, self.held.opens[np.array(left, bool)])
        self._merge()

    # Keys, snapshots, and what is told of it.

    def live_keys(self) -> Array:
        """The keys that have something here; row windows count on, so theirs stay until they are idle."""
        return np.concatenate([self.held.slices.key, np.flatnonzero(self.ranks), *(codes for _, _, codes, _ in self.waiting.runs)])

    def renumber(self, went: Array, kept: Array) -> None:
        """Keys have new numbers, in the same order."""
        self._grown(len(went))
        s = self.held.slices
        self.held = Opened(s.rebuilt([went[s.key], *s.columns()[1:]]), self.held.opens)
        self.waiting.renumber(went)
        self.ranks = self.ranks[kept]
        self.closed = {name: marks[kept] for name, marks in self.closed.items()}

    def how_many_open(self, horizon: int, newest: int) -> tuple[int, int]:
        """How many windows are not closed, as far as that shows: one of each query for each key."""
        return 0, len(np.unique(self.live_keys())) * len(self.plan.queries)

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """The state as data: slices and the rows that wait side by side, the shorter filled up with nulls."""
        columns = {f"c{k}": pa.array(c) for k, c in enumerate([*self.held.slices.columns(), *self.held.opens])}
        waiting = self.waiting.all()
        rows = 0 if waiting is None else len(waiting[1])
        if waiting is not None:
            table, *numbers = waiting
            columns |= {ROW + name: table.column(name).combine_chunks() for name in table.column_names}
            columns |= {f"n{k}": pa.array(n, pa.int64()) for k, n in enumerate(numbers)}
        length = max(len(self.held), rows)
        filled = {name: pa.concat_arrays([c, pa.nulls(length - len(c), c.type)]) for name, c in columns.items()}
        facts = {
            "kind": IN_ORDER, "keeps_rows": False, "since": self.since, "merges": self.merges, "splits": 0, "newest": self.newest,
            "slices": len(self.held), "rows": rows, "ranks": self.ranks.tolist(),
            "closed": {name: marks.tolist() for name, marks in self.closed.items()},
        }  # fmt: skip
        return facts, pa.table(filled)

    def load(self, facts: dict[str, Any], table: pa.Table, keys: int) -> None:
        """Take over what was saved, of so many keys."""
        what = "the state's slices"
        some, many = (validation.whole(facts[name], what, 0, table.num_rows) for name in ("slices", "rows"))
        held, rows = table.slice(0, some), table.slice(0, many)
        count = len(self.held.slices.columns())
        arrays = [arrow_column(held.column(f"c{k}")) for k in range(count + len(self._marks))]
        if any(a.null_count for a in arrays):
            raise validation.damaged(what, "a value is missing")
        columns = [a.to_numpy(zero_copy_only=False).copy() for a in arrays]
        opens = np.array(columns[count:], bool).reshape(len(self._marks), some)
        self.held = Opened(validation.slices(columns[:count], self.held.slices, keys, what), opens)
        if many:
            names = list(self.plan.reads)
            waiting, times = validation.rows(rows.select([ROW + n for n in names]).rename_columns(names), self.plan, "the state's rows")
            limits = [(FAR_BACK, FAR_AHEAD), (0, keys), (FAR_BACK, FAR_AHEAD)]
            numbers = [validation.column(rows, f"n{k}", what, low=low, high=high).copy() for k, (low, high) in enumerate(limits)]
            if not np.array_equal(times, numbers[0]):
                raise validation.damaged(what, "the times of rows are not those that it says")
            self.waiting.add(waiting, *numbers)
        self.newest, self.merges = validation.tick(facts["newest"], what), validation.whole(facts["merges"], what)
        self.ranks = validation.numbers(facts["ranks"], what, most=keys, low=0)
        self.closed = self.checked_marks(facts["closed"], keys)
        after, there = lengthened(self.ranks, keys, 0), np.zeros(keys, np.int64)
        np.add.at(there, self.held.slices.key, self.held.slices.count)
        self.check_ranks(after - there, after)

    @property
    def kept(self) -> int:
        """How many rows are held: those of the newest time."""
        return sum(len(ticks) for _, ticks, _, _ in self.waiting.runs)

    @property
    def stats(self) -> dict[str, int]:
        waiting = sum(part.nbytes for run in self.waiting.runs for part in run)
        held = self.held.slices.nbytes + self.held.opens.nbytes + self.ranks.nbytes
        return {"slices": len(self.held), "kept_rows": self.kept, "bytes": waiting + held}
