"""Operations on the bits of integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression
from sash.expressions.arrays import all_valid, from_numbers, numbers, spread, valid
from sash.expressions.coercion import BOOL, INT32, INT64, NULL, STRING, cast, common, implicit, is_integer, name_of
from sash.expressions.nodes import Node
from sash.expressions.table import Datum, Function, Typed, definer

define = definer(__name__)


def _integers(function: Function, arguments: list[Node], zone: str) -> Typed:
    if all(a.type in (NULL, STRING) for a in arguments):
        if any(a.type == STRING for a in arguments):
            raise InvalidExpression(f"{function.title} takes whole numbers, not text; cast it")
        arguments = [cast(a, INT32) for a in arguments]
    same = common(arguments, function.title)
    if not is_integer(same[0].type):
        raise InvalidExpression(f"{function.title} takes whole numbers, not {name_of(same[0].type)}; cast it")
    return Typed(same, same[0].type)


def _shift_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    value, by = arguments
    t = INT64 if value.type == INT64 else INT32
    return Typed([implicit(value, t, function.title), implicit(by, INT32, function.title)], t)


def _shift(left: bool) -> Callable[..., Datum]:
    def arrow(value: Datum, by: Datum, *, type: pa.DataType) -> Datum:
        known = all_valid(value, by)
        x, n = (numbers(v) for v in spread(value, by))
        count = (n & (type.bit_width - 1)).astype(x.dtype)
        return from_numbers(x << count if left else x >> count, known, type)

    return arrow


def _count(value: Datum, *, type: pa.DataType) -> Datum:
    return from_numbers(np.bitwise_count(numbers(value).astype(np.int64).view(np.uint64)).astype(np.int32), valid(value), INT32)


def _counted(function: Function, arguments: list[Node], zone: str) -> Typed:
    (value,) = arguments
    if not (is_integer(value.type) or value.type in (BOOL, NULL)):
        raise InvalidExpression(f"{function.title} takes a whole number or a boolean, not {name_of(value.type)}; cast it")
    return Typed([value if value.type != NULL else cast(value, INT32)], INT32)


define("&", 2, _integers, lambda a, b, *, type: pc.bit_wise_and(a, b))
define("|", 2, _integers, lambda a, b, *, type: pc.bit_wise_or(a, b))
define("^", 2, _integers, lambda a, b, *, type: pc.bit_wise_xor(a, b))
define("~", 1, _integers, lambda a, *, type: pc.bit_wise_not(a))
define("shiftleft", 2, _shift_typing, _shift(left=True))
define("shiftright", 2, _shift_typing, _shift(left=False))
define("bit_count", 1, _counted, _count)
