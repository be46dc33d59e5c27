"""Spark's rules for types (ANSI mode, its default): the common type of several values, and what a function's argument may be cast to."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions.nodes import Cast, Constant, Node

MAX_DIGITS = 38
FEWEST_BEHIND = 6
"""The fewest fractional digits of a result that would need more than 38 digits in all."""

DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The decimal digits that an integer type needs, by its width in bits."""

NULL, BOOL, STRING, BINARY, DATE = pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.date32()
INT8, INT16, INT32, INT64, FLOAT, DOUBLE = pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
NTZ = pa.timestamp("us")
"""A timestamp without a zone, Spark's ``timestamp_ntz``."""
DURATION = pa.duration("us")
"""Spark's day-time interval."""
MONTHS = pa.month_day_nano_interval()
"""Spark's year-month interval, of which only constants are known."""

_ORDER = [INT8, INT16, INT32, INT64, FLOAT, DOUBLE]


def timestamp(zone: str) -> pa.DataType:
    """A point in time, Spark's ``timestamp``; the zone is the one that its calendar is read in."""
    return pa.timestamp("us", zone)


def is_integer(t: pa.DataType) -> bool:
    return bool(pa.types.is_integer(t))


def is_float(t: pa.DataType) -> bool:
    return bool(pa.types.is_floating(t))


def is_decimal(t: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(t))


def is_number(t: pa.DataType) -> bool:
    return is_integer(t) or is_float(t) or is_decimal(t)


def is_zoned(t: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(t)) and t.tz is not None


def is_time(t: pa.DataType) -> bool:
    """Dates and timestamps."""
    return bool(pa.types.is_timestamp(t) or pa.types.is_date(t))


def is_atomic(t: pa.DataType) -> bool:
    return t in (BOOL, STRING, BINARY, DURATION, MONTHS) or is_number(t) or is_time(t)


def name_of(t: pa.DataType) -> str:
    """A type as Spark writes it."""
    names = {
        NULL: "void", BOOL: "boolean", INT8: "tinyint", INT16: "smallint", INT32: "int", INT64: "bigint", FLOAT: "float", DOUBLE: "double",
        STRING: "string", BINARY: "binary", DATE: "date", NTZ: "timestamp_ntz", DURATION: "interval day to second",
        MONTHS: "interval year to month",
    }  # fmt: skip
    if is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    return names.get(t, "timestamp" if is_zoned(t) else str(t))


# Decimals.


def decimal_of(t: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer type."""
    return t if is_decimal(t) else pa.decimal128(DIGITS[t.bit_width], 0)


def narrowest_decimal(node: Node) -> pa.DataType:
    """The decimal type of an integer or decimal; an integer in the text has as many digits as it needs."""
    if isinstance(node, Constant) and node.is_literal and is_integer(node.type):
        return pa.decimal128(len(str(abs(node.value.as_py()))), 0)
    return decimal_of(node.type)


def fitted_decimal(precision: int, scale: int) -> pa.DataType:
    """The type of an arithmetic result: what does not fit into 38 digits loses digits behind the point, but for six."""
    if precision <= MAX_DIGITS:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MAX_DIGITS, max(MAX_DIGITS - (precision - scale), min(scale, FEWEST_BEHIND)))


def wider_decimal(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The common type of two decimals: digits before the point come first."""
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    if precision <= MAX_DIGITS:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MAX_DIGITS, max(0, MAX_DIGITS - (precision - scale)))


# The type that several values have in common.


def tightest(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The common type of two types, without parsing text; None if there is none."""
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if is_decimal(a) or is_decimal(b):
        if not (is_number(a) and is_number(b)):
            return None
        return DOUBLE if is_float(a) or is_float(b) else wider_decimal(decimal_of(a), decimal_of(b))
    if is_number(a) and is_number(b):
        wider = max(a, b, key=_ORDER.index)
        return DOUBLE if wider == FLOAT else wider
    if is_time(a) and is_time(b):
        return next(t for t in (a, b) if is_zoned(t)) if is_zoned(a) or is_zoned(b) else NTZ
    if pa.types.is_struct(a) and pa.types.is_struct(b) and [f.name for f in a] == [f.name for f in b]:
        fields = [tightest(x.type, y.type) for x, y in zip(a, b, strict=True)]
        return None if None in fields else pa.struct([(f.name, t) for f, t in zip(a, fields, strict=True)])
    return None


def wider(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The common type of two types, where text beside another type is parsed as that type; None if there is none."""
    same_kind = tightest(a, b)
    if same_kind is not None:
        return same_kind
    if b == STRING:
        a, b = b, a
    if a != STRING or b in (DURATION, MONTHS) or not is_atomic(b):
        return None
    return INT64 if is_integer(b) else DOUBLE if is_number(b) else b


def common(nodes: Iterable[Node], what: str, *, reads_text: bool = True) -> list[Node]:
    """Values cast to the type that they have in common."""
    nodes = list(nodes)
    result = NULL
    for node in sorted(nodes, key=lambda n: n.type != STRING):  # Spark looks at text first
        common_type = (wider if reads_text else tightest)(result, node.type)
        if common_type is None:
            names = ", ".join(dict.fromkeys(name_of(n.type) for n in nodes))
            raise InvalidExpression(f"{what}: values of types {names} have no type in common; cast one of them")
        result = common_type
    return [cast(n, result) for n in nodes]


def cast(node: Node, target: pa.DataType) -> Node:
    """A node in another type; itself if it has it."""
    return node if node.type == target else Cast(target, node)


# What a function's argument may be.


def is_implicit(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a function that wants ``target`` takes ``source``."""
    if source in (target, NULL):
        return True
    if target == STRING:
        return is_atomic(source)
    if is_number(target):
        return is_number(source) or source == STRING
    if is_time(target):
        return is_time(source) or source == STRING
    return source == STRING and target in (BOOL, BINARY)


def implicit(node: Node, target: pa.DataType, what: str) -> Node:
    """An argument in the type that a function wants."""
    if not is_implicit(node.type, target):
        raise InvalidExpression(f"{what} takes {name_of(target)}, not {name_of(node.type)}; cast it")
    return cast(node, target)
