"""The SQL functions, each over Arrow with Spark's meaning."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression
from sash.expressions import decimals
from sash.expressions.datum import DIGITS, Datum, Undefined


def is_float(value: Datum) -> bool:
    return bool(pa.types.is_floating(value.type))


def common_type(types: list[pa.DataType]) -> pa.DataType:
    """The type that several values have together, as in Spark's ``coalesce`` and ``case``."""
    known = [t for t in types if not pa.types.is_null(t)]
    if not known:
        return pa.null()
    result = known[0]
    for t in known[1:]:
        if t == result:
            continue
        if pa.types.is_decimal(result) or pa.types.is_decimal(t):
            result = _common_decimal(result, t)
            continue
        try:
            result = pc.add(pa.nulls(0, result), pa.nulls(0, t)).type
        except pa.ArrowNotImplementedError:
            text = pa.types.is_string(result) or pa.types.is_string(t)
            if not text:
                raise InvalidExpression(f"values of types {result} and {t} have no type in common; cast one of them") from None
            result = pa.string()
    return result


def _common_decimal(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(a) or pa.types.is_floating(b):
        return pa.float64()
    pairs = [(t.precision, t.scale) if pa.types.is_decimal(t) else (DIGITS.get(t.bit_width, 20), 0) for t in (a, b)]
    scale = max(s for _, s in pairs)
    return pa.decimal128(min(38, max(p - s for p, s in pairs) + scale), scale)


def together(values: list[Datum]) -> list[Datum]:
    """Values cast to the type they have in common."""
    target = common_type([v.type for v in values])
    return [v if v.type == target else v.cast(target) for v in values]


# Comparison: NaN equals NaN and is larger than any number.


def equal(a: Datum, b: Datum) -> Datum:
    a, b = together([a, b])
    plain = pc.equal(a, b)
    return pc.or_(plain, pc.and_(pc.is_nan(a), pc.is_nan(b))) if is_float(a) else plain


def less(a: Datum, b: Datum) -> Datum:
    a, b = together([a, b])
    plain = pc.less(a, b)
    return pc.or_(plain, pc.and_(pc.invert(pc.is_nan(a)), pc.is_nan(b))) if is_float(a) else plain


def not_equal(a: Datum, b: Datum) -> Datum:
    return pc.invert(equal(a, b))


def greater(a: Datum, b: Datum) -> Datum:
    return less(b, a)


def less_equal(a: Datum, b: Datum) -> Datum:
    return pc.invert(less(b, a))


def greater_equal(a: Datum, b: Datum) -> Datum:
    return pc.invert(less(a, b))


def greatest(*values: Datum) -> Datum:
    """The largest that is not null."""
    return reduce(lambda a, b: pc.if_else(pc.fill_null(less(a, b), pc.is_null(a)), b, a), together(list(values)))


def least(*values: Datum) -> Datum:
    """The smallest that is not null."""
    return reduce(lambda a, b: pc.if_else(pc.fill_null(less(b, a), pc.is_null(a)), b, a), together(list(values)))


def coalesce(*values: Datum) -> Datum:
    """The first that is not null."""
    return pc.coalesce(*together(list(values)))


# Numbers.


def double(value: Datum) -> Datum:
    return value.cast(pa.float64())


def whole(rounded: Datum) -> Datum:
    """``floor`` and ``ceil`` of doubles are 64-bit integers in Spark; beyond them, the nearest."""
    if pa.types.is_decimal(rounded.type):
        t = rounded.type
        return rounded.cast(pa.decimal128(max(1, t.precision - t.scale + (t.scale > 0)), 0))
    return to_integer(rounded, pa.int64())


def to_integer(value: Datum, target: pa.DataType) -> Datum:
    try:
        return pc.cast(pc.trunc(value) if is_float(value) else value, target)
    except pa.ArrowInvalid as error:
        raise Undefined(f"a value does not fit into {target}: {error}") from error


def floor(value: Datum) -> Datum:
    return value.cast(pa.int64()) if pa.types.is_integer(value.type) else whole(pc.floor(value))


def ceil(value: Datum) -> Datum:
    return value.cast(pa.int64()) if pa.types.is_integer(value.type) else whole(pc.ceil(value))


def rounded(value: Datum, digits: Datum | None = None) -> Datum:
    """Half away from zero, as Spark's ``round``."""
    places = 0 if digits is None else int(digits.as_py())
    if pa.types.is_decimal(value.type):
        return decimals.rounded(value, places)
    return pc.round(value, ndigits=places, round_mode="half_towards_infinity")


def ln(value: Datum) -> Datum:
    """Null where it is not defined."""
    number = double(value)
    return pc.ln(pc.if_else(pc.fill_null(less_equal(number, pa.scalar(0.0)), False), pa.scalar(None, pa.float64()), number))


def substring(text: Datum, start: Datum, length: Datum | None = None) -> Datum:
    """Counted from 1, or from the end where negative."""
    first = int(start.as_py())
    count = None if length is None else max(0, int(length.as_py()))
    if first < 0:  # what lies before a short text counts as well
        return pc.utf8_slice_codeunits(text, start=first, stop=None if count is None or first + count >= 0 else first + count)
    begin = max(first - 1, 0)
    return pc.utf8_slice_codeunits(text, start=begin, stop=None if count is None else begin + count)


def text(value: Datum) -> Datum:
    return value if pa.types.is_string(value.type) else value.cast(pa.string())


def concat(*values: Datum) -> Datum:
    return pc.binary_join_element_wise(*[text(v) for v in values], "")


FUNCTIONS: dict[str, tuple[Callable[..., Datum], int, int]] = {
    # name: function, fewest and most arguments
    "abs": (pc.abs_checked, 1, 1),
    "ceil": (ceil, 1, 1),
    "coalesce": (coalesce, 1, 255),
    "concat": (concat, 1, 255),
    "exp": (lambda v: pc.exp(double(v)), 1, 1),
    "floor": (floor, 1, 1),
    "greatest": (greatest, 2, 255),
    "isnan": (lambda v: pc.fill_null(pc.is_nan(v), False), 1, 1),
    "least": (least, 2, 255),
    "length": (lambda v: pc.utf8_length(text(v)), 1, 1),
    "ln": (ln, 1, 1),
    "lower": (lambda v: pc.utf8_lower(text(v)), 1, 1),
    "power": (lambda a, b: pc.power(double(a), double(b)), 2, 2),
    "round": (rounded, 1, 2),
    "sqrt": (lambda v: pc.sqrt(double(v)), 1, 1),
    "substring": (substring, 2, 3),
    "trim": (lambda v: pc.utf8_trim(text(v), " "), 1, 1),
    "upper": (lambda v: pc.utf8_upper(text(v)), 1, 1),
}
ALIASES = {
    "ceiling": "ceil", "pow": "power", "substr": "substring", "len": "length", "char_length": "length", "character_length": "length",
    "lcase": "lower", "ucase": "upper", "ifnull": "coalesce", "nvl": "coalesce", "is_nan": "isnan",
}  # fmt: skip
