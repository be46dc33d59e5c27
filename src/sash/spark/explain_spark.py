"""The plans of ``sash.aggregate`` and ``sash.over`` on Spark frames as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sash.functions.call import Call
from sash.plan.logical import Plan, output_type
from sash.plan.options import StreamOptions
from sash.plan.queries.flows import is_periodic, origin_queries, sliced
from sash.plan.queries.relation_tree import tree
from sash.plan.queries.relations import Grouped, Joined, Query, Relation
from sash.plan.request import Request
from sash.spark.batch.prepare import prepare
from sash.spark.language.spark_frames import is_connect
from sash.spark.queries.query_frames import FrameRun
from sash.spark.queries.query_streams import StreamRun, prepare_query
from sash.spark.sessions import ANY_SIZE, BYTES_PER_BATCH
from sash.spark.streams.stream_frames import prepare_stream

STAGES = {
    "plain": ("rows -> Catalyst: key, window -> shuffle -> results",),
    "catalyst": ("rows -> Catalyst: key, slice -> shuffle -> partials per slice", "slices -> shuffle by key -> Arrow: windows"),
    "fragments": ("rows -> Arrow: partials per key and slice of each partition", "slices -> shuffle by key -> Arrow: windows"),
    "rows": ("rows -> shuffle by key -> Arrow: sorted by time, windows",),
}


def explain_query_frames(query: Query, frames: Mapping[str, Any], options: StreamOptions, order_by: tuple[str, ...]) -> list[str]:
    """The plan of a query over frames as lines of text; nothing runs."""
    is_stream = any(frame.isStreaming for frame in frames.values())
    prepared = prepare_query(query, frames, options, order_by) if is_stream else None
    run = FrameRun(frames, order_by) if prepared is None else StreamRun(prepared)
    kind = "Connect" if is_connect(next(iter(frames.values()))) else "classic"
    lines = [f"query over {'streams' if is_stream else 'frames'} of Spark ({kind}): {', '.join(frames)}"]
    if prepared is not None:
        lines += [f"  plan: {prepared.decision.choice}", *(f"    {reason}" for reason in prepared.decision.reasons)]
    direct_ones = _aggregated_directly(query) if prepared is None or prepared.decision.choice == "windows" else set()

    def notes(relation: Relation) -> list[str]:
        if isinstance(relation, Joined) and prepared is None:
            return ["pairs: rows whose spans of windows overlap, joined by Spark on equal keys and blocks of time"]
        if not isinstance(relation, Grouped):
            return []
        direct = run.direct(relation) if id(relation) in direct_ones else None
        if direct is None:
            return ["rows: repeated per window, grouped by Spark"] if prepared is None else _kept(relation)
        if prepared is None:
            return explain_frame(direct.frame, direct.request)
        return explain_stream(direct.frame, direct.request, options, direct.conditions)

    return [*lines, *(f"  {line}" for line in tree(query, notes))]


def _aggregated_directly(query: Query) -> set[int]:
    """The relations that :func:`sash.aggregate` may compute: those of a query, or of a named stream, whose results need no numbers."""
    relations = {id(query.relation)} if query.kind == "rstream" and query.limit is None else set()
    return relations.union(*map(_aggregated_directly, origin_queries(query)))


def _kept(relation: Grouped) -> list[str]:
    """What a query that runs step by step stores for an aggregation."""
    return ["state: slices"] if is_periodic(sliced(relation)) else ["state: the rows of open windows"]


def explain_stream(frame: Any, request: Request, options: StreamOptions, conditions: Sequence[str] = ()) -> list[str]:
    """The plan of a stream as lines of text; nothing is started."""
    prepared = prepare_stream(frame, request, options, conditions)
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
