"""Decimals as whole numbers: their digits without the point, in 64 bits where they fit, as Python's integers where they do not.

Every operation is exact on those numbers and rounds once, half away from zero, to the digits that Spark's result type has.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.expressions.arrays import Array, Datum, all_valid, from_numbers, numbers, spread, valid
from sash.expressions.coercion import MAX_DIGITS, fitted_decimal, is_decimal

_WORD = 1 << 64
_SAFE = 1 << 62
"""Whole numbers below this are computed with in 64 bits."""


def digits_of(values: pa.Array) -> Array:
    """The digits of decimals or integers, as 64-bit integers if all fit, otherwise as Python's; zero for nulls."""
    if not is_decimal(values.type):
        return numbers(values).astype(np.int64, copy=False)
    if len(values) == 0:
        return np.empty(0, np.int64)
    halves = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    low, high = halves[:, 0], halves[:, 1]
    known = valid(values)
    if ((high == low >> 63) | ~known).all():
        return np.where(known, low, 0)
    whole = high.astype(object) * _WORD + low.view(np.uint64).astype(object)
    return np.where(known, whole, 0)


def from_digits(whole: Array, known: Array, t: pa.DataType) -> pa.Array:
    """Decimals of a type from their digits; null where there are too many digits for it."""
    fits = known
    if whole.dtype == object or t.precision < 19:
        fits = known & ((whole < 10**t.precision) & (whole > -(10**t.precision))).astype(bool)
    halves = np.empty((len(whole), 2), np.int64)
    if whole.dtype == object:
        inside = np.where(fits, whole, 0)
        halves[:, 0] = (inside & (_WORD - 1)).astype(np.uint64).view(np.int64)
        halves[:, 1] = (inside >> 64).astype(np.int64)
    else:
        halves[:, 0], halves[:, 1] = whole, whole >> 63
    bitmap = None if fits.all() else pa.py_buffer(np.packbits(fits, bitorder="little"))
    return pa.Array.from_buffers(t, len(whole), [bitmap, pa.py_buffer(halves)])


