"""Slices that are kept without their rows: for edges known in advance and sessions, with aggregates of flat fields.

A slice is a run of a key's rows with no edge between them and no gap longer than the shortest session's. First and last time say
which session it is in, so sessions need no edges of their own, and a late row that bridges a gap merges two slices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algebra import Form
from sash.algorithms import reduce, tables
from sash.kernels.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.logical import Plan
from sash.plan.stores import choose_store
from sash.slicing import order
from sash.slicing.inputs import Fields, fields, stored_fields
from sash.slicing.keys import span_of
from sash.slicing.partials import FieldPartials, Partials, answered, spread
from sash.slicing.ranges import Ranges
from sash.slicing.shapes import handler
from sash.slicing.slicer import MOST_EDGES, Slicer
from sash.slicing.tree import SliceTree
from sash.slicing.view import View
from sash.types import FAR_AHEAD, FAR_BACK, dtype
from sash.windows.base import Everything, Gaps

Array = npt.NDArray[Any]

ONE_KEY = np.zeros(1, np.int64)
SETTLED = FAR_BACK
"""The cell of what is older than every edge that is needed."""


class StoredPartials(FieldPartials):
    """Partials that are there already."""

    def __init__(self, column: Any, form: Any, states: list[Array], held: Array, tree: SliceTree | None) -> None:
        self.column = column
        self.inputs = Fields(form, [], True, None, None)
        self.held = None
        self.row_count = 0
        self.states = states
        self.counts = np.concatenate([[0], np.cumsum(held)])
        self._prefixes = None
        self._tree = tree

    def results(self, asked: Ranges) -> pa.Array:
        if self._tree is None:
            return super().results(asked)
        full, places = asked.without_empty()
        output = self._tree.answer(full)
        return self._lowered(output if places is None else spread(output, places), answered(asked, self.counts))


@dataclass(frozen=True)
class Slices:
    """Slices of many keys, sorted by key, then first row."""

    key: Array
    cell: Array
    """The latest edge at or before the slice."""
    first: Array
    last: Array
    count: Array
    held: list[Array]
    """For each aggregate how many rows of the slice it took in."""
    states: list[list[Array]]

    def __len__(self) -> int:
        return len(self.key)

    def columns(self) -> list[Array]:
        """All arrays, in a fixed order."""
        return [self.key, self.cell, self.first, self.last, self.count, *self.held, *(a for group in self.states for a in group)]

    def rebuilt(self, columns: list[Array]) -> Slices:
        """The same shape over other arrays."""
        key, cell, first, last, count, *rest = columns
        held, rest, groups = rest[: len(self.held)], rest[len(self.held) :], []
        for group in self.states:
            groups.append(rest[: len(group)])
            rest = rest[len(group) :]
        return Slices(key, cell, first, last, count, held, groups)

    def take(self, places: Array) -> Slices:
        """Some of them."""
        return self.rebuilt([c[places] for c in self.columns()])

    def with_cells(self, cell: Array) -> Slices:
        """The same with other cells."""
        return replace(self, cell=cell)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns())


class Kernels:
    """What a form's slices are made with."""

    def __init__(self, form: Form) -> None:
        self.gather = compiled(generate(reduce.segments, form, masked=True))
        self.join = compiled(generate(reduce.segments, form, masked=True, partials=True))
        self.state = self.join.module.state
        self._form = form

    @cached_property
    def scatter(self) -> Kernel:
        return compiled(generate(tables.scatter_any, self._form, masked=True))

    @cached_property
    def add_at(self) -> Kernel:
        return compiled(generate(tables.add_at, self._form, masked=True, partials=True))

    @cached_property
    def clear(self) -> Kernel:
        return compiled(generate(tables.clear, self._form, masked=True))

    @cached_property
    def locate(self) -> Kernel:
        return compiled(generate(tables.locate, self._form, masked=True))

    def nothing(self, count: int) -> list[Array]:
        """The partials of no rows."""
        states = self.empty(count)
        self.clear(*states, 0, count)
        return states

    def empty(self, count: int) -> list[Array]:
        """Space for partials."""
        return [np.empty(count, dtype(m)) for m in self.state]


def forever_asked(plan: Plan) -> bool:
    """Whether a query wants everything so far."""
    return any(isinstance(q.shape, Everything) for q in plan.queries)


