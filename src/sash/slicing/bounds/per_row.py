"""A window for each row: its rows as a range, in the order of key and time."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from sash import threads
from sash.algorithms.memory import pooled
from sash.algorithms.pipe import kernel, window_bounds
from sash.slicing.bounds.view import SortedRows
from sash.windows.shapes import Shape, Trailing, TrailingRows

Array = npt.NDArray[Any]


@singledispatch
def row_ranges(shape: Shape, rows: SortedRows) -> tuple[Array, Array]:
    """Each row's window as a range of rows."""
    raise NotImplementedError(f"{shape!r} has no window for each row")


@row_ranges.register
def _(shape: Trailing, rows: SortedRows) -> tuple[Array, Array]:
    lo, hi = pooled(rows.count, "int64"), pooled(rows.count, "int64")
    ranges_of = kernel(window_bounds.trailing)
    keys = len(rows.key_offsets) - 1

    def work(begin: int, end: int) -> None:
        ranges_of(rows.ticks, rows.key_offsets, begin, end, shape.size, int(shape.with_start), int(shape.with_end), lo, hi)

    threads.each(work, threads.shares(0, keys, rows_each=max(1, rows.count // max(1, keys))))
    return lo, hi


@row_ranges.register
def _(shape: TrailingRows, rows: SortedRows) -> tuple[Array, Array]:
    ends = np.arange(rows.count, dtype=np.int64) + shape.with_current
    starts = rows.key_starts()
    return np.maximum(ends - shape.count, starts), np.maximum(ends, starts)
