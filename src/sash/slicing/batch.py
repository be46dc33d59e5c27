"""A whole table through the pipe: slices, bounds, range aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash import threads
from sash.algorithms import tables
from sash.algorithms.memory import pooled
from sash.columns import arrow_column
from sash.errors import InvalidArgument
from sash.plan.choose import Choice
from sash.plan.logical import Plan
from sash.plan.tables import Facts, choose_slices, most_places
from sash.slicing import order
from sash.slicing.keys import Keys, encode, span_of
from sash.slicing.partials import FieldPartials, Partials, partials_of
from sash.slicing.ranges import Ranges, look_at
from sash.slicing.results import result_table
from sash.slicing.shapes import handler
from sash.slicing.view import Bounds, SortedRows, View
from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Stream:
    """Rows that have a time, with their ticks and keys."""

    table: pa.Table
    ticks: Array
    keys: Keys
    first: int = 0
    last: int = 0


def aggregate_table(plan: Plan, table: pa.Table) -> pa.Table:
    """All windows of all queries over a table."""
    return windows_of(plan, read(plan, table))


def windows_of(plan: Plan, stream: Stream, own: Callable[[Bounds], Bounds] | None = None) -> pa.Table:
    """All windows over a stream, or those that ``own`` leaves of each query's."""
    view, partials = sliced(plan, stream)
    bounds = [handler(q.shape).bounds(q.shape, view, plan.empty) for q in plan.queries]
    if own is not None:
        bounds = [own(b) for b in bounds]
    asked = [look_at(b.lo, b.hi) for b in bounds]
    columns = [pa.chunked_array([p.results(ranges) for ranges in asked]) for p in partials]
    return result_table(plan, stream.keys, bounds, columns)


def read(plan: Plan, table: pa.Table) -> Stream:
    """The rows that have a time."""
    table = table.select(list(plan.reads))
    time = arrow_column(table.column(plan.time))
    if time.null_count:
        known = time.is_valid()
        table, time = table.filter(known), time.filter(known)
    ticks = plan.measure.column(time)
    first, last = span_of(ticks)
    check_span(first, last, plan.time)
    return Stream(table, ticks, encode(table, plan.by), first, last)


def check_span(first: int, last: int, name: str) -> None:
    """Times must be far enough from the ends of 64 bits."""
    if not -(FAR_AHEAD >> 1) < first <= last < FAR_AHEAD >> 1:
        raise InvalidArgument(
            f"the time column {name!r} holds a value beyond ±2**61; windows around it cannot be reckoned in 64 bits "
            "(nanoseconds reach from 1896 to 2043: cast such a column to microseconds)"
        )


def sliced(plan: Plan, stream: Stream, how: tuple[Choice, Array | None] | None = None) -> tuple[View, list[Partials]]:
    """Rows to slices, and each aggregate's partials over them."""
    choice, edges = how or how_to_slice(plan, stream)
    if choice.algorithm == "scatter":
        assert edges is not None
        partials = [partials_of(c, stream.table) for c in plan.columns]
        return scattered(stream, partials, edges), partials
    return gathered(plan, stream)


def slice_spans(plan: Plan, stream: Stream) -> tuple[int, list[Ranges]]:
    """How many slices there are, and each query's windows as ranges of them; nothing is aggregated."""
    view, _ = sliced(replace(plan, columns=()), stream, how_to_slice(plan, stream))
    bounds = [handler(q.shape).bounds(q.shape, view, plan.empty) for q in plan.queries]
    return len(view.starts), [look_at(b.lo, b.hi) for b in bounds]


def how_to_slice(plan: Plan, stream: Stream) -> tuple[Choice, Array | None]:
    """The choice, and for scattering the edges; no value of a row is looked at."""
    rows = stream.table.num_rows
    context_free = all(q.window.context == "context free" for q in plan.queries)
    commute = all(partials_of(c, plan.schema.empty_table()).scatters for c in plan.columns)
    edges = None
    if context_free and commute and rows:
        limit = most_places(rows) // max(1, stream.keys.count)
        edges = edges_between(plan, stream.first, stream.last, limit)
    places = None if edges is None else stream.keys.count * len(edges)
    return choose_slices(Facts(rows, context_free, commute, places)), edges


# Rows in any order, straight to their slices.


