"""Machine types, and how column types map onto them.

A *machine type* is the name of what a compiled kernel reads or writes: ``bool`` (one byte), the integers, and the floats.
A column's *logical* type is a :class:`pyarrow.DataType`. :func:`machine_type` maps the second to the first: a timestamp
is an ``int64``, a date an ``int32``, a decimal of up to 18 digits an ``int64`` of its unscaled value.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pyarrow as pa

Reading = Literal["order", "limbs", "double"]
"""What an aggregate reads of a type without a machine type of its own: ranks that keep the order, the digits of a decimal in
limbs of 62 bits, or a double."""

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
MACHINE_TYPES = ("bool", *INTEGERS, *FLOATS)

DECIMAL_DIGITS_IN_64_BITS = 18

_NUMERIC: dict[pa.DataType, str] = {
    pa.bool_(): "bool",
    pa.int8(): "int8",
    pa.int16(): "int16",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint8(): "uint8",
    pa.uint16(): "uint16",
    pa.uint32(): "uint32",
    pa.uint64(): "uint64",
    pa.float16(): "float32",
    pa.float32(): "float32",
    pa.float64(): "float64",
}


def dtype(machine: str) -> np.dtype[np.generic]:
    """The NumPy type of a machine type's values.

    >>> dtype("bool"), dtype("int32")
    (dtype('uint8'), dtype('int32'))
    """
    return np.dtype("uint8" if machine == "bool" else machine)


def smallest(machine: str) -> int | float:
    """The least value of a machine type (``-inf`` for floats)."""
    if machine in FLOATS:
        return float("-inf")
    return 0 if machine == "bool" else int(np.iinfo(machine).min)


def largest(machine: str) -> int | float:
    """The greatest value of a machine type; for floats NaN, which is larger than any number (always the same NaN, so that
    forms with it are equal)."""
    if machine in FLOATS:
        return math.nan
    return 1 if machine == "bool" else int(np.iinfo(machine).max)


def is_numeric(t: pa.DataType) -> bool:
    """Whether sums and averages make sense: integers, floats and decimals of up to 38 digits, not booleans."""
    return bool(pa.types.is_integer(t) or pa.types.is_floating(t) or (pa.types.is_decimal(t) and t.precision <= 38))


def is_ranked(t: pa.DataType) -> bool:
    """Whether values of this type have an order but no machine type, so that kernels see their ranks."""
    if pa.types.is_decimal(t):
        return bool(t.precision > DECIMAL_DIGITS_IN_64_BITS)
    return bool(
        pa.types.is_string(t)
        or pa.types.is_large_string(t)
        or pa.types.is_string_view(t)
        or pa.types.is_binary(t)
        or pa.types.is_large_binary(t)
        or pa.types.is_binary_view(t)
        or pa.types.is_fixed_size_binary(t)
    )


def value_type(t: pa.DataType) -> pa.DataType:
    """The type of a column's values, without dictionaries and run-end encoding."""
    while pa.types.is_dictionary(t) or pa.types.is_run_end_encoded(t):
        t = t.value_type
    return t


def is_orderable(t: pa.DataType) -> bool:
    """Whether values of this type can be compared: everything but nested types and nulls."""
    return is_ranked(t) or machine_type(t) is not None


def machine_type(t: pa.DataType) -> str | None:
    """The machine type whose order and equality are those of the logical type, or None.

    >>> machine_type(pa.timestamp("us")), machine_type(pa.decimal128(18, 2)), machine_type(pa.string())
    ('int64', 'int64', None)
    """
    if t in _NUMERIC:
        return _NUMERIC[t]
    if pa.types.is_timestamp(t) or pa.types.is_duration(t) or pa.types.is_time64(t) or pa.types.is_date64(t):
        return "int64"
    if pa.types.is_date32(t) or pa.types.is_time32(t):
        return "int32"
    if pa.types.is_decimal(t) and t.precision <= DECIMAL_DIGITS_IN_64_BITS:
        return "int64"
    return None


def order_type(t: pa.DataType) -> str:
    """The machine type that stands for values where only their order and identity matter; ranks are 64-bit."""
    return machine_type(t) or "int64"


def double_type(t: pa.DataType) -> str:
    """The machine type of a number that will be treated as a double; decimals become doubles on the way in."""
    machine = machine_type(t)
    return "float64" if machine is None or pa.types.is_decimal(t) else machine


def sum_type(t: pa.DataType) -> pa.DataType:
    """Spark's type of a sum.

    >>> sum_type(pa.int16()), sum_type(pa.float32()), sum_type(pa.decimal128(12, 2))
    (DataType(int64), DataType(double), Decimal128Type(decimal128(22, 2)))
    """
    if pa.types.is_decimal(t):
        return pa.decimal128(min(38, t.precision + 10), t.scale)
    return pa.int64() if pa.types.is_integer(t) else pa.float64()


def avg_type(t: pa.DataType) -> pa.DataType:
    """Spark's type of an average: double, and for decimals four digits more on either side, capped at 38."""
    if pa.types.is_decimal(t):
        precision, scale = t.precision + 4, t.scale + 4
        if precision > 38:  # Spark's rule: keep the integral digits, and at least six of the fraction
            integral = precision - scale
            scale = max(38 - integral, min(scale, 6))
            precision = 38
        return pa.decimal128(precision, scale)
    return pa.float64()
