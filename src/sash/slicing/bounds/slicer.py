"""The slicer: where the edges of all queries lie (sections 5.2 and 5.3, step 1).

Periodic queries are stored as arrays, so that a thousand of them cost about what one does. Edges ahead of the stream are computed in
stretches and cached, which is the paper's cached next edge for batches.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sash.algorithms.pipe import kernel, window_bounds
from sash.plan.logical import Query
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import runs
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]

STRETCH = 32
"""Edges are computed ahead for so many times the span of a batch."""
MOST_EDGES = 1 << 16
MOST_BUCKETS = 1 << 15
NO_EDGE = FAR_BACK + 1
"""The cell of rows before every edge."""


class Locator(NamedTuple):
    """The edges as :func:`~sash.algorithms.pipe.scattering.locate` takes them."""

    all_edges: Array
    """All cached edges, followed by one that no row reaches."""
    skip: int
    edge_count: int
    lookup: Array
    base: int
    shift: int
    many: int

    @property
    def edges(self) -> Array:
        """The edges that rows may lie behind."""
        return self.all_edges[self.skip : self.skip + self.edge_count]


class Slicer:
    """The edges of a set of queries, none of them dependent on rows; sessions and everything have none."""

    def __init__(self, queries: tuple[Query, ...]) -> None:
        self.queries = queries
        shapes = [q.shape for q in queries]
        periodic = [(k, p) for k, p in enumerate(s.as_periodic for s in shapes) if p is not None]
        self.places = np.array([k for k, _ in periodic], np.int64)
        table = np.array([(p.size, p.every, p.offset) for _, p in periodic], np.int64).reshape(-1, 3)
        self.size, self.every, self.offset = (np.ascontiguousarray(column) for column in table.T)
        self.listed = [k for k, s in enumerate(shapes) if s.has_known_edges and s.as_periodic is None]
        self.others = [k for k, s in enumerate(shapes) if s.as_periodic is None]
        self._edges = np.empty(0, np.int64)
        self._numbers: list[int] = []
        """The edges as a list, for binary search in Python."""
        self._from, self._to = FAR_AHEAD, FAR_BACK
        self._closed, self._lookup = self._edges, self._edges
        self._shift = self._many = 0
        self._looked_until: int | None = None
        self._oldest = FAR_AHEAD, FAR_AHEAD, FAR_BACK
        """The start of the earliest open window, and the horizons from and to which that holds."""
        self._phases = self.offset + self.size
        self._next_ends = self._none = self._edges
        """Each periodic query's next window end, as of the last call of :meth:`ending`."""
        self._earliest_end = FAR_AHEAD
        self.all = np.arange(len(self.places))
        self.since = np.array([queries[k].since for k in self.places.tolist()], np.int64)
        # Starts, and ends where they are not starts as well.
        apart = self.size % self.every != 0
        steps = np.concatenate([self.every, self.every[apart]])
        phases = np.concatenate([self.offset, self._phases[apart]]) % steps
        families, family = np.unique(np.stack([phases, steps]), axis=1, return_inverse=True)
        self._phase: Array = families[0]
        self._step: Array = families[1]
        self._edges_since = np.full(len(self._step), FAR_AHEAD)
        np.minimum.at(self._edges_since, family.reshape(-1), np.concatenate([self.since, self.since[apart]]))
        self._only_ends = np.ones(len(self._step), bool)
        self._only_ends[family.reshape(-1)[: len(self.every)]] = False

    @property
    def density(self) -> float:
        """How many edges of periodic queries a tick has on average."""
        return float((1.0 / self._step).sum())

    def points(self, which: Array, ended: tuple[int, int], stretch: tuple[int, int], most: int) -> Array | None:
        """The starts and ends of windows of some periodic queries: those that end after the one tick and not after the other, and overlap
        a stretch of time; None if there are more than ``most``."""
        size, every, phase = self.size[which], self.every[which], self.offset[which]
        first = (max(ended[0], stretch[0]) - phase - size) // every + 1
        last = np.minimum((ended[1] - phase - size) // every, (stretch[1] - phase) // every)
        if int(np.maximum(0, last - first + 1).sum()) > most:
            return None
        number, query = runs(first, last + 1)
        start = phase[query] + number * every[query]
        return np.concatenate([start, start + size[query]])

    @property
    def finest(self) -> int:
        """The number of the periodic query with the smallest step among the oldest ones: all slices are cut at its edges."""
        return int(np.lexsort((self.every, self.since))[0])

    @property
    def has_edges(self) -> bool:
        return bool(len(self._step)) or bool(self.listed)

    def edges(self, first: int, last: int, limit: int = MOST_EDGES) -> Array | None:
        """The edges from the last one at or before ``first`` up to ``last``; None if there are more than ``limit``."""
        places = self._find(first, last, limit)
        return None if places is None else self._edges[places[0] : places[1]]

    def locator(self, first: int, last: int, limit: int = MOST_EDGES) -> Locator | None:
        """The edges as :meth:`edges` returns them, in the form in which kernels take them."""
        places = self._find(first, last, limit)
        return (
            None
            if places is None
            else Locator(self._closed, places[0], places[1] - places[0], self._lookup, self._from, self._shift, self._many)
        )

    def _find(self, first: int, last: int, limit: int) -> tuple[int, int] | None:
        if not self.has_edges:
            return None
        if first < self._from or last > self._to:
            if (1.0 / self._step).sum() * (last - first) > limit:
                return None
            self._compute_edges(first, last, limit)
        low = bisect_right(self._numbers, first) - 1
        high = bisect_right(self._numbers, last)
        if low < 0 or high - low > limit:
            return None
        return low, high

    def _compute_edges(self, first: int, last: int, limit: int) -> None:
        """Compute and cache the edges around and ahead of a stretch of time."""
        span = max(last - first, 1)
        density = float((1.0 / self._step).sum())
        ahead = int(min(STRETCH * span, limit / density)) if density else STRETCH * span
        # A calendar has a beginning, and its edges are expensive: few are computed beyond the rows.
        ahead = min(ahead, span) if self.listed else ahead
        start, stop = first if self.listed else max(first - span, FAR_BACK), min(last + ahead, FAR_AHEAD - 1)
        before = int(self._before(np.array([start]))[0])
        low = start if before <= NO_EDGE else before
        edge_lists = [self._periodic(low, stop)]
        for query in (self.queries[k] for k in self.listed):
            edges = query.shape.edges(low, stop)
            edge_lists.append(edges[edges >= query.since])
        self._edges = np.unique(np.concatenate(edge_lists))
        self._numbers = self._edges.tolist()
        self._from, self._to = start, stop
        # How many edges lie at or before the first tick of each stretch of 2**shift: where the search for a row's edge starts.
        apart = int(np.diff(self._edges).min()) if len(self._edges) > 1 else stop - start
        self._shift = max(max(1, apart).bit_length() - 1, ((stop - start) // MOST_BUCKETS).bit_length())
        size = ((stop - start) >> self._shift) + 1
        at = np.maximum(-((start - self._edges) >> self._shift), 0)
        self._lookup = np.maximum(np.cumsum(np.bincount(at, minlength=size)[:size]) - 1, 0)
        self._closed = np.append(self._edges, FAR_AHEAD)
        self._many = int((1 << self._shift) > apart)

    def _periodic(self, first: int, last: int) -> Array:
        begin = np.maximum(first, self._edges_since)
        edges, _ = runs(begin + (self._phase - begin) % self._step, last + 1, self._step)
        return edges

    def _before(self, ticks: Array) -> Array:
        """For a few ticks the latest edge at or before each."""
        edges = ticks[:, None] - (ticks[:, None] - self._phase) % self._step
        cell: Array = np.where(edges >= self._edges_since, edges, NO_EDGE).max(axis=1, initial=NO_EDGE)
        for k in self.listed:
            self._behind_edges_of(self.queries[k], ticks, cell)
        return cell

    def _behind_edges_of(self, query: Query, ticks: Array, cell: Array) -> None:
        """Each tick's cell begins no earlier than a query's latest edge at or before it."""
        edges = query.shape.previous_edges(ticks)
        np.maximum(cell, np.where(edges >= query.since, edges, NO_EDGE), out=cell)

    def cells(self, ticks: Array) -> Array:
        """For each tick the latest edge at or before it, or one tick after the beginning of time if there is none."""
        if len(ticks) and self.has_edges:
            edges = self.edges(int(ticks.min()), int(ticks.max()))
            if edges is not None and len(edges):
                cells: Array = edges[np.searchsorted(edges, ticks, side="right") - 1]
                return cells
        if len(ticks) * len(self._step) <= 1 << 20:
            return self._before(ticks)
        cell = np.full(len(ticks), NO_EDGE, np.int64)
        for query in self.queries:
            if query.shape.has_known_edges:
                self._behind_edges_of(query, ticks, cell)
        return cell

    def pass_ends(self, after: int, until: int) -> bool:
        """Drop the ends up to ``until`` from the edges, unless windows start there: in an in-order stream no row comes before an end that
        has passed. Returns whether one of them lies after ``after``."""
        which = np.flatnonzero(self._only_ends)
        phase, step = self._phase[which], self._step[which]
        if not np.any((until - phase) // step > (after - phase) // step):
            return False
        self._edges_since[which] = np.maximum(self._edges_since[which], until + 1)
        self._from, self._to = FAR_AHEAD, FAR_BACK  # to be computed again
        return True

    def oldest_open(self, horizon: int) -> int:
        """Where the earliest periodic window starts that ends after ``horizon``."""
        if not len(self.every):
            return FAR_AHEAD
        start, since, until = self._oldest
        if not since <= horizon < until:
            starts = self.offset + ((horizon - self.offset - self.size) // self.every + 1) * self.every
            start = int(starts.min())
            # It stays the earliest until it ends: the others' next windows only start later.
            self._oldest = start, horizon, int((starts + self.size)[starts == start].max())
        return start

    def late(self, ticks: Array, horizon: int) -> Array:
        """For each row whether all of its windows had ended by ``horizon``."""
        late: Array = ticks < self.oldest_open(horizon)
        for k in self.others:
            shape = self.queries[k].shape
            late &= handler(shape).closed(shape, ticks, horizon)
        return late

    def ending(self, after: int, until: int) -> Array:
        """Which periodic queries have a window that ends after ``after`` and not after ``until``: their numbers among the periodic ones."""
        if after != self._looked_until:
            self._next_ends = self._phases + ((after - self._phases) // self.every + 1) * self.every
            self._earliest_end = int(self._next_ends.min(initial=FAR_AHEAD))
        self._looked_until = until
        if until < self._earliest_end:
            return self._none
        due = np.empty(len(self.every) + 1, np.int64)
        count = kernel(window_bounds.due_queries)(self._next_ends, self._phases, self.every, len(self.every), until, due)
        self._earliest_end = int(due[-1])
        return due[:count]
