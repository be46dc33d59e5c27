"""The watermark of a streaming frame: who tracks it, its delay, and the rows that it must not see."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.clock import ProcessingTime
from sash.plan.options import StreamOptions
from sash.plan.request import Request
from sash.spark.language import sql
from sash.spark.language.spark_frames import functions_for
from sash.spark.language.spark_types import arrow_schema
from sash.spark.streams.progress import INPUT
from sash.spark.workers.stream_tasks import Clock
from sash.types import FAR_AHEAD, Duration, Measure

DELAY = "spark.watermarkDelayMs"
NANOS_PER_MILLI = 1_000_000
NANOS_PER_MICRO = 1_000
_calls = itertools.count()


@dataclass(frozen=True)
class Watermarked:
    """A frame with its watermark."""

    frame: Any
    request: Request
    """With the name of the time column."""
    options: StreamOptions
    own: bool
    """Whether the frame already had a watermark (``withWatermark``)."""
    event_time: bool
    """Whether Spark tracks the watermark: the frame's own, or one that was set here."""
    shift: int
    """How many milliseconds the operator's watermark is ahead of Spark's."""

    @property
    def lateness(self) -> Duration | None:
        """How long the operator waits for late rows: None where the lateness is part of Spark's watermark already."""
        merged = self.options.emit == "final" and self.event_time and not self.own
        return None if merged else self.options.lateness

    def clock(self, measure: Measure) -> Clock:
        """How steps compute their watermark."""
        per_milli = max(1, NANOS_PER_MILLI // (measure.nanos_per_tick or NANOS_PER_MILLI))
        watermark = self.options.watermark
        delay = None if self.event_time or watermark is None else measure.ticks(watermark, "watermark")
        return Clock(delay, self.shift * per_milli, per_milli)


def with_watermark(frame: Any, request: Request, options: StreamOptions) -> Watermarked:
    """The frame with the requested watermark, unless it has its own, and without rows too far ahead."""
    if isinstance(request.time, ProcessingTime):
        frame, request, options = _stamped(frame, request, request.time, options)
    own = has_watermark(frame, request.time)
    if own and options.watermark is not None:
        raise InvalidArgument(f"the frame has a watermark on {request.time!r} already (withWatermark); leave watermark= away, or that")
    if own and options.max_ahead is not None:
        raise InvalidArgument(
            "max_ahead= sets rows aside before the watermark sees them, and this frame has its own (withWatermark): Spark has seen them "
            "already; pass watermark= instead of withWatermark"
        )
    schema = arrow_schema(frame.schema)
    if options.max_ahead is not None and isinstance(request.time, str) and request.time in schema.names:
        frame = _without_those_ahead(frame, request.time, schema.field(request.time).type, options.max_ahead)
    put_on = not own and options.watermark is not None and _has_instants(schema, request.time)
    later = int(request.trailing or any(w.context != "context free" for w in request.windows.values()))
    millis, shift = _delay(options, later) if put_on else (0, 0)
    if put_on:
        frame = frame.withWatermark(sql.quoted(str(request.time)), f"{millis} milliseconds")
    return Watermarked(frame, request, options, own, own or put_on, shift)


def with_delay(frame: Any, time: str, options: StreamOptions) -> Any:
    """The frame with the requested watermark, for queries whose windows have known edges."""
    millis, _ = _delay(options, 0)
    return frame.withWatermark(sql.quoted(time), f"{millis} milliseconds")


def _stamped(frame: Any, request: Request, clock: ProcessingTime, options: StreamOptions) -> tuple[Any, Request, StreamOptions]:
    """Rows with the time of their micro-batch, which only advances."""
    if clock.name in frame.columns:
        raise InvalidArgument(f"the frame has a column named {clock.name!r} already; use time={clock.name!r}, or rename it")
    F = functions_for(frame)
    watermark = options.watermark or Duration.of("0 seconds", "watermark")
    return frame.withColumn(clock.name, F.current_timestamp()), replace(request, time=clock.name), replace(options, watermark=watermark)


def has_watermark(frame: Any, time: Any) -> bool:
    """Whether the frame has a watermark on the time column; raises if it has one on another column."""
    marked = [f.name for f in frame.schema.fields if DELAY in (f.metadata or {})]
    if marked and isinstance(time, str) and time in frame.columns and time not in marked:
        raise InvalidArgument(
            f"the frame's watermark is on {marked[0]!r} (withWatermark), and the windows are over {time!r}; use one column"
        )
    return bool(marked) and time in marked


def is_instant(t: pa.DataType) -> bool:
    """Spark has a watermark for times with a zone only."""
    return getattr(t, "tz", None) is not None


def _has_instants(schema: pa.Schema, time: Any) -> bool:
    return isinstance(time, str) and time in schema.names and is_instant(schema.field(time).type)


def _delay(options: StreamOptions, later: int) -> tuple[int, int]:
    """Spark's delay in milliseconds, and by how many of them the operator's watermark is ahead of Spark's.

    Final results are emitted when the watermark has passed their end by the lateness, so both delay Spark's watermark: a second
    operator behind this one then never sees a result that is older than its watermark. Where a row at the watermark itself may still
    change a result, as in sessions and row windows, results are emitted a tick after they have ended: there Spark's watermark stays a
    millisecond further behind.
    """
    if options.watermark is None or options.watermark.plain is not None or options.watermark.months:
        return 0, 0
    nanos = options.watermark.nanos
    if nanos // NANOS_PER_MICRO >= FAR_AHEAD >> 1:
        raise InvalidArgument(f"watermark {options.watermark!r} is too long")
    if options.emit != "final":
        return -(-nanos // NANOS_PER_MILLI), 0
    if options.lateness is not None and options.lateness.plain is None:
        nanos += options.lateness.nanos
    return -(-nanos // NANOS_PER_MILLI) + later, later


def _without_those_ahead(frame: Any, name: str, t: pa.DataType, limit: Duration) -> Any:
    """Rows too far ahead are set aside, and counted, before anything else sees them."""
    F = functions_for(frame)
    if not pa.types.is_timestamp(t) or t.tz is None:
        raise InvalidArgument(f"max_ahead compares with the clock; the time column {name!r} is of type {t}")
    if limit.plain is not None or limit.months:
        raise InvalidArgument(f"max_ahead must be a duration such as '1 hour', not {limit!r}")
    time = sql.quoted(name)
    ahead = f"unix_micros({time}) > unix_micros(current_timestamp()) + {limit.nanos // 1000}L"
    observed = frame.observe(metrics_name(INPUT), F.expr(f"count_if({ahead})").alias("ahead"))
    return observed.where(f"{time} is null or not ({ahead})")


def metrics_name(kind: str) -> str:
    """A name for observed metrics that is unique among the streams of one query."""
    return f"{kind}:{next(_calls)}"
