"""``+ - * / % div``, signs, and their ``try_`` forms: over integers, floats, decimals, and times with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression
from sash.expressions import decimals
from sash.expressions.arrays import Array, all_valid, from_numbers, numbers, spread
from sash.expressions.casts.numbers import saturated
from sash.expressions.coercion import (
    DATE,
    DOUBLE,
    DURATION,
    INT32,
    INT64,
    MONTHS,
    NTZ,
    NULL,
    STRING,
    cast,
    common,
    implicit,
    is_decimal,
    is_float,
    is_integer,
    is_number,
    is_time,
    is_zoned,
    name_of,
    narrowest_decimal,
    timestamp,
)
from sash.expressions.nodes import Cast, Node
from sash.expressions.table import Datum, Function, Typed, Typing, definer, numeric
from sash.expressions.zones import DAY, to_instants, to_local

define = definer(__name__)

OVERFLOW = "the result does not fit into its type; cast an argument to a wider one, or use the try_ form"
BY_ZERO = "division by zero; guard it, e.g. `case when d <> 0 then n / d end`, or use the try_ form"
DecimalType = Callable[[pa.DataType, pa.DataType], pa.DataType]


def numbers_typing(decimal_type: DecimalType, *, as_double: bool = False, whole: bool = False) -> Typing:
    """Two numbers: decimals keep their own types, others get the one that they have in common."""

    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        a, b = arguments
        if a.type == NULL and b.type == NULL:
            a = b = cast(a, DOUBLE if not whole else INT64)
        elif NULL in (a.type, b.type):
            a, b = (cast(a, b.type), b) if a.type == NULL else (a, cast(b, a.type))
            if as_double and is_decimal(a.type) and arguments[0].type == NULL:  # Spark has null / decimal as a double
                a, b = cast(a, DOUBLE), cast(b, DOUBLE)
        for x in (a, b):
            if (not is_number(x.type) and x.type != STRING) or a.type == b.type == STRING:
                raise InvalidExpression(f"{function.title} takes numbers, not {name_of(a.type)} and {name_of(b.type)}; cast them")
        if (is_decimal(a.type) or is_decimal(b.type)) and not any(is_float(x.type) or x.type == STRING for x in (a, b)):
            left, right = narrowest_decimal(a), narrowest_decimal(b)
            return Typed([cast(a, left), cast(b, right)], INT64 if whole else decimal_type(left, right))
        left_node, right_node = common([a, b], function.title)
        t = left_node.type
        if whole and not is_integer(t):
            raise InvalidExpression(f"{function.title} takes whole numbers, not {name_of(t)}; use / and floor")
        if as_double or whole:
            t = DOUBLE if as_double else INT64
            left_node, right_node = implicit(left_node, t, function.title), implicit(right_node, t, function.title)
        return Typed([left_node, right_node], t)

    return typing


def by_kind(of_integers: Callable[..., Datum], of_floats: Callable[..., Datum], of_decimals: Callable[..., Datum]) -> Callable[..., Datum]:
    """One operation for each kind of number."""

    def compute(a: Datum, b: Datum, *, type: pa.DataType) -> Datum:
        if is_decimal(a.type):
            return of_decimals(a, b, type=type)
        return of_floats(a, b) if is_float(a.type) else of_integers(a, b)

    return compute


def checked(quick: Callable[..., Datum], careful: Callable[[Array, Array], tuple[Array, Array]]) -> Callable[..., Datum]:
    """An operation on integers: Arrow's own; where a result does not fit, the careful one, null there."""

    def compute(a: Datum, b: Datum) -> Datum:
        try:
            return quick(a, b)
        except pa.ArrowInvalid:
            known = all_valid(a, b)
            values, fits = careful(*(numbers(v) for v in spread(a, b)))
            return from_numbers(np.where(fits, values, 0), known & fits, a.type)

    return compute


