"""What ``sash.aggregate`` and ``sash.over`` will do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sash import threads
from sash.api.frames import is_spark, to_table
from sash.plan.grouping import grouping_of
from sash.plan.logical import Column, make_plan, output_type
from sash.plan.range_choice import choose_ranges
from sash.slicing.batch.over import row_spans
from sash.slicing.batch.whole_table import how_to_slice, slice_spans
from sash.slicing.partials.column_partials import FieldPartials, partials_of
from sash.slicing.partials.ranges import Ranges
from sash.slicing.rows.timed import read


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
    grouping = grouping_of(by, table.schema)
    table = grouping.with_keys(table)
    plan = make_plan(table.schema, windows, aggs, grouping.names, time, order_by, options.get("empty", False), trailing=trailing)
    stream = read(plan, table)
    keys = int(np.count_nonzero(np.bincount(stream.keys.codes))) if plan.by else 1
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
    places, asked = row_spans(plan, stream) if trailing else slice_spans(plan, stream)
    lines += [_aggregate(c, plan.schema, places, asked, "rows" if trailing else "slices") for c in plan.columns]
    workers = threads.available()
    lines.append(f"  device: cpu, {workers} thread{'s' * (workers > 1)}")
    return lines


def _aggregate(column: Column, schema: pa.Schema, places: int, asked: list[Ranges], what: str) -> str:
    """An aggregate's line: the algorithm that its ranges will be answered with."""
    partials = partials_of(column, schema.empty_table())
    form = partials.inputs.form if isinstance(partials, FieldPartials) else None
    ways = dict.fromkeys(choose_ranges(form, ranges, places).algorithm for ranges in asked)
    how = f"{', '.join(ways)} over {what}"
    kind = column.call.aggregate.kind
    if kind != "fields":
        how += f"; partials are {kind}, Python objects"
    return f"  {column.call!r} -> {output_type(column)}: {how}"
