"""``sash.aggregate`` and ``sash.over``: windows over a whole table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.columns import without_views
from sash.errors import InvalidArgument, InvalidType
from sash.plan.logical import make_plan
from sash.plan.options import EMITS, LATES, check_duration_option
from sash.plan.streams import MOST_BUCKETS
from sash.slicing.batch import aggregate_table
from sash.slicing.results import output_schema
from sash.slicing.trailing import over_names, over_table


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
) -> Any:
    """The aggregates of every window of ``windows`` (one spec, or a dictionary of them) that holds a row.

    ``data`` is a Spark frame, and then so is the result, which runs with an action; or anything that speaks the Arrow PyCapsule
    interface (pyarrow, pandas, polars, DuckDB), and the result is a :class:`pyarrow.Table`. A batch is all there, so nothing in it is
    late: ``watermark``, ``lateness`` and ``idle`` have no effect. ``plan`` is for Spark frames: which way to go, where you know more
    about the rows than their schema says ("rows" where a key has about one row in a slice).

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
        from sash.spark.requests import Request
        from sash.spark.stream import aggregate_stream
        from sash.spark.watermarks import StreamOptions

        request = Request(windows, aggs, by, time, order_by, empty)
        if data.isStreaming:
            return aggregate_stream(data, request, StreamOptions.of(watermark, lateness, emit, late, idle, max_ahead, buckets, plan))
        _check_batch(emit)
        return aggregate_frame(data, request, plan)
    _check_batch(emit)
    if plan != "auto":
        raise InvalidArgument(f"plan={plan!r} is for Spark frames; in one process there is only one")
    table = to_table(data)
    made = make_plan(table.schema, windows, aggs, by, time, order_by, empty)
    output_schema(made)
    return aggregate_table(made, table)


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
        from sash.spark.requests import Request
        from sash.spark.stream import over_stream
        from sash.spark.watermarks import StreamOptions

        request = Request(windows, aggs, by, time, order_by, trailing=True)
        if data.isStreaming:
            return over_stream(data, request, StreamOptions.of(watermark, None, "final", late, None, max_ahead, buckets, "auto"))
        return over_frame(data, request)
    table = to_table(data)
    plan = make_plan(table.schema, windows, aggs, by, time, order_by, trailing=True)
    over_names(plan)
    return over_table(plan, table)


def is_spark(data: Any) -> bool:
    """Whether data is a Spark frame, classic or Connect; Spark is not imported to find out."""
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(data).__mro__)


def to_table(data: Any) -> pa.Table:
    """Whatever speaks Arrow as a table."""
    return without_views(_arrow(data))


def _arrow(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if hasattr(data, "to_arrow_table"):  # DuckDB relations of older versions
        return data.to_arrow_table()
    if isinstance(data, dict):
        return pa.table(data)
    raise InvalidType(
        f"data must speak Arrow (a pyarrow Table, a pandas or polars frame, a DuckDB relation), not {type(data).__qualname__}"
    )


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
