"""Makes slices of a stream's rows: scattered to slices of known edges, or sorted and cut.

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
from sash.slicing.ingest.slices import UNDIVIDED, Slices
from sash.slicing.partials.column_partials import counts_at
from sash.slicing.partials.stored import Kernels
from sash.slicing.rows import order
from sash.slicing.rows.inputs import Fields, fields, stored_fields, stored_form
from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]

ONE_KEY = np.zeros(1, np.int64)


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
        """Cut at the edges of other queries from now on."""
        self.plan = plan
        self.edges = Slicer(plan.queries)
        self.gap = min(plan.session_gaps, default=FAR_AHEAD)
        """The shortest session gap; slices are cut where rows are further apart."""
        self.has_gaps = False
        """Whether a slice of the last batch may have a gap in it that separates sessions: then rows have to be sorted."""

    def inputs(self, table: pa.Table) -> list[Fields]:
        """Each aggregate's inputs over the rows of a table."""
        return [stored_fields(c, table, form) for c, form in zip(self.plan.columns, self.forms, strict=True)]

    def locator(self, span: tuple[int, int], rows: int, keys: int) -> Locator | None:
        """The edges that rows of this span of time may lie behind; None if they are many more than the rows."""
        return self.edges.locator(*span, min(MOST_EDGES, max(4 * rows, 64) // keys))

    def slices(self, table: pa.Table, ticks: Array, codes: Array, span: tuple[int, int], inputs: list[Fields] | None = None) -> Slices:
        """Rows as slices; ``span`` is their first and last time."""
        inputs = self.inputs(table) if inputs is None else inputs
        if self.commute:
            scattered = self._scattered(ticks, codes, inputs, span)
            if scattered is not None:
                return scattered
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
        """Slices of rows in any order, without sorting; None if they have to be sorted."""
        keys = np.unique(codes) if self.plan.by else ONE_KEY
        local = np.searchsorted(keys, codes) if self.plan.by else codes
        locator = self.locator(span, len(ticks), len(keys))
        if locator is None:
            return None
        edges = locator.edges
        total = len(keys) * len(edges)
        firsts, lasts, counts, included, occupied = [np.empty(total, np.int64) for _ in range(5)]
        places = np.empty(len(ticks), np.int64)
        wide = [kernels.nothing(total) if k else kernels.empty(total) for k, kernels in enumerate(self.kernels)]
        rows = (ticks, local, len(keys), len(ticks))
        # One kernel locates each row's place and adds it to the first aggregate; the others follow.
        filled = self.kernels[0].locate(*inputs[0].rows, *rows, *locator, places, firsts, lasts, counts, included, occupied, *wide[0])
        first, last, count, occupied = firsts[:filled], lasts[:filled], counts[:filled], occupied[:filled]
        self.has_gaps = self.gap < FAR_AHEAD and bool(np.any(last - first > self.gap))
        if self.has_gaps:
            return None
        for f, kernels, group in zip(inputs[1:], self.kernels[1:], wide[1:], strict=True):
            kernels.scatter(*f.rows, places, 0, len(ticks), *group)
        states = [[a[occupied] if k else a[:filled] for a in group] for k, group in enumerate(wide)]
        included_counts = [
            included[:filled] if k == 0 else count.copy() if f.bits is None else counts_at(f.bits, places, total)[occupied]
            for k, f in enumerate(inputs)
        ]
        many = len(keys) > 1
        key, cell = (keys[occupied // len(edges)], edges[occupied % len(edges)]) if many else (keys.repeat(filled), edges[occupied])
        slices = Slices(key, cell, first, last, count, included_counts, states)
        return slices if 2 * filled >= total else slices.copy()  # the arrays may be views of far larger ones

    def coalesced(self, slices: Slices, old: int = 0) -> tuple[Slices, int]:
        """Slices in order, with those of one key that no edge or gap separates joined to one; and how many of the first ``old`` slices
        were joined to another of those."""
        places = order.of_keys_and_times(slices.key, slices.first)
        slices = slices.take(places)
        offsets = np.empty(len(slices) + 1, np.int64)
        group = kernel(merging.group_slices)
        groups = group(slices.key, slices.cell, slices.first, slices.last, len(slices), self.gap, UNDIVIDED, offsets)
        if groups == len(slices):
            return slices, 0
        offsets = offsets[: groups + 1]
        merges = 0
        if old:
            was_old = np.concatenate([[0], np.cumsum(places < old)])
            merges = int(np.maximum(was_old[offsets[1:]] - was_old[offsets[:-1]] - 1, 0).sum())
        return join_runs(self.kernels, slices, offsets), merges

    def whole(self, slices: Slices) -> Slices:
        """Each key's slices joined to one."""
        at = np.flatnonzero(np.append(True, slices.key[1:] != slices.key[:-1]))
        return join_runs(self.kernels, slices, np.append(at, len(slices)).astype(np.int64))

    def cut_again(self, slices: Slices) -> Slices:
        """The slices with their cells by the current edges."""
        return slices.with_cells(np.where(slices.cell == UNDIVIDED, UNDIVIDED, self.edges.cells(slices.first)))
