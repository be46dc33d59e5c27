"""What slicing does for each shape of window: where it cuts sorted rows, and which slices its windows hold.

One class per shape, found by :func:`handler`. ``cuts`` marks the rows before which a slice must start; ``bounds`` turns the slices
into windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from sash import threads
from sash.algorithms import tables
from sash.algorithms.memory import pooled
from sash.slicing.notices import Found, Notices
from sash.slicing.view import Bounds, SortedRows, View, no_bounds, runs
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.base import (
    ContextAwareWindow,
    ContextFreeWindow,
    Everything,
    Gaps,
    Marks,
    Periodic,
    Ranks,
    RowsBefore,
)

Array = npt.NDArray[Any]
S = TypeVar("S")


class Handler(ABC, Generic[S]):
    """One shape."""

    @abstractmethod
    def cuts(self, shape: S, rows: SortedRows) -> Array:
        """The places of the rows that must start a slice, besides each key's first; the place behind the last row counts for nothing."""

    @abstractmethod
    def bounds(self, shape: S, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        """The windows of all keys, ordered by key, then time; at least those that end after ``after`` and not after ``until``."""

    def due(self, shape: S, bounds: Bounds) -> Array:
        """The watermark from which on each window cannot change any more: its end, or never if it has none."""
        return bounds.end if bounds.end_known is None else np.where(bounds.end_known, bounds.end, FAR_AHEAD)

    def closed(self, shape: S, ticks: Array, horizon: int) -> Array:
        """For each tick whether all windows that hold it had ended by ``horizon``, as far as that shows without the rows."""
        return np.zeros(len(ticks), bool)

    def holds(self, shape: S, ticks: Array) -> Array:
        """For each tick whether there is a window that would hold it."""
        return np.ones(len(ticks), bool)


class OfPeriodic(Handler[Periodic]):
    """Windows at equal distances."""

    def cuts(self, shape: Periodic, rows: SortedRows) -> Array:
        return changes(shape.previous_edges(rows.ticks))

    def bounds(self, shape: Periodic, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        lowest = max((after - shape.offset - shape.size) // shape.every + 1, FAR_BACK)
        highest = min((until - shape.offset - shape.size) // shape.every, FAR_AHEAD)
        settings = (shape.size, shape.every, shape.offset, int(empty), lowest, highest)
        filled = _counted(view, tables.periodic_count, tables.periodic_fill, settings)
        lo, hi, start, keys = filled
        return Bounds(keys, lo, hi, start, start + shape.size)

    def closed(self, shape: Periodic, ticks: Array, horizon: int) -> Array:
        last: Array = ticks - (ticks - shape.offset) % shape.every + shape.size <= horizon
        return last

    def holds(self, shape: Periodic, ticks: Array) -> Array:
        within: Array = (ticks - shape.offset) % shape.every < shape.size
        return within


class OfListed(Handler[ContextFreeWindow]):
    """Windows whose edges are known in advance, in any pattern."""

    def cuts(self, shape: ContextFreeWindow, rows: SortedRows) -> Array:
        return changes(shape.previous_edges(rows.ticks))

    def bounds(self, shape: ContextFreeWindow, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        if view.count == 0:
            return no_bounds()
        opens, closes = shape.listed(int(view.first.min()), int(view.last.max()))
        asked = (closes > after) & (closes <= until) & (opens < closes)  # a day that a zone's calendar leaves out is none
        opens, closes = opens[asked], closes[asked]
        if not len(opens):
            return no_bounds()
        order = np.lexsort((closes, opens))
        opens, closes = opens[order], closes[order]
        if np.all(closes[1:] >= closes[:-1]):
            lo, hi, number, keys = _counted(view, tables.listed_count, tables.listed_fill, (opens, closes, len(opens), int(empty)))
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


class OfGaps(Handler[Gaps]):
    """Sessions."""

    def cuts(self, shape: Gaps, rows: SortedRows) -> Array:
        places: Array = np.flatnonzero(np.diff(rows.ticks) > shape.gap) + 1
        return places

    def bounds(self, shape: Gaps, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        if view.count == 0:
            return no_bounds()
        opens = np.ones(view.count, bool)
        opens[1:] = view.first[1:] - view.last[:-1] > shape.gap
        opens[view.key_offsets[:-1][np.diff(view.key_offsets) > 0]] = True
        lo = np.flatnonzero(opens)
        hi = np.append(lo[1:], view.count)
        return Bounds(view.key_of_slices()[lo], lo, hi, view.first[lo], view.last[hi - 1] + shape.gap)

    def due(self, shape: Gaps, bounds: Bounds) -> Array:
        after: Array = bounds.end + 1  # a row at the very end still joins
        return after

    def closed(self, shape: Gaps, ticks: Array, horizon: int) -> Array:
        late: Array = ticks + shape.gap < horizon
        return late


class OfRanks(Handler[Ranks]):
    """Row windows."""

    def cuts(self, shape: Ranks, rows: SortedRows) -> Array:
        starts = self._ranked(rows, shape.every, 0)
        return starts if shape.size % shape.every == 0 else np.concatenate([starts, self._ranked(rows, shape.every, shape.size)])

    @staticmethod
    def _ranked(rows: SortedRows, every: int, offset: int) -> Array:
        """The places of ranks at equal distances, from ``offset`` on."""
        gone = 0 if rows.bases is None else rows.bases
        first = np.maximum(offset, offset + -(-(gone - offset) // every) * every) - gone  # among the rows that are there
        places, _ = runs(rows.key_offsets[:-1] + first, rows.key_offsets[1:], every)
        return places

    def bounds(self, shape: Ranks, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        gone = view.gone if view.rows is None else view.rows.bases
        gone = np.zeros(view.keys, np.int64) if gone is None else gone
        base = view.row_offsets[view.key_offsets[:-1]] - gone
        totals = np.diff(view.row_offsets[view.key_offsets]) + gone
        skipped = np.maximum(0, -(-gone // shape.every))  # windows whose first rows are gone
        windows = -(-totals // shape.every) if shape.partial else (totals - shape.size) // shape.every + 1
        number, keys = runs(skipped, windows)
        from_rank = number * shape.every
        to_rank = np.minimum(from_rank + shape.size, totals[keys])
        lo = np.searchsorted(view.row_offsets, base[keys] + from_rank)
        hi = np.searchsorted(view.row_offsets, base[keys] + to_rank)
        start, end = _at(view.first, lo), _at(view.last, hi - 1)
        return Bounds(keys, lo, hi, start, end, rows=(from_rank, to_rank))

    def due(self, shape: Ranks, bounds: Bounds) -> Array:
        if bounds.rows is None:
            return bounds.end
        complete = bounds.rows[1] - bounds.rows[0] == shape.size
        return np.where(complete, bounds.end + 1, FAR_AHEAD)


class OfMarks(Handler[Marks]):
    """Punctuation."""

    def cuts(self, shape: Marks, rows: SortedRows) -> Array:
        return np.flatnonzero(marked(shape, rows))

    def bounds(self, shape: Marks, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        if view.count == 0:
            return no_bounds()
        opens = view.opens[shape].copy() if view.rows is None else marked(shape, view.rows)[view.row_offsets[:-1]]
        opens[view.key_offsets[:-1][np.diff(view.key_offsets) > 0]] = True
        lo = np.flatnonzero(opens)
        keys = view.key_of_slices()[lo]
        hi = np.append(lo[1:], view.count).astype(np.int64)
        closed = np.zeros(len(lo), bool)
        closed[:-1] = keys[1:] == keys[:-1]
        end = np.where(closed, view.first[np.minimum(hi, view.count - 1)], 0)
        return Bounds(keys, lo, hi, view.first[lo], end, end_known=closed)


def marked(shape: Marks, rows: SortedRows) -> Array:
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
    rows.memo[shape] = fresh & has_mark[group] if rows.count else fresh
    found: Array = rows.memo[shape]
    return found


class OfRowsBefore(Handler[RowsBefore]):
    """The last rows before each edge: the edges follow from time, the starts from the rows before them."""

    def cuts(self, shape: RowsBefore, rows: SortedRows) -> Array:
        low, high, _, _ = self._row_ranges(shape, rows)
        return np.concatenate([low, high])

    def _row_ranges(self, shape: RowsBefore, rows: SortedRows) -> tuple[Array, Array, Array, Array]:
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
        rows.memo[shape] = (low, high, shape.offset + (bucket[at] + 1) * shape.every, at)
        return low, high, shape.offset + (bucket[at] + 1) * shape.every, at

    def bounds(self, shape: RowsBefore, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        assert view.rows is not None
        low, high, edges, at = self._row_ranges(shape, view.rows)
        keys = np.searchsorted(view.rows.key_offsets, at, side="right") - 1
        lo, hi = np.searchsorted(view.row_offsets, low), np.searchsorted(view.row_offsets, high)
        return Bounds(keys, lo, hi, view.rows.ticks[low], edges)


class OfEverything(Handler[Everything]):
    """One window per key."""

    def cuts(self, shape: Everything, rows: SortedRows) -> Array:
        return np.empty(0, np.int64)

    def bounds(self, shape: Everything, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        keys = np.flatnonzero(np.diff(view.key_offsets) > 0)
        lo, hi = view.key_offsets[keys], view.key_offsets[keys + 1]
        never = np.zeros(len(keys), bool)
        return Bounds(keys, lo, hi, np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64), never, never)


class OfContextAware(Handler[ContextAwareWindow]):
    """Users' own windows: a notice per row, in the order of time."""

    def _windows(self, shape: ContextAwareWindow, rows: SortedRows) -> Found:
        notices: Notices = rows.notices.setdefault(id(shape), Notices(shape))
        return notices.windows(rows)

    def cuts(self, shape: ContextAwareWindow, rows: SortedRows) -> Array:
        keys, start, end, known = self._windows(shape, rows)
        keys, edges = np.concatenate([keys, keys[known]]), np.concatenate([start, end[known]])
        return places_in_keys(rows.key_offsets, rows.ticks, keys, edges)

    def bounds(self, shape: ContextAwareWindow, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        assert view.rows is not None
        keys, start, end, known = self._windows(shape, view.rows)
        lo = places_in_keys(view.key_offsets, view.first, keys, start)
        hi = np.where(known, places_in_keys(view.key_offsets, view.first, keys, end), view.key_offsets[keys + 1])
        full = np.flatnonzero(lo < hi)
        return Bounds(keys[full], lo[full], hi[full], start[full], end[full], end_known=known[full])


def places_in_keys(key_offsets: Array, ticks: Array, keys: Array, wanted: Array) -> Array:
    """For each of some keys the place of its first row, or slice, that is not before a tick; behind its last if there is none."""
    found = np.empty(len(keys), np.int64)
    keys, wanted = np.ascontiguousarray(keys), np.ascontiguousarray(wanted)
    tables.plain(tables.places_in_keys)(ticks, key_offsets, keys, wanted, len(keys), found)
    return found


HANDLERS: dict[type, Handler[Any]] = {
    Periodic: OfPeriodic(),
    ContextFreeWindow: OfListed(),
    Gaps: OfGaps(),
    Ranks: OfRanks(),
    Marks: OfMarks(),
    RowsBefore: OfRowsBefore(),
    Everything: OfEverything(),
    ContextAwareWindow: OfContextAware(),
}


def handler(shape: Any) -> Handler[Any]:
    """What to do for a shape."""
    return next(h for kind, h in HANDLERS.items() if isinstance(shape, kind))


def some_window_holds(shapes: Iterable[Any], ticks: Array) -> Array:
    """For each tick whether a window of any shape would hold it: between windows there may be time that is in none."""
    found = np.zeros(len(ticks), bool)
    for shape in shapes:
        found |= handler(shape).holds(shape, ticks)
        if found.all():
            break
    return found


def changes(values: Array) -> Array:
    """Where a value differs from the one before it."""
    places: Array = np.flatnonzero(values[1:] != values[:-1]) + 1
    return places


def _at(values: Array, places: Array) -> Array:
    return values[places] if len(values) else places


def _counted(view: View, count: Any, fill: Any, settings: tuple[Any, ...]) -> tuple[Array, Array, Array, Array]:
    """Run a pair of kernels: one that counts each key's windows, one that writes them."""
    counts = np.zeros(view.keys, np.int64)
    parts = threads.shares(0, view.keys, rows_each=max(1, view.count // max(1, view.keys)))
    counter, filler = tables.plain(count), tables.plain(fill)
    threads.each(lambda a, b: _run(counter, view.key_offsets, view.starts, a, b, *settings, counts), parts)
    places = np.concatenate([[0], np.cumsum(counts)])
    outputs = tuple(pooled(int(places[-1]), "int64") for _ in range(4))
    rows_each = int(places[-1]) // max(1, view.keys)
    threads.each(
        lambda a, b: _run(filler, view.key_offsets, view.starts, a, b, *settings, places, *outputs),
        threads.shares(0, view.keys, rows_each=max(1, rows_each)),
    )
    return outputs  # type: ignore[return-value]


def _run(kernel: Any, *arguments: Any) -> None:
    kernel(*arguments)


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
