"""Parts of dates and times, dates from parts, and steps in the calendar."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression
from sash.expressions import decimals
from sash.expressions.arrays import Array, all_valid, by_value, from_numbers, numbers, spread, valid
from sash.expressions.casts.text import days_of
from sash.expressions.coercion import DATE, DOUBLE, INT32, NTZ, STRING, implicit, is_zoned, timestamp
from sash.expressions.library.arithmetic import add_months
from sash.expressions.nodes import Constant, Node
from sash.expressions.table import SAME, ZONED, Datum, Function, Typed, Typing, definer, takes
from sash.expressions.zones import DAY, to_instants, to_local

define = definer(__name__)

OUTSIDE = "the date does not exist, or lies outside the range of dates"
DECIMAL_SECOND = pa.decimal128(8, 6)


def local_time(value: pa.Array) -> pa.Array:
    """A timestamp as the local time of its zone; other values as they are."""
    if value.type == DATE:
        return value
    if not is_zoned(value.type):
        return value
    return from_numbers(to_local(numbers(value), value.type.tz), valid(value), NTZ)


# Parts.


def _fields(compute: Callable[[pa.Array], pa.Array]) -> Callable[..., Datum]:
    return lambda value, *, type: compute(local_time(value)).cast(INT32)


def _clock(function: Function, arguments: list[Node], zone: str) -> Typed:
    """Parts of the time of day: a date is its midnight."""
    (value,) = arguments
    return Typed([value if value.type == NTZ else implicit(value, timestamp(zone), function.title)], INT32)


def _day_of_week(value: pa.Array) -> pa.Array:
    return pc.day_of_week(value, count_from_zero=False, week_start=7)


_PARTS: dict[str, tuple[Callable[[pa.Array], pa.Array], Typing, tuple[str, ...]]] = {
    "year": (pc.year, takes(DATE, returns=INT32), ()),
    "quarter": (pc.quarter, takes(DATE, returns=INT32), ()),
    "month": (pc.month, takes(DATE, returns=INT32), ()),
    "dayofmonth": (pc.day, takes(DATE, returns=INT32), ("day",)),
    "dayofweek": (_day_of_week, takes(DATE, returns=INT32), ()),
    "weekday": (lambda v: pc.day_of_week(v), takes(DATE, returns=INT32), ()),
    "dayofyear": (pc.day_of_year, takes(DATE, returns=INT32), ()),
    "weekofyear": (pc.iso_week, takes(DATE, returns=INT32), ()),
    "yearofweek": (pc.iso_year, takes(DATE, returns=INT32), ()),
    "dayofweek_iso": (lambda v: pc.day_of_week(v, count_from_zero=False), takes(DATE, returns=INT32), ()),
    "hour": (pc.hour, _clock, ()),
    "minute": (pc.minute, _clock, ()),
    "second": (pc.second, _clock, ()),
}
_OWN = {"yearofweek", "dayofweek_iso"}
"""Parts that only ``extract`` knows."""
for _name, (_compute, _typing, _aliases) in _PARTS.items():
    if _name not in _OWN:
        define(_name, 1, _typing, _fields(_compute), *_aliases)

_EXTRACTED = {
    **dict.fromkeys(["year", "y", "years", "yr", "yrs"], "year"),
    **dict.fromkeys(["quarter", "qtr"], "quarter"),
    **dict.fromkeys(["month", "mon", "mons", "months"], "month"),
    **dict.fromkeys(["week", "w", "weeks"], "weekofyear"),
    **dict.fromkeys(["day", "d", "days"], "dayofmonth"),
    **dict.fromkeys(["dayofweek", "dow"], "dayofweek"),
    **dict.fromkeys(["dayofweek_iso", "dow_iso"], "dayofweek_iso"),
    **dict.fromkeys(["doy"], "dayofyear"),
    **dict.fromkeys(["hour", "h", "hours", "hr", "hrs"], "hour"),
    **dict.fromkeys(["minute", "m", "min", "mins", "minutes"], "minute"),
    **dict.fromkeys(["second", "s", "sec", "seconds", "secs"], "seconds"),
    "yearofweek": "yearofweek",
}


def part_named(node: Node, function: Function) -> str:
    """The name of a part of dates, which must be a constant."""
    if not isinstance(node, Constant) or node.type != STRING or node.value.as_py() is None:
        raise InvalidExpression(f"{function.title}: the part must be a text constant, e.g. 'hour'")
    return str(node.value.as_py()).lower()


def _extract_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    part = _EXTRACTED.get(part_named(arguments[0], function))
    if part is None:
        raise InvalidExpression(f"{function.title}: {arguments[0].value.as_py()!r} is no part of a time; known: {', '.join(_EXTRACTED)}")  # type: ignore[attr-defined]
    if part == "seconds":
        return Typed([arguments[0], *_clock(function, arguments[1:], zone).arguments], DECIMAL_SECOND)
    return Typed([arguments[0], *_PARTS[part][1](function, arguments[1:], zone).arguments], INT32)


def _extract(part: Datum, value: Datum, *, type: pa.DataType) -> Datum:
    name = _EXTRACTED[(part if isinstance(part, pa.Scalar) else part[0]).as_py().lower()]
    if name != "seconds":
        return _PARTS[name][0](local_time(value)).cast(INT32)
    return decimals.from_digits(numbers(local_time(value)) % 60_000_000, valid(value), DECIMAL_SECOND)


define("date_part", 2, _extract_typing, _extract, "datepart", undefined="")


# Truncation.

_UNITS = {
    **dict.fromkeys(["year", "yyyy", "yy"], "Y"),
    "quarter": "Q",
    **dict.fromkeys(["month", "mon", "mm"], "M"),
    "week": "W",
    **dict.fromkeys(["day", "dd"], DAY),
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


def _day_begins(days: Array, unit: object) -> Array:
    """The first day of the year, quarter, month or week that a day lies in."""
    if unit == "W":
        return np.asarray(days - (days + 3) % 7)  # the epoch was a Thursday
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    if unit == "Q":
        whole = months.astype(np.int64)
        months = (whole - whole % 3).astype("datetime64[M]")
    elif unit == "Y":
        months = months.astype("datetime64[Y]").astype("datetime64[M]")
    result: Array = months.astype("datetime64[D]").astype(np.int64)
    return result


def _truncated(unit: Datum, value: Datum, *, type: pa.DataType) -> Datum:
    """``date_trunc``; null for a unit that does not exist."""
    units = [None if u is None else _UNITS.get(u.lower()) for u in ([unit.as_py()] if isinstance(unit, pa.Scalar) else unit.to_pylist())]
    known = all_valid(unit, value)
    (values,) = spread(value) if not isinstance(value, pa.Scalar) else (pa.repeat(value, len(units)),)
    micros = numbers(values)
    result = np.zeros(len(micros), np.int64)
    for u in dict.fromkeys(units):
        here = np.array([x == u for x in units]) if len(units) == len(micros) else np.ones(len(micros), bool)
        if u is None:
            known &= ~here
            continue
        some = micros[here]
        if isinstance(u, int) and u < 1_000_000:
            result[here] = some - some % u
            continue
        local = to_local(some, type.tz)
        local = local - local % u if isinstance(u, int) else _day_begins(local // DAY, u) * DAY
        # Within an hour no clock is set, so that the offset stays; days and more begin at midnight of the calendar.
        result[here] = to_instants(local, type.tz) if not isinstance(u, int) or u == DAY else local - (to_local(some, type.tz) - some)
    return from_numbers(result, known, type)


def _date_truncated(value: Datum, unit: Datum, *, type: pa.DataType) -> Datum:
    """``trunc``: the first day of a week, month, quarter or year; null for other units."""
    names = [unit.as_py()] if isinstance(unit, pa.Scalar) else unit.to_pylist()
    units = [None if n is None or isinstance(_UNITS.get(n.lower()), int) else _UNITS.get(n.lower()) for n in names]
    days = numbers(value).astype(np.int64) if not isinstance(value, pa.Scalar) else numbers(pa.repeat(value, len(units))).astype(np.int64)
    known = all_valid(value, unit)
    result = np.zeros(len(days), np.int64)
    for u in dict.fromkeys(units):
        here = np.array([x == u for x in units]) if len(units) == len(days) else np.ones(len(days), bool)
        if u is None:
            known &= ~here
        else:
            result[here] = _day_begins(days[here], u)
    return from_numbers(result, known, DATE)


def _trunc_typing(typing: Typing, unit: int, *, days_only: bool) -> Typing:
    """The result is null where the unit is a constant that does not exist, whatever the time."""

    def typed(function: Function, arguments: list[Node], zone: str) -> Typed:
        result = typing(function, arguments, zone)
        unit_node = result.arguments[unit]
        if isinstance(unit_node, Constant):
            known_unit = _UNITS.get(str(unit_node.value.as_py()).lower())
            if known_unit is None or (days_only and isinstance(known_unit, int)):
                parts = [a if k == unit else Constant(a.type, pa.scalar(None, a.type)) for k, a in enumerate(result.arguments)]
                return Typed(parts, result.type)
        return result

    return typed


define("date_trunc", 2, _trunc_typing(takes(STRING, ZONED, returns=ZONED), 0, days_only=False), _truncated)
define("trunc", 2, _trunc_typing(takes(DATE, STRING, returns=DATE), 1, days_only=True), _date_truncated)


# Steps and distances.


def _days_later(sign: int) -> Callable[..., Datum]:
    def arrow(value: Datum, days: Datum, *, type: pa.DataType) -> Datum:
        known = all_valid(value, days)
        start, step = (numbers(v).astype(np.int64) for v in spread(value, days))
        moved = start + sign * step
        return from_numbers(moved, known & (moved >= -(1 << 31)) & (moved < 1 << 31), DATE)

    return arrow


def _months_later(value: Datum, months: Datum, *, type: pa.DataType) -> Datum:
    known = all_valid(value, months)
    start, step = (numbers(v).astype(np.int64) for v in spread(value, months))
    moved = add_months(start, step)
    return from_numbers(moved, known & (moved >= -(1 << 31)) & (moved < 1 << 31), DATE)


def _days_between(end: Datum, start: Datum, *, type: pa.DataType) -> Datum:
    known = all_valid(end, start)
    a, b = (numbers(v).astype(np.int64) for v in spread(end, start))
    return from_numbers((a - b).astype(np.int32), known, INT32)


def _last_day(value: Datum, *, type: pa.DataType) -> Datum:
    months = numbers(value).astype(np.int64).astype("datetime64[D]").astype("datetime64[M]")
    return from_numbers((months + 1).astype("datetime64[D]").astype(np.int64) - 1, valid(value), DATE)


def _step_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    value, step = arguments
    if step.type not in (pa.int8(), pa.int16(), INT32, pa.null()) and not isinstance(step, Constant):
        raise InvalidExpression(f"{function.title} takes days as int, not {step.type}; cast them")
    return Typed([implicit(value, DATE, function.title), implicit(step, INT32, function.title)], DATE)


define("date_add", 2, _step_typing, _days_later(1), "dateadd", undefined=OUTSIDE)
define("date_sub", 2, _step_typing, _days_later(-1), undefined=OUTSIDE)
define("datediff", 2, takes(DATE, returns=INT32), _days_between, "date_diff")
define("add_months", 2, takes(DATE, INT32, returns=DATE), _months_later, undefined=OUTSIDE)
define("last_day", 1, takes(DATE, returns=DATE), _last_day)


def _make_date(year: Datum, month: Datum, day: Datum, *, type: pa.DataType) -> Datum:
    epoch_days = by_value(lambda y, m, d: days_of(y, m, d) if abs(y) < 1 << 22 else None, pa.int64(), *spread(year, month, day))
    days = numbers(epoch_days)
    return from_numbers(days, valid(epoch_days) & (np.abs(days) < 1 << 31), DATE)


define("make_date", 3, takes(INT32, returns=DATE), _make_date, undefined=OUTSIDE)

__all__ = ["DOUBLE", "SAME", "local_time", "part_named"]
