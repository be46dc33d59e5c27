"""The plan of a query over streaming frames.

Projections and selections stay Spark's own; one aggregation over windows of one stream is :func:`sash.aggregate`; every other query runs
step by step in Spark's Python workers (:mod:`sash.relational.steps`), split by the keys that its results do not mix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, InvalidType
from sash.expressions import parse
from sash.plan.choices.query_choice import QueryDecision, choose_query
from sash.plan.choices.stream_choice import BUCKETS
from sash.plan.options import StreamOptions
from sash.plan.queries.flows import StreamRead, streams_read
from sash.plan.queries.relations import TIME, Query
from sash.relational.steps.described import of_query, own_functions
from sash.spark import needs
from sash.spark.batch.batch_frames import ROWS_AT_ONCE
from sash.spark.batch.prepare import check_case
from sash.spark.language.spark_frames import QUERY, functions_for, with_metadata
from sash.spark.language.spark_types import OPAQUE, arrow_schema, spark_schema
from sash.spark.language.sql import one_of_equals, quoted
from sash.spark.queries.query_frames import Direct, Final, FrameRun, Rows
from sash.spark.streams.diagnose import LEFT_BY_HAVING
from sash.spark.streams.stream_frames import aggregate_stream, check_provider, in_steps, packed, with_buckets
from sash.spark.streams.watermarks import DELAY, NANOS_PER_MILLI, has_watermark, is_instant, metrics_name, with_delay
from sash.spark.workers.buckets import labels
from sash.spark.workers.own_code import own_functions as functions_of
from sash.spark.workers.payloads import Packing, PackRows
from sash.spark.workers.query_tasks import QueryBucket, Sent
from sash.spark.workers.stream_tasks import Clock


@dataclass(frozen=True)
class PreparedQuery:
    """A query over streaming frames, checked, and the decision how to compute it."""

    query: Query
    frames: Mapping[str, Any]
    options: StreamOptions
    order_by: tuple[str, ...]
    decision: QueryDecision


def prepare_query(query: Query, frames: Mapping[str, Any], options: StreamOptions, order_by: tuple[str, ...]) -> PreparedQuery:
    """Check a query against streaming frames and choose how to run it; nothing is started."""
    batch = [name for name, frame in frames.items() if not frame.isStreaming]
    if batch:
        stream = next(name for name in frames if name not in batch)
        raise InvalidType(f"{stream!r} is a stream and {batch[0]!r} is a batch; the frames of a query are all of one kind")
    if options.late != "drop":
        raise InvalidArgument(f"late={options.late!r} is for sash.Operator; on Spark late rows are counted: sash.spark.progress(query)")
    decision = choose_query(query, options.emit)
    if decision.choice != "rows":
        check_provider(next(iter(frames.values())))
    return PreparedQuery(query, frames, options, order_by, decision)


def query_stream(query: Query, frames: Mapping[str, Any], options: StreamOptions, order_by: tuple[str, ...]) -> Any:
    """The streaming frame of a query's results."""
    prepared = prepare_query(query, frames, options, order_by)
    if prepared.decision.choice == "rows":
        return _rows(prepared)
    needs.check(needs.STREAM, "a stream on Spark")
    check_case(next(iter(frames.values())), query.schema.names)
    results = _windows(prepared) if prepared.decision.choice == "windows" else _steps(prepared)
    if query.having is None:
        return results
    F = functions_for(results)
    return results.observe(metrics_name(LEFT_BY_HAVING), F.count(F.lit(1)).alias("rows"))


# Rows.


def _rows(prepared: PreparedQuery) -> Any:
    """Each row as it comes, without any state."""
    times = {s.name: s.time for s in streams_read(prepared.query)}
    frames = {
        name: with_delay(frame, times[name], prepared.options)
        if prepared.options.watermark is not None and is_instant(prepared.query.measure.type) and not has_watermark(frame, times[name])
        else frame
        for name, frame in prepared.frames.items()
    }  # fmt: skip
    return FrameRun(frames, prepared.order_by).frame(prepared.query)


# Windows of one stream.


class StreamRun(FrameRun):
    """Frames of one aggregation over a stream."""

    def __init__(self, prepared: PreparedQuery) -> None:
        super().__init__(prepared.frames, prepared.order_by)
        self._options = prepared.options
        self._described = of_query(prepared.query, prepared.order_by)
        self.metadata: dict[str, Any] = {}

    def under(self, frame: Any, conditions: Sequence[str]) -> Any:
        return frame  # the watermark sees the other rows, too

    def aggregated(self, direct: Direct) -> Any:
        result = aggregate_stream(direct.frame, direct.request, self._options, direct.conditions, self._described)
        self.metadata = dict(result.schema["window"].metadata)
        return result


