"""What users window with: ``from sash import windows as W``.

Durations are strings as in Spark (``"1 hour"``, ``"1 minute 30 seconds"``), :class:`datetime.timedelta`, or integers in the unit
of an integer measure column.
"""

from __future__ import annotations

from typing import Any

from sash.errors import InvalidWindow
from sash.types import Duration
from sash.windows.band import Band
from sash.windows.base import Window, positive, row_count
from sash.windows.last_rows import LastRows
from sash.windows.own import ContextAwareWindow, ContextFreeWindow, Edges
from sash.windows.punctuation import Punctuation
from sash.windows.rows import RowWindow
from sash.windows.session import Session
from sash.windows.sliding import Sliding, check_zone
from sash.windows.trailing import CLOSED, TrailingWindow
from sash.windows.trailing_rows import TrailingRowWindow
from sash.windows.unbounded import Unbounded

__all__ = [
    "ContextAwareWindow",
    "ContextFreeWindow",
    "Edges",
    "Window",
    "band",
    "last_rows",
    "punctuation",
    "rows",
    "session",
    "sliding",
    "trailing",
    "trailing_rows",
    "tumbling",
    "unbounded",
]


def tumbling(size: Any, offset: Any = None, tz: str | None = None) -> Window:
    """Windows side by side, aligned to the epoch; months, years and (with ``tz``) days and weeks follow the calendar.

    >>> tumbling("5 minutes"), tumbling("1 month", tz="Europe/Berlin")
    (tumbling(5 minutes), tumbling(1 month, Europe/Berlin))
    """
    return sliding(size, size, offset, tz)


def sliding(size: Any, every: Any, offset: Any = None, tz: str | None = None) -> Window:
    """Windows of ``size`` that start every ``every``; rows between windows are skipped where ``every`` is longer.

    >>> sliding("1 hour", every="1 second")
    sliding(1 hour, every 1 second)
    """
    long, step = positive(size, "size"), positive(every, "every")
    check_zone(tz, long, step)
    return Sliding(long, step, None if offset is None else Duration.of(offset, "offset"), tz)


def session(gap: Any) -> Window:
    """Windows that end ``gap`` after their last row."""
    return Session(positive(gap, "gap"))


def rows(size: int, every: int | None = None, partial: bool = False) -> Window:
    """Windows of ``size`` rows of a key, every ``every`` rows (default: side by side)."""
    count = row_count(size, "size")
    if not isinstance(partial, bool):
        raise InvalidWindow(f"partial must be True or False, not {partial!r}")
    return RowWindow(count, count if every is None else row_count(every, "every"), partial)


def punctuation(when: str) -> Window:
    """Windows from one row that fulfils ``when`` (SQL over the row) to the next."""
    if not isinstance(when, str) or not when.strip():
        raise InvalidWindow(f"when must be a condition as SQL text, not {when!r}")
    return Punctuation(when)


def last_rows(count: int, every: Any) -> Window:
    """The last ``count`` rows, every ``every`` of time."""
    return LastRows(row_count(count, "count"), positive(every, "every"))


def band(start: Any, end: Any) -> Window:
    """One window, from ``start`` to ``end``."""
    return Band(start, end)


def unbounded() -> Window:
    """Everything so far."""
    return Unbounded()


def trailing(size: Any, closed: str = "both") -> Window:
    """For each row the time ``size`` before it, for :func:`sash.over`.

    ``closed`` says which ends belong to the window ``[t - size, t]`` of a row at ``t``: "both" (SQL's ``RANGE BETWEEN size PRECEDING AND
    CURRENT ROW``), "right" (polars' default), "left" (without the rows at ``t``, the current one among them) or "neither".
    """
    _check_closed(closed)
    duration = Duration.of(size, "size")
    if duration.sign < 0:
        raise InvalidWindow(f"size must not be negative, not {size!r}")
    return TrailingWindow(duration, closed)


def trailing_rows(count: int, closed: str = "both") -> Window:
    """For each row itself and the ``count - 1`` rows before it, for :func:`sash.over`.

    With ``closed`` "left" or "neither" the current row is left out: the ``count`` rows before it. "both" and "right" have it.
    """
    _check_closed(closed)
    return TrailingRowWindow(row_count(count, "count"), closed)


def _check_closed(closed: Any) -> None:
    if closed not in CLOSED:
        raise InvalidWindow(
            f"closed must be one of {', '.join(CLOSED)}; not {closed!r}. The default is 'both', as SQL's RANGE BETWEEN ... AND CURRENT "
            "ROW; polars' default is 'right'"
        )
