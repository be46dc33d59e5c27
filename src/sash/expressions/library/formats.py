"""Times to text and back by a pattern of Java's letters, of which those with a fixed number of digits are known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions.arrays import by_value, from_numbers, numbers, spread, valid
from sash.expressions.casts.text import civil, days_of, year_shown
from sash.expressions.coercion import BINARY, BOOL, DATE, INT64, NULL, STRING, cast, implicit, is_time, is_zoned, timestamp
from sash.expressions.library.calendar import local_time
from sash.expressions.nodes import Constant, Node
from sash.expressions.table import Datum, Function, Typed, Typing, definer
from sash.expressions.zones import DAY, to_instants

define = definer(__name__)

SECOND = 1_000_000
_LETTERS = {
    "yyyy": ("year", 4), "MM": ("month", 2), "dd": ("day", 2), "HH": ("hour", 2), "mm": ("minute", 2), "ss": ("second", 2),
    **{"S" * n: ("fraction", n) for n in range(1, 7)},
}  # fmt: skip
_TOKEN = re.compile(r"([a-zA-Z])\1*|'((?:[^']|'')*)'|[^a-zA-Z']+")
DEFAULT = "yyyy-MM-dd HH:mm:ss"


def parts_of(pattern: str) -> list[tuple[str, int] | str]:
    """A pattern as fields with their digits, and the text between them."""
    parts: list[tuple[str, int] | str] = []
    place = 0
    while place < len(pattern):
        match = _TOKEN.match(pattern, place)
        if match is None:
            raise InvalidExpression(f"the pattern {pattern!r} has a quote that is not closed")
        token = match[0]
        place = match.end()
        if match[1]:
            if token not in _LETTERS:
                raise InvalidExpression(f"the pattern {pattern!r} has {token!r}; known: {', '.join(_LETTERS)}, and text in single quotes")
            parts.append(_LETTERS[token])
        else:
            parts.append((match[2].replace("''", "'") or "'") if match[2] is not None else token)
    return parts


def _pattern(function: Function, arguments: list[Node], place: int) -> str:
    if len(arguments) <= place:
        return DEFAULT
    pattern = arguments[place]
    if not isinstance(pattern, Constant) or pattern.type != STRING or pattern.value.as_py() is None:
        raise InvalidExpression(f"{function.title}: the pattern must be a text constant")
    parts_of(pattern.value.as_py())
    return str(pattern.value.as_py())


def written(value: pa.Array, pattern: str) -> pa.Array:
    """Times as text."""
    local = numbers(local_time(value)).astype(np.int64) * (DAY if value.type == DATE else 1)
    parts = parts_of(pattern)

    def one(micros: int) -> str:
        days, rest = divmod(micros, DAY)
        seconds, fraction = divmod(rest, SECOND)
        year, month, day = civil(days)
        fields = {"month": month, "day": day, "hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}
        out = []
        for part in parts:
            if isinstance(part, str):
                out.append(part)
            elif part[0] == "fraction":
                out.append(f"{fraction:06d}"[: part[1]])
            elif part[0] == "year":
                out.append(year_shown(year))
            else:
                out.append(f"{fields[part[0]]:02d}")
        return "".join(out)

    return by_value(one, STRING, from_numbers(local, valid(value), INT64))


def read(value: pa.Array, pattern: str, zone: str | None) -> pa.Array:
    """Text as microseconds: local times, or instants in ``zone``; null where it does not match."""
    names, regex = [], ""
    for part in parts_of(pattern):
        if isinstance(part, str):
            regex += re.escape(part)
        else:
            names.append(part[0])
            regex += r"(-?[0-9]{4}|\+[0-9]{5,9})" if part[0] == "year" else rf"([0-9]{{{part[1]}}})"
    compiled = re.compile(regex)

    def one(text: str) -> int | None:
        match = compiled.fullmatch(text)
        if match is None:
            return None
        fields: dict[str, Any] = dict(zip(names, match.groups(), strict=True))
        days = days_of(int(fields.get("year", 1970)), int(fields.get("month", 1)), int(fields.get("day", 1)))
        hour, minute, second = (int(fields.get(k, 0)) for k in ("hour", "minute", "second"))
        if days is None or hour > 23 or minute > 59 or second > 59:
            return None
        return days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + int(fields.get("fraction", "0").ljust(6, "0"))

    local = by_value(one, INT64, value)
    return local if zone is None else from_numbers(to_instants(numbers(local), zone), valid(local), INT64)


def _text_of(pattern: Datum | None) -> str:
    return DEFAULT if pattern is None else str((pattern if isinstance(pattern, pa.Scalar) else pattern[0]).as_py())


# Functions.


def _format_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    _pattern(function, arguments, 1)
    return Typed([implicit(arguments[0], timestamp(zone), function.title), arguments[1]], STRING)


define("date_format", 2, _format_typing, lambda v, p, *, type: written(_array(v, p), _text_of(p)))


def _array(value: Datum, other: Datum | None) -> pa.Array:
    return value if not isinstance(value, pa.Scalar) or other is None else spread(value, other)[0]


def _parse_typing(target: str) -> Typing:
    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        value = arguments[0]
        t = DATE if target == "date" else timestamp(zone)
        if len(arguments) == 1:
            return Typed([cast(value, t)], t)
        _pattern(function, arguments, 1)
        if is_time(value.type):
            return Typed([cast(value, t), arguments[1]], t)
        if value.type not in (STRING, BINARY, BOOL, NULL):
            raise InvalidExpression(f"{function.title} takes a time or text, not {value.type}; cast it")
        return Typed([cast(value, STRING), arguments[1]], t)

    return typing


def _parse(value: Datum, pattern: Datum | None = None, *, type: pa.DataType) -> Datum:
    if value.type == type:
        return value
    local = read(_array(value, pattern), _text_of(pattern), type.tz if is_zoned(type) else None)
    ticks = numbers(local)
    return from_numbers(ticks // DAY if type == DATE else ticks, valid(local), type)


UNREADABLE = "some text does not match the pattern; use the try_ form to get null there"
define("to_date", (1, 2), _parse_typing("date"), _parse, undefined=UNREADABLE)
define("to_timestamp", (1, 2), _parse_typing("timestamp"), _parse, undefined=UNREADABLE)
define("try_to_timestamp", (1, 2), _parse_typing("timestamp"), _parse)


def _unix_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    value = arguments[0]
    _pattern(function, arguments, 1)
    if is_time(value.type):
        return Typed([cast(value, timestamp(zone)), *arguments[1:]], INT64)
    if value.type not in (STRING, NULL):
        raise InvalidExpression(f"{function.title} takes a time or text, not {value.type}; cast it")
    return Typed([cast(value, STRING), *arguments[1:], Constant(STRING, pa.scalar(zone))], INT64)


def _unix(value: Datum, *others: Datum, type: pa.DataType) -> Datum:
    if value.type != STRING:
        return _seconds(value)
    *pattern, zone = others
    return _seconds(read(_array(value, zone), _text_of(pattern[0] if pattern else None), _text_of(zone)))


def _seconds(value: pa.Array) -> pa.Array:
    """Whole seconds, towards the epoch."""
    micros = numbers(value)
    return from_numbers(micros // SECOND + ((micros < 0) & (micros % SECOND != 0)), valid(value), INT64)


def _from_unix_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    _pattern(function, arguments, 1)
    return Typed([implicit(arguments[0], INT64, function.title), *arguments[1:], Constant(STRING, pa.scalar(zone))], STRING)


def _from_unix(value: Datum, *others: Datum, type: pa.DataType) -> Datum:
    *pattern, zone = others
    seconds = numbers(value)
    fits = np.abs(seconds) < (1 << 63) // SECOND
    times = from_numbers(np.where(fits, seconds, 0) * SECOND, valid(value) & fits, timestamp(_text_of(zone)))
    return written(times, _text_of(pattern[0] if pattern else None))


define("unix_timestamp", (1, 2), _unix_typing, _unix, "to_unix_timestamp", undefined=UNREADABLE)
define("from_unixtime", (1, 2), _from_unix_typing, _from_unix)
