"""Windows at equal distances."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from sash.algorithms.pipe import window_bounds
from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, SortedRows, View, changes, counted
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Periodic

Array = npt.NDArray[Any]


class OfPeriodic(Handler[Periodic], shape=Periodic):
    """Windows of equal size at equal distances."""

    def cuts(self, shape: Periodic, rows: SortedRows) -> Array:
        return changes(shape.previous_edges(rows.ticks))

    def bounds(self, shape: Periodic, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        lowest = max((after - shape.offset - shape.size) // shape.every + 1, FAR_BACK)
        highest = min((until - shape.offset - shape.size) // shape.every, FAR_AHEAD)
        settings = (shape.size, shape.every, shape.offset, int(empty), lowest, highest)
        lo, hi, start, keys = counted(view, window_bounds.periodic_count, window_bounds.periodic_fill, settings)
        return Bounds(keys, lo, hi, start, start + shape.size)

    def closed(self, shape: Periodic, ticks: Array, horizon: int) -> Array:
        last: Array = ticks - (ticks - shape.offset) % shape.every + shape.size <= horizon
        return last

    def holds(self, shape: Periodic, ticks: Array) -> Array:
        within: Array = (ticks - shape.offset) % shape.every < shape.size
        return within

    def may_end(self, shape: Periodic, marks: Array, counts: Array, after: int, until: int) -> bool:
        phase = shape.offset + shape.size
        return (until - phase) // shape.every != (after - phase) // shape.every
