"""The plans of ``sash.aggregate`` and ``sash.over`` on Spark frames as text."""

from __future__ import annotations

from typing import Any

from sash.functions.call import Call
from sash.plan.logical import Plan, output_type
from sash.plan.options import StreamOptions
from sash.plan.request import Request
from sash.spark.batch.prepare import prepare
from sash.spark.language.spark_frames import is_connect
from sash.spark.sessions import ANY_SIZE, BYTES_PER_BATCH
from sash.spark.streams.stream_frames import prepare_stream

STAGES = {
    "plain": ("rows -> Catalyst: key, window -> shuffle -> results",),
    "catalyst": ("rows -> Catalyst: key, slice -> shuffle -> partials per slice", "slices -> shuffle by key -> Arrow: windows"),
    "fragments": ("rows -> Arrow: partials per key and slice of each partition", "slices -> shuffle by key -> Arrow: windows"),
    "rows": ("rows -> shuffle by key -> Arrow: sorted by time, windows",),
}


def explain_stream(frame: Any, request: Request, options: StreamOptions) -> list[str]:
    """The plan of a stream as lines of text; nothing is started."""
    prepared = prepare_stream(frame, request, options)
    plan, clock, options, decision = prepared.plan, prepared.clock, prepared.options, prepared.decision
    lines = _queries(frame, request, plan, "a stream of Spark")
    if clock.own:
        lines.append("  watermark: the frame's own")
    elif options.watermark is None:
        lines.append("  watermark: none")
    else:
        whose = "Spark's" if clock.event_time else "sash's own, since Spark has none for this type"
        lines.append(f"  watermark: {options.watermark!r} behind the newest row ({whose})")
    lines.append(f"  emit: {options.emit}")
    if decision.choice == "plain":
        return [*lines, "  plan: plain", *(f"    {reason}" for reason in decision.reasons), *_columns(request.aggs, plan)]
    lines += [f"  before the shuffle: {decision.choice}", *(f"    {reason}" for reason in decision.reasons)]
    lines.append(f"  state: {len(prepared.buckets)} bucket{'s' * (len(prepared.buckets) > 1)} of keys, in chunks, on RocksDB")
    return [*lines, *_columns(request.aggs, plan), *_advice(frame)]


def explain_frame(frame: Any, request: Request, requested: str = "auto") -> list[str]:
    """The plan as lines of text; no job runs."""
    prepared = prepare(frame, request, requested)
    plan, decision = prepared.plan, prepared.decision
    lines = _queries(frame, request, plan, "Spark")
    lines += [f"  plan: {decision.choice}", *(f"    {reason}" for reason in decision.reasons)]
    lines += [f"  stage {k}: {stage}" for k, stage in enumerate(STAGES[decision.choice], start=1)]
    lines += [f"  or stage {k}: {stage}" for k, stage in enumerate(STAGES["rows"], start=1) if decision.or_rows]
    return [*lines, *_columns(prepared.calls, plan), *([] if decision.choice == "plain" else _advice(frame))]


def _queries(frame: Any, request: Request, plan: Plan, where: str) -> list[str]:
    what = "over" if request.trailing else "aggregate"
    head = f"{what} on {where} ({'Connect' if is_connect(frame) else 'classic'}), measured in {plan.measure.type}"
    return [head, *(f"  {q.name}: {q.window!r}, {'a window for each row' if request.trailing else q.window.context}" for q in plan.queries)]


def _columns(calls: tuple[Call, ...], plan: Plan) -> list[str]:
    return [f"  {call!r} -> {output_type(c)}" for call, c in zip(calls, plan.columns, strict=True)]


def _advice(frame: Any) -> list[str]:
    """Hints for the session's settings; the session is the user's, so nothing is set."""
    limit = frame.sparkSession.conf.get(BYTES_PER_BATCH, None)
    if str(limit) == ANY_SIZE:
        return []
    return [
        f"  hint: {BYTES_PER_BATCH} is {limit or 'not set'}, so Spark adds up a batch's bytes after every row that it sends to Python;",
        f"    spark.conf.set({BYTES_PER_BATCH!r}, {ANY_SIZE!r}) turns that off, and maxRecordsPerBatch still bounds a batch",
    ]