def scattered(stream: Stream, partials: list[Partials], edges: Array) -> View:
    """Slices without sorting."""
    ticks, keys = stream.ticks, stream.keys
    place_count = keys.count * len(edges)
    places, filled = find_places(ticks, keys.codes, edges, stream.first, stream.last, place_count)
    kept = None if filled.all() else np.flatnonzero(filled)

    def work(begin: int, end: int) -> None:
        for p in partials[begin:end]:
            assert isinstance(p, FieldPartials)
            p.scatter(places, place_count, kept)

    # Few places: each aggregate's rows are shared among threads. Many: the aggregates are.
    shared = place_count * 8 > len(ticks) and threads.available() > 1 and len(ticks) >= threads.SMALLEST_SHARE
    threads.each(work, [(k, k + 1) for k in range(len(partials))] if shared else [(0, len(partials))])
    occupied = np.arange(place_count) if kept is None else kept
    counts = filled if kept is None else filled[kept]
    starts = edges[occupied % len(edges)]
    key_offsets = np.searchsorted(occupied, np.arange(keys.count + 1) * len(edges))
    return View(key_offsets.astype(np.int64), starts, starts, starts, counts)


def edges_between(plan: Plan, first: int, last: int, limit: int) -> Array | None:
    """The edges of all queries from the last one at or before ``first``; None if there are more than ``limit``."""
    found = []
    for query in plan.queries:
        shape = query.shape
        if not hasattr(shape, "edges"):  # everything: no edges
            continue
        if (last - first) * shape.density() > limit:
            return None
        before = shape.previous_edges(np.array([first]))
        found += [before[before > -FAR_AHEAD], shape.edges(first, last)]
    union = np.unique(np.concatenate([*found, np.empty(0, np.int64)]))
    at = int(np.searchsorted(union, first, side="right")) - 1
    edges: Array = union[at:] if at >= 0 else np.concatenate([[first], union])
    return edges.astype(np.int64)


def find_places(ticks: Array, codes: Array, edges: Array, first: int, last: int, place_count: int) -> tuple[Array, Array]:
    """Each row's place among keys × slices, and how many rows each place has."""
    span = last - first + 1
    shift = max(0, (span // (4 * len(edges))).bit_length() - 1)
    buckets = first + (np.arange((span >> shift) + 1, dtype=np.int64) << shift)
    lookup = np.maximum(np.searchsorted(edges, buckets, side="right") - 1, 0).astype(np.int64)
    places = pooled(len(ticks), "int64")
    kernel = tables.plain(tables.cells)

    counts: list[Array] = []

    def work(begin: int, end: int) -> None:
        own = np.zeros(place_count, np.int64)
        counts.append(own)
        kernel(ticks, codes, begin, end, edges, len(edges), lookup, first, shift, places, own)

    few = place_count * 8 <= len(ticks)
    threads.each(work, threads.shares(0, len(ticks)) if few else [(0, len(ticks))])
    return places, counts[0] if len(counts) == 1 else np.sum(counts, axis=0)


# Rows in order, cut where any query asks for it.


def gathered(plan: Plan, stream: Stream) -> tuple[View, list[Partials]]:
    """Slices of sorted rows."""
    table, rows = in_order(plan, stream)
    view = cut(plan, rows)
    return view, gather(plan, table, view.row_offsets)


def cut(plan: Plan, rows: SortedRows, more: Array | None = None) -> View:
    """Slices of sorted rows: a new one starts wherever any query asks for it, and at ``more`` places."""
    starts = np.zeros(rows.count + 1, bool)
    starts[rows.key_offsets] = True
    for query in plan.queries:
        starts[handler(query.shape).cuts(query.shape, rows)] = True
    if more is not None:
        starts[more] = True
    row_offsets = np.append(np.flatnonzero(starts[:-1]), rows.count).astype(np.int64)
    first, last = rows.ticks[row_offsets[:-1]], rows.ticks[row_offsets[1:] - 1]
    key_offsets = np.searchsorted(row_offsets[:-1], rows.key_offsets).astype(np.int64)
    return View(key_offsets, first, first, last, np.diff(row_offsets), rows)


def gather(plan: Plan, table: pa.Table, row_offsets: Array) -> list[Partials]:
    """Each aggregate's partials over slices of sorted rows."""
    partials = [partials_of(c, table) for c in plan.columns]
    for p in partials:
        p.gather(row_offsets)
    return partials


def in_order(plan: Plan, stream: Stream) -> tuple[pa.Table, SortedRows]:
    """The rows by key, then time, then ``order_by``, then arrival."""
    table, ticks, codes = stream.table, stream.ticks, stream.keys.codes
    if len(ticks):
        ties = [arrow_column(table.column(name)) for name in plan.order_by]
        places = order.sorted_order(codes, stream.keys.count, ticks, ties)
        if places is not None:
            ticks, codes = ticks[places], codes[places]
            table = table.take(pa.array(places))
    key_offsets = np.searchsorted(codes, np.arange(stream.keys.count + 1)).astype(np.int64)
    return table, SortedRows(np.ascontiguousarray(ticks), key_offsets, table)
