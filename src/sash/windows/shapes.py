"""Shapes: windows in ticks of a time column, which is all that planners and stores know of them.

A shape has the properties that planning depends on: whether the times of rows alone determine its windows, how long they are, and how
its edges can be stated. How it cuts rows and which slices its windows contain is in :mod:`sash.slicing.bounds`, one module per shape.

- :class:`Periodic`: ``[offset + k * every, ... + size)`` for every ``k``;
- :class:`~sash.windows.own.ContextFreeWindow`: any edges that are known in advance;
- :class:`Gaps`: sessions, which follow from the gaps between rows;
- :class:`Ranks`: windows over the numbers of a key's rows;
- :class:`Marks`: from one marked row to the next;
- :class:`RowsBefore`: the last rows before each edge;
- :class:`Everything`;
- :class:`~sash.windows.own.ContextAwareWindow`: edges that a call per row adds and removes;
- :class:`Trailing` and :class:`TrailingRows`: a window for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]
Series = tuple[int, int]
"""Ticks at equal distances: the distance, and the phase modulo it."""


class Shape:
    """A window in ticks."""

    decided_by_rows: ClassVar[bool] = True
    """Whether its windows depend on more than the times of rows: on their number, or on their values."""
    has_known_edges: ClassVar[bool] = False
    """Whether its edges are known in advance: it has ``edges``, ``previous_edges`` and ``density``."""
    is_whole: ClassVar[bool] = False
    """Whether it is one window per key with every row, which never ends."""

    @property
    def as_periodic(self) -> Periodic | None:
        """The same windows at equal distances, if they are."""
        return None

    @property
    def session_gap(self) -> int | None:
        """Rows further apart than this are in different windows, and that alone separates them; None if it is not a session."""
        return None

    @property
    def longest(self) -> int | None:
        """No window is longer than this; None if one may be of any length."""
        return None

    @property
    def edge_series(self) -> tuple[Series, ...] | None:
        """Series whose ticks are its edges; None if its edges are not at regular distances."""
        return None

    @property
    def windows_per_row(self) -> int | None:
        """In how many windows a row is, about; None if that is not known."""
        return 1

    @property
    def lies_apart(self) -> bool:
        """Whether windows do not overlap, and a row's window follows from its time by arithmetic."""
        return False

    @property
    def leaves_gaps(self) -> bool:
        """Whether there is time between windows that is in none."""
        return False

    @property
    def time_carried(self) -> int | None:
        """How far back the window of a later row may reach, for windows per row; None if that does not depend on time."""
        return None

    @property
    def rows_carried(self) -> int:
        """How many of the rows before it the window of a later row may contain, for windows per row."""
        return 0

    def check_rows(self, first: int, last: int) -> None:
        """Raise if windows cannot be computed around rows from ``first`` to ``last``: called before such rows are ingested."""

    def next_end(self, t: int) -> int | None:
        """A time after ``t`` before which no window ends, whatever the rows; None if it depends on the rows."""
        return None

    # Of shapes with known edges.

    def edges(self, first: int, last: int) -> Array:
        """All edges from ``first`` to ``last``, both included."""
        raise NotImplementedError

    def previous_edges(self, ticks: Array) -> Array:
        """For each tick the latest edge at or before it."""
        raise NotImplementedError

    def density(self) -> float:
        """How many edges a tick has on average."""
        raise NotImplementedError


@dataclass(frozen=True)
class Periodic(Shape):
    """Windows of equal size at equal distances."""

    size: int
    every: int
    offset: int = 0

    decided_by_rows = False
    has_known_edges = True

    @property
    def as_periodic(self) -> Periodic:
        return self

    @property
    def longest(self) -> int:
        return self.size

    @property
    def edge_series(self) -> tuple[Series, ...]:
        """Its starts, and its ends where they are not starts as well."""
        starts, ends = (self.every, self.offset % self.every), (self.every, (self.offset + self.size) % self.every)
        return (starts,) if starts == ends else (starts, ends)

    @property
    def windows_per_row(self) -> int:
        return -(-self.size // self.every)

    @property
    def lies_apart(self) -> bool:
        return self.size <= self.every

    @property
    def leaves_gaps(self) -> bool:
        return self.size < self.every

    def next_end(self, t: int) -> int:
        return t + self.every - (t - self.offset - self.size) % self.every

    def previous_edges(self, ticks: Array) -> Array:
        first, *others = (ticks - (ticks - phase) % step for step, phase in self.edge_series)
        latest: Array = first
        for other in others:
            latest = np.maximum(latest, other)
        return latest

    def edges(self, first: int, last: int) -> Array:
        series = [np.arange(first + (phase - first) % step, last + 1, step, dtype=np.int64) for step, phase in self.edge_series]
        return series[0] if len(series) == 1 else np.union1d(*series)

    def density(self) -> float:
        return sum(1 / step for step, _ in self.edge_series)


@dataclass(frozen=True)
class Gaps(Shape):
    """Sessions: rows that are no more than ``gap`` apart."""

    gap: int

    decided_by_rows = False

    @property
    def session_gap(self) -> int:
        return self.gap


@dataclass(frozen=True)
class Ranks(Shape):
    """Windows over the numbers of a key's rows."""

    size: int
    every: int
    partial: bool


@dataclass(frozen=True)
class Marks(Shape):
    """From one marked row to the next."""

    when: str


@dataclass(frozen=True)
class RowsBefore(Shape):
    """The last ``count`` rows before each multiple of ``every``."""

    count: int
    every: int
    offset: int = 0

    def next_end(self, t: int) -> int:
        return t + self.every - (t - self.offset) % self.every


@dataclass(frozen=True)
class Everything(Shape):
    """All rows so far."""

    decided_by_rows = False
    is_whole = True

    @property
    def edge_series(self) -> tuple[Series, ...]:
        return ()

    @property
    def lies_apart(self) -> bool:
        return True

    def next_end(self, t: int) -> int:
        return FAR_AHEAD


@dataclass(frozen=True)
class Trailing(Shape):
    """For each row the rows up to ``size`` before it."""

    size: int
    with_start: bool
    with_end: bool

    decided_by_rows = False

    @property
    def longest(self) -> int:
        return self.size + 1

    @property
    def leaves_gaps(self) -> bool:
        """Whether there is time between windows that is in none."""
        return False

    @property
    def time_carried(self) -> int:
        return self.size


@dataclass(frozen=True)
class TrailingRows(Shape):
    """For each row itself and the ``count - 1`` rows before it; without the current row the ``count`` rows before it."""

    count: int
    with_current: bool = True

    @property
    def rows_carried(self) -> int:
        return self.count - self.with_current
