"""Casts between text and other types: how Spark formats values, and what it parses."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.expressions.arrays import by_value, from_numbers, numbers, valid
from sash.expressions.casts.numbers import narrowed
from sash.expressions.coercion import BINARY, BOOL, DATE, STRING, is_decimal, is_float, is_integer, is_zoned
from sash.expressions.zones import DAY, to_instants, to_local

SPACE = "".join(map(chr, range(33))) + "\x7f"
"""The characters that are trimmed off text before it is parsed."""

# Values to text.


def to_text(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Values as Spark writes them."""
    t = value.type
    if is_float(t):
        return _floats(value)
    if is_decimal(t):
        return _decimals(value)
    if t == BINARY:
        return by_value(lambda b: b.decode("utf-8", "replace"), STRING, value)
    if t == DATE:
        return _dates(value)
    return _timestamps(value) if pa.types.is_timestamp(t) else value.cast(STRING)


def _floats(value: pa.Array) -> pa.Array:
    """As Java writes them: ``3.0``, ``1.0E17``, ``NaN``."""
    size = pc.abs(value)
    common = pc.fill_null(pc.and_(pc.greater_equal(size, pa.scalar(1e-3, value.type)), pc.less(size, pa.scalar(1e7, value.type))), True)
    shown = value.cast(STRING)
    shown = pc.if_else(pc.match_substring(shown, "."), shown, pc.binary_join_element_wise(shown, ".0", ""))
    if pc.all(common).as_py() is not False:
        return shown
    unusual = pc.if_else(common, pa.scalar(None, value.type), value)
    return pc.if_else(common, shown, by_value(_float_writer(value.type), STRING, unusual))


def _float_writer(t: pa.DataType) -> Callable[[float], str]:
    kind = np.float32 if t == pa.float32() else np.float64

    def write(v: float) -> str:
        if v != v:
            return "NaN"
        if v in (float("inf"), float("-inf")):
            return "Infinity" if v > 0 else "-Infinity"
        if v == 0:
            return "-0.0" if str(v).startswith("-") else "0.0"
        mantissa, _, exponent = np.format_float_scientific(kind(v), unique=True, trim="0").partition("e")
        if mantissa.endswith(".0") and kind(nearest := f"{v:.1e}") == kind(v):  # of two digits Java takes the nearest
            mantissa, _, exponent = nearest.partition("e")
        return f"{mantissa}E{int(exponent)}"

    return write


