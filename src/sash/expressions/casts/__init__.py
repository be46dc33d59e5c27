"""Casts among all types, with Spark's meaning in ANSI mode.

:func:`attempt` returns null where a value cannot be cast, as ``try_cast`` does; ``cast`` raises there.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions.casts import numbers, text, times
from sash.expressions.coercion import BINARY, BOOL, DATE, DURATION, MONTHS, NULL, STRING, is_number, is_time, is_zoned, name_of

Cast = Callable[[pa.Array, pa.DataType], pa.Array]
"""Casts an array to a type."""


def check(source: pa.DataType, target: pa.DataType) -> None:
    """Raise unless there is a cast between two types."""
    if source in (target, NULL):
        return
    if _cast(source, target) is None:
        raise InvalidExpression(f"there is no cast from {name_of(source)} to {name_of(target)}")


def attempt(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Values in another type; null where a value cannot be cast."""
    source = value.type
    if source == target:
        return value
    if source == NULL:
        return pa.nulls(len(value), target)
    cast = _cast(source, target)
    assert cast is not None, (source, target)
    return cast(value, target)


def _cast(source: pa.DataType, target: pa.DataType) -> Cast | None:
    """The function that casts arrays from one type to another; None if there is none."""
    if target == STRING:
        return text.to_text if _has_text(source) else None
    if source == STRING:
        if target == BINARY:
            return lambda v, t: v.cast(t)
        if target == BOOL:
            return text.read_boolean
        if is_number(target):
            return text.read_number
        return text.read_time if is_time(target) else None
    if source == BOOL or target == BOOL:
        return numbers.boolean if is_number(source) or is_number(target) else None
    if is_number(source) and is_number(target):
        return numbers.number
    if is_number(source):
        return times.from_number if is_zoned(target) else None
    if is_number(target):
        return times.to_number if pa.types.is_timestamp(source) else None  # one without a zone is taken as UTC; Spark refuses it
    if is_time(source) and is_time(target):
        return times.between
    if pa.types.is_struct(source) and pa.types.is_struct(target) and [f.name for f in source] == [f.name for f in target]:
        return _fields if all(_cast(a.type, b.type) is not None or a.type == b.type for a, b in zip(source, target, strict=True)) else None
    return None


def _has_text(t: pa.DataType) -> bool:
    """Whether values of a type can be cast to text."""
    return t in (BOOL, BINARY, DATE) or is_number(t) or (is_time(t) and t not in (DURATION, MONTHS))


def _fields(value: pa.Array, target: pa.DataType) -> pa.Array:
    children = [attempt(child, f.type) for child, f in zip(value.flatten(), target, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=value.is_null())
