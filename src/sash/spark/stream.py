"""``sash.aggregate`` and ``sash.over`` on a streaming frame: payloads before the shuffle, a step of each bucket behind it.

``withWatermark`` comes before all of it, so that the operator sees the watermark and decides itself what is late.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.functions.call import Call
from sash.plan.logical import WINDOW, Plan
from sash.plan.options import OperatorOptions
from sash.plan.stream_ways import BUCKETS, choose_stream
from sash.slicing.persistence import descriptions
from sash.slicing.rows.inputs import stored_form
from sash.slicing.stream.emission import emitted_schema
from sash.spark import needs, sql
from sash.spark.batch import ROWS_AT_ONCE
from sash.spark.buckets import labels
from sash.spark.frames import ASKED, TIME_WINDOW, functions_for, marked
from sash.spark.plain_stream import check_plain, plain_stream
from sash.spark.prepare import check_carried, check_case, narrow_down, over_schema
from sash.spark.progress import MEASURED, MOST, STATE
from sash.spark.requests import Request
from sash.spark.sessions import PROVIDER, ROCKSDB
from sash.spark.stream_tasks import BUCKET, PAYLOADS, Bucket, MakePayloads, OverBucket, Unpack
from sash.spark.tasks import guard, sent, shipped
from sash.spark.types import arrow_schema, spark_schema
from sash.spark.watermarks import DELAY, Clocked, StreamOptions, clocked, metrics_name


@dataclass(frozen=True)
class Checked:
    """A request over a streaming frame, checked."""

    clock: Clocked
    narrow: Any
    request: Request
    schema: pa.Schema
    calls: list[Call]
    plan: Plan
    buckets: tuple[int, ...]


def ask(frame: Any, request: Request, options: StreamOptions) -> Checked:
    """Check a request against a streaming frame's columns; nothing is started."""
    if options.plan != "plain":
        _check_provider(frame)
    clock = clocked(frame, request, options)
    narrow, narrowed, schema, calls = narrow_down(clock.frame, clock.request, timeless=not request.trailing)
    plan = narrowed.plan(schema)
    if clock.options.watermark is not None:
        plan.measure.ticks(clock.options.watermark, "watermark")
    return Checked(clock, narrow, narrowed, schema, calls, plan, labels((options.buckets or BUCKETS) if plan.by else 1))


def aggregate_stream(frame: Any, request: Request, options: StreamOptions) -> Any:
    """The streaming frame of all windows."""
    needs.check(needs.STREAM, "a stream")
    if request.empty:
        raise InvalidArgument("empty=True is for batch: on a stream, windows without rows are not given")
    asked = ask(frame, request, options)
    clock, plan, schema, numbers = asked.clock, asked.plan, asked.schema, asked.buckets
    options = clock.options
    _check_watermark(plan, options, clock.event_time)
    for name in ("lateness", "idle"):
        if getattr(options, name) is not None:
            plan.measure.ticks(getattr(options, name), name)
    result = emitted_schema(plan, options.emit)
    check_case(clock.frame, result.names)
    if options.plan == "plain":
        check_plain(plan, clock)
        return marked(plain_stream(asked.narrow, plan), WINDOW, {DELAY: 0, **TIME_WINDOW, ASKED: json.dumps({"plan": "plain"})})
    choice = choose_stream(plan, [stored_form(c, schema) for c in plan.columns], options.plan)
    described = _described(request, asked)
    bucket = Bucket(
        asked.request, schema, choice.way, numbers, described, options.emit, clock.lateness, options.idle, clock.clock(plan.measure)
    )
    rows = _in_buckets(asked.narrow, plan, len(numbers))
    payloads = MakePayloads(asked.request, arrow_schema(rows.schema), choice.way, numbers, ROWS_AT_ONCE)
    mode = "append" if options.emit == "final" else "update"
    found = _stepped(rows, payloads, bucket, mode, clock.event_time, metrics_name(STATE), spark_schema(result))
    asked_for = {ASKED: json.dumps(described)}
    if not clock.event_time or options.emit != "final":
        return marked(found, WINDOW, asked_for)
    # The window is the results' time, so that another stateful operator can stand behind this one.
    return marked(found, WINDOW, {DELAY: 0, **TIME_WINDOW, **asked_for})


