"""The pipe over a whole table: slices, bounds, range aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from sash.plan.choices.decision import Decision
from sash.plan.choices.slicing_choice import SCATTER, Facts, choose_slices, most_places
from sash.plan.logical import Plan
from sash.slicing.batch.results import result_table
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import Bounds, View
from sash.slicing.ingest.cut import sort_and_cut
from sash.slicing.ingest.scatter import edges_between, scatter
from sash.slicing.partials.column_partials import Partials
from sash.slicing.partials.kinds_of_partials import partials_of
from sash.slicing.partials.ranges import Ranges, look_at
from sash.slicing.rows.timed import TimedRows, read

Array = npt.NDArray[Any]


def aggregate_table(plan: Plan, table: pa.Table) -> pa.Table:
    """All windows of all queries over a table."""
    return windows_of(plan, read(plan, table))


def windows_of(plan: Plan, rows: TimedRows, own: Callable[[Bounds], Bounds] | None = None) -> pa.Table:
    """All windows of all queries over rows; ``own`` selects from each query's windows."""
    results = window_results(plan, rows, own)
    columns = [pa.chunked_array(parts) for parts in zip(*(values for _, values in results), strict=True)]
    return result_table(plan, rows.keys, [bounds for bounds, _ in results], columns)


def window_results(plan: Plan, rows: TimedRows, own: Callable[[Bounds], Bounds] | None = None) -> list[tuple[Bounds, list[pa.Array]]]:
    """For each query its windows, and each aggregate's results over them."""
    view, partials = sliced(plan, rows)
    bounds = [handler(q.shape).bounds(q.shape, view, plan.empty) for q in plan.queries]
    if own is not None:
        bounds = [own(b) for b in bounds]
    query_ranges = [look_at(b.lo, b.hi) for b in bounds]
    by_column = [[p.results(ranges) for ranges in query_ranges] for p in partials]
    return [(b, [results[k] for results in by_column]) for k, b in enumerate(bounds)]


def sliced(plan: Plan, rows: TimedRows, how: tuple[Decision, Array | None] | None = None) -> tuple[View, list[Partials]]:
    """The slices of rows, and each aggregate's partials over them."""
    decision, edges = how or how_to_slice(plan, rows)
    if decision.choice == SCATTER:
        assert edges is not None
        partials = [partials_of(c, rows.table) for c in plan.columns]
        return scatter(rows, partials, edges), partials
    return sort_and_cut(plan, rows)


def slice_spans(plan: Plan, rows: TimedRows) -> tuple[int, list[Ranges]]:
    """How many slices there are, and each query's windows as ranges of them; nothing is aggregated."""
    view, _ = sliced(replace(plan, columns=()), rows, how_to_slice(plan, rows))
    bounds = [handler(q.shape).bounds(q.shape, view, plan.empty) for q in plan.queries]
    return len(view.starts), [look_at(b.lo, b.hi) for b in bounds]


def how_to_slice(plan: Plan, rows: TimedRows) -> tuple[Decision, Array | None]:
    """The choice of how to slice, and for scattering the edges; values of rows are not read."""
    count = rows.table.num_rows
    context_free = all(q.window.context == "context free" for q in plan.queries)
    commute = all(partials_of(c, plan.schema.empty_table()).scatters for c in plan.columns)
    edges = None
    if context_free and commute and count and plan.device is None:
        limit = most_places(count) // max(1, rows.keys.count)
        edges = edges_between(plan, rows.first, rows.last, limit)
    places = None if edges is None else rows.keys.count * len(edges)
    return choose_slices(Facts(count, context_free, commute, places, plan.device is not None)), edges
