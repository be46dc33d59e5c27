"""Rows that come and go: where they were before, and their numbers in columns that grow.

Rows come, between others or behind them, and go, and slices remember places of the last look. Rows at the front to which nothing has
happened but that others before them went cost nothing, however many they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Lineage:
    """For each row its place at the last look; less than nothing for one that came since."""

    def __init__(self) -> None:
        self._front, self._shift = 0, 0
        """So many rows at the front were in the same order, so many places further on."""
        self._rest = np.empty(0, np.int64)
        """The places that the others had."""

    @property
    def nbytes(self) -> int:
        return self._rest.nbytes

    def look(self, rows: int) -> None:
        """Remember where the rows are now."""
        self._front, self._shift, self._rest = rows, 0, np.empty(0, np.int64)

    def of(self, first: int) -> Array:
        """Where the rows from one place on were."""
        if first >= self._front:
            return self._rest[first - self._front :]
        return np.concatenate([np.arange(first, self._front) + self._shift, self._rest])

    def put(self, first: int, places: Array) -> None:
        """The rows from one place on are others, which were there."""
        if first > self._front:
            places = np.concatenate([self._rest[: first - self._front], places])
        self._front, self._rest = min(first, self._front), places
        self._shift = self._shift if self._front else 0

    def drop(self, count: int) -> None:
        """The first rows go."""
        if count > self._front:
            self._rest = self._rest[count - self._front :]
        self._front = max(0, self._front - count)
        self._shift = self._shift + count if self._front else 0

    def fresh(self) -> Array:
        """The places of rows that came since."""
        places: Array = np.flatnonzero(self._rest < 0) + self._front
        return places

    def runs(self, offsets: Array) -> tuple[Array, Array, Array]:
        """Of runs of rows at the last look, which all still have their rows: their numbers, and where they start and end now."""
        old = np.flatnonzero(self._rest >= 0)
        was = self._rest[old]
        border = self._front + self._shift
        in_front = np.clip(offsets - self._shift, 0, self._front)
        at = np.where(offsets < border, in_front, self._front + np.searchsorted(was, offsets))  # among the rows that are left
        whole = np.flatnonzero((np.diff(at) == np.diff(offsets)) & (np.diff(offsets) > 0))
        start, last = at[whole], at[whole + 1] - 1
        places = np.append(old + self._front, 0)

        def place(number: Array) -> Array:
            return np.where(number < self._front, number, places[np.clip(number - self._front, 0, len(old))])

        return whole, place(start), place(last) + 1


class GrowingColumns:
    """Columns of numbers, of which the last may be replaced and others put behind them, and the first may go, without a copy of all."""

    def __init__(self, columns: int) -> None:
        self._buffer = np.empty((columns, 0), np.int64)
        self._begin = self._end = 0

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes

    def since(self, first: int) -> Array:
        """The columns from one place on, as a view."""
        return self._buffer[:, self._begin + first : self._end]

    def column(self, number: int) -> Array:
        """One of them, as a view."""
        found: Array = self._buffer[number, self._begin : self._end]
        return found

    def put(self, first: int, columns: Array) -> None:
        """From one place on, the columns are these."""
        end = self._begin + first + columns.shape[1]
        if end > self._buffer.shape[1]:
            larger = np.empty((len(self._buffer), 2 * (first + columns.shape[1])), np.int64)
            larger[:, :first] = self._buffer[:, self._begin : self._begin + first]
            self._buffer, self._begin, end = larger, 0, first + columns.shape[1]
        self._buffer[:, self._begin + first : end] = columns
        self._end = end

    def drop(self, count: int) -> None:
        """The first go."""
        self._begin += count