def _windows(prepared: PreparedQuery) -> Any:
    query = prepared.query
    run = StreamRun(prepared)
    result = run.relation(query.relation, wants_numbers=False)
    assert isinstance(result, Final | Rows)
    frame = run.selected(query, result)
    return _marked(frame, query, run.metadata[QUERY], event_time=DELAY in run.metadata)


def _marked(frame: Any, query: Query, described: str, *, event_time: bool) -> Any:
    """The results, with what Spark and :func:`sash.spark.check` want to know of them."""
    times = [c.name for c in query.columns if c.text == quoted(TIME)] if event_time else []
    for name in times:  # the results' time, so that another stateful operator can follow
        frame = with_metadata(frame, name, {DELAY: 0})
    first = frame.columns[0]
    return with_metadata(frame, first, {**({DELAY: 0} if first in times else {}), QUERY: described})


# Step by step.


def _steps(prepared: PreparedQuery) -> Any:
    query, decision = prepared.query, prepared.decision
    streams = streams_read(query)
    clock, frames = _clock(prepared, streams)
    buckets = labels(BUCKETS if decision.split else 1)
    read = {s.name: _columns_read(s, prepared) for s in streams}
    sent = [Sent(s.name, pa.schema([s.schema.field(n) for n in read[s.name]])) for s in streams]
    calls, functions = own_functions(query)
    own = [*functions_of(calls), *functions]
    payloads = []
    for number, (stream, columns) in enumerate(zip(streams, sent, strict=True)):
        frame = frames[stream.name].selectExpr(*map(quoted, columns.schema.names))
        if decision.split:
            keys = [one_of_equals(f"({text})", parse(text).type(stream.schema)) for text in decision.split[stream.name]]
            frame = with_buckets(frame, keys, len(buckets))
        task = PackRows(arrow_schema(frame.schema), stream.time, Packing(buckets, number), ROWS_AT_ONCE)
        payloads.append(packed(frame, task, ()))
    described = {**of_query(query, prepared.order_by), "buckets": len(buckets), "watermark": [clock.shift]}
    bucket = QueryBucket(query, tuple(sent), prepared.order_by, described, clock)
    union = reduce(lambda one, other: one.unionAll(other), payloads)
    event_time = clock.delay is None
    stepped = in_steps(union, bucket, own, "append", event_time, spark_schema(query.schema))
    return _marked(stepped, query, json.dumps(described), event_time=event_time)


def _columns_read(stream: StreamRead, prepared: PreparedQuery) -> list[str]:
    """The columns of a stream that the query reads, in the stream's order."""
    names = {stream.time, *(n for n in prepared.order_by if n in stream.schema.names), *stream.reads}
    for name in sorted(names):
        if stream.schema.field(name).type == OPAQUE or pa.types.is_null(stream.schema.field(name).type):
            raise InvalidType(f"column {name!r} of {stream.name!r} has a type that sash cannot read; cast it, or leave it out")
    return [n for n in stream.schema.names if n in names]


def _clock(prepared: PreparedQuery, streams: list[StreamRead]) -> tuple[Clock, dict[str, Any]]:
    """How steps compute their watermark, and the frames with Spark's watermark where it has one for their times."""
    options, frames = prepared.options, dict(prepared.frames)
    measure = prepared.query.measure
    own = {s.name for s in streams if has_watermark(frames[s.name], s.time)}
    missing = [s.name for s in streams if s.name not in own]
    if missing and options.watermark is None:
        raise InvalidArgument(
            f"{missing[0]!r} has no watermark, and windows are emitted when it passes their ends; pass watermark='10 seconds' (how far "
            "rows may lag behind), or a frame that has withWatermark on the time column"
        )
    if not missing and options.watermark is not None:
        raise InvalidArgument("the frames have watermarks already (withWatermark); leave watermark= away, or that")
    per_milli = max(1, NANOS_PER_MILLI // (measure.nanos_per_tick or NANOS_PER_MILLI))
    if not is_instant(measure.type):
        assert options.watermark is not None
        lateness = 0 if options.lateness is None else measure.ticks(options.lateness, "lateness")
        return Clock(measure.ticks(options.watermark, "watermark") + lateness, 0, per_milli), frames
    for name in missing:
        frames[name] = with_delay(frames[name], next(s.time for s in streams if s.name == name), options)
    shift = 0 if missing or options.lateness is None else -measure.ticks(options.lateness, "lateness")
    if missing and own and options.lateness is not None:
        raise InvalidArgument("lateness needs watermarks that are all set here; leave withWatermark away")
    return Clock(None, shift, per_milli), frames