def over_stream(frame: Any, request: Request, options: StreamOptions) -> Any:
    """Every row of a streaming frame with its trailing windows, once the watermark has passed it."""
    needs.check(needs.STREAM, "a stream")
    asked = ask(frame, request, options)
    clock, plan, schema, numbers = asked.clock, asked.plan, asked.schema, asked.buckets
    if not clock.event_time and options.watermark is None:
        raise InvalidArgument(
            "a row is given when the watermark has passed it, and there is none; give watermark='10 seconds' (how far rows may lag "
            "behind), or a frame that has withWatermark on the time column"
        )
    check_carried(frame)
    result = over_schema(frame, plan)
    check_case(frame, result.names)
    described = _described(request, asked)
    rows = _in_buckets(asked.narrow, plan, len(numbers))
    payloads = MakePayloads(asked.request, arrow_schema(rows.schema), "rows", numbers, ROWS_AT_ONCE, tuple(schema.names))
    bucket = OverBucket(asked.request, schema, tuple(result.names), described, clock.clock(plan.measure))
    found = _stepped(rows, payloads, bucket, "append", clock.event_time, metrics_name(STATE), result)
    return marked(found, str(clock.request.time), {**({DELAY: 0} if clock.event_time else {}), ASKED: json.dumps(described)})


# What was asked for.


def _check_provider(frame: Any) -> None:
    given = frame.sparkSession.conf.get(PROVIDER, "")
    if "RocksDB" not in given:
        raise InvalidArgument(
            f"streams need Spark's RocksDB state store; this session has {given.rpartition('.')[2] or 'another'}: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r}) before the query is started (sash.spark.session() does that)"
        )


def _check_watermark(plan: Plan, options: StreamOptions, spark_watermark: bool) -> None:
    endless = [q for q in plan.queries if q.shape.is_whole]
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


def _described(given: Request, asked: Checked) -> dict[str, Any]:
    """What must stay the same from restart to restart, as plain data."""
    options, schema = asked.clock.options, asked.schema
    settings = OperatorOptions(lateness=options.lateness, emit=options.emit, idle=options.idle)
    spec = descriptions.OperatorSpec(given.specs, list(asked.calls), given.by, given.time, given.order_by, settings)
    described = descriptions.of_request(spec)
    waited = None if asked.clock.lateness is None else repr(asked.clock.lateness)
    columns = {f.name: str(f.type) for f in schema}
    return {**described, "columns": columns, "buckets": len(asked.buckets), "watermark": [waited, asked.clock.shift]}


# The frame.


def _in_buckets(narrow: Any, plan: Plan, count: int) -> Any:
    """Rows with the number of their key's bucket."""
    if count == 1:
        return narrow
    keys = ", ".join(sql.key(plan))
    return narrow.selectExpr("*", f"cast(pmod(xxhash64({keys}), {count}L) as int) as {sql.quoted(BUCKET)}")


def _stepped(rows: Any, payloads: MakePayloads, bucket: Bucket | OverBucket, mode: str, event_time: bool, name: str, result: Any) -> Any:
    """Payloads before the shuffle, a step of each bucket behind it, and results out of what they give."""
    F = functions_for(rows)
    numbered = rows.toDF(*[f"c{k}" for k in range(len(rows.columns))])
    made = numbered.mapInArrow(shipped(payloads, rows.columns), spark_schema(PAYLOADS))
    given = f"payload binary, {', '.join(f'{name} long' for name in MEASURED)}"
    step = processor(bucket, event_time=event_time)
    stepped = made.groupBy("bucket").transformWithState(step, given, mode, "EventTime" if event_time else "None")
    observed = stepped.observe(name, *[(F.max if n in MOST else F.sum)(n).alias(n) for n in MEASURED])
    return observed.select("payload").mapInArrow(shipped(Unpack(bucket.request), ["payload"]), result)


def processor(bucket: Bucket | OverBucket, *, event_time: bool) -> Any:
    """A stateful processor that leans on nothing but what a worker must have; its class is pickled by value."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    payload, found = sent(bucket, bucket.request, []), guard()
    # Types, not their text, which each task would ask the JVM to parse.
    state = (StructType([StructField("name", StringType())]), StructType([StructField("value", BinaryType())]))

    class SashProcessor(StatefulProcessor):
        """The operator behind Spark's state store."""

        def init(self, handle: Any) -> None:
            self._handle = handle
            self._state = handle.getMapState("sash", *state)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802
            values = timerValues if event_time else None
            yield from found("sash.spark.stream_tasks").handle(payload, self._state, self._handle, key, rows, values)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802
            yield from found("sash.spark.stream_tasks").handle(payload, self._state, self._handle, key, None, timerValues)

        def close(self) -> None:
            pass

    return SashProcessor()