def scaled(whole: Array, by: int) -> Array:
    """Digits times ``10**by``; where ``by`` is negative, rounded half away from zero."""
    if by == 0:
        return whole
    if by > 0:
        wide = _wide(whole, 10**by)
        product: Array = wide * 10**by if wide.dtype == object or by < 19 else wide  # zeros stay as they are
        return product
    unit = 10**-by
    if whole.dtype != object and unit >= _SAFE:
        whole = whole.astype(object)
    magnitude = np.abs(_wide(whole, 1))
    rounded = (magnitude + unit // 2) // unit
    return np.asarray(np.where(whole < 0, -rounded, rounded))


def cut(whole: Array, by: int) -> Array:
    """Digits times ``10**by``; where ``by`` is negative, truncated."""
    if by >= 0:
        return scaled(whole, by)
    unit = 10**-by
    if whole.dtype != object and unit >= _SAFE:
        whole = whole.astype(object)
    magnitude = np.abs(_wide(whole, 1)) // unit
    return np.asarray(np.where(whole < 0, -magnitude, magnitude))


def _wide(whole: Array, factor: int) -> Array:
    """Digits that can be multiplied by a factor."""
    if whole.dtype == object or not len(whole):
        return whole
    return whole if max(abs(int(whole.max())), abs(int(whole.min()))) * factor < _SAFE else whole.astype(object)


def _significant(whole: Array, most: int = MAX_DIGITS) -> Array:
    """Digits rounded half away from zero to so many, as Java's arithmetic does on the way; the others become zeros."""
    if whole.dtype != object:
        return whole

    def one(v: int) -> int:
        excess = len(str(abs(v))) - most
        if excess <= 0:
            return v
        unit = 10**excess
        return int((1 if v > 0 else -1) * ((abs(v) + unit // 2) // unit) * unit)

    return np.array([one(int(v)) for v in whole], dtype=object)


# Result types.


def sum_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(a.scale, b.scale)
    return fitted_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def product_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    return fitted_decimal(a.precision + b.precision + 1, a.scale + b.scale)


def quotient_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(6, a.scale + b.precision + 1)
    return fitted_decimal(a.precision - a.scale + b.scale + scale, scale)


def remainder_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(a.scale, b.scale)
    return fitted_decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


# Operations: over decimals of any scale, null where there is no value.


def _operation(compute: Callable[[Array, Array, int, int, pa.DataType], tuple[Array, Array | None]]) -> Callable[..., Datum]:
    def operation(a: Datum, b: Datum, *, type: pa.DataType) -> Datum:
        known = all_valid(a, b)
        left, right = spread(a, b)
        whole, defined = compute(digits_of(left), digits_of(right), a.type.scale, b.type.scale, type)
        return from_digits(whole, known if defined is None else known & defined, type)

    return operation


def _sum(sign: int) -> Callable[[Array, Array, int, int, pa.DataType], tuple[Array, None]]:
    def compute(a: Array, b: Array, sa: int, sb: int, t: pa.DataType) -> tuple[Array, None]:
        scale = max(sa, sb)
        left, right = scaled(a, scale - sa), scaled(b, scale - sb)
        return scaled(_wide(left, 2) + sign * _wide(right, 2), t.scale - scale), None

    return compute


def _product(a: Array, b: Array, sa: int, sb: int, t: pa.DataType) -> tuple[Array, None]:
    most = max((abs(int(b.max())), abs(int(b.min())))) if len(b) and b.dtype != object else _SAFE
    return scaled(_significant(_wide(a, max(1, most)) * b), t.scale - sa - sb), None


def _quotient(a: Array, b: Array, sa: int, sb: int, t: pa.DataType) -> tuple[Array, Array]:
    divides = (b != 0).astype(bool)
    divisor = np.where(divides, b, 1)
    shift = t.scale + 1 + sb - sa  # one digit more than the result has decides how it is rounded
    numerator = scaled(a, shift) if shift >= 0 else a
    if shift < 0:
        divisor = scaled(divisor, -shift)
    if numerator.dtype == object or divisor.dtype == object:
        numerator, divisor = numerator.astype(object), divisor.astype(object)
    magnitude = np.abs(numerator) // np.abs(divisor)
    quotient = np.where((numerator < 0) != (divisor < 0), -magnitude, magnitude)
    return scaled(_significant(quotient), -1), divides


def _remainder(a: Array, b: Array, sa: int, sb: int, t: pa.DataType, *, positive: bool = False) -> tuple[Array, Array]:
    divides = (b != 0).astype(bool)
    scale = max(sa, sb)
    left, right = scaled(a, scale - sa), scaled(np.where(divides, b, 1), scale - sb)
    if left.dtype == object or right.dtype == object or positive:
        left, right = left.astype(object), right.astype(object)
    rest = _signed_rest(left, right)
    if positive:
        rest = np.where(rest < 0, _signed_rest(rest + right, right), rest)
    return scaled(rest, t.scale - scale), divides


def _signed_rest(left: Array, right: Array) -> Array:
    """What is left of a division, with the sign of the dividend."""
    if left.dtype != object and right.dtype != object:
        return np.asarray(np.fmod(left, right))
    magnitude = np.abs(left) % np.abs(right)
    return np.asarray(np.where(left < 0, -magnitude, magnitude))


def whole_quotient(a: Datum, b: Datum, *, type: pa.DataType) -> Datum:
    """``div`` of decimals: a 64-bit integer."""
    known = all_valid(a, b)
    x, y = (digits_of(v) for v in spread(a, b))
    divides = (y != 0).astype(bool)
    scale = max(a.type.scale, b.type.scale)
    left, right = scaled(x, scale - a.type.scale), scaled(np.where(divides, y, 1), scale - b.type.scale)
    if left.dtype == object or right.dtype == object:
        left, right = left.astype(object), right.astype(object)
    magnitude = np.abs(left) // np.abs(right)
    whole = np.where((left < 0) != (right < 0), -magnitude, magnitude)
    fits = known & divides & ((whole >= -(1 << 63)) & (whole < 1 << 63)).astype(bool)
    return from_numbers(np.where(fits, whole, 0).astype(np.int64), fits, pa.int64())


def _quick(arrow: Callable[[Datum, Datum], Datum], careful: Callable[..., Datum]) -> Callable[..., Datum]:
    """Arrow's own operation where its result has Spark's type, and so needs no rounding; the careful one elsewhere."""

    def operation(a: Datum, b: Datum, *, type: pa.DataType) -> Datum:
        try:
            result = arrow(a, b)
        except pa.ArrowInvalid:  # more than 38 digits
            return careful(a, b, type=type)
        return result if result.type == type else careful(a, b, type=type)

    return operation


add = _quick(pc.add_checked, _operation(_sum(1)))
subtract = _quick(pc.subtract_checked, _operation(_sum(-1)))
multiply = _quick(pc.multiply_checked, _operation(_product))
divide = _operation(_quotient)
remainder = _operation(_remainder)
positive_remainder = _operation(partial(_remainder, positive=True))


def rescaled(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Decimals of another type, rounded half away from zero; null where a value does not fit."""
    return from_digits(scaled(digits_of(value), target.scale - value.type.scale), valid(value), target)


def negated(value: pa.Array) -> pa.Array:
    return from_digits(-_wide(digits_of(value), 1), valid(value), value.type)


def rounded_type(t: pa.DataType, digits: int) -> pa.DataType:
    """The type of ``round``: one digit more before the point, and at most the requested ones behind it."""
    before = t.precision - t.scale + 1
    if digits < 0:
        return pa.decimal128(min(MAX_DIGITS, max(before, 1 - digits)), 0)
    scale = min(t.scale, digits)
    return pa.decimal128(min(MAX_DIGITS, before + scale), scale)


def rounded(value: pa.Array, digits: int, target: pa.DataType, rounding: Callable[[Array, int], Array] = scaled) -> pa.Array:
    """Rounded to so many digits behind the point, or before it where negative."""
    t = value.type
    whole = digits_of(value)
    if digits < t.scale:
        whole = rounding(whole, digits - t.scale)
    return from_digits(scaled(whole, target.scale - min(digits, t.scale)), valid(value), target)


def half_even(whole: Array, by: int) -> Array:
    """As :func:`scaled` for fewer digits, but a half goes to the even neighbour."""
    unit = 10**-by
    wide = whole.astype(object) if whole.dtype != object and unit >= _SAFE else whole
    magnitude = np.abs(_wide(wide, 1))
    quotient, rest = magnitude // unit, magnitude % unit
    up = (rest * 2 > unit) | ((rest * 2 == unit) & (quotient % 2 == 1))
    rounded = quotient + up
    return np.asarray(np.where(wide < 0, -rounded, rounded))


def floored(whole: Array, by: int) -> Array:
    """As :func:`scaled` for fewer digits, but towards minus infinity."""
    unit = 10**-by
    return np.asarray((whole.astype(object) if whole.dtype != object and unit >= _SAFE else whole) // unit)


def ceiled(whole: Array, by: int) -> Array:
    """As :func:`scaled` for fewer digits, but towards infinity."""
    return np.asarray(-floored(-_wide(whole, 1), by))


def literal(text: str) -> pa.Scalar:
    """A number with a point, or an integer beyond 64 bits, as it stands in SQL: it has as many digits as are written."""
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return pa.scalar(value, pa.decimal128(precision, scale))