class SliceState:
    """The slice store and slice manager for workloads that keep no rows."""

    keeps_rows = False

    def __init__(self, plan: Plan, since: int = FAR_BACK, store: str = "auto") -> None:
        self.plan = plan
        self.since = since
        self.store = store
        empty = plan.schema.empty_table()
        self.forms = [fields(c, empty, always_masked=True).form for c in plan.columns]
        self.kernels = [Kernels(f) for f in self.forms]
        self.commute = all(f.commutative for f in self.forms)
        self._settle()
        none = np.empty(0, np.int64)
        states = [k.empty(0) for k in self.kernels]
        self.slices = Slices(none, none, none, none, none, [none for _ in self.forms], states)
        self.merges = 0
        self.splits = 0

    def _settle(self) -> None:
        """What follows from the queries."""
        self.slicer = Slicer(self.plan.queries)
        self.choice = choose_store(self.store, self.plan.queries, self.forms)
        self.trees = [SliceTree(f) for f in self.forms] if self.choice.algorithm == "eager" else None
        self._grown = True
        """Whether slices came, went or merged since the trees were made."""
        self.gap = min((q.shape.gap for q in self.plan.queries if isinstance(q.shape, Gaps)), default=FAR_AHEAD)
        """The shortest session gap; slices are cut where rows are further apart."""

    # The slicer: rows to slices.

    def add(self, table: pa.Table, ticks: Array, codes: Array, ids: Array, span: tuple[int, int]) -> None:
        """Add rows; ``codes`` are numbers of keys that stay, ``span`` is the first and the last time."""
        if self.since > span[0]:
            seen = ticks >= self.since
            table, ticks, codes = table.filter(pa.array(seen)), ticks[seen], codes[seen]
            span = span_of(ticks)
        if len(ticks):
            self.merge(self.sliced(table, np.ascontiguousarray(ticks), codes, span))

    def sliced(self, table: pa.Table, ticks: Array, codes: Array, span: tuple[int, int]) -> Slices:
        """Rows as slices, on their own."""
        inputs = [stored_fields(c, table, form) for c, form in zip(self.plan.columns, self.forms, strict=True)]
        if self.commute:
            found = self._scattered(ticks, codes, inputs, span)
            if found is not None:
                return found
        places = order.sorted_order(codes, int(codes.max()) + 1, ticks, [table.column(n).combine_chunks() for n in self.plan.order_by])
        if places is not None:
            ticks, codes, table = ticks[places], codes[places], table.take(pa.array(places))
            inputs = [stored_fields(c, table, form) for c, form in zip(self.plan.columns, self.forms, strict=True)]
        cell = self.slicer.cells(ticks)
        cut = np.ones(len(ticks), bool)
        cut[1:] = (codes[1:] != codes[:-1]) | (cell[1:] != cell[:-1]) | (np.diff(ticks) > self.gap)
        offsets = np.append(np.flatnonzero(cut), len(ticks)).astype(np.int64)
        states, held = [], []
        for f, kernels in zip(inputs, self.kernels, strict=True):
            group = kernels.empty(len(offsets) - 1)
            kernels.gather(*f.rows, offsets, 0, len(offsets) - 1, *group)
            states.append(group)
            held.append(np.diff(offsets) if f.held is None else np.add.reduceat(f.held.astype(np.int64), offsets[:-1]))
        at = offsets[:-1]
        return Slices(codes[at], cell[at], ticks[at], ticks[offsets[1:] - 1], np.diff(offsets), held, states)

    def _scattered(self, ticks: Array, codes: Array, inputs: list[Fields], span: tuple[int, int]) -> Slices | None:
        """Rows in any order, straight to their slices."""
        first, last = span
        keys = np.unique(codes) if self.plan.by else ONE_KEY
        local = np.searchsorted(keys, codes) if self.plan.by else codes
        limit = min(MOST_EDGES, max(4 * len(ticks), 64) // len(keys))
        edges = self.slicer.edges(first, last, limit)
        if edges is None:
            return None
        total = len(keys) * len(edges)
        counts = np.zeros(total, np.int64)
        firsts, lasts = np.full(total, FAR_AHEAD, np.int64), np.full(total, -FAR_AHEAD, np.int64)
        places = np.empty(len(ticks), np.int64)
        wide = [kernels.nothing(total) for kernels in self.kernels]
        settings = self.slicer.locator(edges)
        rows = (ticks, local, int(len(keys) > 1), len(ticks))
        # The first aggregate goes along with finding the places, the others follow.
        self.kernels[0].locate(*inputs[0].rows, *rows, *settings, places, firsts, lasts, counts, *wide[0])
        for f, kernels, group in zip(inputs[1:], self.kernels[1:], wide[1:], strict=True):
            kernels.scatter(*f.rows, places, 0, len(ticks), *group)
        kept = np.flatnonzero(counts)
        if self.gap < FAR_AHEAD and np.any(lasts[kept] - firsts[kept] > self.gap):
            return None  # there may be a gap within a slice
        states = [[a[kept] for a in group] for group in wide]
        held = [counts[kept] if f.held is None else np.bincount(places[f.held], minlength=total)[kept] for f in inputs]
        return Slices(keys[kept // len(edges)], edges[kept % len(edges)], firsts[kept], lasts[kept], counts[kept], held, states)

    # The slice manager: update and merge.

    def merge(self, new: Slices) -> None:
        """Put slices among those that are there; those of one key with nothing between them become one."""
        old = self.slices
        if len(old) and self._updated(old, new):
            return
        self._grown = True
        if not len(old):
            self.slices = self.coalesced(new)
            return
        # Of a single key, what comes before the new slices stays as it is.
        settled = 0
        if old.key[0] == old.key[-1] and new.key[0] == new.key[-1] == old.key[0]:
            settled = max(0, int(np.searchsorted(old.first, new.first.min())) - 1)
        columns = [np.concatenate([a[settled:], b]) for a, b in zip(old.columns(), new.columns(), strict=True)]
        joined = self.coalesced(old.rebuilt(columns), len(old) - settled)
        if settled:
            joined = old.rebuilt([np.concatenate([a[:settled], b]) for a, b in zip(old.columns(), joined.columns(), strict=True)])
        self.slices = joined

    def _updated(self, old: Slices, new: Slices) -> bool:
        """Add to slices that are there, and put newer ones behind them: the rule for small batches of a single key."""
        if not old.key[0] == old.key[-1] == new.key[0] == new.key[-1]:
            return False
        fresh = int(np.searchsorted(new.cell, old.cell[-1], side="right"))
        cell, places = new.cell[:fresh], np.searchsorted(old.cell, new.cell[:fresh])
        if not np.array_equal(old.cell[places], cell) or not self._ordered(old, new, places):
            return False
        first, last = np.minimum(old.first[places], new.first[:fresh]), np.maximum(old.last[places], new.last[:fresh])
        if self.gap < FAR_AHEAD:
            alone = np.append(old.cell[1:], FAR_AHEAD)[places] != cell
            if not alone.all() or np.any(last - first > self.gap):
                return False
        old.first[places], old.last[places] = first, last
        old.count[places] += new.count[:fresh]
        for mine, theirs in zip(old.held, new.held, strict=True):
            mine[places] += theirs[:fresh]
        for kernels, mine_states, new_states in zip(self.kernels, old.states, new.states, strict=True):
            kernels.add_at(*mine_states, places, *new_states, fresh)
        if fresh < len(new):
            self._grown = True
            self.slices = old.rebuilt([np.concatenate([a, b[fresh:]]) for a, b in zip(old.columns(), new.columns(), strict=True)])
        elif self.trees is not None and not self._grown:
            for tree, states in zip(self.trees, old.states, strict=True):
                tree.update(states, places)
        return True

    def _ordered(self, old: Slices, new: Slices, places: Array) -> bool:
        return self.commute or bool(np.all(old.last[places] <= new.first[: len(places)]))

    def coalesced(self, slices: Slices, old: int = 0) -> Slices:
        """Slices in order, those of one key with nothing between them as one; the first ``old`` were there before."""
        one_key = len(slices) and slices.key[0] == slices.key[-1] and (slices.key == slices.key[0]).all()
        places = np.argsort(slices.first, kind="stable") if one_key else np.lexsort((slices.first, slices.key))
        slices = slices.take(places)
        offsets = np.empty(len(slices) + 1, np.int64)
        group = tables.plain(tables.group_slices)
        groups = group(slices.key, slices.cell, slices.first, slices.last, len(slices), self.gap, SETTLED, offsets)
        if groups == len(slices):
            return slices
        offsets = offsets[: groups + 1]
        if old:
            was_old = np.concatenate([[0], np.cumsum(places < old)])
            self.merges += int(np.maximum(was_old[offsets[1:]] - was_old[offsets[:-1]] - 1, 0).sum())
        at = offsets[:-1]
        states = []
        for kernels, parts in zip(self.kernels, slices.states, strict=True):
            joined = kernels.empty(groups)
            kernels.join(*parts, offsets, 0, groups, *joined)
            states.append(joined)
        last = np.maximum.reduceat(slices.last, at)
        held = [np.add.reduceat(h, at) for h in slices.held]
        return Slices(slices.key[at], slices.cell[at], slices.first[at], last, np.add.reduceat(slices.count, at), held, states)

    # What the window manager sees.

    def ending(self, after: int, until: int, keys: int) -> list[int]:
        """Which queries may have a window that cannot change any more once the watermark moves from ``after`` to ``until``."""
        if not len(self.slices):
            return []
        queries = self.slicer.queries
        found = self.slicer.ending(after, until)
        return [k for k in found if not isinstance(s := queries[k].shape, Gaps) or np.any(self._session_ends(s.gap)[0] + s.gap < until)]

    def _session_ends(self, gap: int) -> tuple[Array, Array]:
        """The last row of each session, and how many slices it has."""
        s = self.slices
        ends = np.flatnonzero(np.append((s.first[1:] - s.last[:-1] > gap) | (s.key[1:] != s.key[:-1]), True))
        return s.last[ends], np.diff(ends, prepend=-1)

    def view(self, keys: int, queries: list[int] | None = None) -> tuple[View, Array | None]:
        """The slices in order."""
        s = self.slices
        offsets = np.searchsorted(s.key, np.arange(keys + 1)).astype(np.int64)
        return View(offsets, s.first, s.first, s.last, np.concatenate([[0], np.cumsum(s.count)])), None

    def partials(self, view: View) -> list[Partials]:
        """Each aggregate over them."""
        s = self.slices
        if self.trees is not None and self._grown:
            for tree, states in zip(self.trees, s.states, strict=True):
                tree.rebuild(states)
            self._grown = False
        trees: list[SliceTree | None] = list(self.trees) if self.trees is not None else [None] * len(self.forms)
        return [StoredPartials(*parts) for parts in zip(self.plan.columns, self.forms, s.states, s.held, trees, strict=True)]

    def late(self, ticks: Array, codes: Array, horizon: int) -> Array:
        """Rows whose windows are all closed."""
        return self.slicer.late(ticks, horizon) | (ticks < self.since)

    def evict(self, horizon: int, keys: int, idle: Array) -> None:
        """Drop what no window needs that ends after ``horizon``, and the keys that are idle."""
        s = self.slices
        if not len(s):
            return
        needed = s.first >= self.slicer.oldest_open(horizon)
        if not (len(idle) and forever_asked(self.plan)) and needed.all():
            return
        self._grown = True
        forever = False
        for query in (self.slicer.queries[k] for k in self.slicer.others):
            if isinstance(query.shape, Everything):
                forever = True
            elif isinstance(query.shape, Gaps):
                ends, slices = self._session_ends(query.shape.gap)
                needed |= np.repeat(ends + query.shape.gap + 1 > horizon, slices)
            else:
                needed |= ~handler(query.shape).closed(query.shape, s.first, horizon)
        gone = np.isin(s.key, idle) if len(idle) else None
        if forever:
            # Only the whole matters of what is older than every edge that is needed.
            if not needed.all():
                s = self.coalesced(s.with_cells(np.where(needed, s.cell, SETTLED)))
                gone = np.isin(s.key, idle) if len(idle) else None
            # An idle key's whole goes; what its open windows need stays.
            self.slices = s if gone is None else s.take(np.flatnonzero(~gone | (s.cell != SETTLED)))
            return
        if not needed.all():
            self.slices = s.take(np.flatnonzero(needed))

    def with_queries(self, plan: Plan) -> None:
        """Other queries from now on; slices that no edge keeps apart any more are merged."""
        self.plan = plan
        self._settle()
        if len(self.slices):
            settled = self.slices.cell == SETTLED
            cells = np.where(settled, SETTLED, self.slicer.cells(self.slices.first))
            self.slices = self.coalesced(self.slices.with_cells(cells), len(self.slices))

    def live_keys(self) -> Array:
        """The keys that have something here."""
        return self.slices.key

    def renumber(self, went: Array, kept: Array) -> None:
        """Keys have new numbers, in the same order."""
        self.slices = replace(self.slices, key=went[self.slices.key])

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """The state as data."""
        columns = self.slices.columns()
        facts = {"keeps_rows": False, "since": self.since, "merges": self.merges, "splits": self.splits}
        return facts, pa.table({f"c{k}": pa.array(c) for k, c in enumerate(columns)})

    def load(self, facts: dict[str, Any], table: pa.Table) -> None:
        """Take over what was saved."""
        columns = [c.to_numpy().copy() for c in table.columns]
        self.slices = self.slices.rebuilt(columns)
        self._grown = True
        self.merges, self.splits = facts["merges"], facts["splits"]

    @property
    def stats(self) -> dict[str, int]:
        trees = sum(t.nbytes for t in self.trees or [])
        return {"slices": len(self.slices), "kept_rows": 0, "bytes": self.slices.nbytes + trees}
