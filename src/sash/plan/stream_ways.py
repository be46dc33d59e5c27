"""Which way a stream goes on Spark, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sash.algebra import Form
from sash.errors import InvalidArgument
from sash.plan.logical import Plan

StreamWay = Literal["fragments", "rows"]

BUCKETS = 16
"""Hash buckets of keys, unless told otherwise: each is handled by one task at a time."""
MOST_BUCKETS = 1 << 14


@dataclass(frozen=True)
class StreamChoice:
    """What crosses the shuffle, and the reason."""

    way: StreamWay
    reason: str


def choose_stream(plan: Plan, forms: list[Form | None], asked: str = "auto") -> StreamChoice:
    """Slices before the shuffle where that can be had, rows otherwise."""
    if asked not in ("auto", "fragments", "rows"):
        raise InvalidArgument(f"plan must be one of auto, plain, fragments, rows on a stream; not {asked!r}")
    reason = _why_rows(plan, forms)
    if reason is not None:
        if asked == "fragments":
            raise InvalidArgument(f"plan='fragments' cannot be had here: {reason}")
        return StreamChoice("rows", reason)
    if asked == "rows":
        return StreamChoice("rows", "as asked for")
    return StreamChoice("fragments", "rows become slices before the shuffle, one for each key and slice of a partition")


def _why_rows(plan: Plan, forms: list[Form | None]) -> str | None:
    for query in plan.queries:
        if query.shape.decided_by_rows:
            return f"{query.name} ({query.window!r}): rows decide where windows start or end"
    for column, form in zip(plan.columns, forms, strict=True):
        if form is None:
            return f"{column.call!r} has no partial of fixed size: its rows are its partial"
        if not form.commutative:
            return f"{column.call!r} does not commute: its rows must be in order"
    return None
