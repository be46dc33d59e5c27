"""How a batch frame is aggregated on Spark: decided from the schema and the specs, without running a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sash.algebra import Form
from sash.errors import InvalidArgument
from sash.plan.choices.decision import Decision
from sash.plan.choices.rows_needed import why_rows_are_needed
from sash.plan.logical import Plan
from sash.types import FAR_AHEAD

Strategy = Literal["plain", "catalyst", "fragments", "rows"]

STRATEGIES: tuple[Strategy, ...] = ("plain", "catalyst", "fragments", "rows")
"""From the most special to the most general: whatever one can compute, all later ones can compute too."""
WINDOWS_PER_BLOCK = 16
"""A block of time is this many times as long as the longest window: one slice in so many is sent to two blocks."""
MOST_EDGES = 1 << 21
"""A block has no more edges of one query than this, if it is still at least as long as the longest window."""


@dataclass(frozen=True)
class Blocks:
    """Stretches of a key's time that are computed separately: their length in ticks, and the overlap that the longest window needs."""

    length: int
    halo: int


@dataclass(frozen=True)
class SparkDecision(Decision):
    """The strategy, its reasons, and the blocks of time (None: a key's windows stay together)."""

    choice: Strategy
    blocks: Blocks | None = None
    or_rows: bool = False
    """Whether the first rows decide between this strategy and ``rows`` when the job runs."""


def choose_spark(
    plan: Plan, forms: list[Form | None], why_not_catalyst: list[str | None], why_not_native: list[str | None], requested: str = "auto"
) -> SparkDecision:
    """The strategy for aggregating windows.

    For each aggregate, ``why_not_catalyst`` says why Catalyst cannot compute its partials, and ``why_not_native`` why Spark's own
    functions cannot compute its result over the rows of one window (None: they can).
    """
    if requested != "auto" and requested not in STRATEGIES:
        raise InvalidArgument(f"plan must be one of auto, {', '.join(STRATEGIES)}; not {requested!r}")
    choice, reason = _general(plan, forms, why_not_catalyst)
    if requested in ("auto", "plain"):
        why_not = _why_not_plain(plan, why_not_native)
        if why_not is None:
            choice, reason = "plain", "no row is in two windows: Spark's own aggregation computes all of it"
        elif requested == "plain":
            reason = why_not
    if requested not in ("auto", choice):
        at = STRATEGIES.index(requested)
        if at < STRATEGIES.index(choice):
            raise InvalidArgument(f"plan={requested!r} is not possible here: {reason}")
        choice, reason = STRATEGIES[at], "requested"
    if choice == "plain":
        return SparkDecision(choice, (reason,))
    blocks, why = time_blocks(plan)
    return SparkDecision(choice, (reason, why), blocks)


def choose_over(plan: Plan) -> SparkDecision:
    """The strategy for each row's trailing windows."""
    blocks, why = time_blocks(plan)
    return SparkDecision("rows", ("each key's rows are shuffled together, sorted by time, and returned with their windows", why), blocks)


def with_runtime_choice(plan: Plan, decision: SparkDecision) -> SparkDecision:
    """The decision, left to run time where it depends on how many rows a key has in a slice, which no schema tells."""
    periodic = all(q.shape.as_periodic is not None for q in plan.queries)
    if decision.choice not in ("catalyst", "fragments") or not plan.by or not periodic:
        return decision
    reason = "unless the first rows, when the job runs, show that slices would not reduce them: then rows"
    return replace(decision, or_rows=True, reasons=(*decision.reasons, reason))


def _why_not_plain(plan: Plan, why_not_native: list[str | None]) -> str | None:
    """Why Spark's own aggregation alone cannot compute the result; None if it can."""
    if len(plan.queries) > 1 or not plan.queries[0].shape.lies_apart:
        return "a row may be in several windows"
    if plan.empty:
        return "Spark's own aggregation has no windows without rows"
    return next((reason for reason in why_not_native if reason is not None), None)


def _general(plan: Plan, forms: list[Form | None], why_not_catalyst: list[str | None]) -> tuple[Strategy, str]:
    """The most special strategy for windows that overlap."""
    shapes = [q.shape for q in plan.queries]
    if any(s.decided_by_rows for s in shapes):
        return "rows", "rows decide where windows start or end: they are sorted and cut by each key"
    needed = why_rows_are_needed(plan.columns, forms)
    if needed is not None:
        return "rows", needed
    reason = next((u for u in why_not_catalyst if u is not None), None)
    if any(s.edge_series is None for s in shapes):
        reason = "edges are not plain arithmetic (sessions, calendars, users' own windows)"
    if reason is not None:
        return "fragments", f"{reason}: slices are computed in Arrow, before the shuffle"
    return "catalyst", "slices are computed by Spark's own aggregation, windows from slices in Arrow"


def time_blocks(plan: Plan) -> tuple[Blocks | None, str]:
    """The blocks of time that can be computed separately, and why; the halo is the longest window."""
    if plan.empty:
        return None, "empty windows lie between any two rows of a key: a key's slices stay together"
    longest, finest = 0, FAR_AHEAD
    for query in plan.queries:
        shape = query.shape
        if shape.decided_by_rows or shape.longest is None:
            return None, f"{query.name} ({query.window!r}) may be of any length: a key's rows stay together"
        longest = max(longest, shape.longest)
        finest = min([finest, *(step for step, _ in shape.edge_series or ())])
    if longest * WINDOWS_PER_BLOCK >= FAR_AHEAD:
        return None, "windows are too long for blocks of time"
    length = longest * WINDOWS_PER_BLOCK
    if finest < FAR_AHEAD and length // finest > MOST_EDGES:
        length = max(longest, MOST_EDGES * finest)
    measure = plan.measure
    split = f"a key is split by time into blocks of {measure.length(length)}, halo {measure.length(longest)}: one key can use all cores"
    return Blocks(length, longest), split
