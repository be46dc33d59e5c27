"""``sash.aggregate`` and ``sash.over``: windows over a whole table, or a Spark frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import pyarrow as pa

from sash.api.frames import arrow_table, is_spark, library_of, like
from sash.api.places import DeviceName, device_for_table
from sash.columns import in_known_layouts
from sash.errors import InvalidArgument, UnknownName
from sash.plan.clock import ProcessingTime
from sash.plan.grouping import grouping_of
from sash.plan.logical import Plan, make_plan
from sash.plan.options import Emit, Late, StreamOptions
from sash.plan.request import Aggs, By, Request, Windows
from sash.slicing.batch.over import over_names, over_table
from sash.slicing.batch.results import flat_names, flattened, output_schema
from sash.slicing.batch.whole_table import aggregate_table
from sash.types import ArrowData, DurationLike, FrameT


@overload
def aggregate(
    data: FrameT,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = ...,
    order_by: str | Sequence[str] | None = ...,
    watermark: DurationLike | None = ...,
    lateness: DurationLike | None = ...,
    emit: Emit = ...,
    late: Late = ...,
    empty: bool = ...,
    idle: DurationLike | None = ...,
    max_ahead: DurationLike | None = ...,
    buckets: int | None = ...,
    plan: str = ...,
    flatten: bool = ...,
    device: DeviceName = ...,
) -> FrameT: ...
@overload
def aggregate(
    data: ArrowData,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = ...,
    order_by: str | Sequence[str] | None = ...,
    watermark: DurationLike | None = ...,
    lateness: DurationLike | None = ...,
    emit: Emit = ...,
    late: Late = ...,
    empty: bool = ...,
    idle: DurationLike | None = ...,
    max_ahead: DurationLike | None = ...,
    buckets: int | None = ...,
    plan: str = ...,
    flatten: bool = ...,
    device: DeviceName = ...,
) -> pa.Table: ...
def aggregate(
    data: Any,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = None,
    order_by: str | Sequence[str] | None = None,
    watermark: DurationLike | None = None,
    lateness: DurationLike | None = None,
    emit: Emit = "final",
    late: Late = "drop",
    empty: bool = False,
    idle: DurationLike | None = None,
    max_ahead: DurationLike | None = None,
    buckets: int | None = None,
    plan: str = "auto",
    flatten: bool = False,
    device: DeviceName = "auto",
) -> Any:
    """The aggregates of every window that contains a row.

    Args:
        data: A Spark frame, and then so is the result, which runs with an action; a pandas or polars frame, and the result is of the same
            kind; or anything else with the Arrow PyCapsule interface (pyarrow, DuckDB), and the result is a `pyarrow.Table`.
        windows: One window of `sash.windows`, or a dictionary of them by name; then the result has a column `query` with the name.
        aggs: One aggregate of `sash.functions`, or several; define your own with `sash.udaf`.
        time: The column that windows are measured in: times, dates or integers. On a stream also `sash.processing_time()`.
        by: Columns or SQL expressions over the row to group by (`"k % 2"`, `"k % 2 as parity"`), or a dictionary of them by name. By
            default all rows are one group.
        order_by: Columns that order rows of the same time.
        watermark: On a stream, how far event time may lag behind the newest row. A frame with `withWatermark` uses its own.
        lateness: On a stream, how much longer a row may still change results.
        emit: On a stream, `"final"` emits each window once, when nothing can change it any more; `"update"` when the watermark passes
            its end and again after every change; `"running"` open windows too, each time they have changed.
        late: On Spark only `"drop"`: late rows are dropped and counted. `"output"` is for `sash.Operator`.
        empty: Whether a key's empty windows between two of its rows are reported, too.
        idle: On a stream, after how much event time without a row the state of a key is dropped, for windows that never all close.
        max_ahead: On a stream, rows that are further in front of the clock than this are set aside and counted.
        buckets: On a stream, the number of hash buckets of keys; each is handled by one task at a time.
        plan: The strategy on Spark, where you know more about the rows than their schema says: `"rows"` if a key has about one row in a
            slice; `sash.explain` shows what `"auto"` chooses.
        flatten: Whether the result has the columns `window_start` and `window_end` instead of a struct (and `rows_start` and `rows_end`).
        device: `"cpu"`; `"opencl"` or the name of an OpenCL device (`sash.devices()`) for slices and windows of a table; or `"auto"`, which
            takes a GPU where there is one and the work is worth the way.

    Returns:
        A frame of the same kind as `data`. Its columns are `query` (if `windows` is a dictionary), the `by` columns, `window`, `rows` (if
        there are row windows), the aggregates, and on a stream `revision` and `retracted` unless `emit="final"`. In a batch nothing is
        late: `watermark`, `lateness` and `idle` have no effect.

    Examples:
        >>> import pyarrow as pa, sash
        >>> from sash import functions as S, windows as W
        >>> rows = pa.table({"t": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
        >>> out = sash.aggregate(rows, windows=W.sliding(10, every=5), aggs=[S.sum("cpu").alias("total")], time="t")
        >>> [(r["window"]["start"], r["window"]["end"], r["total"]) for r in out.to_pylist()]
        [(-5, 5, 7), (0, 10, 12), (5, 15, 11), (10, 20, 6)]
    """
    request = Request.of(windows, aggs, by, time, order_by, empty=empty)
    options = StreamOptions.of(
        watermark=watermark, lateness=lateness, emit=emit, late=late, idle=idle, max_ahead=max_ahead, buckets=buckets, plan=plan
    )
    if is_spark(data):
        if device not in ("auto", "cpu"):
            raise InvalidArgument(f"device={device!r} is for tables; Spark's executors aggregate on their CPUs")
        from sash.spark.batch.batch_frames import aggregate_frame
        from sash.spark.language.spark_frames import flattened_frame, with_key_columns
        from sash.spark.streams.stream_frames import aggregate_stream

        data, request = with_key_columns(data, request)
        check_engine(data, options)
        frame = aggregate_stream(data, request, options) if data.isStreaming else aggregate_frame(data, request, options.plan)
        return flattened_frame(frame) if flatten else frame
    check_engine(data, options)
    _, table, logical = bound(data, request)
    logical = replace(logical, device=device_for_table(device, table))
    schema = output_schema(logical)
    if flatten:
        flat_names(schema)
    result = aggregate_table(logical, table)
    return like(data, flattened(result) if flatten else result)


@overload
def over(
    data: FrameT,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = ...,
    order_by: str | Sequence[str] | None = ...,
    watermark: DurationLike | None = ...,
    late: Late = ...,
    max_ahead: DurationLike | None = ...,
    buckets: int | None = ...,
) -> FrameT: ...
@overload
def over(
    data: ArrowData,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = ...,
    order_by: str | Sequence[str] | None = ...,
    watermark: DurationLike | None = ...,
    late: Late = ...,
    max_ahead: DurationLike | None = ...,
    buckets: int | None = ...,
) -> pa.Table: ...
def over(
    data: Any,
    *,
    windows: Windows,
    aggs: Aggs,
    time: str | ProcessingTime,
    by: By | None = None,
    order_by: str | Sequence[str] | None = None,
    watermark: DurationLike | None = None,
    late: Late = "drop",
    max_ahead: DurationLike | None = None,
    buckets: int | None = None,
) -> Any:
    """Every row of the data with the aggregates of its trailing windows; a table's rows stay in their order.

    Args:
        data: A Spark frame, a pandas or polars frame, or anything with the Arrow PyCapsule interface, as for `sash.aggregate`.
        windows: `W.trailing` or `W.trailing_rows`, or a dictionary of them by name.
        aggs: One aggregate of `sash.functions`, or several.
        time: The column that windows are measured in. On a stream also `sash.processing_time()`.
        by: Columns or SQL expressions over the row to group by.
        order_by: Columns that order rows of the same time.
        watermark: On a stream, how far event time may lag behind the newest row: a row is returned once the watermark has passed it.
        late: On Spark only `"drop"`: late rows are dropped and counted.
        max_ahead: On a stream, rows that are further in front of the clock than this are set aside and counted.
        buckets: On a stream, the number of hash buckets of keys.

    Returns:
        The rows and columns of the data, and one column per aggregate and window: `spent_1h`, `spent_7d` for an aggregate `spent` and
        windows named `1h` and `7d`; for a single window, just `spent`.

    Examples:
        >>> import pyarrow as pa, sash
        >>> from sash import functions as S, windows as W
        >>> rows = pa.table({"t": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
        >>> sash.over(rows, windows=W.trailing(4), aggs=[S.sum("cpu").alias("recent")], time="t").column("recent").to_pylist()
        [3, 7, 12, 6]
    """
    request = Request.of(windows, aggs, by, time, order_by, trailing=True)
    options = StreamOptions.of(watermark=watermark, late=late, max_ahead=max_ahead, buckets=buckets)
    if is_spark(data):
        from sash.spark.batch.batch_frames import over_frame
        from sash.spark.language.spark_frames import with_key_columns
        from sash.spark.streams.stream_frames import over_stream

        frame, request = with_key_columns(data, request)
        result = over_stream(frame, request, options) if frame.isStreaming else over_frame(frame, request)
        return result.drop(*[name for name in frame.columns if name not in data.columns])
    original, table, logical = bound(data, request)
    over_names(logical)
    result = over_table(logical, table)
    for name in result.column_names[table.num_columns :]:  # rows are returned in their own types
        original = original.append_column(result.schema.field(name), result.column(name))
    result_frame = like(data, original)
    if library_of(data) == "pandas":
        result_frame.index = data.index  # so that columns can be assigned to the frame
    return result_frame


def bound(data: Any, request: Request) -> tuple[pa.Table, pa.Table, Plan]:
    """The data as a table in its own types, the table that is aggregated (known layouts, computed keys), and the plan over it."""
    original = arrow_table(data)
    table = in_known_layouts(original)
    _check_time(request.time, table, data)
    grouping = grouping_of(request.by, table.schema)
    table = grouping.with_keys(table)
    return original, table, make_plan(table.schema, request.over_keys(grouping.names))


def check_engine(data: Any, options: StreamOptions) -> None:
    """Raise if the engine that runs the request does not support an option."""
    if is_spark(data) and data.isStreaming:
        return
    if options.emit != "final":
        raise InvalidArgument(f"emit={options.emit!r} is for streams; a batch reports each window once")
    if options.plan != "auto" and not is_spark(data):
        raise InvalidArgument(f"plan={options.plan!r} is for Spark frames; in one process there is only one")


def _check_time(time: Any, table: pa.Table, data: Any) -> None:
    """Raise if ``time`` is the index of a pandas frame: an index is not a column."""
    names = [n for n in getattr(getattr(data, "index", None), "names", None) or [] if n is not None]
    if isinstance(time, str) and time in names and time not in table.column_names:
        raise UnknownName(f"time={time!r} is the index of the frame; windows are measured in a column: use frame.reset_index()")
