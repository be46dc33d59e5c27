"""The interface of handlers: all that slicing needs to know of a shape of window.

A handler registers itself for its shape: a module in this package is all that a new shape needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.view import Bounds, RetainedRows, SortedRows, View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Shape

if TYPE_CHECKING:
    from sash.slicing.bounds.notices import Notices

Array = npt.NDArray[Any]
S = TypeVar("S", bound=Shape)

_HANDLERS: dict[type, Handler[Any]] = {}


class Handler(ABC, Generic[S]):
    """All that slicing needs to know of one shape of window."""

    def __init_subclass__(cls, *, shape: type[Shape]) -> None:
        _HANDLERS[shape] = cls()

    # Windows over slices.

    @abstractmethod
    def cuts(self, shape: S, rows: SortedRows) -> Array:
        """The places of the rows that must start a slice, besides each key's first; the place behind the last row is ignored."""

    @abstractmethod
    def bounds(self, shape: S, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        """The windows of all keys, ordered by key, then time; at least those that end after ``after`` and not after ``until``."""

    def due(self, shape: S, bounds: Bounds) -> Array:
        """The watermark from which on each window cannot change any more: its end, or never if it has none."""
        return bounds.end if bounds.end_known is None else np.where(bounds.end_known, bounds.end, FAR_AHEAD)

    def is_complete(self, shape: S, due: Array) -> Array | None:
        """For each window whether it may be emitted when a stream ends; None if all may."""
        return None

    def identity(self, bounds: Bounds) -> tuple[Array, Array, Array]:
        """Three numbers that identify a key's window across steps."""
        known = np.ones(len(bounds), np.int64) if bounds.end_known is None else bounds.end_known.astype(np.int64)
        return bounds.start, bounds.end, known

    # Rows and slices against the horizon before which windows are closed.

    def closed(self, shape: S, ticks: Array, horizon: int) -> Array:
        """For each tick whether all windows that contain it had ended by ``horizon``, as far as that is known without the rows."""
        return np.zeros(len(ticks), bool)

    def holds(self, shape: S, ticks: Array) -> Array:
        """For each tick whether a window would contain it."""
        return np.ones(len(ticks), bool)

    def needed(self, shape: S, key: Array, first: Array, last: Array, horizon: int) -> Array:
        """For each slice, by key, first and last time, whether a window that is not closed contains it."""
        return ~self.closed(shape, first, horizon)

    def open_count(self, shape: S, key: Array, first: Array, last: Array) -> int:
        """About how many windows of keys' slices are not closed."""
        return len(np.unique(key))

    def idle_until(self, shape: S, last_seen: Array, until: Array) -> Array:
        """For each key, whose last row is at ``last_seen``, when it has been idle for long enough; not before ``until``."""
        return until

    # Windows that depend on each key's rows. A store has a mark for each key, which says how far its windows are closed.

    first_mark: ClassVar[int] = FAR_BACK
    """The mark of a key none of whose windows are closed."""
    counts_on: ClassVar[bool] = False
    """Whether marks matter even for a key without rows, until the key is idle."""
    ends_in_the_past: ClassVar[bool] = False
    """Whether a late row may end a window at a time that has passed before."""
    only_shifts: ClassVar[bool] = False
    """Whether a late row moves edges on, and never adds one."""

    def mark(self, shape: S, bounds: Bounds, due: Array) -> Array:
        """The mark that a key gets when the window is closed; the window is open as long as its key's mark is lower."""
        return due

    def mark_problem(self, shape: S, marks: Array, first: Array, after: Array) -> str | None:
        """Why stored marks cannot be of keys with rows numbered from ``first`` to ``after``; None if they can."""
        return None

    def advanced_marks(self, shape: S, rows: SortedRows, marks: Array, horizon: int) -> Array:
        """The marks that follow from the horizon alone, before rows are dropped."""
        return marks

    def may_end(self, shape: S, marks: Array, counts: Array, after: int, until: int) -> bool:
        """Whether a window may have become final between two horizons; ``counts`` are how many rows each key has before the second."""
        return True

    def late(self, shape: S, retained: RetainedRows, marks: Array, ticks: Array, codes: Array, horizon: int) -> Array:
        """For each row, by time and key, whether it is too late for all windows; ``marks`` are those of the rows' keys."""
        return self.closed(shape, ticks, horizon)

    def first_needed(self, shape: S, retained: RetainedRows, marks: Array, horizon: int) -> Array:
        """For each key the place of the first row that a window which is not closed may contain."""
        rows = retained.rows
        codes = rows.codes()
        needed = self.needed(shape, codes, rows.ticks, rows.ticks, horizon)
        at = np.flatnonzero(needed)
        first = rows.key_offsets[1:].copy()
        np.minimum.at(first, codes[at], at)
        return first

    def contexts(self, shape: S) -> Notices | None:
        """New contexts of users' windows, if the shape is a user's context aware window."""
        return None

    # Slices of numbered rows that arrive in order.

    opened_by_rows: ClassVar[bool] = False
    """Whether a row's values decide if it opens a window."""

    def opening_rows(self, shape: S, rows: SortedRows) -> Array:
        """For each row whether it opens a window."""
        raise NotImplementedError

    def needs_slice(self, shape: S, rank: Array, count: Array, first: Array, marks: Array) -> Array:
        """For each slice, by its first row's number, its count of rows, and its first time, whether an open window may contain it."""
        return first >= marks

    def starts_at(self, shape: S, rank: Array, marks: Array) -> Array:
        """Whether a window starts at rows of these numbers, or one that is not closed ends before them."""
        return np.zeros(len(rank), bool)


def handler(shape: Shape) -> Handler[Any]:
    """The handler of a shape."""
    kind = type(shape)
    known = _HANDLERS.get(kind)
    if known is None:
        known = _HANDLERS[kind] = next(_HANDLERS[base] for base in kind.__mro__ if base in _HANDLERS)
    return known


def some_window_holds(shapes: Iterable[Shape], ticks: Array) -> Array:
    """For each tick whether a window of any shape would contain it: there may be gaps between windows."""
    contained = np.zeros(len(ticks), bool)
    for shape in shapes:
        contained |= handler(shape).holds(shape, ticks)
        if contained.all():
            break
    return contained
