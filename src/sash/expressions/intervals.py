"""Intervals as SQL writes them: ``interval 1 hour``, ``interval '1 day 2 hours'``, ``interval '3' month``."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions.coercion import DURATION, MONTHS

_MICROS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000,
    "week": 604_800_000_000,
}  # fmt: skip
_IN_MONTHS = {"month": 1, "year": 12}
_PAIR = re.compile(r"\s*([+-]?\s*[0-9]*\.?[0-9]+)\s+([a-zA-Z]+)\s*")
_CLOCK = re.compile(r"\s*([+-]?)(?:(\d+) )?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?\s*")


def interval_literal(node: Any) -> tuple[pa.Scalar, pa.DataType]:
    """An interval's value and type."""
    shown = node.sql(dialect="spark")
    amount = node.this
    if amount is None or (not getattr(amount, "is_string", False) and not getattr(amount, "is_number", False)):
        raise InvalidExpression(f"{shown}: an interval's length must be a constant; multiply `interval 1 day` by a column instead")
    text, unit = str(amount.name), node.args.get("unit")
    try:
        if unit is None:
            return _summed(_pairs(text))
        if type(unit).__name__ == "IntervalSpan":
            return _span(text, unit.this.name.lower(), unit.expression.name.lower())
        return _summed([(Decimal(text), unit.name.lower())])
    except (InvalidOperation, ValueError, KeyError) as error:
        raise InvalidExpression(f"{shown} is not an interval; write e.g. interval 1 hour, or interval '1 day 2 hours'") from error


def _pairs(text: str) -> list[tuple[Decimal, str]]:
    pairs, place = [], 0
    while match := _PAIR.match(text, place):
        pairs.append((Decimal(match[1].replace(" ", "")), match[2].lower()))
        place = match.end()
    if place != len(text) or not pairs:
        raise ValueError(text)
    return pairs


def _summed(pairs: list[tuple[Decimal, str]]) -> tuple[pa.Scalar, pa.DataType]:
    units = [(amount, unit.removesuffix("s")) for amount, unit in pairs]
    if all(unit in _IN_MONTHS for _, unit in units):
        months = sum(amount * _IN_MONTHS[unit] for amount, unit in units)
        return pa.scalar(pa.MonthDayNano([_whole(months), 0, 0]), MONTHS), MONTHS
    micros = sum(amount * _MICROS[unit] for amount, unit in units)
    return pa.scalar(_whole(micros), DURATION), DURATION


def _whole(amount: Any) -> int:
    if amount != int(amount):
        raise ValueError(amount)
    return int(amount)


def _span(text: str, first: str, last: str) -> tuple[pa.Scalar, pa.DataType]:
    """``interval '1 02:03:04' day to second`` and ``interval '1-2' year to month``."""
    if (first, last) == ("year", "month"):
        match = re.fullmatch(r"\s*([+-]?)(\d+)-(\d+)\s*", text)
        if match is None:
            raise ValueError(text)
        months = (int(match[2]) * 12 + int(match[3])) * (-1 if match[1] == "-" else 1)
        return pa.scalar(pa.MonthDayNano([months, 0, 0]), MONTHS), MONTHS
    match = _CLOCK.fullmatch(text)
    if match is None or last not in ("second", "minute") or first not in ("day", "hour") or (match[2] is None) != (first == "hour"):
        raise ValueError(text)
    if (match[5] is None) != (last == "minute"):
        raise ValueError(text)
    days, hours, minutes, seconds = (int(match[k] or 0) for k in (2, 3, 4, 5))
    micros = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000 + int((match[6] or "").ljust(6, "0") or 0)
    return pa.scalar(-micros if match[1] == "-" else micros, DURATION), DURATION
