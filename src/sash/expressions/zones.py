"""Time zones: the local time of an instant, and the instant of a local time, as in Java and Spark."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.expressions.arrays import Array

DAY = 86_400_000_000
_UTC = frozenset(["UTC", "Etc/UTC", "GMT", "Z", "+00:00", "Etc/GMT", "Zulu", "UCT"])
_FAR = 1 << 61
"""Beyond this, in microseconds, no zone has rules of its own."""


def is_utc(zone: str) -> bool:
    return zone in _UTC


def offsets(instants: Array, zone: str) -> Array:
    """How far a zone's clocks are ahead of UTC at these instants; all in microseconds."""
    if is_utc(zone) or not len(instants):
        return np.zeros(len(instants), np.int64)
    near = _within_rules(np.maximum(instants, -_FAR))
    local = pc.local_timestamp(pa.array(near, pa.int64()).view(pa.timestamp("us", zone)))
    result: Array = local.view(pa.int64()).to_numpy() - near
    return result


_LAST_DAY = 24_837
"""The last day of 2037, behind which files of zones have rules only, and Arrow does not read them."""


def _within_rules(instants: Array) -> Array:
    """Instants with those behind 2037 moved to a year before it that has the same calendar."""
    if int(instants.max()) // DAY <= _LAST_DAY:
        return instants
    days, rest = instants // DAY, instants % DAY
    years = days.astype("datetime64[D]").astype("datetime64[Y]")
    first = years.astype("datetime64[D]").astype(np.int64)
    length = (years + 1).astype("datetime64[D]").astype(np.int64) - first
    alike = np.array([[_year_like(weekday, leap) for leap in (0, 1)] for weekday in range(7)], np.int64)
    moved = alike[first % 7, length - 365] + days - first
    result: Array = np.where(days > _LAST_DAY, moved, days) * DAY + rest
    return result


@cache
def _year_like(weekday: int, leap: int) -> int:
    """The first day of the last year up to 2037 that starts on a day of the week, and is a leap year or not."""
    for year in range(2037 - 1970, 0, -1):
        first, following = (int(np.datetime64(y, "Y").astype("datetime64[D]").astype(np.int64)) for y in (year, year + 1))
        if first % 7 == weekday and following - first == 365 + leap:
            return first
    raise AssertionError((weekday, leap))


def to_local(instants: Array, zone: str) -> Array:
    """What a zone's clocks show at these instants."""
    return instants if is_utc(zone) else instants + offsets(instants, zone)


def to_instants(local: Array, zone: str) -> Array:
    """When a zone's clocks show these times: the earlier of two instants, and where clocks skip a time, as much later as they skip."""
    if is_utc(zone) or not len(local):
        return local
    before, after = offsets(local - DAY, zone), offsets(local + DAY, zone)
    if (before == after).all():
        return local - before
    early, late = local - before, local - after
    is_late = (offsets(early, zone) != before) & (offsets(late, zone) == after)
    return np.where(is_late, late, early)
