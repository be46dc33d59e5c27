"""``sash.aggregate`` and ``sash.over``: windows over a whole table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.api.frames import arrow_table, is_spark, library_of, like
from sash.columns import in_known_layouts
from sash.errors import InvalidArgument, UnknownName
from sash.plan.grouping import grouping_of
from sash.plan.logical import make_plan
from sash.plan.options import EMITS, LATES, check_duration_option
from sash.plan.stream_ways import MOST_BUCKETS
from sash.slicing.batch.over import over_names, over_table
from sash.slicing.batch.results import flat_names, flattened, output_schema
from sash.slicing.batch.whole_table import aggregate_table


def aggregate(
    data: Any,
    windows: Any = None,
    aggs: Any = (),
    by: Any = None,
    time: Any = None,
    order_by: Any = None,
    watermark: Any = None,
    lateness: Any = None,
    emit: str = "final",
    late: str = "drop",
    empty: bool = False,
    idle: Any = None,
    max_ahead: Any = None,
    buckets: int | None = None,
    plan: str = "auto",
    flatten: bool = False,
) -> Any:
    """The aggregates of every window of ``windows`` (one spec, or a dictionary of them) that holds a row.

    ``data`` is a Spark frame, and then so is the result, which runs with an action; a polars or pandas frame, and the result is one, too;
    or anything else that speaks the Arrow PyCapsule interface (pyarrow, DuckDB), and the result is a :class:`pyarrow.Table`. ``by`` names
    columns, or is SQL over the row ("k % 2", "k % 2 as parity"). A batch is all there, so nothing in it is late: ``watermark``,
    ``lateness`` and ``idle`` have no effect. ``flatten`` gives columns ``window_start`` and ``window_end`` instead of a struct (and
    ``rows_start`` and ``rows_end`` for row windows). ``plan`` is for Spark frames: which way to go, where you know more about the rows than
    their schema says ("rows" where a key has about one row in a slice).

    >>> import pyarrow as pa, sash
    >>> from sash import functions as S, windows as W
    >>> rows = pa.table({"t": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
    >>> out = sash.aggregate(rows, windows=W.sliding(10, every=5), aggs=[S.sum("cpu").alias("total")], time="t")
    >>> [(r["window"]["start"], r["window"]["end"], r["total"]) for r in out.to_pylist()]
    [(-5, 5, 7), (0, 10, 12), (5, 15, 11), (10, 20, 6)]
    """
    _check_stream_options(watermark, lateness, emit, late, idle, max_ahead, buckets)
    if windows is None:
        raise InvalidArgument("windows is missing; give one of sash.windows, e.g. W.tumbling('1 minute')")
    if is_spark(data):
        from sash.spark.batch import aggregate_frame
        from sash.spark.frames import flattened_frame, keyed
        from sash.spark.requests import Request
        from sash.spark.stream import aggregate_stream
        from sash.spark.watermarks import StreamOptions

        data, by = keyed(data, by)
        request = Request(windows, aggs, by, time, order_by, empty)
        if data.isStreaming:
            options = StreamOptions.of(watermark, lateness, emit, late, idle, max_ahead, buckets, plan)
            found = aggregate_stream(data, request, options)
        else:
            _check_batch(emit)
            found = aggregate_frame(data, request, plan)
        return flattened_frame(found) if flatten else found
    _check_batch(emit)
    if plan != "auto":
        raise InvalidArgument(f"plan={plan!r} is for Spark frames; in one process there is only one")
    table = in_known_layouts(arrow_table(data))
    _check_time(time, table, data)
    grouping = grouping_of(by, table.schema)
    table = grouping.with_keys(table)
    made = make_plan(table.schema, windows, aggs, grouping.names, time, order_by, empty)
    schema = output_schema(made)
    if flatten:
        flat_names(schema)
    result = aggregate_table(made, table)
    return like(data, flattened(result) if flatten else result)


def over(
    data: Any,
    windows: Any = None,
    aggs: Any = (),
    by: Any = None,
    time: Any = None,
    order_by: Any = None,
    watermark: Any = None,
    late: str = "drop",
    max_ahead: Any = None,
    buckets: int | None = None,
) -> Any:
    """Every row of ``data`` with the aggregates of its trailing windows; the order of a table's rows is kept.

    >>> import pyarrow as pa, sash
    >>> from sash import functions as S, windows as W
    >>> rows = pa.table({"t": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
    >>> sash.over(rows, windows=W.trailing(4), aggs=[S.sum("cpu").alias("recent")], time="t").column("recent").to_pylist()
    [3, 7, 12, 6]
    """
    _check_stream_options(watermark, None, "final", late, None, max_ahead, buckets)
    if windows is None:
        raise InvalidArgument("windows is missing; give W.trailing(...) or W.trailing_rows(...)")
    if is_spark(data):
        from sash.spark.batch import over_frame
        from sash.spark.frames import keyed
        from sash.spark.requests import Request
        from sash.spark.stream import over_stream
        from sash.spark.watermarks import StreamOptions

        own = data.columns
        data, by = keyed(data, by)
        request = Request(windows, aggs, by, time, order_by, trailing=True)
        if data.isStreaming:
            found = over_stream(data, request, StreamOptions.of(watermark, None, "final", late, None, max_ahead, buckets, "auto"))
        else:
            found = over_frame(data, request)
        return found.drop(*[name for name in data.columns if name not in own])
    given = arrow_table(data)
    table = in_known_layouts(given)
    _check_time(time, table, data)
    grouping = grouping_of(by, table.schema)
    table = grouping.with_keys(table)
    plan = make_plan(table.schema, windows, aggs, grouping.names, time, order_by, trailing=True)
    over_names(plan)
    result = over_table(plan, table)
    new = result.column_names[table.num_columns :]
    for name in new:  # the rows come back as they were given
        given = given.append_column(result.schema.field(name), result.column(name))
    found = like(data, given)
    if library_of(data) == "pandas":
        found.index = data.index  # so that columns can be assigned to the frame
    return found


def _check_time(time: Any, table: pa.Table, data: Any) -> None:
    """A time that is the index of a pandas frame is not among its columns."""
    names = [n for n in getattr(getattr(data, "index", None), "names", None) or [] if n is not None]
    if isinstance(time, str) and time in names and time not in table.column_names:
        raise UnknownName(f"time={time!r} is the index of the frame; windows are measured in a column: use frame.reset_index()")


def _check_batch(emit: str) -> None:
    if emit != "final":
        raise InvalidArgument(f"emit={emit!r} is for streams; a table gives each window once")


def _check_stream_options(watermark: Any, lateness: Any, emit: Any, late: Any, idle: Any, max_ahead: Any, buckets: Any) -> None:
    for name, value in (("watermark", watermark), ("lateness", lateness), ("idle", idle), ("max_ahead", max_ahead)):
        check_duration_option(name, value)
    if emit not in EMITS:
        raise InvalidArgument(f"emit must be one of {', '.join(EMITS)}; not {emit!r}")
    if late not in LATES:
        raise InvalidArgument(f"late must be one of {', '.join(LATES)}; not {late!r}")
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= MOST_BUCKETS):
        raise InvalidArgument(f"buckets must be an integer from 1 to {MOST_BUCKETS:,}, not {buckets!r}")
