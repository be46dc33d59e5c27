"""The functions that make window specs, checked: ``W.sliding("1 hour", every="1 second")``."""

from __future__ import annotations

from typing import Any, Literal

from sash.errors import InvalidWindow
from sash.types import Duration, DurationLike, PointLike
from sash.windows.band import Band
from sash.windows.base import Window, positive, row_count
from sash.windows.last_rows import LastRows
from sash.windows.punctuation import Punctuation
from sash.windows.rows import RowWindow
from sash.windows.session import Session
from sash.windows.sliding import Sliding, check_zone
from sash.windows.trailing import CLOSED, TrailingWindow
from sash.windows.trailing_rows import TrailingRowWindow
from sash.windows.unbounded import Unbounded


def tumbling(size: DurationLike, offset: DurationLike | None = None, tz: str | None = None) -> Window:
    """Windows side by side, aligned to the epoch.

    Args:
        size: How long a window is. Months and years, and with `tz` days and weeks (from Monday), follow the calendar.
        offset: By how much all windows are shifted.
        tz: The time zone of calendar windows, e.g. `"Europe/Berlin"`; UTC by default.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`.

    Examples:
        >>> tumbling("5 minutes"), tumbling("1 month", tz="Europe/Berlin")
        (tumbling(5 minutes), tumbling(1 month, Europe/Berlin))
    """
    return sliding(size, size, offset, tz)


def sliding(size: DurationLike, every: DurationLike, offset: DurationLike | None = None, tz: str | None = None) -> Window:
    """Windows of one size at regular distances, aligned to the epoch.

    Args:
        size: How long a window is.
        every: The time between the starts of two windows. Where it is longer than `size`, the rows between windows are skipped.
        offset: By how much all windows are shifted.
        tz: The time zone of calendar windows.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`.

    Examples:
        >>> sliding("1 hour", every="1 second")
        sliding(1 hour, every 1 second)
    """
    long, step = positive(size, "size"), positive(every, "every")
    check_zone(tz, long, step)
    return Sliding(long, step, None if offset is None else Duration.of(offset, "offset"), tz)


def session(gap: DurationLike) -> Window:
    """Windows of a key's rows that follow each other closely: a session ends `gap` after its last row.

    Args:
        gap: Two rows of a key that are at most this far apart are in one session.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`, from the first row to `gap` after the last one.

    Examples:
        >>> session("30 minutes")
        session(30 minutes)
    """
    return Session(positive(gap, "gap"))


def rows(size: int, every: int | None = None, partial: bool = False) -> Window:
    """Windows of a number of rows of a key, in the order of time.

    Args:
        size: The number of rows in a window.
        every: After how many rows the next window starts; by default windows lie side by side.
        partial: Whether the last windows, which are not complete, are reported, too.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`; the result has a column `rows` with the ranks of the first row and of the row
        after the last.

    Examples:
        >>> rows(100), rows(100, every=10)
        (rows(100, every 100), rows(100, every 10))
    """
    count = row_count(size, "size")
    if not isinstance(partial, bool):
        raise InvalidWindow(f"partial must be True or False, not {partial!r}")
    return RowWindow(count, count if every is None else row_count(every, "every"), partial)


def punctuation(when: str) -> Window:
    """Windows from one row that fulfils a condition to the next such row of the key.

    Args:
        when: The condition, as SQL over the row. A row that fulfils it belongs to the window that it opens.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`. The last one stays open: its end is null.

    Examples:
        >>> punctuation("type = 'lap'")
        punctuation("type = 'lap'")
    """
    if not isinstance(when, str) or not when.strip():
        raise InvalidWindow(f"when must be a condition as SQL text, not {when!r}")
    return Punctuation(when)


def last_rows(n: int, every: DurationLike) -> Window:
    """The last rows of a key, at regular times.

    Args:
        n: The number of rows; a key with fewer rows has all of them in the window.
        every: The time between two results. A time without a new row of the key before it has no result.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`.

    Examples:
        >>> last_rows(10, every="5 seconds")
        last_rows(10, every 5 seconds)
    """
    return LastRows(row_count(n, "n"), positive(every, "every"))


def band(start: PointLike, end: PointLike) -> Window:
    """One window, from `start` to `end`.

    Args:
        start: The first point of time that belongs to the window, in the type or unit of the time column.
        end: The first point of time after it.

    Returns:
        A window for `sash.aggregate` and `sash.Operator`.

    Examples:
        >>> band(0, 10)
        band(0, 10)
    """
    return Band(start, end)


def unbounded() -> Window:
    """Everything so far.

    Returns:
        A window that never ends. A stream reports it with `emit="update"` or `"running"`.

    Examples:
        >>> unbounded()
        unbounded()
    """
    return Unbounded()


Closed = Literal["both", "right", "left", "neither"]
"""Which ends belong to a trailing window."""


def trailing(size: DurationLike, closed: Closed = "both") -> Window:
    """For each row the time before it, for `sash.over`.

    Args:
        size: How far the window reaches back.
        closed: Which ends belong to the window `[t - size, t]` of a row at `t`: `"both"` (SQL's `RANGE BETWEEN size PRECEDING AND CURRENT
            ROW`), `"right"` (polars' default), `"left"` (without the rows at `t`, the current one among them) or `"neither"`.

    Returns:
        A window for `sash.over`.

    Examples:
        >>> trailing("1 hour", closed="left")
        trailing(1 hour, closed left)
    """
    _check_closed(closed)
    duration = Duration.of(size, "size")
    if duration.sign < 0:
        raise InvalidWindow(f"size must not be negative, not {size!r}")
    return TrailingWindow(duration, closed)


def trailing_rows(n: int, closed: Closed = "both") -> Window:
    """For each row itself and the rows before it, for `sash.over`.

    Args:
        n: The number of rows in a window.
        closed: With `"left"` or `"neither"` the current row is left out: the `n` rows before it. `"both"` and `"right"` include it.

    Returns:
        A window for `sash.over`; `trailing_rows(100)` is SQL's `ROWS BETWEEN 99 PRECEDING AND CURRENT ROW`.

    Examples:
        >>> trailing_rows(100)
        trailing_rows(100)
    """
    _check_closed(closed)
    return TrailingRowWindow(row_count(n, "n"), closed)


def _check_closed(closed: Any) -> None:
    if closed not in CLOSED:
        raise InvalidWindow(
            f"closed must be one of {', '.join(CLOSED)}; not {closed!r}. The default is 'both', as SQL's RANGE BETWEEN ... AND CURRENT "
            "ROW; polars' default is 'right'"
        )
