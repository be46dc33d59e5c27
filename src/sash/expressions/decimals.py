"""Arithmetic of decimals, with Spark's result types: what does not fit into 38 digits loses digits behind the point, but for six."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from sash.expressions.datum import DIGITS, Datum, Undefined

MOST = 38
FEWEST_BEHIND = 6
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_UP)


def as_decimal(value: Datum) -> Datum:
    """An integer as a decimal that holds every value of its type."""
    return value if pa.types.is_decimal(value.type) else value.cast(pa.decimal128(DIGITS[value.type.bit_width], 0))


def literal(digits: str) -> pa.Scalar:
    """An integer that stands in an expression has as many digits as it needs."""
    return pa.scalar(Decimal(digits), pa.decimal128(len(digits.lstrip("0")) or 1, 0))


def fitted(precision: int, scale: int) -> pa.DataType:
    """Spark's type for a result of so many digits."""
    if precision <= MOST:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MOST, max(MOST - (precision - scale), min(scale, FEWEST_BEHIND)))


def sum_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(a.scale, b.scale)
    return fitted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def product_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    return fitted(a.precision + b.precision + 1, a.scale + b.scale)


def quotient_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(FEWEST_BEHIND, a.scale + b.precision + 1)
    return fitted(a.precision - a.scale + b.scale + scale, scale)


def remainder_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    scale = max(a.scale, b.scale)
    return fitted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


Types = Callable[[pa.DataType, pa.DataType], pa.DataType]
Operation = Callable[[Datum, Datum], Datum]


def arithmetic(arrow: Operation | None, one: Callable[[Decimal, Decimal], Decimal], types: Types) -> Operation:
    """An operation: Arrow's own where it has one and the result fits, else value by value."""

    def compute(a: Datum, b: Datum) -> Datum:
        a, b = as_decimal(a), as_decimal(b)
        result = types(a.type, b.type)
        if arrow is not None:
            try:
                made = arrow(a, b)
                if made.type == result:
                    return made
            except pa.ArrowInvalid:
                pass
        lengths = [len(v) for v in (a, b) if not isinstance(v, pa.Scalar)]
        left, right = ([v.as_py()] * max(lengths, default=1) if isinstance(v, pa.Scalar) else v.to_pylist() for v in (a, b))
        unit = Decimal(1).scaleb(-result.scale)
        values = [None if x is None or y is None else _CONTEXT.quantize(one(x, y), unit) for x, y in zip(left, right, strict=True)]
        try:
            found = pa.array(values, result)
        except pa.ArrowInvalid as error:
            raise Undefined(f"a value does not fit into {result}: {error}") from error
        return found if lengths else found[0]

    return compute


add = arithmetic(pc.add_checked, _CONTEXT.add, sum_type)
subtract = arithmetic(pc.subtract_checked, _CONTEXT.subtract, sum_type)
multiply = arithmetic(pc.multiply_checked, _CONTEXT.multiply, product_type)
divide = arithmetic(None, _CONTEXT.divide, quotient_type)
remainder = arithmetic(None, _CONTEXT.remainder, remainder_type)
whole_quotient = arithmetic(None, _CONTEXT.divide_int, lambda a, b: pa.decimal128(MOST, 0))


def rounded(value: Datum, digits: int) -> Datum:
    """Half away from zero; there may be one digit more before the point, and fewer behind it."""
    t = value.type
    before = t.precision - t.scale + 1
    if digits < 0:
        result = pa.decimal128(min(MOST, max(before, 1 - digits)), 0)
    else:
        scale = min(t.scale, digits)
        result = pa.decimal128(min(MOST, before + scale), scale)
    if digits >= 0 and t.precision < MOST:
        wide = value.cast(pa.decimal128(t.precision + 1, t.scale))
        return pc.round(wide, ndigits=min(digits, t.scale), round_mode="half_towards_infinity").cast(result)
    unit = Decimal(1).scaleb(-min(digits, t.scale))
    given = [value.as_py()] if isinstance(value, pa.Scalar) else value.to_pylist()
    values = [None if x is None else _CONTEXT.quantize(x, unit) for x in given]
    try:
        found = pa.array(values, result)
    except pa.ArrowInvalid as error:
        raise Undefined(f"a value does not fit into {result}: {error}") from error
    return found[0] if isinstance(value, pa.Scalar) else found
