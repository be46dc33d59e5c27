"""Casts among dates and timestamps, and between timestamps and numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.expressions import decimals
from sash.expressions.arrays import from_numbers, numbers, valid
from sash.expressions.casts.numbers import number, saturated
from sash.expressions.coercion import DATE, DOUBLE, INT64, is_decimal, is_float, is_zoned
from sash.expressions.zones import DAY, to_instants, to_local

SECOND = 1_000_000


def between(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Dates begin at midnight; a timestamp's calendar is that of its zone."""
    source, ticks, known = value.type, numbers(value).astype(np.int64), valid(value)
    if is_zoned(source) and is_zoned(target):
        return value.cast(target)
    local = ticks * DAY if source == DATE else to_local(ticks, source.tz) if is_zoned(source) else ticks
    if target == DATE:
        return from_numbers(local // DAY, known, DATE)
    if source == DATE:
        known = known & (np.abs(ticks) <= (1 << 63) // DAY)
    return from_numbers(to_instants(local, target.tz) if is_zoned(target) else local, known, target)


def from_number(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Seconds since the epoch."""
    known = valid(value)
    if is_float(value.type):
        seconds = numbers(value).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            known &= np.abs(seconds * 1e6) <= float(1 << 63)
            return from_numbers(saturated(seconds * 1e6, INT64), known, target)
    if is_decimal(value.type):
        whole = decimals.cut(decimals.digits_of(value), 6 - value.type.scale)
        known &= ((whole >= -(1 << 63)) & (whole < 1 << 63)).astype(bool)
        return from_numbers(np.where(known, whole, 0).astype(np.int64), known, target)
    whole = numbers(value).astype(np.int64)
    limit = (1 << 63) // SECOND
    inside = np.abs(np.clip(whole, -limit - 1, limit + 1)) <= limit - 1
    largest = np.where(whole < 0, -(1 << 63), (1 << 63) - 1)
    return from_numbers(np.where(inside, np.where(inside, whole, 0) * SECOND, largest), known, target)


def to_number(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Seconds since the epoch; integers are rounded down."""
    micros, known = numbers(value), valid(value)
    if is_float(target):
        return number(from_numbers(micros / 1e6, known, DOUBLE), target)
    if is_decimal(target):
        return decimals.rescaled(decimals.from_digits(micros, known, pa.decimal128(20, 6)), target)
    return number(from_numbers(micros // SECOND, known, INT64), target)
