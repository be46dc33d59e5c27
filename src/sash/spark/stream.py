"""``sash.aggregate`` on a streaming frame: payloads before the shuffle, a stateful operator per bucket, results behind it.

``withWatermark`` comes before all of it, so that the operator sees the watermark and decides itself what is late.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.clock import ProcessingTime
from sash.plan.logical import WINDOW, Plan
from sash.plan.options import check_duration_option
from sash.plan.streams import BUCKETS, StreamChoice, choose_stream
from sash.slicing.descriptions import Asked, Options, of_request
from sash.slicing.inputs import stored_form
from sash.slicing.window_manager import emitted_schema
from sash.spark import sql
from sash.spark.batch import ROWS_AT_ONCE
from sash.spark.buckets import labels
from sash.spark.frames import functions_for
from sash.spark.prepare import check_case, narrow_down
from sash.spark.progress import INPUT, MEASURED, STATE
from sash.spark.requests import Request
from sash.spark.stream_tasks import BUCKET, PAYLOADS, Bucket, MakePayloads, Unpack
from sash.spark.tasks import guard, sent, shipped
from sash.spark.types import arrow_schema, spark_schema
from sash.types import Duration
from sash.windows.base import Everything

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DELAY = "spark.watermarkDelayMs"
NANOS_PER_MILLI = 1_000_000


@dataclass(frozen=True)
class StreamOptions:
    """The arguments of ``sash.aggregate`` that are for streams."""

    watermark: Duration | None = None
    lateness: Duration | None = None
    emit: str = "final"
    idle: Duration | None = None
    max_ahead: Duration | None = None
    buckets: int | None = None
    plan: str = "auto"

    @staticmethod
    def of(watermark: Any, lateness: Any, emit: str, late: str, idle: Any, max_ahead: Any, buckets: int | None, plan: str) -> StreamOptions:
        """Options that were checked one by one."""
        if late != "drop":
            raise InvalidArgument(f"late={late!r} is for sash.Operator; on Spark late rows are counted: sash.spark.progress(query)")
        durations = {"watermark": watermark, "lateness": lateness, "idle": idle, "max_ahead": max_ahead}
        return StreamOptions(emit=emit, buckets=buckets, plan=plan, **{n: check_duration_option(n, v) for n, v in durations.items()})


@dataclass(frozen=True)
class Stream:
    """A request over a streaming frame, checked."""

    frame: Any
    """The columns that matter and the bucket, with Spark's watermark if there is one."""
    request: Request
    schema: pa.Schema
    plan: Plan
    choice: StreamChoice
    options: StreamOptions
    bucket: Bucket
    event_time: bool
    """Whether the watermark is Spark's."""
    name: str
    """What its metrics are called."""


def aggregate_stream(frame: Any, request: Request, options: StreamOptions) -> Any:
    """The streaming frame of all windows."""
    return _results(prepare_stream(frame, request, options))


# What was asked for.


