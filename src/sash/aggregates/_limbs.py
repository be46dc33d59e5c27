"""Wide integers as limbs of 62 bits, the highest one signed: the partials of sums of integers and decimals.

62 bits, because two limbs and a carry then add up within 64 signed bits, in Python, in a kernel and in vector lanes alike.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.algebra import Form, Partial, Value
from sash.errors import IntegerOverflow

BITS = 62
MASK = (1 << 62) - 1
LIMB = float(1 << 62)


def lift(v: Value) -> Partial:
    return (v >> BITS, v & MASK)


def combine(a: Partial, b: Partial) -> Partial:
    low = a[1] + b[1]
    return (a[0] + b[0] + (low >> BITS), low & MASK)


def invert(a: Partial, b: Partial) -> Partial:
    low = a[1] - b[1]
    return (a[0] - b[0] + (low >> BITS), low & MASK)


def lower(s: Partial) -> Value:
    return (s[0] << BITS) + s[1]


def fits(s: Partial) -> Value:
    """Whether the value has 64 bits."""
    return s[0] >= -2 and s[0] <= 1


def lower_limbs(s: Partial) -> Value:
    return s


def lift_three(high: Value, middle: Value, low: Value) -> Partial:
    return (high, middle, low)


def combine_three(a: Partial, b: Partial) -> Partial:
    low = a[2] + b[2]
    middle = a[1] + b[1] + (low >> BITS)
    return (a[0] + b[0] + (middle >> BITS), middle & MASK, low & MASK)


def invert_three(a: Partial, b: Partial) -> Partial:
    low = a[2] - b[2]
    middle = a[1] - b[1] + (low >> BITS)
    return (a[0] - b[0] + (middle >> BITS), middle & MASK, low & MASK)


def sum_form(name: str, machine: str) -> Form:
    """A 124-bit sum of integers, returned in 64 bits."""
    return Form(
        name=name,
        inputs=(machine,),
        state=("int64", "int64"),
        outputs=("int64",),
        identity=(0, 0),
        lift=lift,
        combine=combine,
        invert=invert,
        lower=lower,
        fits=fits,
        commutative=True,
    )


def wide_form(name: str, count: int) -> Form:
    """A sum that is returned limb by limb: of 64-bit integers (2 limbs) or of decimals in 3 limbs."""
    three = count == 3
    return Form(
        name=name,
        inputs=("int64",) * (3 if three else 1),
        state=("int64",) * count,
        outputs=("int64",) * count,
        identity=(0,) * count,
        lift=lift_three if three else lift,
        combine=combine_three if three else combine,
        invert=invert_three if three else invert,
        lower=lower_limbs,
        commutative=True,
    )


def to_integers(raw: list[pa.Array]) -> list[int | None]:
    """Limb columns as Python integers."""
    values: list[int | None] = []
    for limbs in zip(*(column.to_pylist() for column in raw), strict=True):
        if limbs[0] is None:
            values.append(None)
            continue
        total = 0
        for limb in limbs:
            total = (total << BITS) + limb
        values.append(total)
    return values


def to_decimal(raw: list[pa.Array], logical: pa.DataType) -> pa.Array:
    """Limb columns as decimals; raises where a sum has more digits than its type."""
    if len(raw) == 2 and logical.precision < 38 and not _has_high(raw[0]):
        low = raw[1].to_numpy(zero_copy_only=False) if raw[1].null_count == 0 else None
        if low is not None:
            high = raw[0].to_numpy()
            halves = np.empty((len(low), 2), np.int64)
            halves[:, 0] = (high << 62) + low
            halves[:, 1] = halves[:, 0] >> 63
            return pa.Array.from_buffers(logical, len(low), [None, pa.py_buffer(halves)])
    bound = 10**logical.precision
    unscaled = bytearray()
    for value in to_integers(raw):
        if value is not None and not -bound < value < bound:
            raise IntegerOverflow(f"the exact sum of a window needs more than the {logical.precision} digits of {logical}")
        unscaled += (value or 0).to_bytes(16, "little", signed=True)
    valid = raw[0].is_valid().buffers()[1] if raw[0].null_count else None
    return pa.Array.from_buffers(logical, len(raw[0]), [valid, pa.py_buffer(bytes(unscaled))])


def _has_high(column: pa.Array) -> bool:
    """Whether some value needs more than 64 bits."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return bool(len(values) and (values.max() > 1 or values.min() < -2))
