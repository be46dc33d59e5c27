"""sliding: windows of one size that start every so often, aligned to the epoch; tumbling ones among them."""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import InvalidWindow
from sash.types import Duration, Measure
from sash.types.durations import DAY
from sash.windows.base import Window
from sash.windows.calendar import Calendar
from sash.windows.shapes import Periodic, Shape


@dataclass(frozen=True)
class Sliding(Window):
    """``[start, start + size)`` for every multiple of ``every``, moved by ``offset``."""

    size: Duration
    every: Duration
    offset: Duration | None = None
    tz: str | None = None

    def bind(self, measure: Measure) -> Shape:
        if self.size.months or self.every.months or self.tz is not None:
            return Calendar.of(self.size, self.every, self.offset, self.tz, measure)
        size, every = measure.ticks(self.size, "size"), measure.ticks(self.every, "every")
        offset = 0 if self.offset is None else measure.ticks(self.offset, "offset")
        for argument, ticks, duration in (("size", size, self.size), ("every", every, self.every)):
            if ticks < 1:
                raise InvalidWindow(f"{argument} {duration!r} is shorter than the time column's unit ({measure.type})")
        return Periodic(size, every, offset % every)

    def __repr__(self) -> str:
        extra = (f", offset {self.offset!r}" if self.offset else "") + (f", {self.tz}" if self.tz else "")
        return f"tumbling({self.size!r}{extra})" if self.size == self.every else f"sliding({self.size!r}, every {self.every!r}{extra})"


def check_zone(tz: str | None, *durations: Duration) -> None:
    """Raise unless a time zone exists and the windows have whole days."""
    if tz is None:
        return
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(tz)
    except Exception as error:
        raise InvalidWindow(f"tz {tz!r} is not a time zone; write it as 'Europe/Berlin'") from error
    for duration in durations:
        if duration.plain is not None or (not duration.months and duration.nanos % DAY):
            raise InvalidWindow(f"tz is for windows of whole days, weeks, months or years, not {duration!r}")
