"""``sash.sql``: a query as text over tables or Spark frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from sash.api.frames import arrow_table, is_spark, like
from sash.columns import in_known_layouts
from sash.cql.binder import plan_query
from sash.errors import InvalidArgument, InvalidQuery, InvalidType, unknown
from sash.plan.options import Emit, Late, StreamOptions, check_choice
from sash.plan.queries.relations import Query
from sash.plan.queries.rewrites import rewritten
from sash.relational.table_run import TableRun
from sash.types import DurationLike

EngineName = Literal["auto", "table", "spark"]
ENGINES: tuple[EngineName, ...] = ("auto", "table", "spark")


def sql(
    text: str,
    *,
    streams: Mapping[str, Any] | None = None,
    time: str = "timestamp",
    order_by: str | Sequence[str] | None = None,
    watermark: DurationLike | None = None,
    lateness: DurationLike | None = None,
    emit: Emit = "final",
    late: Late = "drop",
    functions: Mapping[str, Any] | None = None,
    engine: EngineName = "auto",
    **named: Any,
) -> Any:
    """The results of a query as text, in CQL: SQL over windows of streams (docs/cql.md).

    Args:
        text: The query, or a script with `create stream NAME as ...;` before it. Text is parsed, never evaluated.
        streams: The streams by name, where a name would collide with an argument.
        time: The streams' time column.
        order_by: Columns that order rows of the same time.
        watermark: On a Spark stream, how far event time may lag behind the newest row.
        lateness: On a Spark stream, how much longer a row may still change results.
        emit: On a Spark stream, `"final"`, `"update"` or `"running"`, as for `sash.aggregate`.
        late: On Spark only `"drop"`.
        functions: Users' own aggregates and window functions by name.
        engine: `"auto"` picks the engine by the data.
        **named: The streams by name: Spark frames, or tables (pyarrow, pandas, polars, DuckDB).

    Returns:
        A frame of the kind of the streams: window by window, by end, then start.

    Examples:
        >>> import pyarrow as pa, sash
        >>> rows = pa.table({"timestamp": [1, 2, 5, 12], "cpu": [3, 4, 5, 6]})
        >>> out = sash.sql("select timestamp, sum(cpu) as total from S [range 10 slide 5]", S=rows)
        >>> out.to_pylist()[:2]
        [{'timestamp': 4, 'total': 7}, {'timestamp': 9, 'total': 12}]
    """
    given = streams_of(streams, named)
    options = StreamOptions.of(watermark=watermark, lateness=lateness, emit=emit, late=late)
    on_spark = check_engine(given, engine)
    if on_spark:
        return _on_spark(text, given, time, order_by, functions, options)
    if options.emit != "final":
        raise InvalidArgument(f"emit={options.emit!r} is for streams; over tables each window is reported once")
    tables = given_tables(given)
    plan = rewritten(planned(text, {n: t.schema for n, t in tables.items()}, time, functions))
    known = {name: in_known_layouts(table) for name, table in tables.items()}
    result = TableRun(known, ordering(order_by, [t.schema for t in tables.values()])).output(plan).table
    return like(next(iter(given.values())), result)


def _on_spark(text: str, frames: Mapping[str, Any], time: str, order_by: Any, functions: Any, options: StreamOptions) -> Any:
    """The results of a query over Spark frames, as a frame."""
    from sash.spark.queries.query_frames import FrameRun
    from sash.spark.queries.query_streams import query_stream

    plan, order = planned_over_frames(text, frames, time=time, order_by=order_by, functions=functions)
    if any(frame.isStreaming for frame in frames.values()):
        return query_stream(plan, frames, options, order)
    if options.emit != "final":
        raise InvalidArgument(f"emit={options.emit!r} is for streams; a batch reports each window once")
    return FrameRun(frames, order).frame(plan)


def planned_over_frames(text: str, frames: Mapping[str, Any], *, time: str, order_by: Any, functions: Any) -> tuple[Query, tuple[str, ...]]:
    """The checked plan of a query over Spark frames, and the columns that order rows of one time."""
    from sash.spark.language.spark_types import arrow_schema

    schemas = {name: arrow_schema(frame.schema) for name, frame in frames.items()}
    return rewritten(planned(text, schemas, time, functions)), ordering(order_by, list(schemas.values()))


def streams_of(streams: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
    """The streams that were passed, by name."""
    if streams is not None and not isinstance(streams, Mapping):
        raise InvalidArgument(f"streams must be a dictionary of tables by name, not {streams!r}")
    for name in streams or {}:
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"streams has the name {name!r}; names are text")
        if name in named:
            raise InvalidArgument(f"the stream {name!r} is passed twice")
    given = {**(streams or {}), **named}
    folded: dict[str, str] = {}
    for name in given:
        if folded.setdefault(name.lower(), name) != name:
            raise InvalidArgument(f"streams {folded[name.lower()]!r} and {name!r} differ only in case, which queries ignore")
    if not given:
        raise InvalidArgument("no stream was passed; pass each by its name in the query: sash.sql(text, S=table)")
    return given


def given_tables(streams: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The streams as tables."""
    tables = {}
    for name, data in streams.items():
        try:
            tables[name] = arrow_table(data)
        except InvalidType as error:
            raise InvalidType(f"the stream {name!r}: {error}") from error
    return tables


def check_engine(streams: Mapping[str, Any], engine: str) -> bool:
    """Whether the query runs on Spark; raises where engine and streams do not fit."""
    check_choice("engine", engine, ENGINES)
    kinds = {name: is_spark(data) for name, data in streams.items()}
    if len(set(kinds.values())) > 1:
        spark, table = (next(n for n, k in kinds.items() if k is kind) for kind in (True, False))
        raise InvalidType(f"{spark!r} is a Spark frame and {table!r} is not; all streams of a query are of one kind")
    on_spark = next(iter(kinds.values()))
    if engine == "spark" and not on_spark:
        raise InvalidArgument("engine='spark' needs Spark frames; make them with spark.createDataFrame")
    if engine == "table" and on_spark:
        raise InvalidArgument("engine='table' needs tables; collect the frames with .toArrow()")
    return on_spark


def planned(text: Any, schemas: Mapping[str, pa.Schema], time: Any, functions: Mapping[str, Any] | None) -> Query:
    """The checked plan of a query."""
    if not isinstance(text, str):
        raise InvalidQuery(f"a query is text, not {text!r}")
    if not isinstance(time, str):
        raise InvalidArgument(f"time must be the name of the streams' time column, not {time!r}")
    if functions is not None and not isinstance(functions, Mapping):
        raise InvalidArgument(f"functions must be a dictionary of aggregates and window functions by name, not {functions!r}")
    return plan_query(text, schemas, time, functions)


def ordering(order_by: Any, schemas: Sequence[pa.Schema]) -> tuple[str, ...]:
    """The columns that order rows of one time."""
    names = () if order_by is None else (order_by,) if isinstance(order_by, str) else tuple(order_by)
    known = {n for schema in schemas for n in schema.names}
    for name in names:
        if name not in known:
            raise unknown("column in order_by", name, known)
    return names
