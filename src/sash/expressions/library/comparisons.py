"""Comparisons: NaN equals NaN and is larger than any number; text beside a number is parsed as one."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression
from sash.expressions.arrays import spread
from sash.expressions.coercion import (
    BOOL,
    DOUBLE,
    MONTHS,
    NULL,
    cast,
    common,
    implicit,
    is_decimal,
    is_float,
    is_integer,
    name_of,
    narrowest_decimal,
)
from sash.expressions.nodes import Node
from sash.expressions.table import Datum, Function, Typed, alike, anything, definer

define = definer(__name__)


def pair(function: Function, arguments: list[Node], zone: str) -> Typed:
    """Two values to be compared, cast to their common type."""
    a, b = arguments
    for x, y in ((a, b), (b, a)):
        if is_decimal(x.type) and is_integer(y.type):  # a literal has no more digits than it needs
            y_decimal = cast(y, narrowest_decimal(y))
            a, b = (x, y_decimal) if x is a else (y_decimal, x)
            break
    both = common([a, b], function.title)
    if pa.types.is_map(both[0].type) or both[0].type == MONTHS:
        raise InvalidExpression(f"{function.title} cannot compare values of type {name_of(both[0].type)}")
    return Typed(both, BOOL)


def _nan(value: Datum) -> Datum:
    return pc.is_nan(value)


def equal(a: Datum, b: Datum) -> Datum:
    """Whether values are equal; null where either is null."""
    if a.type == NULL:
        return pa.nulls(len(spread(a, b)[0]), BOOL)
    if pa.types.is_nested(a.type):
        x, y = spread(a, b)
        return pa.array([None if p is None or q is None else p == q for p, q in zip(x.to_pylist(), y.to_pylist(), strict=True)], BOOL)
    result = pc.equal(a, b)
    return pc.or_(result, pc.and_(_nan(a), _nan(b))) if is_float(a.type) else result


def less(a: Datum, b: Datum) -> Datum:
    """Whether ``a`` sorts before ``b``; null where either is null."""
    if a.type == NULL:
        return pa.nulls(len(spread(a, b)[0]), BOOL)
    result = pc.less(a, b)
    return pc.or_(result, pc.and_(pc.invert(_nan(a)), _nan(b))) if is_float(a.type) else result


def _null_safe(a: Datum, b: Datum, *, type: pa.DataType = BOOL) -> Datum:
    both = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.or_(both, pc.fill_null(equal(a, b), False))


def _of_larger(a: Datum, b: Datum) -> Datum:
    return pc.if_else(pc.fill_null(less(a, b), pc.is_null(a)), b, a)


def _of_smaller(a: Datum, b: Datum) -> Datum:
    return pc.if_else(pc.fill_null(less(b, a), pc.is_null(a)), b, a)


define("=", 2, pair, lambda a, b, *, type: equal(a, b), "==")
define("<>", 2, pair, lambda a, b, *, type: pc.invert(equal(a, b)), "!=")
define("<", 2, pair, lambda a, b, *, type: less(a, b))
define(">", 2, pair, lambda a, b, *, type: less(b, a))
define("<=", 2, pair, lambda a, b, *, type: pc.invert(less(b, a)))
define(">=", 2, pair, lambda a, b, *, type: pc.invert(less(a, b)))
define("<=>", 2, pair, _null_safe, "equal_null", keeps_nulls=True)
define("greatest", (2, 255), alike(reads_text=False), lambda *values, type: reduce(_of_larger, spread(*values)), keeps_nulls=True)
define("least", (2, 255), alike(reads_text=False), lambda *values, type: reduce(_of_smaller, spread(*values)), keeps_nulls=True)


# Null and NaN.


def _is_nan(value: Datum, *, type: pa.DataType) -> Datum:
    return pc.fill_null(pc.is_nan(value), False)


def _nan_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    (value,) = arguments
    return Typed([value if is_float(value.type) else implicit(value, DOUBLE, function.title)], BOOL)


define("isnull", 1, anything(BOOL), lambda v, *, type: pc.is_null(v), "is_null", keeps_nulls=True)
define("isnotnull", 1, anything(BOOL), lambda v, *, type: pc.is_valid(v), "is_not_null", keeps_nulls=True)
define("isnan", 1, _nan_typing, _is_nan, "is_nan", keeps_nulls=True)
