"""Joins on Spark: pairs of rows with equal keys whose spans overlap, found within blocks of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sash.plan.queries.axes import Axis
from sash.plan.queries.relations import Joined
from sash.spark.language.spark_frames import functions_for
from sash.spark.language.sql import quoted
from sash.spark.queries.window_frames import (
    CLOSE,
    LATEST,
    NUMBER,
    OPEN,
    SINCE,
    TICK,
    UNTIL,
    CountedWindows,
    FrameWindows,
    InstantWindows,
    PeriodicWindows,
)

if TYPE_CHECKING:
    from sash.spark.queries.query_frames import Rows

SPAN = (SINCE, UNTIL, TICK)
BLOCK = "@block"


def joined_frames(relation: Joined, axis: Axis, left: Rows, right: Rows) -> tuple[Any, FrameWindows]:
    """The pairs of a join, with their spans (or their windows' numbers, for windows of rows), and the windows."""
    if axis.kind == "rows":
        return _by_number(relation, left, right)
    one, other = (_in_time(side) for side in (left, right))
    windows = _common(axis, left, right)
    length = _longest(left, right)
    a, b = one, other.toDF(*[f"{n}2" if n in SPAN else n for n in other.columns])
    F = functions_for(a)
    conditions = [f"({x}) = ({y})" for x, y in relation.equal]
    since, until, since2, until2 = (quoted(n) for n in (SINCE, UNTIL, f"{SINCE}2", f"{UNTIL}2"))
    conditions += [f"({until2} is null or {since} < {until2})", f"({until} is null or {since2} < {until})"]
    if length is not None:  # an overlap begins in exactly one block, which both rows reach into
        a = _blocked(a, since, until, length, BLOCK)
        b = _blocked(b, since2, until2, length, f"{BLOCK}2")
        conditions += [f"`{BLOCK}` = `{BLOCK}2`", f"`{BLOCK}` = {_block(f'greatest({since}, {since2})', length)}"]
    if relation.condition is not None:
        conditions.append(f"({relation.condition})")
    pairs = a.join(b, F.expr(" and ".join(conditions)))
    spans = [f"greatest({since}, {since2}) as `@s`", f"least({until}, {until2}) as `@u`", f"{quoted(TICK)} as `@t`"]
    columns = [quoted(n) for n in relation.schema.names]
    renamed = pairs.selectExpr(*columns, *spans).toDF(*relation.schema.names, SINCE, UNTIL, TICK)
    return renamed, windows


def _in_time(side: Rows) -> Any:
    """A side's rows with spans in ticks; results per window live at their window's end."""
    if not side.in_windows:
        return side.frame
    located = side.windows.located(side.frame)
    columns = [quoted(n) for n in side.schema.names]
    end = quoted(CLOSE)
    return located.selectExpr(*columns, quoted(TICK), f"{end} as {quoted(SINCE)}", f"{end} + 1L as {quoted(UNTIL)}")


def _common(axis: Axis, left: Rows, right: Rows) -> FrameWindows:
    periodic = [s.windows for s in (left, right) if isinstance(s.windows, PeriodicWindows)]
    if axis.kind == "time":
        return max(periodic, key=lambda w: w.size)
    frames = [s.windows.frame for s in (left, right) if isinstance(s.windows, InstantWindows)]
    ticks = [f.selectExpr(f"{quoted(LATEST)} as {quoted(TICK)}") for f in frames]
    return InstantWindows.of(ticks[0].union(ticks[1]) if len(ticks) > 1 else ticks[0], None)


def _longest(left: Rows, right: Rows) -> int | None:
    """The longest span of a row; None if some span has no end."""
    lengths = []
    for side in (left, right):
        if side.in_windows:
            lengths.append(1)
        elif isinstance(side.windows, PeriodicWindows):
            lengths.append(side.windows.size)
        elif isinstance(side.windows, InstantWindows) and side.windows.reach is not None:
            lengths.append(side.windows.reach)
        else:
            return None
    return max(lengths)


def _block(ticks: str, length: int) -> str:
    return f"(({ticks} - pmod({ticks}, {length}L)) div {length}L)"


def _blocked(frame: Any, since: str, until: str, length: int, name: str) -> Any:
    return frame.selectExpr("*", f"explode(sequence({_block(since, length)}, {_block(f'({until} - 1L)', length)})) as `{name}`")


def _by_number(relation: Joined, left: Rows, right: Rows) -> tuple[Any, FrameWindows]:
    """The i-th windows of both sides, at the later of their times."""
    a, b = left.repeated().frame, right.repeated().frame
    b = b.toDF(*[f"{n}2" if n in (NUMBER, TICK) else n for n in b.columns])
    F = functions_for(a)
    conditions = [f"{quoted(NUMBER)} = {quoted(f'{NUMBER}2')}", *(f"({x}) = ({y})" for x, y in relation.equal)]
    if relation.condition is not None:
        conditions.append(f"({relation.condition})")
    pairs = a.join(b, F.expr(" and ".join(conditions)))
    columns = [quoted(n) for n in relation.schema.names]
    assert isinstance(left.windows, CountedWindows)
    assert isinstance(right.windows, CountedWindows)
    others = right.windows.frame.toDF(*[f"{n}2" if n != NUMBER else n for n in right.windows.frame.columns])
    both = left.windows.frame.join(others, NUMBER)
    picks = {OPEN: "least", CLOSE: "greatest", LATEST: "greatest"}
    texts = [f"{pick}({quoted(n)}, {quoted(f'{n}2')}) as {quoted(n)}" for n, pick in picks.items()]
    return pairs.selectExpr(*columns, quoted(NUMBER), quoted(TICK)), CountedWindows(both.selectExpr(quoted(NUMBER), *texts))
