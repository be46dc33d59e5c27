"""A result for each row: the aggregates over its trailing windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash import threads
from sash.algorithms.memory import pooled
from sash.algorithms.pipe import kernel, sorting
from sash.columns import arrow_column
from sash.plan.logical import Plan, check_names, output_type
from sash.slicing.bounds.per_row import row_ranges
from sash.slicing.bounds.view import SortedRows
from sash.slicing.ingest.cut import in_order
from sash.slicing.partials.kinds_of_partials import partials_of
from sash.slicing.partials.ranges import Ranges, look_at
from sash.slicing.rows import order
from sash.slicing.rows.timed import TimedRows, read

Array = npt.NDArray[Any]


def over_table(plan: Plan, table: pa.Table) -> pa.Table:
    """The table, and one column per aggregate and window; rows without a time have empty aggregates."""
    names = over_names(plan)
    timed = read(plan, table)
    places = order.sorted_order(
        timed.keys.codes, timed.keys.count, timed.ticks, [arrow_column(timed.table.column(n)) for n in plan.order_by]
    )
    ordered, rows = _sorted(plan, timed, places)
    spans = [look_at(*row_ranges(q.shape, rows)) for q in plan.queries]
    back = _way_back(table, plan, places)
    columns: dict[str, pa.Array] = {}

    def work(begin: int, end: int) -> None:
        for position in range(begin, end):
            column = plan.columns[position]
            partials = partials_of(column, ordered)
            for number, ranges in enumerate(spans):
                result = partials.row_results(ranges)
                if back is not None:
                    result = result.take(back)
                    result = _no_rows(result) if column.call.aggregate.counts_rows and back.null_count else result
                columns[names[position][number]] = result

    # Putting results back in the order of the rows uses one thread, so aggregates run in parallel.
    threads.each(work, [(p, p + 1) for p in range(len(plan.columns))])
    result = table
    for number in range(len(plan.queries)):
        for position in range(len(plan.columns)):
            name = names[position][number]
            logical = output_type(plan.columns[position])
            values = columns[name]
            result = result.append_column(pa.field(name, logical), values if values.type == logical else values.cast(logical))
    return result


def row_spans(plan: Plan, rows: TimedRows) -> tuple[int, list[Ranges]]:
    """How many rows there are, and each query's windows as ranges of them; nothing is aggregated."""
    _, ordered = in_order(replace(plan, order_by=()), rows)
    return ordered.count, [look_at(*row_ranges(q.shape, ordered)) for q in plan.queries]


def over_names(plan: Plan) -> list[list[str]]:
    """The new columns' names, by aggregate and window."""
    names = [[f"{c.call.name}_{q.name}" if plan.named else c.call.name for q in plan.queries] for c in plan.columns]
    check_names([*plan.schema.names, *(n for group in names for n in group)], "the result")
    return names


def _sorted(plan: Plan, rows: TimedRows, places: Array | None) -> tuple[pa.Table, SortedRows]:
    if places is None:
        return in_order(replace(plan, order_by=()), rows)
    needed = [n for n in rows.table.column_names if n in plan.inputs] or rows.table.column_names[:1]
    table = rows.table.select(needed).take(pa.array(places))
    ticks = pooled(len(places), "int64")
    gather = kernel(sorting.gather)
    threads.each(lambda begin, end: _ran(gather(rows.ticks, places, begin, end, ticks)), threads.shares(0, len(places)))
    counts = np.bincount(rows.keys.codes, minlength=rows.keys.count)
    return table, SortedRows(ticks, np.concatenate([[0], np.cumsum(counts)]), table)


def _ran(_: int) -> None:
    return None


def _way_back(table: pa.Table, plan: Plan, places: Array | None) -> pa.Array | None:
    """For each row of the table its place among the sorted rows; null where it has no time."""
    time = table.column(plan.time)
    if places is None and time.null_count == 0:
        return None
    if time.null_count == 0:
        assert places is not None
        back = pooled(len(places), "int64")
        kernel(sorting.inverse)(places, len(places), back)
        return pa.array(back)
    known = np.flatnonzero(time.is_valid().to_numpy())
    count = len(known)
    where = np.empty(count, np.int64)
    where[np.arange(count) if places is None else places] = np.arange(count)
    back = np.zeros(table.num_rows, np.int64)
    back[known] = where
    missing = np.ones(table.num_rows, bool)
    missing[known] = False
    return pa.array(back, mask=missing)


def _no_rows(values: pa.Array) -> pa.Array:
    """The values of a counting aggregate, with nulls replaced by its result over no rows."""
    if pa.types.is_list(values.type):
        return pa.array([v if v is not None else [] for v in values.to_pylist()], values.type)
    return values.fill_null(0)
