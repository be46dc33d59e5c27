"""Rows passed as dictionaries, converted to columns: a value fits its column's type exactly, or is refused."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import InvalidArgument, InvalidType, unknown


def of_dictionaries(rows: list[Any], schema: pa.Schema | None) -> pa.RecordBatch:
    """The rows as a batch with the columns of ``schema``; without one (the first rows), with the columns that they form."""
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidType("add takes Arrow data or a list of dictionaries, one per row")
    names = dict.fromkeys(name for row in rows for name in row)
    if schema is not None:
        if rows:
            check_names(list(names), schema)
        return pa.RecordBatch.from_arrays([_column(f, [row.get(f.name) for row in rows]) for f in schema], schema=schema)
    try:
        return pa.RecordBatch.from_arrays([pa.array([row.get(name) for row in rows]) for name in names], names=list(names))
    except UNFIT as error:
        raise InvalidType(f"the rows do not make columns, each of one type: {error}") from error


def check_names(names: list[str], wanted: pa.Schema) -> None:
    """Raise unless a batch has exactly the columns of the first one."""
    lacking = [n for n in wanted.names if n not in names]
    strange = [n for n in names if n not in wanted.names]
    if lacking and not strange:
        raise unknown("column: the batch lacks", lacking[0], names)
    if strange:
        instead = f"; it lacks {lacking[0]!r}" if lacking else ""
        raise InvalidArgument(f"the batch has the column {strange[0]!r}, which the first one had not{instead}")


UNFIT = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for values that do not fit a type."""


def _column(field: pa.Field, values: list[Any]) -> pa.Array:
    """The values as a column of the field's type; an error names the column."""
    try:
        return _exact(values, field.type)
    except UNFIT as error:
        only_nulls = " (the first batch had only nulls there: begin with one that has the types, even an empty one)"
        hint = only_nulls if pa.types.is_null(field.type) else ""
        raise InvalidType(f"column {field.name!r} is of type {field.type}, and the rows do not fit it: {error}{hint}") from error


def _exact(values: list[Any], wanted: pa.DataType) -> pa.Array:
    """The values as a column of exactly this type: nothing is truncated, parsed from text or reinterpreted to make them fit."""
    t = pa.types
    if t.is_integer(wanted):
        if all(v is None or (isinstance(v, int) and not isinstance(v, bool)) for v in values):
            return pa.array(values, wanted)
        inferred = pa.array(values)
        kind = inferred.type
        if not (t.is_null(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)):
            raise TypeError(f"there are values of type {kind}")
        return inferred.cast(wanted)
    if t.is_temporal(wanted):
        _check_times(values, wanted)
    if t.is_timestamp(wanted) or t.is_duration(wanted):
        return _finest(values, wanted).cast(wanted)  # which refuses to lose anything
    column = pa.array(values, wanted, from_pandas=t.is_temporal(wanted))  # pandas' NaT is null
    if t.is_floating(wanted):
        if any(isinstance(v, bool) for v in values):
            raise TypeError("there are values of type bool")
        if wanted.bit_width < 64 and any(
            not math.isinf(values[k]) for k in np.flatnonzero(np.isinf(column.to_numpy(zero_copy_only=False)))
        ):
            raise OverflowError("a value is too large")
    elif t.is_date(wanted) and any(isinstance(v, datetime.datetime) and column[k].is_valid for k, v in enumerate(values)):
        raise TypeError("there are times among the dates")
    return column


def _check_times(values: list[Any], wanted: pa.DataType) -> None:
    """Raise for numbers, which have no unit as times, and for a time zone where the column has none, or the reverse."""
    for v in values:
        if isinstance(v, int | float) and v == v:
            raise TypeError(f"{v!r} is a number, and has no unit; give a datetime, or make the whole stream measured in integers")
        if isinstance(v, datetime.datetime) and pa.types.is_timestamp(wanted) and v == v and (v.tzinfo is None) is not (wanted.tz is None):
            has, lacks = ("no", "has one") if v.tzinfo is None else ("a", "has none")
            raise TypeError(f"{v.isoformat()} has {has} time zone, and the column {lacks}")


def _finest(values: list[Any], wanted: pa.DataType) -> pa.Array:
    """Times or durations in nanoseconds, or in microseconds if they lie out of that range; Python's own types are no finer."""
    known = [v for v in values if v is not None]
    if known and all(isinstance(v, np.datetime64 | np.timedelta64) for v in known):
        kind = np.promote_types(np.array(known).dtype, np.array(known[:1]).dtype.kind + "8[s]")  # Arrow has no hours or days
        return pa.array(np.array(values, kind), from_pandas=True)
    for unit in ("ns", "us"):
        try:
            return pa.array(values, pa.timestamp(unit, wanted.tz) if pa.types.is_timestamp(wanted) else pa.duration(unit), from_pandas=True)
        except (pa.ArrowInvalid, OverflowError):
            continue
    return pa.array(values, wanted, from_pandas=True)
