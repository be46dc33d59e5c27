"""Sessions: windows that are separated by gaps between rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, SortedRows, View, no_bounds
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Gaps

Array = npt.NDArray[Any]


class OfGaps(Handler[Gaps], shape=Gaps):
    """Sessions, from the first and last times of slices: they need no edges of their own, and only ever merge."""

    def cuts(self, shape: Gaps, rows: SortedRows) -> Array:
        places: Array = np.flatnonzero(np.diff(rows.ticks) > shape.gap) + 1
        return places

    def bounds(self, shape: Gaps, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        if view.count == 0:
            return no_bounds()
        keys = view.key_of_slices()
        lo, hi = sessions(shape.gap, keys, view.first, view.last)
        return Bounds(keys[lo], lo, hi, view.first[lo], view.last[hi - 1] + shape.gap)

    def due(self, shape: Gaps, bounds: Bounds) -> Array:
        after: Array = bounds.end + 1  # a row at the very end still joins
        return after

    def closed(self, shape: Gaps, ticks: Array, horizon: int) -> Array:
        late: Array = ticks + shape.gap < horizon
        return late

    def needed(self, shape: Gaps, key: Array, first: Array, last: Array, horizon: int) -> Array:
        lo, hi = sessions(shape.gap, key, first, last)
        return np.repeat(last[hi - 1] + shape.gap + 1 > horizon, hi - lo)

    def open_count(self, shape: Gaps, key: Array, first: Array, last: Array) -> int:
        return len(sessions(shape.gap, key, first, last)[0])


def sessions(gap: int, key: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """Sessions as ranges of slices, which are in the order of key and time."""
    if not len(key):
        return key, key
    opens = np.ones(len(key), bool)
    opens[1:] = (first[1:] - last[:-1] > gap) | (key[1:] != key[:-1])
    lo = np.flatnonzero(opens)
    return lo, np.append(lo[1:], len(key))
