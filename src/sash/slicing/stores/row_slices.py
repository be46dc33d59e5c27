"""The slices of retained rows, from step to step (sections 5.2 and 5.3: update, split, merge, and the shift of row windows).

When a step needs windows, the rows are cut at the edges of all queries, and each slice is compared with the old one: if it has the same
rows, its partial stays; if few rows were inserted or removed, they are added, or subtracted where that is exact; if not, it is computed
from its rows. Where rows are read again and again because slices are split or shifted, slices are made shorter (section 6.3.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.plan.logical import Plan
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import SortedRows, View, places_in_keys, runs
from sash.slicing.ingest.cut import cut
from sash.slicing.partials.changes import Change
from sash.slicing.partials.column_partials import Partials
from sash.slicing.partials.incremental import incremental_column
from sash.slicing.stores.lineage import Lineage

Array = npt.NDArray[Any]

SHORTEST = 64
"""Slices are not made shorter than so many rows."""
TOO_MUCH = 4
"""Slices are made shorter where more rows than this are read again for each new one."""
FADING = 7 / 8
"""The weight of a step's counts decays by this factor with each later step."""
CALM = 16
"""After so many steps with few rows read again, slices may be long again."""


class RowSlices:
    """The slices of the rows that a store retains."""

    def __init__(self, plan: Plan) -> None:
        self.columns = [incremental_column(c, plan.schema) for c in plan.columns]
        self.offsets = np.zeros(1, np.int64)
        """Where each slice began, and the last one ended, when the rows were last cut."""
        self.splits = self.merges = self.shifts = 0
        self.largest: int | None = None
        """If set, slices with more than twice as many rows are split, unless their rows are of one time."""
        self._calm = 0
        self._read_again = self._fresh = 0.0
        """How many rows were read again, and how many were inserted, with decaying weights."""
        self._extra = np.empty((2, 0), np.int64)
        """Keys and ticks of the extra edges that make slices shorter."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def cut(self, plan: Plan, rows: SortedRows, lineage: Lineage) -> tuple[View, list[Partials]]:
        """Cut the rows: the slices, and each aggregate's partials; ``lineage`` has the rows' places at the last cut."""
        extra = self._extra[:, self._extra[0] < len(rows.key_offsets) - 1]
        view = cut(plan, rows, places_in_keys(rows.key_offsets, rows.ticks, extra[0], extra[1]))
        change, old = self._compared(view, lineage, only_shifts=all(handler(q.shape).only_shifts for q in plan.queries))
        results = [column.changed(change, old, rows.table) for column in self.columns]
        for column, (current, _) in zip(self.columns, results, strict=True):
            column.retain(current)
        self.offsets, self._extra = view.row_offsets, extra
        self._adapt(max((c.read_again for c in self.columns), default=0), len(change.fresh), view, rows)
        return view, [partials for _, partials in results]

    def _compared(self, view: View, lineage: Lineage, *, only_shifts: bool) -> tuple[Change, Array]:
        """How the slices changed, and the numbers of the old slices that still have all of their rows."""
        start, stop = view.row_offsets[:-1], view.row_offsets[1:]
        whole, old_start, old_stop = lineage.runs(self.offsets)
        change = Change(start, stop, old_start, old_stop, lineage.fresh())
        if len(whole):
            at = np.maximum(np.searchsorted(old_start, start, side="right") - 1, 0)
            cut_in_two = int(((start > old_start[at]) & (start < old_stop[at])).sum())
            gone = int((~np.isin(old_start, start)).sum())
            # Ranks only ever shift; of other edges, as many have moved as both appeared and disappeared.
            moved = cut_in_two if only_shifts else min(cut_in_two, gone)
            gone = max(gone, moved)
            self.shifts, self.splits, self.merges = self.shifts + moved, self.splits + cut_in_two - moved, self.merges + gone - moved
        return change, whole

    def _adapt(self, read_again: int, fresh: int, view: View, rows: SortedRows) -> None:
        """Split long slices while many rows are read again for each new one; stop once few are for many steps."""
        self._read_again, self._fresh = self._read_again * FADING + read_again, self._fresh * FADING + fresh
        too_much = self._read_again > TOO_MUCH * self._fresh
        self._calm = 0 if too_much else self._calm + 1
        if self.largest is not None and self._calm >= CALM:
            self.largest, self._calm, self._extra = None, 0, np.empty((2, 0), np.int64)
        counts = np.diff(view.row_offsets)
        if too_much and len(counts):
            self.largest = max(SHORTEST, min(self.largest or int(counts.max()), int(counts.max())) // 2)
        if self.largest is not None:
            long = np.flatnonzero(counts > 2 * self.largest)
            if len(long):
                steps, owner = runs(np.ones(len(long), np.int64), counts[long] // self.largest)
                places = view.row_offsets[long][owner] + steps * self.largest
                keys = np.searchsorted(rows.key_offsets, places, side="right") - 1
                self._extra = np.unique(np.concatenate([self._extra, [keys, rows.ticks[places]]], axis=1), axis=1)

    def dropped(self, rows: SortedRows) -> None:
        """After rows were removed, drop the extra edges before each key's first row."""
        keys, ticks = self._extra
        if len(keys):
            known = keys < len(rows.key_offsets) - 1
            first = places_in_keys(rows.key_offsets, rows.ticks, keys[known], ticks[known])
            self._extra = self._extra[:, known][:, first > rows.key_offsets[keys[known]]]

    def renumber(self, new_id_of: Array, retained: Array) -> None:
        """Replace key numbers by their new ones, which are in the same order."""
        self._extra = self._extra[:, np.isin(self._extra[0], retained)]
        self._extra[0] = new_id_of[self._extra[0]]

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + sum(column.nbytes for column in self.columns)
