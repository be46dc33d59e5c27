"""Rows that have a time: their ticks, and their keys as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.errors import InvalidArgument
from sash.plan.logical import Plan
from sash.slicing.rows.keys import Keys, encode, span_of
from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TimedRows:
    """The rows of a table that have a time, with the keys of that table."""

    table: pa.Table
    ticks: Array
    keys: Keys
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class KeyedRows:
    """Rows of a stream, with key numbers that stay the same from batch to batch."""

    table: pa.Table
    ticks: Array
    codes: Array
    """The numbers of the rows' keys."""
    ids: Array
    """The rows' numbers, in the order of arrival, where a store retains rows."""
    first: int
    last: int

    def __len__(self) -> int:
        return len(self.ticks)

    def where(self, flags: Array) -> KeyedRows:
        """The rows whose flag is set."""
        if flags.all():
            return self
        ticks = self.ticks[flags]
        return KeyedRows(self.table.filter(pa.array(flags)), ticks, self.codes[flags], self.ids[flags], *span_of(ticks))

    def since(self, tick: int) -> KeyedRows:
        """The rows from a time on."""
        return self if not len(self) or self.first >= tick else self.where(self.ticks >= tick)


def read(plan: Plan, table: pa.Table) -> TimedRows:
    """The rows of a table that have a time."""
    table = table.select(list(plan.reads))
    time = arrow_column(table.column(plan.time))
    if time.null_count:
        known = time.is_valid()
        table, time = table.filter(known), time.filter(known)
    ticks = plan.measure.column(time)
    first, last = span_of(ticks)
    check_span(first, last, plan.time)
    return TimedRows(table, ticks, encode(table, plan.by), first, last)


def check_span(first: int, last: int, name: str) -> None:
    """Raise if times are too near the ends of 64 bits for windows to be computed around them."""
    if not -(FAR_AHEAD >> 1) < first <= last < FAR_AHEAD >> 1:
        raise InvalidArgument(
            f"the time column {name!r} holds a value beyond ±2**61; windows around it cannot be computed in 64 bits "
            "(nanoseconds reach from 1896 to 2043: cast such a column to microseconds)"
        )
