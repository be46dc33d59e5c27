"""Spark frames: classic or Connect, computed keys, and metadata of columns."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from sash.plan.grouping import grouping_of
from sash.plan.request import Request
from sash.slicing.batch.results import flat_names, is_window
from sash.spark.language.spark_types import arrow_schema
from sash.spark.language.sql import quoted

QUERY = "sash.query"
"""Metadata of a result's column: the query that it is a result of."""
TIME_WINDOW = {"spark.timeWindow": True}
"""Tells Spark's own ``window`` and ``window_time`` that a column is a window."""


def is_connect(thing: Any) -> bool:
    """Whether a session or a frame is Spark Connect's."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(thing).__mro__)


def functions_for(frame: Any) -> Any:
    """``pyspark.sql.functions`` of the frame's own kind: a process may have both."""
    return import_module("pyspark.sql.connect.functions" if is_connect(frame) else "pyspark.sql.functions")


def selected(frame: Any, columns: list[tuple[str, str]]) -> Any:
    """Columns by their SQL and their names, in one call of the JVM unless Spark would take a name for a variable."""
    if any("${" in name for _, name in columns):
        F = functions_for(frame)
        return frame.select(*[F.expr(expression).alias(name) for expression, name in columns])
    return frame.selectExpr(*[f"{expression} as {quoted(name)}" for expression, name in columns])


def with_metadata(frame: Any, name: str, metadata: dict[str, Any]) -> Any:
    """The frame, with metadata for Spark on the column of this name."""
    if name.isidentifier():
        return frame.withMetadata(name, metadata)  # one call of the JVM instead of several for each column
    F = functions_for(frame)

    def column(n: str) -> Any:
        return F.col(quoted(n))

    return frame.select(*[column(n).alias(n, metadata=metadata) if n == name else column(n) for n in frame.columns])


def with_key_columns(frame: Any, request: Request) -> tuple[Any, Request]:
    """The frame with computed keys as columns of their own, and the request over those columns."""
    grouping = grouping_of(request.by, arrow_schema(frame.schema))
    if grouping.computed:
        frame = frame.selectExpr("*", *[f"{e.spark_sql()} as {quoted(name)}" for name, e in grouping.computed.items()])
    return frame, request.over_keys(grouping.names)


def flattened_frame(frame: Any) -> Any:
    """The result with the ends of a window as columns instead of a struct."""
    F = functions_for(frame)
    schema: pa.Schema = arrow_schema(frame.schema)
    flat_names(schema)
    columns = []
    for field in schema:
        if is_window(field):
            query = {n: v for n, v in (frame.schema[field.name].metadata or {}).items() if n == QUERY}
            ends = [F.col(f"{quoted(field.name)}.{end}").alias(f"{field.name}_{end}", metadata=query) for end in ("start", "end")]
            columns += ends
        else:
            columns.append(F.col(quoted(field.name)))
    return frame.select(*columns)
