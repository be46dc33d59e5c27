"""A glance at the first rows, when a job runs: whether slices would reduce them, or rows may as well be sent as they are.

No schema tells how many rows a key has in a slice. Where there are two or more, Spark's own aggregation before the shuffle saves most of
the work; where there is about one, it is work for nothing. So both ways stand in one plan, each behind a frame that has one row or none,
and Spark, which adapts a plan while it runs, drops the one that has none before it reads a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.plan.logical import Plan
from sash.spark import sql
from sash.spark.frames import functions_for, is_connect

ROWS = 1 << 16
"""So many rows are looked at."""
PARTITION = 1 << 22
"""So many rows a partition is taken to have: slices are made of a partition's rows."""
LEAST_BYTES = 1 << 26
"""A frame that is smaller is not looked at: a look takes some tenths of a second."""
UNKNOWN = 1 << 62
"""Spark's way to say that it does not know a size."""
READING = {"Project", "Filter", "LogicalRelation", "DataSourceV2ScanRelation", "InMemoryRelation", "Range"}
"""What a frame may consist of to be looked at: rows that are only read can be read twice. A shuffle might be done twice."""


def is_readable(frame: Any) -> bool:
    """Whether a glance at a frame costs little next to the job, and Spark can drop what it finds needless; no job runs."""
    if is_connect(frame) or str(frame.sparkSession.conf.get("spark.sql.adaptive.enabled", "true")).lower() != "true":
        return False
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  PySpark has no public way to a plan's size
    return LEAST_BYTES <= int(str(plan.stats().sizeInBytes())) < UNKNOWN and _only_reads(plan)


def _only_reads(plan: Any) -> bool:
    children = plan.children()
    return plan.getClass().getSimpleName() in READING and all(_only_reads(children.apply(k)) for k in range(children.size()))


def either(frame: Any, plan: Plan, slices: Callable[[Any], Any], rows: Callable[[Any], Any]) -> Any:
    """What one of two ways makes of a frame, whichever its first rows speak for."""
    F = functions_for(frame)
    found = _first_rows(frame, plan).selectExpr(f"{_reduce_nothing(plan)} as {sql.quoted(FOUND)}")

    def where(condition: str) -> Any:
        flag = found.where(condition).selectExpr(f"1 as {sql.quoted(FLAG)}")
        return frame.crossJoin(F.broadcast(flag)).select(*[F.col(sql.quoted(n)) for n in frame.columns])

    return slices(where(f"not {sql.quoted(FOUND)}")).union(rows(where(sql.quoted(FOUND))))


FOUND, FLAG = "@sash:found", "@sash:flag"


def _first_rows(frame: Any, plan: Plan) -> Any:
    """Of each of the first rows a number for its key and slice, its tick, and its place."""
    tick = sql.ticks(plan.time, plan.measure)
    ticked = frame.selectExpr(*sql.key(plan), f"{tick} as tick").toDF(*[f"k{k}" for k in range(len(plan.by))], "tick").limit(ROWS)
    slice_of = ", ".join([*(f"k{k}" for k in range(len(plan.by))), sql.edge("tick", plan)])
    return ticked.selectExpr(f"xxhash64({slice_of}) as part", "cast(tick as double) as tick", "monotonically_increasing_id() as place")


def _reduce_nothing(plan: Plan) -> str:
    """Whether a partition's rows would make more than about six slices in ten rows.

    Of ``n`` rows that fall evenly into ``s`` slices, about ``n**2 / 2s`` find theirs taken; that many tell ``s``, and ``s`` what more rows
    would do. Rows that come in the order of time will be joined in a slice only by those of its time, others by the whole partition's.
    """
    slide = min(p.every for q in plan.queries if (p := q.shape.as_periodic) is not None)
    span = "(max(tick) - min(tick))"
    in_order = "coalesce(corr(place, tick), 0D) > 0.5D"
    more = f"if({in_order}, least(greatest(1D, {slide}D / greatest(1D, {span})), {PARTITION / ROWS}D), {PARTITION / ROWS}D)"
    return f"count(*) = {ROWS} and ({ROWS} - count(distinct part)) * {more} < {ROWS // 2}"
