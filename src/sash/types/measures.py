"""What windows are measured in: a column that only advances, as 64-bit *ticks* in its own unit."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.errors import InvalidArgument, InvalidType, InvalidWindow
from sash.types.durations import DAY, Duration, duration_text

Array = npt.NDArray[Any]

FAR_BACK = -(1 << 62)
FAR_AHEAD = 1 << 62
"""Ticks lie between these, so that a window's ends can be computed without overflow; they also stand for "no edge"."""

_NANOS_PER_TICK = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True)
class Measure:
    """A time column's type, and the conversion between its values and ticks."""

    type: pa.DataType

    @property
    def nanos_per_tick(self) -> int | None:
        """How long a tick is, in nanoseconds; None for an integer column, whose unit only the user knows."""
        if pa.types.is_timestamp(self.type):
            return _NANOS_PER_TICK[self.type.unit]
        return DAY if pa.types.is_date32(self.type) else 1_000_000 if pa.types.is_date64(self.type) else None

    def ticks(self, duration: Duration, argument: str) -> int:
        """A duration in ticks; raises unless it is a whole number of them."""
        per_tick = self.nanos_per_tick
        if per_tick is None:
            if duration.plain is None:
                raise InvalidWindow(
                    f"{argument} {duration!r} does not fit a time column of type {self.type}; pass an integer in the column's own unit"
                )
            amount = duration.plain
        else:
            if duration.plain is not None:
                raise InvalidWindow(
                    f"{argument} is {duration!r}, and the time column is of type {self.type}; pass a duration such as '10 seconds'"
                )
            if duration.months:
                raise InvalidWindow(
                    f"{argument} {duration!r}: months and years have no fixed length; they are for tumbling and sliding windows"
                )
            amount, rest = divmod(duration.nanos, per_tick)
            if pa.types.is_date64(self.type):  # milliseconds that mean days
                rest = duration.nanos % DAY
            if rest:
                raise InvalidWindow(f"{argument} {duration!r} is finer than the time column's unit ({self.type})")
        if abs(amount) >= FAR_AHEAD >> 1:  # so that the ends of a window around any row fit into 64 bits
            raise InvalidWindow(f"{argument} {duration!r} is too long")
        return amount

    def length(self, ticks: int) -> str:
        """A number of ticks as text: "2 hours", "1 day 12 hours", or just the number for an integer time column."""
        per_tick = self.nanos_per_tick
        return f"{ticks:,}" if per_tick is None else duration_text(ticks * per_tick)

    def point(self, tick: int) -> str:
        """A tick as text: the point in time."""
        if self.nanos_per_tick is None:
            return str(tick)
        try:
            return str(self.values(np.array([tick], np.int64))[0].as_py())
        except (OverflowError, ValueError, pa.ArrowInvalid):  # outside the years that Python has
            return f"{self.length(abs(tick))} {'before' if tick < 0 else 'after'} 1970"

    def column(self, values: pa.Array) -> Array:
        """A column's ticks; those of nulls are arbitrary."""
        t = values.type
        if len(values) == 0:
            return np.empty(0, np.int64)
        if pa.types.is_date32(t) or (pa.types.is_integer(t) and t.bit_width < 64):
            width = np.dtype(t.to_pandas_dtype()) if pa.types.is_integer(t) else np.dtype(np.int32)
            return np.frombuffer(values.buffers()[1], width)[values.offset : values.offset + len(values)].astype(np.int64)
        ticks = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values)]
        if pa.types.is_uint64(t) and values.null_count == 0 and int(ticks.min()) < 0:
            raise InvalidArgument("the time column holds a value of 2**63 or more; windows around it do not fit into 64 bits")
        return ticks

    def values(self, ticks: Array, known: Array | None = None) -> pa.Array:
        """Ticks as values of the column's type; null where ``known`` is False."""
        if known is None and pa.types.is_timestamp(self.type):
            return pa.Array.from_buffers(self.type, len(ticks), [None, pa.py_buffer(np.ascontiguousarray(ticks, np.int64))])
        mask = None if known is None else ~known
        if pa.types.is_timestamp(self.type) or pa.types.is_date64(self.type):
            return pa.array(ticks, pa.int64(), mask=mask).view(self.type)
        narrow = pa.int32() if pa.types.is_date32(self.type) else self.type
        limits = np.iinfo(narrow.to_pandas_dtype())
        if len(ticks) and (int(limits.min) > int(ticks.min()) or int(limits.max) < int(ticks.max())):
            # The ends of a window may lie outside a narrow type: the nearest value stands for them.
            ticks = np.clip(ticks, limits.min, min(int(limits.max), FAR_AHEAD))
        values = pa.array(ticks.astype(narrow.to_pandas_dtype()), narrow, mask=mask)
        return values.view(self.type) if narrow != self.type else values

    def tick(self, value: Any, argument: str) -> int:
        """The tick of a point in time that a user passed; an error names the ``argument``."""
        if value is None:
            raise InvalidArgument(f"{argument} is missing: pass a value of type {self.type}, or an integer in its unit")
        try:
            if isinstance(value, str) and pa.types.is_timestamp(self.type):
                value = datetime.datetime.fromisoformat(value)
            elif isinstance(value, str) and pa.types.is_date(self.type):
                value = datetime.date.fromisoformat(value)
            if isinstance(value, datetime.datetime) and pa.types.is_timestamp(self.type):
                if self.type.tz is None and value.tzinfo is not None:
                    raise InvalidArgument(f"{argument} has a time zone, the time column has none")
                if self.type.tz is not None and value.tzinfo is None:
                    value = value.replace(tzinfo=datetime.UTC)
            if isinstance(value, pa.Scalar):
                scalar = value if value.type == self.type else value.cast(self.type)
            elif isinstance(value, int | np.integer) and not isinstance(value, bool):
                return int(value)
            elif isinstance(value, float | np.floating) and not float(value).is_integer():
                raise ValueError("a fraction would be cut off")
            else:
                scalar = pa.scalar(value, self.type)
            (tick,) = self.column(pa.array([scalar.as_py()], self.type) if not hasattr(scalar, "value") else _one(scalar))
            return int(tick)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(f"{argument} must be a value of type {self.type}, or an integer in its unit; not {value!r}") from error


def _one(scalar: pa.Scalar) -> pa.Array:
    return pa.repeat(scalar, 1)


def measure_of(t: pa.DataType, name: str) -> Measure:
    """The measure for a column's type; raises for types that are no times."""
    if pa.types.is_timestamp(t) or pa.types.is_date(t) or pa.types.is_integer(t):
        return Measure(t)
    hint = ""
    if pa.types.is_floating(t) or pa.types.is_decimal(t):
        hint = (
            f"; for seconds since 1970, compute a column first: timestamp_seconds({name}) in SQL, pd.to_datetime(..., unit='s') in pandas"
        )
    elif pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        hint = f"; compute a column first: to_timestamp({name}) in SQL, pd.to_datetime(...) in pandas, .str.to_datetime() in polars"
    raise InvalidType(f"the time column {name!r} has the type {t}; it must be a timestamp, a date, or an integer that only advances{hint}")
