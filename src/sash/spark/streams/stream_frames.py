"""``sash.aggregate`` and ``sash.over`` on a streaming frame: payloads before the shuffle, a step of each bucket behind it.

``withWatermark`` is applied first, so that the operator sees the watermark and decides itself which rows are late.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument
from sash.plan.choices.stream_choice import BUCKETS, StreamDecision, choose_stream, choose_trailing_stream
from sash.plan.logical import WINDOW, Plan, make_plan
from sash.plan.options import StreamOptions
from sash.plan.request import Request
from sash.slicing.persistence import descriptions
from sash.slicing.rows.inputs import stored_form
from sash.slicing.stream.emission import emitted_schema
from sash.spark import needs
from sash.spark.batch.batch_frames import ROWS_AT_ONCE
from sash.spark.batch.prepare import check_carried, check_case, narrow_down, over_schema
from sash.spark.language import sql
from sash.spark.language.spark_frames import QUERY, TIME_WINDOW, functions_for, with_metadata
from sash.spark.language.spark_types import arrow_schema, spark_schema
from sash.spark.sessions import PROVIDER, ROCKSDB
from sash.spark.streams.plain_stream import plain_stream, why_not_plain
from sash.spark.streams.progress import LEAST, MOST, STATE
from sash.spark.streams.watermarks import DELAY, Watermarked, metrics_name, with_watermark
from sash.spark.workers.batch_tasks import Task, guarded_import, pack_task, worker_function
from sash.spark.workers.buckets import labels
from sash.spark.workers.own_code import Code, own_code
from sash.spark.workers.payloads import BUCKET, PASSES, PAYLOADS, MakePayloads
from sash.spark.workers.stream_tasks import MEASURED, Bucket, BucketTask, OverBucket, Unpack


@dataclass(frozen=True)
class PreparedStream:
    """A request over a streaming frame, checked, and the decision how to compute it."""

    clock: Watermarked
    narrow: Any
    """The columns that the request reads, with expressions computed."""
    request: Request
    """The request over ``narrow``."""
    original: Request
    """The request as it was passed."""
    schema: pa.Schema
    plan: Plan
    decision: StreamDecision
    buckets: tuple[int, ...]
    conditions: tuple[str, ...] = ()

    @property
    def options(self) -> StreamOptions:
        """The options, with the watermark that processing time implies."""
        return self.clock.options


def prepare_stream(frame: Any, request: Request, options: StreamOptions, conditions: Sequence[str] = ()) -> PreparedStream:
    """Check a request against a streaming frame's columns, and choose a strategy; nothing is started.

    Rows that do not fulfil the conditions, which are SQL over the frame, advance the watermark, and have no other effect.
    """
    if options.late != "drop":
        raise InvalidArgument(f"late={options.late!r} is for sash.Operator; on Spark late rows are counted: sash.spark.progress(query)")
    if request.empty:
        raise InvalidArgument("empty=True is for batch: a stream does not report windows without rows")
    if options.plan != "plain":
        check_provider(frame)
    clock = with_watermark(frame, request, options)
    passing, carried = _passing(clock, conditions)
    narrow, narrowed, schema = narrow_down(passing, clock.request, timeless=not request.trailing, carried=carried)
    plan, options = make_plan(schema, narrowed), clock.options
    for name in ("watermark", "lateness", "idle"):
        if getattr(options, name) is not None:
            plan.measure.ticks(getattr(options, name), name)
    if request.trailing:
        _check_trailing_watermark(clock)
        decision = choose_trailing_stream()
    else:
        _check_watermark(plan, options, clock.event_time)
        not_plain = why_not_plain(plan, clock) if options.plan == "plain" else None
        decision = choose_stream(plan, [stored_form(c, schema) for c in plan.columns], options.plan, not_plain=not_plain)
    buckets = labels((options.buckets or BUCKETS) if plan.by else 1)
    return PreparedStream(clock, narrow, narrowed, request, schema, plan, decision, buckets, tuple(conditions))


def _passing(clock: Watermarked, conditions: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """The frame under conditions. Where the workers compute the watermark, they need all rows' times, and a column says which pass."""
    frame = clock.frame
    if not conditions:
        return frame, ()
    if clock.event_time:
        return reduce(lambda passing, condition: passing.where(condition), conditions, frame), ()
    together = " and ".join(f"({c})" for c in conditions)
    return frame.selectExpr("*", f"coalesce({together}, false) as {sql.quoted(PASSES)}"), (PASSES,)


