"""A stream's rows to slices: scattered to the edges that are known, or sorted and cut.

A slice is a run of a key's rows with no edge between them and no gap longer than the shortest session's. Its first and last time say which
session it is in, so sessions need no edges of their own, and a late row that bridges a gap merges two slices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algorithms.pipe import kernel, merging
from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing.bounds.slicer import MOST_EDGES, Locator, Slicer
from sash.slicing.ingest.cut import gather_runs, join_runs
from sash.slicing.ingest.slices import Slices
from sash.slicing.partials.stored import Kernels
from sash.slicing.rows import order
from sash.slicing.rows.inputs import Fields, fields, stored_fields, stored_form
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]

ONE_KEY = np.zeros(1, np.int64)
SETTLED = FAR_BACK
"""The cell of what is older than every edge that is needed."""


class RowSlicer:
    """Makes slices of rows, and joins slices, for the queries of a plan."""

    def __init__(self, plan: Plan) -> None:
        empty = plan.schema.empty_table()
        self.forms = [stored_form(c, plan.schema) or fields(c, empty, always_masked=True).form for c in plan.columns]
        self.kernels = [Kernels(form) for form in self.forms]
        self.commute = all(form.commutative for form in self.forms)
        none = np.empty(0, np.int64)
        self.nothing = Slices(none, none, none, none, none, [none for _ in self.forms], [k.empty(0) for k in self.kernels])
        """No slices."""
        self.with_queries(plan)

    def with_queries(self, plan: Plan) -> None:
        """Cut for other queries from now on."""
        self.plan = plan
        self.edges = Slicer(plan.queries)
        self.gap = min(plan.session_gaps, default=FAR_AHEAD)
        """The shortest session gap; slices are cut where rows are further apart."""
        self.found_gaps = False
        """Whether the last batch had slices that a session may have ended in: then rows have to be put in order."""

    def inputs(self, table: pa.Table) -> list[Fields]:
        """What each aggregate reads of rows."""
        return [stored_fields(c, table, form) for c, form in zip(self.plan.columns, self.forms, strict=True)]

    def locator(self, span: tuple[int, int], rows: int, keys: int) -> Locator | None:
        """The edges that rows may lie behind, if they are not many more than the rows."""
        return self.edges.locator(*span, min(MOST_EDGES, max(4 * rows, 64) // keys))

    def slices(self, table: pa.Table, ticks: Array, codes: Array, span: tuple[int, int], inputs: list[Fields] | None = None) -> Slices:
        """Rows as slices; ``span`` is their first and last time."""
        inputs = self.inputs(table) if inputs is None else inputs
        if self.commute:
            found = self._scattered(ticks, codes, inputs, span)
            if found is not None:
                return found
        places = order.sorted_order(codes, int(codes.max()) + 1, ticks, [arrow_column(table.column(n)) for n in self.plan.order_by])
        if places is not None:
            ticks, codes, table = ticks[places], codes[places], table.take(pa.array(places))
            inputs = self.inputs(table)
        cell = self.edges.cells(ticks)
        cut = np.ones(len(ticks), bool)
        cut[1:] = (codes[1:] != codes[:-1]) | (cell[1:] != cell[:-1]) | (np.diff(ticks) > self.gap)
        offsets = np.append(np.flatnonzero(cut), len(ticks)).astype(np.int64)
        at = offsets[:-1]
        return Slices(codes[at], cell[at], ticks[at], ticks[offsets[1:] - 1], np.diff(offsets), *gather_runs(self.kernels, inputs, offsets))

    def _scattered(self, ticks: Array, codes: Array, inputs: list[Fields], span: tuple[int, int]) -> Slices | None:
        """Rows in any order, straight to their slices; None if they have to be sorted."""
        keys = np.unique(codes) if self.plan.by else ONE_KEY
        local = np.searchsorted(keys, codes) if self.plan.by else codes
        locator = self.locator(span, len(ticks), len(keys))
        if locator is None:
            return None
        edges = locator.edges
        total = len(keys) * len(edges)
        firsts, lasts, counts, kept = [np.empty(total, np.int64) for _ in range(4)]
        places = np.empty(len(ticks), np.int64)
        wide = [kernels.nothing(total) if k else kernels.empty(total) for k, kernels in enumerate(self.kernels)]
        rows = (ticks, local, len(keys), len(ticks))
        # The first aggregate goes along with finding the places, the others follow.
        filled = self.kernels[0].locate(*inputs[0].rows, *rows, *locator, places, firsts, lasts, counts, kept, *wide[0])
        first, last, count, kept = firsts[:filled], lasts[:filled], counts[:filled], kept[:filled]
        self.found_gaps = self.gap < FAR_AHEAD and bool(np.any(last - first > self.gap))
        if self.found_gaps:
            return None
        for f, kernels, group in zip(inputs[1:], self.kernels[1:], wide[1:], strict=True):
            kernels.scatter(*f.rows, places, 0, len(ticks), *group)
        states = [[a[kept] if k else a[:filled] for a in group] for k, group in enumerate(wide)]
        held = [count.copy() if f.held is None else np.bincount(places[f.held], minlength=total)[kept] for f in inputs]
        key, cell = (keys[kept // len(edges)], edges[kept % len(edges)]) if len(keys) > 1 else (keys.repeat(filled), edges[kept])
        made = Slices(key, cell, first, last, count, held, states)
        return made if 2 * filled >= total else made.copy()  # what stays takes no more memory than it needs

    def coalesced(self, slices: Slices, old: int = 0) -> tuple[Slices, int]:
        """Slices in order, those of one key with nothing between them as one; and how many of the first ``old`` ones were joined to
        another of those."""
        places = order.of_keys_and_times(slices.key, slices.first)
        slices = slices.take(places)
        offsets = np.empty(len(slices) + 1, np.int64)
        group = kernel(merging.group_slices)
        groups = group(slices.key, slices.cell, slices.first, slices.last, len(slices), self.gap, SETTLED, offsets)
        if groups == len(slices):
            return slices, 0
        offsets = offsets[: groups + 1]
        merges = 0
        if old:
            was_old = np.concatenate([[0], np.cumsum(places < old)])
            merges = int(np.maximum(was_old[offsets[1:]] - was_old[offsets[:-1]] - 1, 0).sum())
        return join_runs(self.kernels, slices, offsets), merges

    def whole(self, slices: Slices) -> Slices:
        """Each key's slices as one."""
        at = np.flatnonzero(np.append(True, slices.key[1:] != slices.key[:-1]))
        return join_runs(self.kernels, slices, np.append(at, len(slices)).astype(np.int64))

    def cut_again(self, slices: Slices) -> Slices:
        """Slices with the cells that they have by the edges of now."""
        return slices.with_cells(np.where(slices.cell == SETTLED, SETTLED, self.edges.cells(slices.first)))