def _wide(operation: Callable[[Array, Array], Array]) -> Callable[[Array, Array], tuple[Array, Array]]:
    """An operation computed in Python's integers: the results, and which of them fit into the type."""

    def compute(a: Array, b: Array) -> tuple[Array, Array]:
        exact = operation(a.astype(object), b.astype(object))
        limits = np.iinfo(a.dtype)
        fits = ((exact >= int(limits.min)) & (exact <= int(limits.max))).astype(bool)
        return np.where(fits, exact, 0).astype(a.dtype), fits

    return compute


_add = checked(pc.add_checked, _wide(np.add))
_subtract = checked(pc.subtract_checked, _wide(np.subtract))
_multiply = checked(pc.multiply_checked, _wide(np.multiply))


def _nonzero(value: Datum) -> Datum:
    """Null instead of zero, so that a quotient is null there."""
    zero = pa.scalar(0, value.type)
    return pc.if_else(pc.equal(value, zero), pa.scalar(None, value.type), value)


def _divide(a: Datum, b: Datum) -> Datum:
    return pc.divide(a, _nonzero(b))


def _whole_quotient(a: Datum, b: Datum) -> Datum:
    smallest, minus_one = pa.scalar(-(1 << 63), INT64), pa.scalar(-1, INT64)
    fits = pc.invert(pc.and_(pc.equal(a, smallest), pc.equal(b, minus_one)))
    safe = pc.if_else(pc.fill_null(fits, True), _nonzero(b), pa.scalar(None, INT64))
    return pc.divide(a, safe)


def _remainder(a: Datum, b: Datum) -> Datum:
    """With the sign of the dividend; everything is a multiple of -1, also the smallest integer."""
    if isinstance(b, pa.Scalar) and isinstance(a, pa.Array) and not a.null_count and (b.as_py() or 0) > 0:
        return _remainder_of_constant(a, b.as_py())
    one = pa.scalar(1, b.type)
    divisor = pc.if_else(pc.equal(b, pa.scalar(-1, b.type)), one, _nonzero(b))
    return pc.subtract(a, pc.multiply(pc.divide(a, divisor), divisor))


def _remainder_of_constant(a: pa.Array, divisor: int) -> pa.Array:
    """By a positive constant: NumPy divides by multiplying, several times as fast as Arrow."""
    x = a.to_numpy()
    rest = np.floor_divide(x, divisor)
    rest *= divisor  # in place: fresh memory costs as much as the division
    np.subtract(x, rest, out=rest)
    if len(x) and x.min() < 0:
        rest -= divisor * ((x < 0) & (rest != 0)).astype(x.dtype)
    return pa.array(rest, a.type)


def _float_remainder(a: Datum, b: Datum) -> Datum:
    known = all_valid(a, b)
    x, y = (numbers(v) for v in spread(a, b))
    defined = y != 0
    with np.errstate(invalid="ignore"):
        return from_numbers(np.fmod(x, np.where(defined, y, 1)), known & defined, a.type)


def _positive_remainder(a: Datum, b: Datum, *, type: pa.DataType) -> Datum:
    """``pmod``: a remainder that is negative gets the divisor added, and its remainder is taken again."""
    if is_decimal(type):
        return decimals.positive_remainder(a, b, type=type)
    first = _mod(a, b, type=type)
    return pc.if_else(pc.less(first, pa.scalar(0, first.type)), _mod(pc.add(first, b), b, type=type), first)


_plus = by_kind(_add, pc.add, decimals.add)
_minus = by_kind(_subtract, pc.subtract, decimals.subtract)
_times = by_kind(_multiply, pc.multiply, decimals.multiply)
_over = by_kind(_divide, _divide, decimals.divide)
_mod = by_kind(_remainder, _float_remainder, decimals.remainder)
_div = by_kind(_whole_quotient, _divide, decimals.whole_quotient)


# Times and intervals.


