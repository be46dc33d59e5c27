"""Windows whose edges are known in advance, in any pattern: calendars, bands, and users' own context free windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algorithms.pipe import window_bounds
from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, SortedRows, View, changes, counted, no_bounds
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.own import ContextFreeWindow

Array = npt.NDArray[Any]


class OfListed(Handler[ContextFreeWindow], shape=ContextFreeWindow):
    """Windows whose edges are known in advance, in any pattern."""

    def cuts(self, shape: ContextFreeWindow, rows: SortedRows) -> Array:
        return changes(shape.previous_edges(rows.ticks))

    def bounds(self, shape: ContextFreeWindow, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        if view.count == 0:
            return no_bounds()
        opens, closes = shape.listed(int(view.first.min()), int(view.last.max()))
        wanted = (closes > after) & (closes <= until) & (opens < closes)  # a day that a zone's calendar skips has no window
        opens, closes = opens[wanted], closes[wanted]
        if not len(opens):
            return no_bounds()
        order = np.lexsort((closes, opens))
        opens, closes = opens[order], closes[order]
        if np.all(closes[1:] >= closes[:-1]):
            lo, hi, number, keys = counted(
                view, window_bounds.listed_count, window_bounds.listed_fill, (opens, closes, len(opens), int(empty))
            )
            return Bounds(keys, lo, hi, opens[number], closes[number])
        return _nested(view, opens, closes, empty)

    def closed(self, shape: ContextFreeWindow, ticks: Array, horizon: int) -> Array:
        old = ticks < horizon
        if not old.any():
            return old
        opens, closes = shape.listed(int(ticks[old].min()), int(ticks[old].max()))
        still = closes > horizon
        for start, end in zip(opens[still].tolist(), closes[still].tolist(), strict=True):
            old &= ~((ticks >= start) & (ticks < end))
        return old

    def holds(self, shape: ContextFreeWindow, ticks: Array) -> Array:
        opens, closes = shape.listed(int(ticks.min()), int(ticks.max())) if len(ticks) else (ticks, ticks)
        within = np.zeros(len(ticks), bool)
        for start, end in zip(opens.tolist(), closes.tolist(), strict=True):
            within |= (ticks >= start) & (ticks < end)
        return within


def _nested(view: View, opens: Array, closes: Array, empty: bool) -> Bounds:
    """Listed windows of which one may lie inside another: each key's slices are searched."""
    parts = []
    for key in range(view.keys):
        first, last = int(view.key_offsets[key]), int(view.key_offsets[key + 1])
        if first == last:
            continue
        lo = first + np.searchsorted(view.starts[first:last], opens)
        hi = np.maximum(lo, first + np.searchsorted(view.starts[first:last], closes))
        full = np.flatnonzero((hi > lo) | (empty & (first < hi) & (lo < last)))
        parts.append((np.full(len(full), key), lo[full], hi[full], opens[full], closes[full]))
    if not parts:
        return no_bounds()
    keys, lo, hi, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Bounds(keys, lo, hi, start, end)
