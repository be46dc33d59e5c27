"""Calendar windows: months and years, and days and weeks in a time zone, whose lengths in time vary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from sash.errors import InvalidWindow
from sash.types import FAR_AHEAD, FAR_BACK, Duration, Measure
from sash.types.durations import DAY, WEEK
from sash.windows.own import ContextFreeWindow
from sash.windows.shapes import Array

EPOCH = datetime(1970, 1, 1)
MONDAY = -3
"""The Monday before the epoch, in days."""
YEARS = (1, 9998)
FIRST_DAY, LAST_DAY = (datetime(2, 1, 1) - EPOCH).days, (datetime(9997, 12, 31) - EPOCH).days


@dataclass(frozen=True)
class Step:
    """A length in the calendar."""

    months: int
    days: int

    @staticmethod
    def of(duration: Duration, argument: str) -> Step:
        if duration.plain is not None or duration.nanos % DAY:
            raise InvalidWindow(f"{argument} {duration!r}: a calendar window has whole days, weeks, months or years")
        return Step(duration.months, duration.nanos // DAY)


@dataclass(frozen=True)
class Calendar(ContextFreeWindow):
    """Windows that start every so many months or days of a zone's calendar."""

    size: Step
    every: Step
    first_day: int
    """Where days are counted from: the epoch, or the Monday before it for weeks."""
    shift: int
    """The offset, in nanoseconds of local time."""
    zone: str
    nanos: int
    """How long a tick is."""

    @staticmethod
    def of(size: Duration, every: Duration, offset: Duration | None, tz: str | None, measure: Measure) -> Calendar:
        if measure.nanos_per_tick is None:
            raise InvalidWindow(f"calendar windows need a timestamp or a date, not a time column of type {measure.type}")
        shift = 0
        if offset is not None:
            if offset.plain is not None or offset.months:
                raise InvalidWindow(f"offset of a calendar window must be a fixed length such as '1 day', not {offset!r}")
            measure.ticks(offset, "offset")
            shift = offset.nanos
        weeks = not every.months and every.nanos % WEEK == 0
        is_date = pa.types.is_date(measure.type)
        return Calendar(
            size=Step.of(size, "size"),
            every=Step.of(every, "every"),
            first_day=MONDAY if weeks else 0,
            shift=shift,
            zone="UTC" if tz is None or is_date else tz,
            nanos=measure.nanos_per_tick,
        )

    @property
    def longest(self) -> int:
        return (self.size.months * 31 + self.size.days + 2) * DAY // self.nanos

    # Window k starts at the local day that is k steps from the origin.

    def _start(self, k: int) -> datetime:
        if self.every.months:
            return _plus(EPOCH, Step(k * self.every.months, 0))
        return EPOCH + timedelta(days=self.first_day + k * self.every.days)

    def _tick(self, local: datetime) -> int:
        return min(_instant(local, self.shift, self.zone) // self.nanos, FAR_AHEAD)

    def start(self, k: int) -> int:
        """Where window ``k`` starts, in ticks; outside the calendar's years the farthest tick."""
        try:
            return self._tick(self._start(k))
        except (InvalidWindow, OverflowError):
            return FAR_AHEAD if k > 0 else FAR_BACK

    def end(self, k: int) -> int:
        """Where window ``k`` ends, in ticks."""
        try:
            return self._tick(_plus(self._start(k), self.size))
        except (InvalidWindow, OverflowError):
            return FAR_AHEAD if k > 0 else FAR_BACK

    def check_rows(self, first: int, last: int) -> None:
        """Raise unless rows lie in the calendar's years, with a margin for a window."""
        for t in (first, last):
            days = t * self.nanos // DAY
            if not FIRST_DAY <= days <= LAST_DAY:
                about = 1970 + days * 400 // 146_097
                raise InvalidWindow(f"calendar windows reach from the year {YEARS[0] + 1} to {YEARS[1] - 1}; a row lies in about {about}")

    def _about(self, t: int) -> int:
        """The number of a window that starts a little before ``t``."""
        days = min(max((t * self.nanos - self.shift) // DAY, FIRST_DAY), LAST_DAY)
        if self.every.months:
            year, month = divmod(int(days / 30.436875), 12)
            return (year * 12 + month) // self.every.months - 3
        return (days - self.first_day) // self.every.days - 3

    def _last_start(self, t: int) -> int:
        """The last window that starts at or before ``t``."""
        t = min(t, FAR_AHEAD - 1)
        k = self._about(t)
        while self.start(k + 1) <= t:
            k += 1
        return k

    def _first_end(self, t: int) -> int:
        """The first window that ends after ``t``."""
        t = min(t, FAR_AHEAD - 1)
        k = self._about(t - self.longest)
        while self.end(k) <= t:
            k += 1
        return k

    def next_edge(self, t: int) -> int:
        return min(self.start(self._last_start(t) + 1), self.end(self._first_end(t)))

    def ended(self, after: int, until: int) -> Iterable[tuple[int, int]]:
        k, until = self._first_end(after), min(until, FAR_AHEAD - 1)
        while (end := self.end(k)) <= until:
            yield self.start(k), end
            k += 1

    def previous_edges(self, ticks: Array) -> Array:
        if not len(ticks):
            return ticks
        first, last = int(ticks.min()), int(ticks.max())
        self.check_rows(first, last)
        edges = self.edges(max(self.start(self._last_start(first)), self.end(self._first_end(first) - 1)), last)
        result: Array = edges[np.searchsorted(edges, ticks, side="right") - 1]
        return result

    def edges(self, first: int, last: int) -> Array:
        edges, last = set(), min(last, FAR_AHEAD - 1)
        k = self._last_start(first - 1) + 1
        while (start := self.start(k)) <= last:
            edges.add(start)
            k += 1
        k = self._first_end(first - 1)
        while (end := self.end(k)) <= last:
            edges.add(end)
            k += 1
        return np.array(sorted(edges), np.int64)

    def listed(self, first: int, last: int) -> tuple[Array, Array]:
        self.check_rows(first, last)
        k = self._first_end(first)
        starts, ends = [], []
        while (start := self.start(k)) <= last:
            starts.append(start)
            ends.append(self.end(k))
            k += 1
        return np.array(starts, np.int64), np.array(ends, np.int64)


def _plus(local: datetime, step: Step) -> datetime:
    """A local date, a step later; the last day of a month stays within its month."""
    months = local.year * 12 + local.month - 1 + step.months
    year, month = divmod(months, 12)
    if not YEARS[0] <= year <= YEARS[1]:
        raise InvalidWindow(f"calendar windows reach from the year {YEARS[0]} to {YEARS[1]}; a row lies in {year}")
    day = local.day
    while day > 28:
        try:
            return datetime(year, month + 1, day) + timedelta(days=step.days)
        except ValueError:
            day -= 1
    return datetime(year, month + 1, day) + timedelta(days=step.days)


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@cache
def _instant(local: datetime, shift: int, zone: str) -> int:
    """The first instant, in nanoseconds, at which a zone's clocks show at least this time."""
    micros, rest = divmod(shift, 1000)
    aware = (local + timedelta(microseconds=micros)).replace(tzinfo=_zone(zone))
    since = aware.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000 + rest
