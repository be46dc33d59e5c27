"""The plans of ``sash.aggregate`` and ``sash.over`` as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sash import threads
from sash.api.frames import is_spark
from sash.api.places import device_for_table
from sash.api.tables import bound, check_engine
from sash.kernels.opencl.devices import Device
from sash.plan.choices.device_choice import choose_ranges_on_device
from sash.plan.choices.range_choice import choose_distinct, choose_ranges
from sash.plan.logical import Column, Plan, output_type
from sash.plan.options import StreamOptions
from sash.plan.request import Request
from sash.slicing.batch.over import row_spans
from sash.slicing.batch.whole_table import how_to_slice, slice_spans
from sash.slicing.partials.column_partials import FieldPartials
from sash.slicing.partials.kinds_of_partials import partials_of
from sash.slicing.partials.ranges import Ranges
from sash.slicing.rows.timed import TimedRows, read


def explain_request(data: Any, request: Request, options: StreamOptions, device: str) -> list[str]:
    """The plan of a request as lines of text."""
    check_engine(data, options)
    if not is_spark(data):
        return _explain_table(data, request, device)
    from sash.spark.explain_spark import explain_frame, explain_stream
    from sash.spark.language.spark_frames import with_key_columns

    frame, request = with_key_columns(data, request)
    return explain_stream(frame, request, options) if frame.isStreaming else explain_frame(frame, request, options.plan)


def _explain_table(data: Any, request: Request, device_name: str) -> list[str]:
    _, table, plan = bound(data, request)
    plan = replace(plan, device=device_for_table(device_name, table))
    trailing = request.trailing
    rows = read(plan, table)
    keys = int(np.count_nonzero(np.bincount(rows.keys.codes))) if plan.by else 1
    what, count = "over" if trailing else "aggregate", rows.table.num_rows
    lines = [f"{what} {count} rows, {keys} key{'s' * (keys != 1)}, measured in {plan.measure.type}"]
    if table.num_rows > count:
        lines.append(f"  {table.num_rows - count} rows have no time: they are in no window")
    lines += [f"  {q.name}: {q.window!r}, {'a window for each row' if trailing else q.window.context}" for q in plan.queries]
    if trailing:
        lines.append("  rows: sorted by key and time unless they are, and returned in their order")
        places, ranges = row_spans(plan, rows)
        lines += [_aggregate(c, plan.schema, places, ranges, "rows") for c in plan.columns]
    else:
        lines += slicing_lines(plan, rows)
    if plan.device is not None:
        return [*lines, f"  device: {plan.device.title}"]
    workers = threads.available()
    lines.append(f"  device: cpu, {workers} thread{'s' * (workers > 1)}")
    return lines


def slicing_lines(plan: Plan, rows: TimedRows) -> list[str]:
    """How rows become slices, and how each aggregate answers its windows."""
    decision, _ = how_to_slice(plan, rows)
    places, ranges = slice_spans(plan, rows)
    lines = [f"  slices: {decision.choice}", *(f"    {reason}" for reason in decision.reasons)]
    return lines + [_aggregate(c, plan.schema, places, ranges, "slices", plan.device) for c in plan.columns]


def _aggregate(
    column: Column, schema: pa.Schema, places: int, ranges_of_queries: list[Ranges], what: str, device: Device | None = None
) -> str:
    """An aggregate's line: the algorithms that answer its ranges."""
    partials = partials_of(column, schema.empty_table(), device)
    form = partials.inputs.form if isinstance(partials, FieldPartials) else None
    if column.call.aggregate.counts_values:
        algorithms = dict.fromkeys(choose_distinct(ranges).choice for ranges in ranges_of_queries)
        return f"  {column.call!r} -> {output_type(column)}: {', '.join(algorithms)} over {what}, by numbers of values"
    if device is not None:
        chosen = dict.fromkeys(choose_ranges_on_device(device, ranges).choice for ranges in ranges_of_queries)
        return f"  {column.call!r} -> {output_type(column)}: {', '.join(chosen)} over {what}"
    algorithms = dict.fromkeys(choose_ranges(form, ranges, places).choice for ranges in ranges_of_queries)
    how = f"{', '.join(algorithms)} over {what}"
    kind = column.call.aggregate.kind
    if kind != "fields":
        how += f"; partials are {kind}, Python objects"
    return f"  {column.call!r} -> {output_type(column)}: {how}"
