"""Casts among numbers, and between numbers and booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.expressions import decimals
from sash.expressions.arrays import Array, by_value, from_numbers, numbers, valid
from sash.expressions.coercion import BOOL, DOUBLE, is_decimal, is_float, is_integer

if TYPE_CHECKING:
    from decimal import Decimal


def boolean(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Booleans as numbers (true is 1), or numbers as booleans (whatever is not 0 is true)."""
    if value.type == BOOL:
        flags = from_numbers(numbers(value).astype(np.int8), valid(value), pa.int8())
        return number(flags, target) if target != pa.int8() else flags
    whole = decimals.digits_of(value) if is_decimal(value.type) else numbers(value)
    return from_numbers((whole != 0).astype(bool), valid(value), BOOL)


def number(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Numbers in another type of numbers; null where one does not fit."""
    source = value.type
    if is_decimal(target):
        return _to_decimal(value, target)
    if is_decimal(source):
        return _from_decimal(value, target)
    if is_float(target):
        return value.cast(target, safe=False)  # integers beyond 2**53 become the nearest double
    if is_float(source):
        return to_integers(numbers(value).astype(np.float64), valid(value), target)
    if target.bit_width >= source.bit_width:
        return value.cast(target)
    return narrowed(numbers(value), valid(value), target)


def narrowed(whole: Array, known: Array, target: pa.DataType) -> pa.Array:
    """Integers in a narrower type; null where one does not fit."""
    limits = np.iinfo(target.to_pandas_dtype())
    fits = known & ((whole >= int(limits.min)) & (whole <= int(limits.max))).astype(bool)
    return from_numbers(np.where(fits, whole, 0).astype(target.to_pandas_dtype()), fits, target)


def to_integers(floats: Array, known: Array, target: pa.DataType) -> pa.Array:
    """Doubles truncated to integers; null where one does not fit. 2**63 itself becomes the largest integer, as in Java."""
    limits = np.iinfo(target.to_pandas_dtype())
    with np.errstate(invalid="ignore"):
        fits = known & (np.floor(floats) <= float(limits.max)) & (np.ceil(floats) >= float(limits.min))
    return from_numbers(saturated(np.where(fits, floats, 0.0), target), fits, target)


def saturated(floats: Array, target: pa.DataType) -> Array:
    """Floats truncated to integers, those out of range clipped; NaN as 0."""
    t = target.to_pandas_dtype()
    limits = np.iinfo(t)
    with np.errstate(invalid="ignore"):
        whole = np.where(np.isnan(floats), 0.0, np.trunc(floats))
        inside = (whole > float(limits.min)) & (whole < float(limits.max))
        result: Array = np.where(
            inside, np.where(inside, whole, 0.0).astype(np.int64), np.where(whole <= float(limits.min), limits.min, limits.max)
        )
    return result.astype(t)


def _to_decimal(value: pa.Array, target: pa.DataType) -> pa.Array:
    source = value.type
    if is_decimal(source):
        return decimals.rescaled(value, target)
    if is_integer(source):
        whole = numbers(value).astype(np.int64)
        return decimals.from_digits(decimals.scaled(whole, target.scale), valid(value), target)
    return from_floats(numbers(value).astype(np.float64), valid(value), target)


def from_floats(floats: Array, known: Array, target: pa.DataType) -> pa.Array:
    """Doubles by the digits that they are written with, rounded half away from zero."""
    scale = 10.0**target.scale
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = floats * scale
        whole = np.rint(shifted)
        # Multiplying is exact enough unless the result is large, or a half is near.
        sure = (np.abs(shifted) < 1e15) & (np.abs(np.abs(shifted - np.trunc(shifted)) - 0.5) > 1e-4) if target.scale <= 22 else floats == 0
    doubtful = known & ~sure
    result = decimals.from_digits(np.where(sure, whole, 0.0).astype(np.int64), known & sure, target)
    if not doubtful.any():
        return result
    exact = by_value(lambda v: _decimal_of(v, target), target, pa.array(np.where(doubtful, floats, 0.0)))
    return pc.if_else(pa.array(doubtful), exact, result)


def _decimal_of(value: float, target: pa.DataType) -> Decimal | None:
    """A double as a decimal, by the digits that it is written with; None where it does not fit."""
    from decimal import ROUND_HALF_UP, Context, Decimal

    if value != value or value in (float("inf"), float("-inf")):
        return None
    rounded = Context(prec=400, rounding=ROUND_HALF_UP).quantize(Decimal(repr(value)), Decimal(1).scaleb(-target.scale))
    return rounded if abs(rounded) < Decimal(10) ** (target.precision - target.scale) else None


def _from_decimal(value: pa.Array, target: pa.DataType) -> pa.Array:
    whole, scale = decimals.digits_of(value), value.type.scale
    known = valid(value)
    if is_integer(target):
        return narrowed(decimals.cut(whole, -scale), known, target)
    if whole.dtype != object and scale <= 22 and (not len(whole) or int(np.abs(whole).max()) < 1 << 53):
        doubles = whole / 10.0**scale  # both are exact, so that the quotient is the nearest double
    else:
        doubles = np.array([int(v) / 10**scale for v in whole], np.float64)
    if target == DOUBLE:
        return from_numbers(doubles, known, target)
    return from_numbers(np.array([_float(int(v), 10**scale) for v in whole], np.float32), known, target)


def _float(numerator: int, denominator: int) -> np.float32:
    """The nearest single of a fraction, rounded once."""
    nearest = np.float32(numerator / denominator)
    candidates = [nearest, np.nextafter(nearest, np.float32(np.inf)), np.nextafter(nearest, np.float32(-np.inf))]

    def distance(c: np.float32) -> tuple[int, int]:
        if not np.isfinite(c):
            return 1 << 400, 0
        n, d = float(c).as_integer_ratio()
        return abs(n * denominator - numerator * d) * (1 << 200) // d, int(c.view(np.int32)) & 1

    return min(candidates, key=distance)
