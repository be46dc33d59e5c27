"""A choice at run time, from a sample of the first rows: aggregate into slices before the shuffle, or shuffle the rows as they are.

No schema tells how many rows a key has in a slice. Where there are two or more, Spark's own aggregation before the shuffle saves most of
the work; where there is about one, it is wasted. So one plan contains both strategies, each joined to a frame of one row or none, and
adaptive query execution drops the one with none before it reads a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.plan.logical import Plan
from sash.spark.language import sql
from sash.spark.language.spark_frames import functions_for, is_connect

ROWS = 1 << 16
"""The size of the sample."""
PARTITION = 1 << 22
"""The number of rows that a partition is assumed to have: slices are computed per partition."""
LEAST_BYTES = 1 << 26
"""Smaller frames are not sampled: a sample takes some tenths of a second."""
UNKNOWN = 1 << 62
"""Estimates from here on mean that Spark does not know the size."""
READING = {"Project", "Filter", "LogicalRelation", "DataSourceV2ScanRelation", "InMemoryRelation", "Range"}
"""Plan nodes that a frame may consist of to be sampled: reading twice is cheap, a shuffle would run twice."""


def is_readable(frame: Any) -> bool:
    """Whether sampling a frame costs little next to the job, and Spark can drop the unused strategy; no job runs."""
    if is_connect(frame) or str(frame.sparkSession.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        return False
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  PySpark has no public way to a plan's size
    return LEAST_BYTES <= int(str(plan.stats().sizeInBytes())) < UNKNOWN and _only_reads(plan)


def _only_reads(plan: Any) -> bool:
    children = plan.children()
    return plan.getClass().getSimpleName() in READING and all(_only_reads(children.apply(k)) for k in range(children.size()))


def either(frame: Any, plan: Plan, slices: Callable[[Any], Any], rows: Callable[[Any], Any]) -> Any:
    """The result of one of two strategies, chosen by the frame's first rows when the job runs."""
    F = functions_for(frame)
    sample = _first_rows(frame, plan).selectExpr(f"{_reduce_nothing(plan)} as {sql.quoted(SEND_ROWS)}")

    def where(condition: str) -> Any:
        flag = sample.where(condition).selectExpr(f"1 as {sql.quoted(FLAG)}")
        return frame.crossJoin(F.broadcast(flag)).select(*[F.col(sql.quoted(n)) for n in frame.columns])

    return slices(where(f"not {sql.quoted(SEND_ROWS)}")).union(rows(where(sql.quoted(SEND_ROWS))))


SEND_ROWS, FLAG = "@sash:found", "@sash:flag"


def _first_rows(frame: Any, plan: Plan) -> Any:
    """For each of the first rows: a number for its key and slice, its tick, and its place."""
    tick = sql.ticks(plan.time, plan.measure)
    ticked = frame.selectExpr(*sql.key(plan), f"{tick} as tick").toDF(*[f"k{k}" for k in range(len(plan.by))], "tick").limit(ROWS)
    slice_of = ", ".join([*(f"k{k}" for k in range(len(plan.by))), sql.edge("tick", plan)])
    return ticked.selectExpr(f"xxhash64({slice_of}) as part", "cast(tick as double) as tick", "monotonically_increasing_id() as place")


def _reduce_nothing(plan: Plan) -> str:
    """Whether a partition's rows would make more than about six slices in ten rows.

    Of ``n`` rows that fall evenly into ``s`` slices, about ``n**2 / 2s`` fall into a slice that has a row already; that count is an
    estimate of ``s``, and so of what more rows would do. If rows are in the order of time, a slice gets rows from one stretch of the
    partition only; otherwise from all of it.
    """
    slide = min(p.every for q in plan.queries if (p := q.shape.as_periodic) is not None)
    span = "(max(tick) - min(tick))"
    in_order = "coalesce(corr(place, tick), 0D) > 0.5D"
    more = f"if({in_order}, least(greatest(1D, {slide}D / greatest(1D, {span})), {PARTITION / ROWS}D), {PARTITION / ROWS}D)"
    return f"count(*) = {ROWS} and ({ROWS} - count(distinct part)) * {more} < {ROWS // 2}"
