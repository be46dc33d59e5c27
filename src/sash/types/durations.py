"""Lengths of time as users write them: Spark's strings, timedeltas, or integers in the unit of an integer time column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

import numpy as np

from sash.errors import InvalidWindow

_NANOS = {
    "nanosecond": 1,
    "microsecond": 1_000,
    "millisecond": 1_000_000,
    "second": 1_000_000_000,
    "minute": 60_000_000_000,
    "hour": 3_600_000_000_000,
    "day": 86_400_000_000_000,
    "week": 604_800_000_000_000,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SHORT = {
    "ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "secs": "second", "m": "minute",
    "min": "minute", "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "d": "day", "w": "week", "mon": "month", "y": "year",
    "yr": "year", "yrs": "year", "micro": "microsecond", "micros": "microsecond", "milli": "millisecond", "millis": "millisecond",
    "nano": "nanosecond", "nanos": "nanosecond",
}  # fmt: skip
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Zµ]+)")

DurationLike = str | timedelta | int
"""What users write for a length of time."""

DAY = _NANOS["day"]
WEEK = _NANOS["week"]


@dataclass(frozen=True)
class Duration:
    """A length of time, or an integer in the unit of an integer time column.

    >>> Duration.of("1 hour 30 minutes", "size")
    1 hour 30 minutes
    >>> Duration.of("2 months", "size").months
    2
    """

    months: int = 0
    nanos: int = 0
    plain: int | None = None
    """The integer, if it is one; a length of time has None. (Snapshots store the fields by name.)"""
    text: str = ""

    @staticmethod
    def of(value: Any, argument: str) -> Duration:
        """The duration that a user wrote; an error names the ``argument``."""
        if isinstance(value, Duration):
            return value
        if isinstance(value, bool):
            raise InvalidWindow(f"{argument} must be a duration such as '10 seconds', not {value!r}")
        if isinstance(value, int | np.integer):
            return Duration(plain=int(value), text=str(value))
        if isinstance(value, timedelta):
            micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
            return Duration(nanos=micros * 1_000, text=str(value))
        if isinstance(value, np.timedelta64):
            if np.isnat(value):
                raise InvalidWindow(f"{argument} must be a duration, not NaT")
            return Duration(nanos=int(value.astype("m8[ns]").astype(np.int64)), text=str(value))
        if isinstance(value, str):
            return Duration._parsed(value, argument)
        raise InvalidWindow(
            f"{argument} must be a duration: text such as '10 seconds', a timedelta, or an integer for an integer time column; "
            f"not {value!r}"
        )

    @staticmethod
    def _parsed(value: str, argument: str) -> Duration:
        months = nanos = 0
        text = value.strip()
        if text.lower().startswith("interval "):
            text = text[9:].strip()
        place = 0
        while place < len(text):
            match = _PART.match(text, place)
            if match is None:
                raise InvalidWindow(f"{argument} {value!r} is not a duration; write it as '10 seconds' or '1 hour 30 minutes'")
            number, unit = match.groups()
            unit = unit.lower().replace("µ", "u")
            unit = _SHORT.get(unit, unit.removesuffix("s"))
            if unit not in _NANOS and unit not in _MONTHS:
                near = get_close_matches(unit, [*_NANOS, *_MONTHS], n=1)
                meant = f" (did you mean {near[0]}s?)" if near else ""
                raise InvalidWindow(
                    f"{argument} {value!r} has the unknown unit {match.group(2)!r}{meant}; known: {', '.join((*_NANOS, *_MONTHS))}"
                )
            whole, _, fraction = number.partition(".")
            if unit in _MONTHS:
                if fraction:
                    raise InvalidWindow(f"{argument} {value!r}: months and years come in whole numbers")
                months += int(whole) * _MONTHS[unit]
            else:
                sign = -1 if whole.startswith("-") else 1
                scaled, rest = divmod(int(fraction or "0") * _NANOS[unit], 10 ** len(fraction))
                if rest:
                    raise InvalidWindow(f"{argument} {value!r} is finer than a nanosecond")
                nanos += int(whole) * _NANOS[unit] + sign * scaled
            place = match.end()
        if not text:
            raise InvalidWindow(f"{argument} is empty; write it as '10 seconds'")
        if months and nanos:
            raise InvalidWindow(f"{argument} {value!r} mixes months with a fixed length; use one of them")
        return Duration(months=months, nanos=nanos, text=value.strip())

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        amount = self.plain if self.plain is not None else self.months or self.nanos
        return (amount > 0) - (amount < 0)

    def __repr__(self) -> str:
        return self.text or f"{self.months or self.nanos}"


def duration_text(nanos: int) -> str:
    """A length of time in the units that people use.

    >>> duration_text(5_400_000_000_000), duration_text(0)
    ('1 hour 30 minutes', '0 seconds')
    """
    parts, rest = [], abs(nanos)
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond"):
        amount, rest = divmod(rest, _NANOS[unit])
        if amount:
            parts.append(f"{amount:,} {unit}{'s' * (amount != 1)}")
    return ("-" if nanos < 0 else "") + " ".join(parts) if parts else "0 seconds"
