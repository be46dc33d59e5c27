"""Aggregates per window and group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.expressions import parse
from sash.plan.logical import Plan, Query, call_column
from sash.plan.queries.relations import Grouped
from sash.relational.members import Members, Pipe, Results, expanded
from sash.slicing.batch.whole_table import window_results
from sash.slicing.rows.timed import TimedRows, read
from sash.types import Measure
from sash.windows import tumbling
from sash.windows.shapes import Periodic

Array = npt.NDArray[Any]

TICK = "@tick"
MOST_REPEATED = 1 << 22
"""Rows that are repeated per window are aggregated in blocks of windows with about so many of them."""


def grouped(relation: Grouped, rows: Members | Results) -> Results:
    """The groups of each window with their aggregates."""
    table = with_keys(relation, rows.table)
    if isinstance(rows, Results):
        return _aggregated(relation, table, rows, Pipe(rows.numbers, tumbling(1), Periodic(1, 1), 1))
    if rows.pipe is not None:
        return _aggregated(relation, table, rows, rows.pipe)
    parts = []
    lo, hi = rows.span
    for places, numbers in blocks(lo, hi):
        part = table.take(pa.array(places))
        parts.append(_aggregated(relation, part, rows, Pipe(numbers, tumbling(1), Periodic(1, 1), 1)))
    if not parts:
        nothing = np.empty(0, np.int64)
        return _aggregated(relation, table.slice(0, 0), rows, Pipe(nothing, tumbling(1), Periodic(1, 1), 1))
    return Results(pa.concat_tables([p.table for p in parts]), rows.edges, np.concatenate([p.numbers for p in parts]), rows.measure)


def with_keys(relation: Grouped, table: pa.Table) -> pa.Table:
    """The rows with keys that are expressions as columns of their own."""
    for name, text in relation.keys:
        if name not in table.column_names:
            table = table.append_column(name, parse(text).evaluate(table))
    return table


def _aggregated(relation: Grouped, table: pa.Table, rows: Members | Results, pipe: Pipe) -> Results:
    """Rows aggregated window by window, of which each may be in several; they are in the order of time already."""
    plan, timed = bound_plan(relation, table, pipe)
    by = plan.by
    ((bounds, results),) = window_results(plan, timed)
    numbers = pipe.numbers(rows.edges, bounds.start, bounds.end)
    names = [*by, *(c.call.name for c in plan.columns)]
    values = [*timed.keys.take(bounds.keys), *results]
    fields = [relation.schema.field(n) for n in names]
    result = pa.Table.from_arrays(
        [v if v.type == f.type else v.cast(f.type) for v, f in zip(values, fields, strict=True)], schema=pa.schema(fields)
    )
    exist = rows.edges.exist(numbers)
    grouped_rows = Results(result, rows.edges, numbers, rows.measure)
    return grouped_rows if exist is None else grouped_rows.where(exist)


def bound_plan(relation: Grouped, table: pa.Table, pipe: Pipe) -> tuple[Plan, TimedRows]:
    """The plan by which the pipe aggregates rows, and the rows as it reads them."""
    by = tuple(name for name, _ in relation.keys)
    table = table.append_column(TICK, pa.array(pipe.ticks))
    columns = tuple(call_column(call, table.schema) for call in relation.calls)
    plan = Plan(table.schema, (Query("window", pipe.window, pipe.shape),), False, columns, by, TICK, Measure(pa.int64()))
    return plan, read(plan, table)


def blocks(lo: Array, hi: Array, most: int = MOST_REPEATED) -> Iterator[tuple[Array, Array]]:
    """Rows repeated for each of their windows, block by block of windows: the rows' places, and the windows."""
    total = int(np.maximum(hi - lo, 0).sum())
    if total <= most:
        if total:
            yield expanded(lo, hi)
        return
    for begin, end in _cuts(lo, hi, most):
        places = np.flatnonzero((lo < end) & (hi > begin))
        inside, numbers = expanded(np.maximum(lo[places], begin), np.minimum(hi[places], end))
        yield places[inside], numbers


def _cuts(lo: Array, hi: Array, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of windows in which about ``most`` rows are repeated, or one window."""
    full = hi > lo
    points, where = np.unique(np.concatenate([lo[full], hi[full]]), return_inverse=True)
    change = np.where(np.arange(len(where)) < full.sum(), 1, -1)
    active = np.cumsum(np.bincount(where, weights=change, minlength=len(points))).astype(np.int64)
    begin, held = int(points[0]), 0
    for at, following, count in zip(points[:-1].tolist(), points[1:].tolist(), active[:-1].tolist(), strict=True):
        while count and held + count * (following - at) > most:
            step = max(1, (most - held) // count)
            if held and (most - held) < count:
                step = 0
            at = min(following, at + step)
            if at > begin:
                yield begin, at
            begin, held = at, 0
            if at == following:
                break
        else:
            held += count * (following - at)
            continue
    if begin < int(points[-1]):
        yield begin, int(points[-1])
