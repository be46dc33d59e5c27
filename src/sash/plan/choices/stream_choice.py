"""How a stream is aggregated on Spark: what crosses the shuffle, and in whose state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sash.algebra import Form
from sash.errors import InvalidArgument
from sash.plan.choices.decision import Decision
from sash.plan.choices.rows_needed import why_rows_are_needed
from sash.plan.logical import Plan

StreamStrategy = Literal["plain", "fragments", "rows"]

BUCKETS = 16
"""Hash buckets of keys by default: each is handled by one task at a time."""


@dataclass(frozen=True)
class StreamDecision(Decision):
    """What crosses the shuffle, and the reasons."""

    choice: StreamStrategy


def choose_stream(plan: Plan, forms: list[Form | None], requested: str = "auto", *, not_plain: str | None = None) -> StreamDecision:
    """Slices before the shuffle where that is possible, rows otherwise; Spark's own state only on request.

    ``not_plain`` says why Spark's own aggregation and state would not have the same results (None: they would).
    """
    if requested not in ("auto", "plain", "fragments", "rows"):
        raise InvalidArgument(f"plan must be one of auto, plain, fragments, rows on a stream; not {requested!r}")
    if requested == "plain":
        if not_plain is not None:
            raise InvalidArgument(f"plan='plain' is not possible here: {not_plain}")
        return StreamDecision("plain", ("Spark's own aggregation and state, as requested",))
    reason = _why_rows(plan, forms)
    if reason is not None:
        if requested == "fragments":
            raise InvalidArgument(f"plan='fragments' is not possible here: {reason}")
        return StreamDecision("rows", (reason,))
    if requested == "rows":
        return StreamDecision("rows", ("requested",))
    return StreamDecision("fragments", ("rows become slices before the shuffle, one for each key and slice of a partition",))


def choose_trailing_stream() -> StreamDecision:
    """Trailing windows on a stream."""
    return StreamDecision("rows", ("rows wait for the watermark",))


def _why_rows(plan: Plan, forms: list[Form | None]) -> str | None:
    for query in plan.queries:
        if query.shape.decided_by_rows:
            return f"{query.name} ({query.window!r}): rows decide where windows start or end"
    return why_rows_are_needed(plan.columns, forms)
