"""Adds rows in any order to their slices: for edges that are known in advance, and aggregates that commute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash import threads
from sash.algorithms.memory import pooled
from sash.algorithms.pipe import kernel, scattering
from sash.plan.logical import Plan
from sash.slicing.bounds.view import View
from sash.slicing.partials.column_partials import FieldPartials, Partials
from sash.slicing.rows.timed import TimedRows
from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]


def scatter(rows: TimedRows, partials: list[Partials], edges: Array) -> View:
    """Slices of rows in any order, without sorting; the partials are filled."""
    ticks, keys = rows.ticks, rows.keys
    place_count = keys.count * len(edges)
    places, filled = find_places(ticks, keys.codes, edges, rows.first, rows.last, place_count)
    nonempty = None if filled.all() else np.flatnonzero(filled)

    def work(begin: int, end: int) -> None:
        for p in partials[begin:end]:
            assert isinstance(p, FieldPartials)
            p.scatter(places, place_count, nonempty)

    # Few places: each aggregate's rows are shared among threads. Many: the aggregates are.
    shared = place_count * 8 > len(ticks) and threads.available() > 1 and len(ticks) >= threads.SMALLEST_SHARE
    threads.each(work, [(k, k + 1) for k in range(len(partials))] if shared else [(0, len(partials))])
    occupied = np.arange(place_count) if nonempty is None else nonempty
    counts = filled if nonempty is None else filled[nonempty]
    starts = edges[occupied % len(edges)]
    key_offsets = np.searchsorted(occupied, np.arange(keys.count + 1) * len(edges))
    return View(key_offsets.astype(np.int64), starts, starts, starts, counts)


def edges_between(plan: Plan, first: int, last: int, limit: int) -> Array | None:
    """The edges of all queries from the last one at or before ``first``; None if there are more than ``limit``."""
    edge_lists = []
    for query in plan.queries:
        shape = query.shape
        if not shape.has_known_edges:
            continue
        if (last - first) * shape.density() > limit:
            return None
        before = shape.previous_edges(np.array([first]))
        edge_lists += [before[before > -FAR_AHEAD], shape.edges(first, last)]
    union = _union(edge_lists)
    at = int(np.searchsorted(union, first, side="right")) - 1
    edges: Array = union[at:] if at >= 0 else np.concatenate([[first], union])
    return edges.astype(np.int64)


def _union(sorted_lists: list[Array]) -> Array:
    """The distinct values of sorted lists, in order: merging runs is quicker than hashing, which ``np.unique`` does."""
    values = np.sort(np.concatenate([*sorted_lists, np.empty(0, np.int64)]), kind="stable")
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def find_places(ticks: Array, codes: Array, edges: Array, first: int, last: int, place_count: int) -> tuple[Array, Array]:
    """Each row's place among keys × slices, and how many rows each place has."""
    span = last - first + 1
    shift = max(0, (span // (4 * len(edges))).bit_length() - 1)
    buckets = first + (np.arange((span >> shift) + 1, dtype=np.int64) << shift)
    lookup = np.maximum(np.searchsorted(edges, buckets, side="right") - 1, 0).astype(np.int64)
    places = pooled(len(ticks), "int64")
    find_cells = kernel(scattering.cells)

    counts: list[Array] = []

    def work(begin: int, end: int) -> None:
        own = np.zeros(place_count, np.int64)
        counts.append(own)
        find_cells(ticks, codes, begin, end, edges, len(edges), lookup, first, shift, places, own)

    few = place_count * 8 <= len(ticks)
    threads.each(work, threads.shares(0, len(ticks)) if few else [(0, len(ticks))])
    return places, counts[0] if len(counts) == 1 else np.sum(counts, axis=0)
