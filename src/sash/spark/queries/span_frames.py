"""From a stream's frame and its window to rows with spans, one function for each kind of window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.errors import InvalidArgument
from sash.plan.queries.relations import Windowing
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
from sash.types import Measure

T, S, U = quoted(TICK), quoted(SINCE), quoted(UNTIL)
Spanned = tuple[Any, FrameWindows]


def with_spans(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    """The frame, which has the column ``TICK``, with rows' spans; and the windows."""
    return _KINDS[windowing.kind](windowing, measure, frame, order_by)


def _time(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    assert windowing.window is not None
    periodic = windowing.window.bind(measure).as_periodic
    if periodic is None:
        raise InvalidArgument(f"{windowing.text} follows the calendar; on Spark such windows are for aggregates of one stream")
    phase = (periodic.offset + periodic.size) % periodic.every
    spanned = frame.selectExpr("*", f"{T} + 1L as {S}", f"{T} + 1L + {periodic.size}L as {U}")
    return spanned, PeriodicWindows(periodic.size, periodic.every, phase)


def _instants(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    until = "cast(null as bigint)" if windowing.reach is None else f"{T} + 1L + {windowing.reach}L"
    return frame.selectExpr("*", f"{T} + 1L as {S}", f"{until} as {U}"), InstantWindows.of(frame, windowing.reach)


def _last_rows(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    keyed, parts = _partitioned(windowing, frame)
    following = f"lead({T}, {windowing.count}) {_over(parts, order_by)}"
    spanned = keyed.selectExpr("*", f"{T} + 1L as {S}", f"{following} + 1L as {U}").drop(*parts)
    return spanned, InstantWindows.of(frame, None)


def _partitioned(windowing: Windowing, frame: Any) -> tuple[Any, tuple[str, ...]]:
    """The frame with the partition's expressions as columns."""
    names = tuple(f"@part{k}" for k in range(len(windowing.partition)))
    texts = [f"{text} as {quoted(name)}" for text, name in zip(windowing.partition, names, strict=True)]
    return (frame.selectExpr("*", *texts) if texts else frame), names


def _over(parts: tuple[str, ...], order_by: tuple[str, ...], *, by_time_alone: bool = False) -> str:
    order = ", ".join([T, *([] if by_time_alone else map(quoted, order_by))])
    return f"over ({_partition(parts)} order by {order})"


def _partition(parts: tuple[str, ...]) -> str:
    return f"partition by {', '.join(map(quoted, parts))}" if parts else ""


def _rows(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    shape: Any = windowing.window.bind(measure) if windowing.window is not None else None
    size, every = shape.size, shape.every
    keyed, parts = _partitioned(windowing, frame)
    whole = f"over ({_partition(parts)})"
    over = _over(parts, order_by)
    ranked = keyed.selectExpr(
        "*",
        f"cast(row_number() {over} as bigint) - 1L as `@rank`",
        f"count(*) {whole} as `@count`",
        f"lead({T}, {size - 1}) {over} as `@end`",
    )
    windows = ranked.where(f"`@rank` % {every} = 0 and `@end` is not null").selectExpr(
        *map(quoted, parts), f"`@rank` div {every} as {quoted(NUMBER)}", f"{T} as {quoted(OPEN)}", f"`@end` as {quoted(CLOSE)}",
        f"`@end` as {quoted(LATEST)}",
    )  # fmt: skip
    low = f"greatest(0L, (`@rank` - {size - 1} + pmod({size - 1} - `@rank`, {every})) div {every})"
    complete = f"greatest(0L, (`@count` - {size} + {every}) div {every})"
    spanned = ranked.selectExpr("*", f"{low} as {S}", f"least(`@rank` div {every} + 1L, {complete}) as {U}")
    return spanned.drop("@rank", "@count", "@end"), CountedWindows(windows, parts)


def _sessions(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    shape: Any = windowing.window.bind(measure) if windowing.window is not None else None
    keyed, parts = _partitioned(windowing, frame)
    over = _over(parts, (), by_time_alone=True)
    opened = keyed.selectExpr("*", f"coalesce({T} - lag({T}) {over} > {shape.gap}L, true) as `@opens`")
    numbered = opened.selectExpr("*", f"sum(cast(`@opens` as bigint)) {over} as {S}").drop("@opens")
    # Rows of one time are in one session, whichever of them opens it: the sum over a range counts them together.
    ends = f"max({T}) + {shape.gap}L"
    windows = numbered.groupBy(*map(quoted, parts), S).agg(*_windows(numbered, f"min({T})", ends)).withColumnRenamed(SINCE, NUMBER)
    return numbered.selectExpr("*", f"{S} + 1L as {U}"), CountedWindows(windows, parts)


def _marks(windowing: Windowing, measure: Measure, frame: Any, order_by: tuple[str, ...]) -> Spanned:
    shape: Any = windowing.window.bind(measure) if windowing.window is not None else None
    keyed, parts = _partitioned(windowing, frame)
    same_time = f"partition by {', '.join([*map(quoted, parts), T])}"
    whole = _partition(parts)
    marked = keyed.selectExpr(
        "*",
        f"max(coalesce({shape.when}, false)) over ({same_time}) as `@mark`",
        f"row_number() over ({same_time} order by {T}) = 1 as `@first`",
        f"min({T}) over ({whole}) = {T} as `@begins`",
    )
    number = f"sum(if(`@first` and (`@mark` or `@begins`), 1L, 0L)) {_over(parts, (), by_time_alone=True)}"
    numbered = marked.selectExpr("*", f"{number} as {S}").drop("@mark", "@first", "@begins")
    starts = numbered.groupBy(*map(quoted, parts), S).agg(*_windows(numbered, f"min({T})", "cast(null as bigint)"))
    after = f"lead({quoted(OPEN)}) over ({whole} order by {S})"
    windows = starts.selectExpr(
        *map(quoted, parts), f"{S} as {quoted(NUMBER)}", quoted(OPEN), f"{after} as {quoted(CLOSE)}", f"{after} - 1L as {quoted(LATEST)}"
    )
    return numbered.selectExpr("*", f"{S} + 1L as {U}"), CountedWindows(windows, parts)


def _windows(frame: Any, start: str, end: str) -> list[Any]:
    from sash.spark.language.spark_frames import functions_for

    F = functions_for(frame)
    return [F.expr(text).alias(name) for name, text in ((OPEN, start), (CLOSE, end), (LATEST, f"{end} - 1L"))]


_KINDS: dict[str, Callable[[Windowing, Measure, Any, tuple[str, ...]], Spanned]] = {
    "time": _time, "instants": _instants, "last rows": _last_rows, "rows": _rows, "sessions": _sessions, "marks": _marks,
}  # fmt: skip
