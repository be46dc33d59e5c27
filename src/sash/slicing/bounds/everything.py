"""All rows so far: one window per key, which never ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, RetainedRows, SortedRows, View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Everything

Array = npt.NDArray[Any]


class OfEverything(Handler[Everything], shape=Everything):
    """One window per key."""

    def cuts(self, shape: Everything, rows: SortedRows) -> Array:
        return np.empty(0, np.int64)

    def bounds(self, shape: Everything, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        keys = np.flatnonzero(np.diff(view.key_offsets) > 0)
        lo, hi = view.key_offsets[keys], view.key_offsets[keys + 1]
        never = np.zeros(len(keys), bool)
        return Bounds(keys, lo, hi, np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64), never, never)

    def late(self, shape: Everything, retained: RetainedRows, marks: Array, ticks: Array, codes: Array, horizon: int) -> Array:
        return np.zeros(len(ticks), bool)

    def first_needed(self, shape: Everything, retained: RetainedRows, marks: Array, horizon: int) -> Array:
        return retained.rows.key_offsets[:-1].copy()
