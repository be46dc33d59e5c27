"""Column types between Spark and Arrow, converted as Spark itself does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from sash.errors import InvalidType

_SIMPLE: list[tuple[Any, pa.DataType]] = [
    (T.BooleanType, pa.bool_()),
    (T.ByteType, pa.int8()),
    (T.ShortType, pa.int16()),
    (T.IntegerType, pa.int32()),
    (T.LongType, pa.int64()),
    (T.FloatType, pa.float32()),
    (T.DoubleType, pa.float64()),
    (T.StringType, pa.string()),
    (T.BinaryType, pa.binary()),
    (T.DateType, pa.date32()),
    (T.TimestampType, pa.timestamp("us", "UTC")),
    (T.TimestampNTZType, pa.timestamp("us")),
    (T.DayTimeIntervalType, pa.duration("us")),
    (T.NullType, pa.null()),
]


def to_arrow(t: Any) -> pa.DataType | None:
    """A Spark type as Arrow's; None if Arrow has none that Sash reads."""
    if isinstance(t, T.StringType) and getattr(t, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return None  # equal and smaller mean something else there
    if isinstance(t, T.DecimalType):
        return pa.decimal128(t.precision, t.scale)
    if isinstance(t, T.StructType):
        fields = [(f.name, to_arrow(f.dataType)) for f in t.fields]
        return None if any(inner is None for _, inner in fields) else pa.struct(fields)
    if isinstance(t, T.ArrayType):
        element = to_arrow(t.elementType)
        return None if element is None or pa.types.is_null(element) else pa.list_(pa.field("element", element))
    return next((arrow for kind, arrow in _SIMPLE if isinstance(t, kind)), None)


def to_spark(t: pa.DataType, name: str) -> Any:
    """An Arrow type as Spark's."""
    if pa.types.is_decimal(t):
        return T.DecimalType(t.precision, t.scale)
    if pa.types.is_struct(t):
        return T.StructType([T.StructField(f.name, to_spark(f.type, f"{name}.{f.name}")) for f in t])
    if pa.types.is_list(t):
        return T.ArrayType(to_spark(t.value_type, name))
    for kind, arrow in _SIMPLE:
        if t == arrow:
            return kind()
    if pa.types.is_timestamp(t):
        return T.TimestampNTZType() if t.tz is None else T.TimestampType()
    raise InvalidType(f"the result's column {name!r} would be of type {t}, which Spark does not have")


def arrow_schema(schema: Any) -> pa.Schema:
    """A frame's columns; those of a type that Sash cannot read are there as nulls, and refused where they are used."""
    return pa.schema([pa.field(f.name, _or_opaque(f.dataType)) for f in schema.fields])


def _or_opaque(t: Any) -> pa.DataType:
    arrow = to_arrow(t)
    return OPAQUE if arrow is None else arrow


OPAQUE = pa.month_day_nano_interval()
"""Stands for a type that Sash cannot read: no aggregate takes it."""


def is_uncarried(t: Any) -> bool:
    """Whether Spark itself does not send a type to Python workers in Arrow."""
    if isinstance(t, T.StructType):
        return any(is_uncarried(f.dataType) for f in t.fields) or len({f.name for f in t.fields}) < len(t.fields)
    if isinstance(t, T.ArrayType):
        return isinstance(t.elementType, T.NullType) or is_uncarried(t.elementType)
    if isinstance(t, T.MapType):
        return is_uncarried(t.keyType) or is_uncarried(t.valueType)
    return isinstance(t, T.YearMonthIntervalType | T.CalendarIntervalType)


def spark_schema(schema: pa.Schema) -> Any:
    """Arrow columns as a Spark schema."""
    return T.StructType([T.StructField(f.name, to_spark(f.type, f.name)) for f in schema])
