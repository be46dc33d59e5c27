"""Timestamps and numbers since the epoch, and clocks of other zones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sash.errors import InvalidExpression, UndefinedValue
from sash.expressions import decimals
from sash.expressions.arrays import all_valid, from_numbers, numbers, spread, valid
from sash.expressions.casts.numbers import saturated
from sash.expressions.coercion import (
    DATE,
    DOUBLE,
    INT32,
    INT64,
    NTZ,
    NULL,
    STRING,
    cast,
    implicit,
    is_decimal,
    is_float,
    is_number,
    is_zoned,
    name_of,
)
from sash.expressions.coercion import timestamp as timestamp_type
from sash.expressions.nodes import Node
from sash.expressions.table import Datum, Function, Typed, Typing, definer
from sash.expressions.zones import DAY, to_instants, to_local

define = definer(__name__)


def _instant(function: Function, arguments: list[Node], zone: str) -> Typed:
    """A timestamp; text and dates are not cast to one."""
    (value,) = arguments
    if not pa.types.is_timestamp(value.type) and value.type != NULL:
        raise InvalidExpression(f"{function.title} takes a timestamp, not {name_of(value.type)}; cast it")
    return Typed([cast(value, timestamp_type(zone))], INT64)


def _since(unit: int) -> Callable[..., Datum]:
    return lambda value, *, type: from_numbers(numbers(value) // unit, valid(value), INT64)


define("unix_seconds", 1, _instant, _since(1_000_000))
define("unix_millis", 1, _instant, _since(1_000))
define("unix_micros", 1, _instant, _since(1))


def _from_epoch_typing(*, whole: bool) -> Typing:
    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        (value,) = arguments
        if value.type == NULL:
            value = cast(value, INT64)
        if not is_number(value.type) or (whole and not pa.types.is_integer(value.type)):
            raise InvalidExpression(f"{function.title} takes {'whole ' * whole}numbers, not {name_of(value.type)}; cast it")
        return Typed([value], timestamp_type(zone))

    return typing


def _from_epoch(unit: int) -> Callable[..., Datum]:
    def arrow(value: Datum, *, type: pa.DataType) -> Datum:
        known = valid(value)
        if is_float(value.type):
            floats = numbers(value).astype(np.float64)
            with np.errstate(all="ignore"):
                return from_numbers(saturated(np.where(np.isfinite(floats), floats, 0.0) * unit, INT64), known & np.isfinite(floats), type)
        if is_decimal(value.type):
            whole, scale = decimals.digits_of(value), value.type.scale
            exact = whole.astype(object) * unit
            if scale:
                if (exact % 10**scale != 0).any():
                    raise UndefinedValue("timestamp_seconds would cut off digits below a microsecond; round first")
                exact = exact // 10**scale
        else:
            exact = numbers(value).astype(object) * unit
        fits = ((exact >= -(1 << 63)) & (exact < 1 << 63)).astype(bool)
        if not (fits | ~known).all():
            raise UndefinedValue("the time lies outside the range of timestamps")
        return from_numbers(np.where(fits, exact, 0).astype(np.int64), known, type)

    return arrow


define("timestamp_seconds", 1, _from_epoch_typing(whole=False), _from_epoch(1_000_000))
define("timestamp_millis", 1, _from_epoch_typing(whole=True), _from_epoch(1_000))
define("timestamp_micros", 1, _from_epoch_typing(whole=True), _from_epoch(1))


def _date_only(function: Function, arguments: list[Node], zone: str) -> Typed:
    (value,) = arguments
    if value.type not in (DATE, NULL):
        raise InvalidExpression(f"{function.title} takes a date, not {name_of(value.type)}; cast it")
    return Typed([cast(value, DATE)], INT32)


def _from_days(function: Function, arguments: list[Node], zone: str) -> Typed:
    return Typed([implicit(arguments[0], INT32, function.title)], DATE)


define("unix_date", 1, _date_only, lambda v, *, type: from_numbers(numbers(v), valid(v), INT32))
define("date_from_unix_date", 1, _from_days, lambda v, *, type: from_numbers(numbers(v), valid(v), DATE))


# Clocks of other zones.


def _zone_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    value, name = arguments
    t = timestamp_type(zone)
    return Typed([implicit(value, t, function.title), implicit(name, STRING, function.title)], t)


def _shifted(towards: bool) -> Callable[..., Datum]:
    """From UTC to a zone's local time, or back."""

    def arrow(value: Datum, zone: Datum, *, type: pa.DataType) -> Datum:
        known = all_valid(value, zone)
        values, zones = spread(value, zone)
        micros, result = numbers(values), np.zeros(len(known), np.int64)
        names = np.array(zones.to_pylist(), object)
        for name in {n for n in names if n is not None}:
            here = names == name
            try:
                result[here] = (to_local if towards else to_instants)(micros[here], name)
            except (pa.ArrowInvalid, ValueError) as error:
                raise UndefinedValue(f"{name!r} is no time zone") from error
        moved = result - micros  # at the ends of 64 bits it wraps around
        if (known & (np.abs(moved) > 2 * DAY)).any():
            raise UndefinedValue("the time lies outside the range of timestamps")
        return from_numbers(result, known, type)

    return arrow


define("from_utc_timestamp", 2, _zone_typing, _shifted(towards=True))
define("to_utc_timestamp", 2, _zone_typing, _shifted(towards=False))

__all__ = ["DOUBLE", "NTZ", "is_zoned"]
