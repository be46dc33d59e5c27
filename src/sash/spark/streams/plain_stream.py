"""``plan="plain"`` on a stream: Spark's own aggregation with Spark's own state, where that has the same results.

It is for tumbling windows with aggregates that Spark's functions compute, and is never chosen automatically: Spark's state does not record
the query it belongs to, so the checkpoint of another query is not refused, and Spark does not count late rows.
"""

from __future__ import annotations

from typing import Any

from sash.plan.logical import WINDOW, Column, Plan
from sash.slicing.batch.results import output_schema
from sash.spark.language import sql
from sash.spark.language.native import Rows, native_expression, why_not_native
from sash.spark.language.spark_frames import functions_for
from sash.spark.language.spark_types import spark_schema
from sash.spark.streams.progress import PLAIN
from sash.spark.streams.watermarks import Watermarked, metrics_name

DISTINCT = "count_distinct"
"""Spark supports it in batches only."""


def why_not_plain(plan: Plan, clock: Watermarked) -> str | None:
    """Why Spark's own aggregation would not have the same results; None if it would."""
    shapes = [q.shape for q in plan.queries]
    periodic = shapes[0].as_periodic
    if len(shapes) != 1 or periodic is None or periodic.size != periodic.every:
        return "it is for one query of tumbling windows"
    if clock.options.emit != "final":
        return f"Spark's own results have no revisions, and emit is {clock.options.emit!r}"
    if not clock.event_time:
        return f"Spark has a watermark for times with a zone only, and {plan.time!r} is of type {plan.measure.type}"
    if clock.lateness is not None:
        return "the frame's own watermark (withWatermark) has no lateness; pass watermark= instead of it"
    if clock.options.idle is not None:
        return "tumbling windows all close; idle= is for those that do not"
    return next((reason for reason in (_why_not_of(c, plan.order_by) for c in plan.columns) if reason is not None), None)


def _why_not_of(column: Column, order_by: tuple[str, ...]) -> str | None:
    if column.call.aggregate.name == DISTINCT:
        return "Spark counts distinct values in batches only; approx_count_distinct works"
    return why_not_native(column, order_by)


def plain_stream(narrow: Any, plan: Plan) -> Any:
    """The frame of all windows, by Spark's own aggregation."""
    F = functions_for(narrow)
    (query,) = plan.queries
    shape, time = query.shape.as_periodic, sql.quoted(plan.time)
    assert shape is not None
    counts = [F.expr(f"count({time})").alias("rows"), F.expr(f"count_if({time} is null)").alias("without_time")]
    seen = narrow.observe(metrics_name(PLAIN), *counts).where(f"{time} is not null")
    # The window is a column first, so that expressions can read it; its metadata tells Spark that it closes.
    length, offset = f"{shape.size} microseconds", f"{shape.offset % shape.every} microseconds"
    windowed = seen.withColumn(HOME, F.window(F.col(time), length, length, offset))
    start = f"unix_micros({sql.quoted(HOME)}.start)"
    rows = Rows(f"unix_micros({time})", plan.order_by, start, shape.size, bool(plan.by))
    results = [F.expr(native_expression(c, rows)).alias(f"@sash:out{k}") for k, c in enumerate(plan.columns)]
    keys = [F.col(sql.quoted(name)) for name in plan.by]
    grouped = windowed.groupBy(*keys, F.col(sql.quoted(HOME))).agg(*results)
    columns = [F.lit(query.name).alias(output_schema(plan).names[0])] if plan.named else []
    columns += [*keys, F.col(sql.quoted(HOME)).alias(WINDOW)]
    types = spark_schema(output_schema(plan))
    columns += [F.col(f"`@sash:out{k}`").cast(types[c.call.name].dataType).alias(c.call.name) for k, c in enumerate(plan.columns)]
    return grouped.select(*columns)


HOME = "@sash:home"
