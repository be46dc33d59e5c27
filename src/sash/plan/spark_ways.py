"""Which way a request goes on Spark, and why: decided from the schema and the specs, without running a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sash.algebra import Form
from sash.errors import InvalidArgument
from sash.plan.logical import Plan
from sash.types import FAR_AHEAD

Way = Literal["plain", "catalyst", "fragments", "rows"]

WINDOWS_PER_BLOCK = 16
"""A block of time is so many times as long as the longest window: one slice in so many is sent to two blocks."""
MOST_EDGES = 1 << 21
"""A block has no more edges of one query than this, if it is still at least as long as the longest window."""


@dataclass(frozen=True)
class Blocks:
    """Stretches of a key's time that are handled apart, in ticks, and how far the longest window reaches from one into the next."""

    length: int
    halo: int


@dataclass(frozen=True)
class SparkChoice:
    """The way, the blocks of time (None: a key's windows stay together), and the reasons."""

    way: Way
    blocks: Blocks | None
    reasons: tuple[str, ...]
    or_rows: bool = False
    """Whether it is left to the first rows, when the job runs, to go the way of rows instead."""


def left_to_rows(plan: Plan, choice: SparkChoice) -> bool:
    """Whether a choice depends on how many rows a key has in a slice, which no schema tells."""
    shapes = [q.shape for q in plan.queries]
    return choice.way in ("catalyst", "fragments") and bool(plan.by) and all(s.as_periodic is not None for s in shapes)


WAYS: tuple[Way, ...] = ("plain", "catalyst", "fragments", "rows")
"""From the most special to the most general: what goes one way can go all later ones."""


def choose_spark(
    plan: Plan, forms: list[Form | None], stated: list[str | None], spoken: list[str | None], asked: str = "auto"
) -> SparkChoice:
    """How to aggregate windows; for each aggregate, ``stated`` has why Catalyst cannot state its partial, and ``spoken`` why it cannot
    compute its result over the rows of a window (None: it can)."""
    blocks, why = time_blocks(plan)
    if asked != "auto" and asked not in WAYS:
        raise InvalidArgument(f"plan must be one of auto, {', '.join(WAYS)}; not {asked!r}")
    way, reason = _general(plan, forms, stated)
    if asked in ("auto", "plain") and (plainly := _plain(plan, spoken)) is not None:
        way, reason = "plain", plainly
    if asked not in ("auto", way):
        if WAYS.index(asked) < WAYS.index(way):
            raise InvalidArgument(f"plan={asked!r} cannot be had here: {reason}")
        way, reason = WAYS[WAYS.index(asked)], "as asked for"
    return SparkChoice(way, None if way == "plain" else blocks, (reason,) if way == "plain" else (reason, why))


def _plain(plan: Plan, spoken: list[str | None]) -> str | None:
    """Why Spark's own aggregation can do it all; None if it cannot."""
    if len(plan.queries) == 1 and not plan.empty and plan.queries[0].shape.lies_apart and all(s is None for s in spoken):
        return "no row is in two windows: Spark's own aggregation is all there is to do"
    return None


def _general(plan: Plan, forms: list[Form | None], stated: list[str | None]) -> tuple[Way, str]:
    """The most special way that takes windows which overlap."""
    shapes = [q.shape for q in plan.queries]
    if any(s.decided_by_rows for s in shapes):
        return "rows", "rows decide where windows start or end: they are sorted and cut by each key"
    for column, form in zip(plan.columns, forms, strict=True):
        if form is None:
            return "rows", f"{column.call!r} has no partial of fixed size: its rows are its partial"
        if not form.commutative:
            return "rows", f"{column.call!r} does not commute: its rows must be in order"
    reason = next((s for s in stated if s is not None), None)
    if any(s.edge_series is None for s in shapes):
        reason = "edges are not plain arithmetic (sessions, calendars, users' own windows)"
    if reason is not None:
        return "fragments", f"{reason}: slices are made in Arrow, before the shuffle"
    return "catalyst", "slices are made by Spark's own aggregation, windows from slices in Arrow"


def choose_over(plan: Plan) -> SparkChoice:
    """How to give each row its trailing windows."""
    blocks, why = time_blocks(plan)
    return SparkChoice("rows", blocks, ("each key's rows come together, are sorted by time, and go back with their windows", why))


def time_blocks(plan: Plan) -> tuple[Blocks | None, str]:
    """How long a stretch of a key's time may be handled apart from the others; its halo is the longest window."""
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
    return Blocks(length, longest), f"a key is split by time into blocks of {length} ticks, halo {longest}: one key can use all cores"
