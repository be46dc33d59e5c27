"""Punctuation: windows from one marked row to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, RetainedRows, SortedRows, View, no_bounds, places_in_keys
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Marks

Array = npt.NDArray[Any]


class OfMarks(Handler[Marks], shape=Marks):
    """A punctuation opens the window that contains it and all rows of its time."""

    ends_in_the_past = True
    opened_by_rows = True

    def cuts(self, shape: Marks, rows: SortedRows) -> Array:
        return np.flatnonzero(self.opening_rows(shape, rows))

    def opening_rows(self, shape: Marks, rows: SortedRows) -> Array:
        """The first row of each time at which a key has a punctuation."""
        if shape in rows.memo:
            known: Array = rows.memo[shape]
            return known
        flags = np.asarray(rows.values(shape.when), bool)
        fresh = np.ones(rows.count, bool)
        fresh[1:] = np.diff(rows.ticks) != 0
        fresh[rows.key_offsets[:-1][np.diff(rows.key_offsets) > 0]] = True
        group = np.cumsum(fresh) - 1
        has_mark = np.zeros(int(group[-1]) + 1 if rows.count else 0, bool)
        has_mark[group[flags]] = True
        opening: Array = fresh & has_mark[group] if rows.count else fresh
        rows.memo[shape] = opening
        return opening

    def bounds(self, shape: Marks, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        if view.count == 0:
            return no_bounds()
        opens = view.opens[shape].copy() if view.rows is None else self.opening_rows(shape, view.rows)[view.row_offsets[:-1]]
        opens[view.key_offsets[:-1][np.diff(view.key_offsets) > 0]] = True
        lo = np.flatnonzero(opens)
        keys = view.key_of_slices()[lo]
        hi = np.append(lo[1:], view.count).astype(np.int64)
        closed = np.zeros(len(lo), bool)
        closed[:-1] = keys[1:] == keys[:-1]
        end = np.where(closed, view.first[np.minimum(hi, view.count - 1)], 0)
        return Bounds(keys, lo, hi, view.first[lo], end, end_known=closed)

    def late(self, shape: Marks, retained: RetainedRows, marks: Array, ticks: Array, codes: Array, horizon: int) -> Array:
        return ticks < marks

    def first_needed(self, shape: Marks, retained: RetainedRows, marks: Array, horizon: int) -> Array:
        rows = retained.rows
        return places_in_keys(rows.key_offsets, rows.ticks, np.arange(len(marks)), marks)