def add_months(days: Array, months: Array) -> Array:
    """Dates so many months later; the last day of a month stays within its month."""
    day = days.astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    within = (day - month.astype("datetime64[D]")).astype(np.int64)
    target = month + months.astype("timedelta64[M]")
    last = ((target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(np.int64) - 1
    return np.asarray(target.astype("datetime64[D]").astype(np.int64) + np.minimum(within, last))


def _months_of(value: Datum) -> Array:
    return np.array([0 if v is None else v.months for v in value.to_pylist()], np.int64)


def _shifted(time: Datum, by: Datum, sign: int, t: pa.DataType) -> pa.Array:
    """A time some interval or days later, or earlier."""
    known = all_valid(time, by)
    times, steps = spread(time, by)
    ticks = numbers(times).astype(np.int64)
    if by.type == MONTHS:
        if t == DATE:
            return from_numbers(add_months(ticks, sign * _months_of(steps)), known, t)
        local = to_local(ticks, t.tz) if is_zoned(t) else ticks
        moved = add_months(local // DAY, sign * _months_of(steps)) * DAY + local % DAY
        return from_numbers(to_instants(moved, t.tz) if is_zoned(t) else moved, known, t)
    amount = sign * numbers(steps).astype(np.int64)
    moved = ticks + amount
    fits = (moved >= ticks) == (amount >= 0)
    if t == DATE:
        fits &= (moved >= -(1 << 31)) & (moved < 1 << 31)
    elif is_zoned(t):  # whole days go by the calendar
        days, rest = np.fix(amount / DAY).astype(np.int64), np.fmod(amount, DAY)
        moved = to_instants(to_local(ticks, t.tz) + days * DAY, t.tz) + rest
    return from_numbers(moved, known & fits, t)


def _with_times(symbol: str, typing: Typing) -> Typing:
    """An operator's types where an argument is a time or an interval."""

    def choose(function: Function, arguments: list[Node], zone: str) -> Typed:
        a, b = arguments
        if symbol == "+" and is_time(b.type) and not is_time(a.type):
            a, b = b, a
        if symbol in "+-" and NULL in (a.type, b.type) and (is_time(a.type) or is_time(b.type)):
            a, b = (a, cast(b, DURATION if symbol == "+" else a.type)) if b.type == NULL else (cast(a, b.type), b)
        if symbol in "+-" and is_time(a.type) and b.type in (DURATION, MONTHS):
            if a.type == DATE and b.type == DURATION:
                a = cast(a, timestamp(zone))
            return Typed([a, b], a.type)
        if symbol in "+-" and a.type == DATE and is_integer(b.type) and b.type != INT64:
            return Typed([a, cast(b, INT32)], DATE)
        if symbol == "-" and is_time(a.type) and (is_time(b.type) or b.type == STRING):
            if a.type == b.type == DATE:
                return Typed([a, b], DURATION)
            t = timestamp(zone) if is_zoned(a.type) or is_zoned(b.type) else NTZ
            return Typed([cast(a, t), cast(b, t)], DURATION)
        if a.type == b.type == DURATION and symbol in "+-":
            return Typed([a, b], DURATION)
        if DURATION in (a.type, b.type) and symbol in "*/":
            if symbol == "*" and b.type == DURATION:
                a, b = b, a
            if a.type == DURATION and is_number(b.type):
                return Typed([a, b if is_integer(b.type) else cast(b, DOUBLE)], DURATION)
        return typing(function, arguments, zone)

    return choose


FAR_OFF = 2.0**60
"""A sum that is further than this from that of its doubles has wrapped around."""


def _timed(symbol: str, compute: Callable[..., Datum]) -> Callable[..., Datum]:
    def arrow(a: Datum, b: Datum, *, type: pa.DataType) -> Datum:
        if is_time(type):
            return _shifted(a, b, 1 if symbol == "+" else -1, type)
        if type != DURATION:
            return compute(a, b, type=type)
        known = all_valid(a, b)
        x, y = (numbers(v).astype(np.int64) if not is_float(v.type) else numbers(v) for v in spread(a, b))
        if symbol in "*/":
            return from_numbers(*_scaled_duration(x, y, symbol, known), DURATION)
        unit = DAY if a.type == DATE else 1
        exact = (x - y if symbol == "-" else x + y) * unit
        near = x.astype(np.float64) + (-1.0 if symbol == "-" else 1.0) * y
        return from_numbers(exact, known & (np.abs(near * unit - exact) < FAR_OFF), DURATION)

    return arrow


def _scaled_duration(x: Array, y: Array, symbol: str, known: Array) -> tuple[Array, Array]:
    defined = (y != 0) if symbol == "/" else np.ones(len(y), bool)
    divisor = np.where(defined, y, 1)
    if y.dtype.kind != "f":
        if symbol == "*":
            exact = x.astype(object) * y.astype(object)
            fits = ((exact >= -(1 << 63)) & (exact < 1 << 63)).astype(bool)
            return np.where(fits, exact, 0).astype(np.int64), known & fits
        half = (np.abs(x) * 2 + np.abs(divisor)) // (2 * np.abs(divisor))
        return np.where((x < 0) != (divisor < 0), -half, half), known & defined
    with np.errstate(invalid="ignore", over="ignore"):
        result = x * y if symbol == "*" else x / divisor
        rounded = np.sign(result) * np.floor(np.abs(result) + 0.5)
        fits = np.isfinite(result) & (np.abs(result) < float(1 << 63))
    return saturated(np.where(fits, rounded, 0.0), INT64), known & defined & fits


def _trying(typing: Typing) -> Typing:
    """The typing of a ``try_`` form: text that is no number is null, too."""

    def typed(function: Function, arguments: list[Node], zone: str) -> Typed:
        result = typing(function, arguments, zone)
        parts = [
            replace(a, tries=True) if isinstance(a, Cast) and a.argument.type == STRING and a not in arguments else a
            for a in result.arguments
        ]
        return Typed(parts, result.type)

    return typed


def _pair(symbol: str, name: str, typing: Typing, compute: Callable[..., Datum], undefined: str) -> None:
    """Define an operator, and its ``try_`` form, which returns null where the operator is undefined."""
    typing, arrow = _with_times(symbol, typing), _timed(symbol, compute)
    right_first = symbol in "/%"
    define(symbol, 2, typing, arrow, undefined=undefined, right_first=right_first)
    define(name, 2, _trying(typing), arrow, right_first=right_first)


_pair("+", "try_add", numbers_typing(decimals.sum_type), _plus, OVERFLOW)
_pair("-", "try_subtract", numbers_typing(decimals.sum_type), _minus, OVERFLOW)
_pair("*", "try_multiply", numbers_typing(decimals.product_type), _times, OVERFLOW)
_pair("/", "try_divide", numbers_typing(decimals.quotient_type, as_double=True), _over, BY_ZERO)
_pair("%", "try_mod", numbers_typing(decimals.remainder_type), _mod, BY_ZERO)
define("mod", 2, numbers_typing(decimals.remainder_type), _mod, undefined=BY_ZERO, right_first=True)
define(
    "div",
    2,
    numbers_typing(lambda a, b: INT64, whole=True),
    _div,
    undefined=f"{BY_ZERO}; or the quotient does not fit into 64 bits",
    right_first=True,
)
define("pmod", 2, numbers_typing(decimals.remainder_type), _positive_remainder, undefined=BY_ZERO, right_first=True)


def _negative(value: Datum, *, type: pa.DataType) -> Datum:
    if is_decimal(type):
        return decimals.negated(value)
    if is_float(type):
        return pc.negate(value)
    return _subtract(pa.repeat(pa.scalar(0, type), len(value)), value)


def _absolute(value: Datum, *, type: pa.DataType) -> Datum:
    if is_integer(type):
        negative = pc.less(value, pa.scalar(0, type))
        return pc.if_else(negative, _negative(pc.if_else(negative, value, pa.scalar(0, type)), type=type), value)
    return pc.abs(value)


define("negative", 1, numeric(), _negative, undefined=OVERFLOW)
define("positive", 1, numeric(), lambda value, *, type: value)
define("abs", 1, numeric(), _absolute, undefined=OVERFLOW)
