"""Where rows were when slices were last cut, and columns of numbers that grow and shrink with the rows.

Rows are inserted, between others or behind them, and removed, while slices remember the places of their rows at the last cut. Rows at the
front cost nothing, however many they are, as long as they only move because rows before them were removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Lineage:
    """For each row its place at the last :meth:`look`; -1 for rows inserted since."""

    def __init__(self) -> None:
        self._front, self._shift = 0, 0
        """How many rows at the front are in the order they were in, and by how many places they have moved to the front."""
        self._rest = np.empty(0, np.int64)
        """The old places of the rows behind them, -1 for inserted rows."""

    @property
    def nbytes(self) -> int:
        return self._rest.nbytes

    def look(self, rows: int) -> None:
        """Remember the current places of so many rows."""
        self._front, self._shift, self._rest = rows, 0, np.empty(0, np.int64)

    def of(self, first: int) -> Array:
        """The old places of the rows from the place ``first`` on."""
        if first >= self._front:
            return self._rest[first - self._front :]
        return np.concatenate([np.arange(first, self._front) + self._shift, self._rest])

    def put(self, first: int, places: Array) -> None:
        """Replace the rows from the place ``first`` on by rows that were at ``places``."""
        if first > self._front:
            places = np.concatenate([self._rest[: first - self._front], places])
        self._front, self._rest = min(first, self._front), places
        self._shift = self._shift if self._front else 0

    def drop(self, count: int) -> None:
        """Remove the first rows."""
        if count > self._front:
            self._rest = self._rest[count - self._front :]
        self._front = max(0, self._front - count)
        self._shift = self._shift + count if self._front else 0

    def fresh(self) -> Array:
        """The places of rows inserted since the last :meth:`look`."""
        places: Array = np.flatnonzero(self._rest < 0) + self._front
        return places

    def runs(self, offsets: Array) -> tuple[Array, Array, Array]:
        """The runs of rows at the last :meth:`look` that still have all of their rows: their numbers, and where they start and end now."""
        old = np.flatnonzero(self._rest >= 0)
        was = self._rest[old]
        border = self._front + self._shift
        in_front = np.clip(offsets - self._shift, 0, self._front)
        at = np.where(offsets < border, in_front, self._front + np.searchsorted(was, offsets))  # among the rows that are not removed
        whole = np.flatnonzero((np.diff(at) == np.diff(offsets)) & (np.diff(offsets) > 0))
        start, last = at[whole], at[whole + 1] - 1
        places = np.append(old + self._front, 0)

        def place(number: Array) -> Array:
            return np.where(number < self._front, number, places[np.clip(number - self._front, 0, len(old))])

        return whole, place(start), place(last) + 1


class GrowingColumns:
    """Columns of numbers whose ends can be replaced or extended, and whose beginnings can be dropped, without copying all."""

    def __init__(self, columns: int) -> None:
        self._buffer = np.empty((columns, 0), np.int64)
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes

    def since(self, first: int) -> Array:
        """The columns' values from the place ``first`` on, as a view."""
        return self._buffer[:, self._begin + first : self._end]

    def column(self, number: int) -> Array:
        """One column, as a view."""
        values: Array = self._buffer[number, self._begin : self._end]
        return values

    def put(self, first: int, columns: Array) -> None:
        """Replace the columns' values from the place ``first`` on."""
        end = self._begin + first + columns.shape[1]
        if end > self._buffer.shape[1]:
            larger = np.empty((len(self._buffer), 2 * (first + columns.shape[1])), np.int64)
            larger[:, :first] = self._buffer[:, self._begin : self._begin + first]
            self._buffer, self._begin, end = larger, 0, first + columns.shape[1]
        self._buffer[:, self._begin + first : end] = columns
        self._end = end

    def drop(self, count: int) -> None:
        """Remove the first values."""
        self._begin += count
