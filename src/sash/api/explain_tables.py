"""What ``sash.aggregate`` and ``sash.over`` will do."""

from __future__ import annotations

from typing import Any

from sash import threads
from sash.api.tables import is_spark, to_table
from sash.plan.logical import Column, Plan, make_plan, output_type
from sash.slicing.batch import how_to_slice, read
from sash.windows.base import ContextFreeWindow


def explain_table(data: Any, windows: Any, aggs: Any, by: Any = None, time: Any = None, order_by: Any = None, **options: Any) -> list[str]:
    """The plan as lines of text."""
    given = list(windows.values()) if isinstance(windows, dict) else [windows]
    trailing = any(getattr(w, "is_trailing", False) for w in given)
    if is_spark(data):
        from sash.spark.explain import explain_frame, explain_stream
        from sash.spark.requests import Request
        from sash.spark.watermarks import StreamOptions

        request = Request(windows, aggs, by, time, order_by, options.pop("empty", False), trailing)
        if data.isStreaming:
            defaults = {
                "watermark": None,
                "lateness": None,
                "emit": "final",
                "late": "drop",
                "idle": None,
                "max_ahead": None,
                "buckets": None,
            }
            return explain_stream(data, request, StreamOptions.of(**{**defaults, "plan": "auto", **options}))
        return explain_frame(data, request, options.get("plan", "auto"))
    table = to_table(data)
    plan = make_plan(table.schema, windows, aggs, by, time, order_by, options.get("empty", False), trailing=trailing)
    stream = read(plan, table)
    keys = stream.keys.count if plan.by else 1
    what, count = "over" if trailing else "aggregate", stream.table.num_rows
    lines = [f"{what} {count} rows, {keys} key{'s' * (keys != 1)}, measured in {plan.measure.type}"]
    if table.num_rows > stream.table.num_rows:
        lines.append(f"  {table.num_rows - stream.table.num_rows} rows have no time: they are in no window")
    lines += [f"  {q.name}: {q.window!r}, {'a window for each row' if trailing else q.window.context}" for q in plan.queries]
    if trailing:
        lines.append("  rows: sorted by key and time unless they are, and given back in their order")
    else:
        choice, _ = how_to_slice(plan, stream)
        lines += [f"  slices: {choice.algorithm}", *(f"    {reason}" for reason in choice.reasons)]
    lines += [_aggregate(plan, c, trailing) for c in plan.columns]
    workers = threads.available()
    lines.append(f"  device: cpu, {workers} thread{'s' * (workers > 1)}")
    return lines


def _aggregate(plan: Plan, column: Column, trailing: bool) -> str:
    what = "rows" if trailing else "slices"
    nested = any(isinstance(q.shape, ContextFreeWindow) for q in plan.queries)
    how = f"two stacks, block by block, over {what}" + (" (FlatFAT where one window lies within another)" if nested else "")
    kind = column.call.aggregate.kind
    if kind != "fields":
        how += f"; partials are {kind}, Python objects"
    return f"  {column.call!r} -> {output_type(column)}: {how}"
