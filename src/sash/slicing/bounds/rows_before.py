"""The last rows before each edge: the edges follow from time, the starts from the rows before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, RetainedRows, SortedRows, View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import RowsBefore

Array = npt.NDArray[Any]


class OfRowsBefore(Handler[RowsBefore], shape=RowsBefore):
    """A window for each edge that follows at least one new row of its key."""

    def cuts(self, shape: RowsBefore, rows: SortedRows) -> Array:
        low, high, _, _ = self._row_ranges(shape, rows)
        return np.concatenate([low, high])

    def _row_ranges(self, shape: RowsBefore, rows: SortedRows) -> tuple[Array, Array, Array, Array]:
        """The windows as ranges of rows, their edges, and the last row before each."""
        if shape in rows.memo:
            known: tuple[Array, Array, Array, Array] = rows.memo[shape]
            return known
        bucket = (rows.ticks - shape.offset) // shape.every
        key_starts = rows.key_starts()
        last = np.ones(rows.count, bool)
        last[:-1] = (bucket[1:] != bucket[:-1]) | (key_starts[1:] != key_starts[:-1])
        at = np.flatnonzero(last)
        high = at + 1
        low = np.maximum(high - shape.count, key_starts[at])
        ranges = (low, high, shape.offset + (bucket[at] + 1) * shape.every, at)
        rows.memo[shape] = ranges
        return ranges

    def bounds(self, shape: RowsBefore, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        assert view.rows is not None
        low, high, edges, at = self._row_ranges(shape, view.rows)
        keys = np.searchsorted(view.rows.key_offsets, at, side="right") - 1
        lo, hi = np.searchsorted(view.row_offsets, low), np.searchsorted(view.row_offsets, high)
        return Bounds(keys, lo, hi, view.rows.ticks[low], edges)

    def identity(self, bounds: Bounds) -> tuple[Array, Array, Array]:
        nothing = np.zeros(len(bounds), np.int64)
        return bounds.end, nothing, nothing

    def idle_until(self, shape: RowsBefore, last_seen: Array, until: Array) -> Array:
        idle: Array = np.maximum(until, last_seen - (last_seen - shape.offset) % shape.every + shape.every - 1)
        return idle

    def may_end(self, shape: RowsBefore, marks: Array, counts: Array, after: int, until: int) -> bool:
        return (until - shape.offset) // shape.every != (after - shape.offset) // shape.every

    def late(self, shape: RowsBefore, retained: RetainedRows, marks: Array, ticks: Array, codes: Array, horizon: int) -> Array:
        late = np.zeros(len(ticks), bool)
        # The next edge is the one that the fewest rows lie before.
        edge = shape.offset + ((horizon - shape.offset) // shape.every + 1) * shape.every
        for i in np.flatnonzero(ticks < marks).tolist():
            late[i] = retained.between(int(codes[i]), int(ticks[i]), edge) >= shape.count
        return late

    def first_needed(self, shape: RowsBefore, retained: RetainedRows, marks: Array, horizon: int) -> Array:
        return retained.rows.before(horizon) - shape.count