def prepare_stream(frame: Any, request: Request, options: StreamOptions) -> Stream:
    """Check a request against a streaming frame's columns; nothing is started."""
    _check_provider(frame)
    if request.empty:
        raise InvalidArgument("empty=True is for batch: on a stream, windows without rows are not given")
    asked = request
    if isinstance(request.time, ProcessingTime):
        frame, request, options = _stamped(frame, request, request.time, options)
    own = _own_watermark(frame, request.time)
    if own and options.watermark is not None:
        raise InvalidArgument(f"the frame has a watermark on {request.time!r} already (withWatermark); leave watermark= away, or that")
    if own and options.max_ahead is not None:
        raise InvalidArgument(
            "max_ahead= sets rows aside before the watermark sees them, and this frame has its own (withWatermark): Spark has seen them "
            "already; give watermark= instead of withWatermark"
        )
    schema = arrow_schema(frame.schema)
    if isinstance(request.time, str) and request.time in schema.names:
        frame = _observed(frame, request, schema.field(request.time).type, options, _name(asked, INPUT))
    spark_watermark = own or (options.watermark is not None and _is_instant(schema, request.time))
    ms, shift = _delay(options, request) if not own else (0, 0)
    if spark_watermark and not own:
        frame = frame.withWatermark(request.time, f"{ms} milliseconds")
    narrow, narrowed, schema, calls = narrow_down(frame, request)
    plan = narrowed.plan(schema)
    _check_watermark(plan, options, spark_watermark)
    if options.emit == "final" and not own:
        lateness = None if spark_watermark else options.lateness
    else:
        lateness = options.lateness
    check_case(frame, emitted_schema(plan, options.emit).names)
    choice = choose_stream(plan, [stored_form(c, schema) for c in plan.columns], options.plan)
    numbers = labels((options.buckets or BUCKETS) if plan.by else 1)
    per_milli = max(1, NANOS_PER_MILLI // (plan.measure.nanos_per_tick or NANOS_PER_MILLI))
    for name in ("lateness", "idle"):
        if getattr(options, name) is not None:
            plan.measure.ticks(getattr(options, name), name)
    delay = None if spark_watermark or options.watermark is None else plan.measure.ticks(options.watermark, "watermark")
    described = _described(asked, calls, options, schema, len(numbers), own)
    bucket = Bucket(
        narrowed, schema, choice.way, numbers, described, options.emit, lateness, options.idle, delay, shift * per_milli, per_milli
    )
    if len(numbers) > 1:
        keys = ", ".join(sql.key(plan))
        narrow = narrow.selectExpr("*", f"cast(pmod(xxhash64({keys}), {len(numbers)}L) as int) as {sql.quoted(BUCKET)}")
    return Stream(narrow, narrowed, schema, plan, choice, options, bucket, spark_watermark, _name(asked, STATE))


def _check_provider(frame: Any) -> None:
    given = frame.sparkSession.conf.get(PROVIDER, "")
    if "RocksDB" not in given:
        raise InvalidArgument(
            f"streams need Spark's RocksDB state store; this session has {given.rpartition('.')[2] or 'another'}: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r}) before the query is started (sash.spark.session() does that)"
        )


def _stamped(frame: Any, request: Request, clock: ProcessingTime, options: StreamOptions) -> tuple[Any, Request, StreamOptions]:
    """Rows with the time of their micro-batch, which only advances."""
    if clock.name in frame.columns:
        raise InvalidArgument(f"the frame has a column named {clock.name!r} already; use time={clock.name!r}, or rename it")
    F = functions_for(frame)
    watermark = options.watermark or Duration.of("0 seconds", "watermark")
    return frame.withColumn(clock.name, F.current_timestamp()), replace(request, time=clock.name), replace(options, watermark=watermark)


def _own_watermark(frame: Any, time: Any) -> bool:
    """Whether the frame comes with a watermark on the time column; one on another column does not fit."""
    marked = [f.name for f in frame.schema.fields if DELAY in (f.metadata or {})]
    if marked and isinstance(time, str) and time in frame.columns and time not in marked:
        raise InvalidArgument(
            f"the frame's watermark is on {marked[0]!r} (withWatermark), and the windows are over {time!r}; use one column"
        )
    return bool(marked) and time in marked


def _is_instant(schema: pa.Schema, time: Any) -> bool:
    return isinstance(time, str) and time in schema.names and pa.types.is_timestamp(schema.field(time).type)


def _delay(options: StreamOptions, request: Request) -> tuple[int, int]:
    """Spark's delay in milliseconds, and by how many of them the operator's watermark is ahead of Spark's.

    Final results come when the watermark has passed their end by the lateness, so both delay Spark's watermark: a second operator behind
    this one then never sees a result that is older than its watermark. A session's results come when it has passed them by a tick.
    """
    if options.watermark is None or options.watermark.plain is not None or options.watermark.months:
        return 0, 0
    nanos = options.watermark.nanos
    if options.emit != "final":
        return -(-nanos // NANOS_PER_MILLI), 0
    if options.lateness is not None and options.lateness.plain is None:
        nanos += options.lateness.nanos
    windows = request.windows.values() if isinstance(request.windows, dict) else [request.windows]
    later = int(any(getattr(w, "is_session", False) for w in windows))
    return -(-nanos // NANOS_PER_MILLI) + later, later


def _observed(frame: Any, request: Request, t: pa.DataType, options: StreamOptions, name: str) -> Any:
    """Rows without a time are counted, those too far ahead set aside and counted, before anything else sees them."""
    F = functions_for(frame)
    time = sql.quoted(request.time)
    metrics = [F.expr(f"count_if({time} is null)").alias("without_time")]
    if options.max_ahead is None:
        return frame.observe(name, *metrics)
    if not pa.types.is_timestamp(t) or t.tz is None:
        raise InvalidArgument(f"max_ahead compares with the clock; the time column {request.time!r} is of type {t}")
    if options.max_ahead.plain is not None or options.max_ahead.months:
        raise InvalidArgument(f"max_ahead must be a duration such as '1 hour', not {options.max_ahead!r}")
    micros = options.max_ahead.nanos // 1000
    ahead = f"unix_micros({time}) > unix_micros(current_timestamp()) + {micros}L"
    observed = frame.observe(name, *metrics, F.expr(f"count_if({ahead})").alias("ahead"))
    return observed.where(f"{time} is null or not ({ahead})")


def _check_watermark(plan: Plan, options: StreamOptions, spark_watermark: bool) -> None:
    endless = [q for q in plan.queries if isinstance(q.shape, Everything)]
    if options.emit == "final" and endless:
        raise InvalidArgument(
            f"{endless[0].name!r} ({endless[0].window!r}) never ends, so it has no final result; use emit='update' or 'running'"
        )
    if spark_watermark or options.watermark is not None or options.emit == "running" or len(endless) == len(plan.queries):
        return
    raise InvalidArgument(
        f"emit={options.emit!r} gives a window when the watermark passes its end, and there is none; give watermark='10 seconds' "
        "(how far rows may lag behind), or a frame that has withWatermark on the time column"
    )


def _described(asked: Request, calls: Any, options: StreamOptions, schema: pa.Schema, buckets: int, own: bool) -> dict[str, Any]:
    """What must stay the same from restart to restart, as plain data."""
    windows = asked.windows if isinstance(asked.windows, dict) else {"window": asked.windows}
    given = Options(False, "auto", options.lateness, options.emit, "drop", options.idle, None)
    described = of_request(Asked(dict(windows), list(calls), asked.by, asked.time, asked.order_by, given))
    columns = {f.name: str(f.type) for f in schema}
    return {**described, "columns": columns, "buckets": buckets}


def _name(asked: Request, kind: str) -> str:
    """A name for metrics that tells several streams of one query apart."""
    windows = asked.windows if isinstance(asked.windows, dict) else {"window": asked.windows}
    text = json.dumps([repr(windows), repr(asked.aggs), repr(asked.by), repr(asked.time)])
    return f"{kind}:{hashlib.sha256(text.encode()).hexdigest()[:8]}"


# The frame.


def _results(stream: Stream) -> Any:
    F = functions_for(stream.frame)
    columns = stream.frame.columns
    request, schema = stream.request, arrow_schema(stream.frame.schema)
    payloads = MakePayloads(request, schema, stream.choice.way, stream.bucket.labels, ROWS_AT_ONCE)
    numbered = stream.frame.toDF(*[f"c{k}" for k in range(len(columns))])
    made = numbered.mapInArrow(shipped(payloads, columns), spark_schema(PAYLOADS))
    mode = "append" if stream.options.emit == "final" else "update"
    state_schema = f"payload binary, {', '.join(f'{name} long' for name in MEASURED)}"
    stepped = made.groupBy("bucket").transformWithState(
        processor(stream.bucket, event_time=stream.event_time), state_schema, mode, "EventTime" if stream.event_time else "None"
    )
    observed = stepped.observe(stream.name, *[F.sum(name).alias(name) for name in MEASURED])
    result = spark_schema(emitted_schema(stream.plan, stream.options.emit))
    unpacked = observed.select("payload").mapInArrow(shipped(Unpack(request), ["payload"]), result)
    if not stream.event_time or stream.options.emit != "final":
        return unpacked
    # The window is the results' time, so that another stateful operator can stand behind this one.
    marked = {DELAY: 0, "spark.timeWindow": True}
    return unpacked.select(
        *[F.col(sql.quoted(n)).alias(n, metadata=marked) if n == WINDOW else F.col(sql.quoted(n)) for n in unpacked.columns]
    )


def processor(bucket: Bucket, *, event_time: bool) -> Any:
    """A stateful processor that leans on nothing but what a worker must have; its class is pickled by value."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    payload, found = sent(bucket, bucket.request, []), guard()

    class SashProcessor(StatefulProcessor):
        """The operator behind Spark's state store."""

        def init(self, handle: Any) -> None:
            self._handle = handle
            self._state = handle.getMapState("sash", "name string", "value binary")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802
            values = timerValues if event_time else None
            yield from found("sash.spark.stream_tasks").handle(payload, self._state, self._handle, key, rows, values)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802
            yield from found("sash.spark.stream_tasks").handle(payload, self._state, self._handle, key, None, timerValues)

        def close(self) -> None:
            pass

    return SashProcessor()