def aggregate_stream(
    frame: Any, request: Request, options: StreamOptions, conditions: Sequence[str] = (), query: dict[str, Any] | None = None
) -> Any:
    """The streaming frame of all windows; ``query`` describes the query that requests them, if it is not the request itself."""
    needs.check(needs.STREAM, "a stream on Spark")
    prepared = prepare_stream(frame, request, options, conditions)
    clock, plan, schema, options = prepared.clock, prepared.plan, prepared.schema, prepared.options
    result = emitted_schema(plan, options.emit)
    check_case(clock.frame, result.names)
    if prepared.decision.choice == "plain":
        return with_metadata(plain_stream(prepared.narrow, plan), WINDOW, {DELAY: 0, **TIME_WINDOW, QUERY: json.dumps({"plan": "plain"})})
    strategy, described = prepared.decision.choice, _described(prepared, query)
    bucket = Bucket(
        prepared.request, schema, strategy, prepared.buckets, described, options.emit, clock.lateness, options.idle,
        clock.clock(plan.measure),
    )  # fmt: skip
    rows = _in_buckets(prepared.narrow, plan, len(prepared.buckets))
    payloads = MakePayloads(prepared.request, arrow_schema(rows.schema), strategy, prepared.buckets, ROWS_AT_ONCE)
    mode = "append" if options.emit == "final" else "update"
    own = own_code(prepared.request)
    stepped = in_steps(packed(rows, payloads, own), bucket, own, mode, clock.event_time, spark_schema(result))
    query = {QUERY: json.dumps(described)}
    if not clock.event_time or options.emit != "final":
        return with_metadata(stepped, WINDOW, query)
    # The window is the results' time, so that another stateful operator can follow.
    return with_metadata(stepped, WINDOW, {DELAY: 0, **TIME_WINDOW, **query})


def over_stream(frame: Any, request: Request, options: StreamOptions) -> Any:
    """Every row of a streaming frame with its trailing windows, once the watermark has passed it."""
    needs.check(needs.STREAM, "a stream on Spark")
    prepared = prepare_stream(frame, request, options)
    clock, plan, schema = prepared.clock, prepared.plan, prepared.schema
    check_carried(frame)
    result = over_schema(frame, plan)
    check_case(frame, result.names)
    described = _described(prepared)
    rows = _in_buckets(prepared.narrow, plan, len(prepared.buckets))
    columns = tuple(schema.names)
    payloads = MakePayloads(prepared.request, arrow_schema(rows.schema), prepared.decision.choice, prepared.buckets, ROWS_AT_ONCE, columns)
    bucket = OverBucket(prepared.request, schema, tuple(result.names), described, clock.clock(plan.measure))
    own = own_code(prepared.request)
    stepped = in_steps(packed(rows, payloads, own), bucket, own, "append", clock.event_time, result)
    return with_metadata(stepped, str(clock.request.time), {**({DELAY: 0} if clock.event_time else {}), QUERY: json.dumps(described)})


# Checks, and the query as plain data.


def check_provider(frame: Any) -> None:
    """Raise unless the session has the state store that streams need."""
    provider = frame.sparkSession.conf.get(PROVIDER, "")
    if "RocksDB" not in provider:
        raise InvalidArgument(
            f"streams need Spark's RocksDB state store; this session has {provider.rpartition('.')[2] or 'another'}: "
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
        f"emit={options.emit!r} emits a window when the watermark passes its end, and there is none; pass watermark='10 seconds' "
        "(how far rows may lag behind), or a frame that has withWatermark on the time column"
    )