def _decimals(value: pa.Array) -> pa.Array:
    """Decimals with all their digits, without an exponent."""
    shown = value.cast(STRING)
    if pc.any(pc.match_substring(shown, "E")).as_py():
        return by_value(lambda d: format(d, "f"), STRING, value)
    return shown


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day in the proleptic calendar."""
    month = np.datetime64(days, "D").astype("datetime64[M]")
    since = int(month.astype(np.int64))
    return since // 12 + 1970, since % 12 + 1, days - int(month.astype("datetime64[D]").astype(np.int64)) + 1


def year_shown(year: int) -> str:
    """A year as Java writes it: four digits, and a sign where it has more or lies before the year 0."""
    return ("-" if year < 0 else "+" if year > 9999 else "") + f"{abs(year):04d}"


def _date_shown(days: int) -> str:
    year, month, day = civil(days)
    return f"{year_shown(year)}-{month:02d}-{day:02d}"


_USUAL = [(date(1, 1, 1).toordinal() - date(1970, 1, 1).toordinal()), (date(9999, 12, 31).toordinal() - date(1970, 1, 1).toordinal())]
"""Days of the years that Arrow writes as Java does."""


def _dates(value: pa.Array) -> pa.Array:
    days = numbers(value)
    usual = ~valid(value) | (days >= _USUAL[0]) & (days <= _USUAL[1])
    if usual.all():
        return value.cast(STRING)
    return by_value(_date_shown, STRING, value.view(pa.int32()))


def _timestamps(value: pa.Array) -> pa.Array:
    """The local time, without a zone and without zeros at the end of a fraction."""
    known = valid(value)
    local = numbers(value)
    if is_zoned(value.type):
        local = to_local(local, value.type.tz)
    usual = ~known | (local >= _USUAL[0] * DAY) & (local < (_USUAL[1] + 1) * DAY)
    if not usual.all():
        return by_value(_timestamp_shown, STRING, from_numbers(local, known, pa.int64()))
    return _without_zeros(from_numbers(local, known, pa.timestamp("us")).cast(STRING))


def _without_zeros(shown: pa.Array) -> pa.Array:
    return pc.utf8_rtrim(pc.utf8_rtrim(shown, "0"), ".")


def _timestamp_shown(local: int) -> str:
    days, rest = divmod(local, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{_date_shown(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


# Text to values.


def read_boolean(value: pa.Array, target: pa.DataType) -> pa.Array:
    folded = pc.utf8_lower(pc.utf8_trim(value, SPACE))
    yes = pc.is_in(folded, pa.array(["t", "true", "y", "yes", "1"]))
    no = pc.is_in(folded, pa.array(["f", "false", "n", "no", "0"]))
    return pc.if_else(pc.or_(yes, no), yes, pa.scalar(None, BOOL))


def read_number(value: pa.Array, target: pa.DataType) -> pa.Array:
    trimmed = pc.utf8_trim(value, SPACE)
    if is_integer(target):
        return _integers(trimmed, target)
    return _floats_read(trimmed, target) if is_float(target) else by_value(lambda s: _decimal(s, target), target, trimmed)


def _matching(value: pa.Array, pattern: str) -> pa.Array:
    return pc.if_else(pc.match_substring_regex(value, pattern), value, pa.scalar(None, STRING))


def _integers(value: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        if not pc.any(pc.match_substring(value, "x", ignore_case=True)).as_py():  # Arrow would read 0x10
            return narrowed_integers(value.cast(pa.int64()), target)
    except pa.ArrowInvalid:
        pass
    whole = pc.utf8_ltrim(_matching(value, r"^[+-]?[0-9]+$"), "+")
    try:
        wide = whole.cast(pa.int64())
    except pa.ArrowInvalid:
        wide = by_value(lambda s: int(s) if -(1 << 63) <= int(s) < 1 << 63 else None, pa.int64(), whole)
    return narrowed_integers(wide, target)


def narrowed_integers(wide: pa.Array, target: pa.DataType) -> pa.Array:
    return wide if target == pa.int64() else narrowed(numbers(wide), valid(wide), target)


_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SPECIAL = {"nan": "nan", "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}


def _floats_read(value: pa.Array, target: pa.DataType) -> pa.Array:
    try:
        return value.cast(target)
    except pa.ArrowInvalid:  # Java reads more forms than Arrow, and some text is no number
        return by_value(lambda s: _float(s, target), target, value)


def _float(text: str, target: pa.DataType) -> float | None:
    text = _SPECIAL.get(text.lower(), text[:-1] if re.fullmatch(r".*[0-9.][dDfF]", text) else text)
    if text not in _SPECIAL.values() and not re.match(_FLOAT, text):
        return None
    if target != pa.float32():
        return float(text)
    with np.errstate(over="ignore"):
        return float(np.float32(text))


def _decimal(text: str, target: pa.DataType) -> Decimal | None:
    if not re.match(_FLOAT, text):
        return None
    try:
        value = Decimal(text)
        if value and value.adjusted() > 40:
            return None
        if value.adjusted() < -80:
            value = Decimal(0)
        rounded = Context(prec=200, rounding=ROUND_HALF_UP).quantize(value, Decimal(1).scaleb(-target.scale))
    except (InvalidOperation, OverflowError):
        return None
    return rounded if abs(rounded) < Decimal(10) ** (target.precision - target.scale) else None


_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?$"
_DATE = r"(?P<year>[+-]?[0-9]{4,7})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})%s)?)?"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?\s*(?P<zone>.*)"
_AS_DATE = re.compile(_DATE % r"(?:[ T].*)?", re.DOTALL)
_AS_TIMESTAMP = re.compile(_DATE % rf"(?:[ T](?:{_TIME})?)?")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")


def read_time(value: pa.Array, target: pa.DataType) -> pa.Array:
    """Dates and timestamps; text without a zone is local time."""
    trimmed = pc.utf8_trim(value, SPACE)
    if target == DATE:
        return from_numbers(*_ticks(by_value(lambda s: _date(s), pa.int64(), trimmed)), DATE)
    iso = pc.match_substring_regex(trimmed, _ISO)
    if pc.all(iso).as_py() is not False:
        try:
            local = trimmed.cast(pa.timestamp("us"))
            return from_numbers(to_instants(numbers(local), target.tz), valid(local), target) if is_zoned(target) else local
        except pa.ArrowInvalid:
            pass
    zone = target.tz
    return from_numbers(*_ticks(by_value(lambda s: _timestamp(s, zone), pa.int64(), trimmed)), target)


def _ticks(values: pa.Array) -> tuple[Any, Any]:
    return numbers(values), valid(values)


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since the epoch in the proleptic calendar; None if there is no such day."""
    cycles, within = divmod(year - 1, 400)
    try:
        return date(within + 1, month, day).toordinal() - date(1970, 1, 1).toordinal() + cycles * 146_097
    except ValueError:
        return None


def _day(match: re.Match[str]) -> int | None:
    return days_of(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))


def _date(text: str) -> int | None:
    match = _AS_DATE.fullmatch(text)
    days = _day(match) if match else None
    return days if days is not None and -(1 << 31) <= days < 1 << 31 else None


def _timestamp(text: str, zone: str | None) -> int | None:
    match = _AS_TIMESTAMP.fullmatch(text)
    days = _day(match) if match else None
    if match is None or days is None:
        return None
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match["fraction"] or "")[:6].ljust(6, "0"))
    local = days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    if not -(1 << 63) <= local < 1 << 63:
        return None
    own = (match["zone"] or "").strip()
    if not own or zone is None:
        return local if zone is None and (not own or _shift(own, local) is not None) else _instant(local, zone)
    return _shift(own, local)


def _instant(local: int, zone: str | None) -> int:
    return int(to_instants(np.array([local]), zone or "UTC")[0])


def _shift(name: str, local: int) -> int | None:
    """The instant of a local time in the zone that the text names; None if there is no such zone."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return local
    match = _OFFSET.fullmatch(name)
    if match:
        hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
        if hours > 18 or minutes > 59 or seconds > 59 or (hours == 18 and (minutes or seconds)):
            return None
        offset = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
        return local - (offset if match[1] == "+" else -offset)
    try:
        return _instant(local, name)
    except (pa.ArrowInvalid, ValueError):
        return None


__all__ = ["days_of", "read_boolean", "read_number", "read_time", "to_text"]
