"""Rows that arrive one by one as dictionaries of Python values: checked without Arrow, so that a row costs microseconds."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sash.types import FAR_AHEAD

_FAR = FAR_AHEAD >> 1
_LONG = 1 << 63
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

Check = Callable[[Any], bool]


def _is_long(value: int) -> bool:
    return -_LONG <= value < _LONG


def _is_naive(value: datetime.datetime) -> bool:
    return value.tzinfo is None


def _is_aware(value: datetime.datetime) -> bool:
    return value.tzinfo is not None


class PythonRows:
    """Checks which rows fit a schema without conversion, and converts their times to ticks."""

    def __init__(self, schema: pa.Schema, time: str) -> None:
        self._names = set(schema.names)
        self._time = time
        self.tick: Callable[[Any], int | None] = _no_tick
        """A point in time as a tick; None if it has to go through Arrow."""
        self._kinds: list[tuple[str, type, Check | None]] | None = []
        for field in schema:
            kind = _kind(field.type)
            if kind is None:
                self._kinds = None
                return
            if field.name != time:
                self._kinds.append((field.name, *kind))
        t = schema.field(time).type
        if pa.types.is_timestamp(t) and t.unit == "us":
            self.tick = _ticks_of(t)
        elif pa.types.is_int64(t):
            self.tick = _integer
        else:
            self._kinds = None

    def ticks(self, rows: list[Any]) -> list[int] | None:
        """The rows' times as ticks; None if some row has to go through Arrow."""
        kinds = self._kinds
        if kinds is None:
            return None
        ticks = []
        for row in rows:
            if type(row) is not dict or row.keys() != self._names:
                return None
            tick = self.tick(row[self._time])
            if tick is None:
                return None
            for name, kind, check in kinds:
                value = row[name]
                if value is None:
                    continue
                if type(value) is not kind or (check is not None and not check(value)):
                    return None
            ticks.append(tick)
        return ticks


def _kind(t: pa.DataType) -> tuple[type, Check | None] | None:
    """The Python type whose values fit a column without loss, and a check of the value; None if there is no such type."""
    kinds: dict[pa.DataType, tuple[type, Check | None]] = {
        pa.int64(): (int, _is_long), pa.float64(): (float, None), pa.string(): (str, None), pa.bool_(): (bool, None),
    }  # fmt: skip
    if pa.types.is_timestamp(t) and t.unit == "us":  # Python's own unit
        return datetime.datetime, _is_naive if t.tz is None else _is_aware
    return kinds.get(t)


def _no_tick(value: Any) -> None:
    return None


def _integer(value: Any) -> int | None:
    return value if type(value) is int and -_FAR < value < _FAR else None


def _ticks_of(t: pa.DataType) -> Callable[[Any], int | None]:
    aware = t.tz is not None
    epoch = _EPOCH_UTC if aware else _EPOCH

    def tick(value: Any) -> int | None:
        if type(value) is not datetime.datetime or (value.tzinfo is not None) is not aware:
            return None
        since = value - epoch
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    return tick
