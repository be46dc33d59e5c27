"""``round``, ``bround``, ``floor`` and ``ceil``: floats by the digits that they are written with, as Spark rounds them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions import decimals
from sash.expressions.arrays import Array, by_value, from_numbers, numbers, valid
from sash.expressions.casts.numbers import to_integers
from sash.expressions.coercion import (
    DIGITS,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    cast,
    implicit,
    is_decimal,
    is_float,
    is_integer,
    is_number,
    name_of,
)
from sash.expressions.library.arithmetic import OVERFLOW
from sash.expressions.nodes import Constant, Node
from sash.expressions.table import Datum, Function, Typed, definer

define = definer(__name__)


def _number(function: Function, node: Node) -> Node:
    if node.type in (STRING, pa.null()):
        return cast(node, DOUBLE)
    if not is_number(node.type):
        raise InvalidExpression(f"{function.title} takes a number, not {name_of(node.type)}; cast it")
    return node


def _places(function: Function, arguments: list[Node]) -> int | None:
    """The requested number of digits behind the point, which must be a constant."""
    if len(arguments) == 1:
        return 0
    digits = arguments[1]
    if not isinstance(digits, Constant) or not is_integer(digits.type):
        raise InvalidExpression(f"{function.title}: the number of digits must be a whole number constant")
    return None if digits.value.as_py() is None else int(digits.value.as_py())


def _round_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    value, places = _number(function, arguments[0]), _places(function, arguments)
    t = decimals.rounded_type(value.type, places or 0) if is_decimal(value.type) else value.type
    return Typed([value, *[implicit(a, INT32, function.title) for a in arguments[1:]]], t)


def _rounder(even: bool) -> Callable[..., Datum]:
    def arrow(value: Datum, places: Datum | None = None, *, type: pa.DataType) -> Datum:
        digits = 0 if places is None else _one(places)
        if digits is None:
            return pa.nulls(len(value), type)
        if is_decimal(type):
            return decimals.rounded(value, digits, type, decimals.half_even if even else decimals.scaled)
        if is_integer(type):
            return value if digits >= 0 else _rounded_integers(value, digits, even)
        doubles = numbers(value).astype(np.float64)
        return from_numbers(rounded_floats(doubles, digits, even).astype(type.to_pandas_dtype()), valid(value), type)

    return arrow


def _one(places: Datum) -> int | None:
    """The number of digits, the same for all rows; None for null."""
    digits = places.as_py() if isinstance(places, pa.Scalar) else places[0].as_py()
    return None if digits is None else int(digits)


def _rounded_integers(value: pa.Array, digits: int, even: bool) -> pa.Array:
    whole = numbers(value).astype(object if -digits > 17 else np.int64)
    rounded = (decimals.half_even if even else decimals.scaled)(whole, digits).astype(object) * 10**-digits
    limits = np.iinfo(value.type.to_pandas_dtype())
    fits = ((rounded >= int(limits.min)) & (rounded <= int(limits.max))).astype(bool)
    return from_numbers(np.where(fits, rounded, 0).astype(value.type.to_pandas_dtype()), valid(value) & fits, value.type)


def rounded_floats(values: Array, digits: int, even: bool) -> Array:
    """Doubles rounded to so many digits, by the digits that they are written with."""
    result = values + 0.0
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        scale = 10.0 ** abs(digits)
        shifted = np.abs(values) * scale if digits >= 0 else np.abs(values) / scale
        below = np.floor(shifted)
        distance = shifted - below - 0.5
        sure = finite & (shifted < 1e15) & (np.abs(distance) > 1e-4) & (abs(digits) <= 22)
        if digits == 0:
            sure = finite & (shifted < float(1 << 52)) & (distance != 0)
        whole = below + (distance > 0)
        quick = (whole / scale if digits >= 0 else whole * scale) * np.sign(values) + 0.0
    result = np.where(sure, quick, result)
    doubtful = finite & ~sure
    if doubtful.any():
        mode = ROUND_HALF_EVEN if even else ROUND_HALF_UP
        context, unit = Context(prec=800, rounding=mode), Decimal(1).scaleb(-digits)
        exact = by_value(lambda v: float(context.quantize(Decimal(repr(v)), unit)) + 0.0, DOUBLE, pa.array(values[doubtful]))
        result[doubtful] = exact.to_numpy()
    return result


define("round", (1, 2), _round_typing, _rounder(even=False), undefined=OVERFLOW)
define("bround", (1, 2), _round_typing, _rounder(even=True), undefined=OVERFLOW)


def _whole_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    """64-bit integers of floats, decimals of decimals; with a second argument always decimals."""
    places = _places(function, arguments)
    if len(arguments) == 2 and arguments[0].type in (STRING, pa.null()):
        value = cast(arguments[0], pa.decimal128(38, 18))
    else:
        value = _number(function, arguments[0])
    if len(arguments) == 1:
        if is_decimal(value.type):
            t = value.type
            return Typed([value], pa.decimal128(min(38, t.precision - t.scale + (t.scale > 0)) or 1, 0))
        return Typed([cast(value, INT64) if is_integer(value.type) else value], INT64)
    if places is None:
        raise InvalidExpression(f"{function.title}: the number of digits must not be null")
    t = value.type
    wide = (
        pa.decimal128(14, 7)
        if t == FLOAT
        else pa.decimal128(30, 15)
        if t == DOUBLE
        else t
        if is_decimal(t)
        else pa.decimal128(DIGITS[t.bit_width], 0)
    )
    return Typed([cast(value, wide), cast(arguments[1], INT32)], decimals.rounded_type(wide, places))


def _whole(up: bool) -> Callable[..., Datum]:
    rounding = decimals.ceiled if up else decimals.floored

    def arrow(value: Datum, places: Datum | None = None, *, type: pa.DataType) -> Datum:
        if is_decimal(type):
            digits = 0 if places is None else _one(places) or 0
            return decimals.rounded(value, digits, type, rounding)
        if not is_float(value.type):
            return value
        floats = np.nan_to_num(numbers(value).astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)  # Java's NaN is 0 as an integer
        whole = np.ceil(floats) if up else np.floor(floats)
        return to_integers(whole, valid(value) & (whole < float(1 << 63)), INT64)

    return arrow


define("floor", (1, 2), _whole_typing, _whole(up=False), undefined=OVERFLOW)
define("ceil", (1, 2), _whole_typing, _whole(up=True), "ceiling", undefined=OVERFLOW)