def _check_trailing_watermark(clock: Watermarked) -> None:
    if not clock.event_time and clock.options.watermark is None:
        raise InvalidArgument(
            "a row is returned when the watermark has passed it, and there is none; pass watermark='10 seconds' (how far rows may lag "
            "behind), or a frame that has withWatermark on the time column"
        )


def _described(prepared: PreparedStream, query: dict[str, Any] | None = None) -> dict[str, Any]:
    """What must stay the same from restart to restart, as plain data."""
    clock, options = prepared.clock, prepared.options
    settings = StreamOptions(lateness=options.lateness, emit=options.emit, idle=options.idle)
    lateness = None if clock.lateness is None else repr(clock.lateness)
    columns = {f.name: str(f.type) for f in prepared.schema}
    described = descriptions.of_request(prepared.original, settings)
    if query is not None:
        described = {**query, **{n: described[n] for n in ("emit", "lateness", "idle")}}
    return {"columns": columns, **described, "buckets": len(prepared.buckets), "watermark": [lateness, clock.shift]}


# The frame.


def _in_buckets(narrow: Any, plan: Plan, count: int) -> Any:
    """Rows with the number of their key's bucket."""
    if count == 1:
        return narrow
    return with_buckets(narrow, sql.key(plan), count)


def with_buckets(frame: Any, keys: Sequence[str], count: int) -> Any:
    """Rows with the number of the bucket that expressions put them into."""
    return frame.selectExpr("*", f"cast(pmod(xxhash64({', '.join(keys)}), {count}L) as int) as {sql.quoted(BUCKET)}")


def packed(rows: Any, payloads: Task, own: Sequence[Code]) -> Any:
    """Rows as payloads, before the shuffle."""
    numbered = rows.toDF(*[f"c{k}" for k in range(len(rows.columns))])
    return numbered.mapInArrow(worker_function(payloads, rows.columns, own), spark_schema(PAYLOADS))


def in_steps(payloads: Any, bucket: BucketTask, own: Sequence[Code], mode: str, event_time: bool, result: Any) -> Any:
    """Results of payloads: a step of each bucket behind the shuffle, and the tables in what the steps return."""
    F = functions_for(payloads)
    columns = f"payload binary, {', '.join(f'{name} long' for name in MEASURED)}"
    step = processor(bucket, own, event_time=event_time)
    stepped = payloads.groupBy("bucket").transformWithState(step, columns, mode, "EventTime" if event_time else "None")
    combined = dict.fromkeys(MOST, F.max) | dict.fromkeys(LEAST, F.min)
    observed = stepped.observe(metrics_name(STATE), *[combined.get(n, F.sum)(n).alias(n) for n in MEASURED])
    return observed.select("payload").mapInArrow(worker_function(Unpack(), ["payload"]), result)


def processor(bucket: BucketTask, own: Sequence[Code], *, event_time: bool) -> Any:
    """A stateful processor that imports nothing a worker might lack; its class is pickled by value."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import BinaryType, StringType, StructField, StructType

    payload, load = pack_task(bucket, [], own), guarded_import()
    # Types, not their text, which each task would ask the JVM to parse.
    state = (StructType([StructField("name", StringType())]), StructType([StructField("value", BinaryType())]))

    class SashProcessor(StatefulProcessor):
        """The operator behind Spark's state store."""

        def init(self, handle: Any) -> None:
            self._handle = handle
            self._state = handle.getMapState("sash", *state)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802
            values = timerValues if event_time else None
            yield from load("sash.spark.workers.stream_tasks").handle(payload, self._state, self._handle, key, rows, values)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802
            yield from load("sash.spark.workers.stream_tasks").handle(payload, self._state, self._handle, key, None, timerValues)

        def close(self) -> None:
            pass

    return SashProcessor()
