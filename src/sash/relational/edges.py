"""Edges: the windows of a sequence of relations, numbered; and where each starts, ends and has its time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]
Known = tuple[Array, Array | None]
"""Ticks, and which of them are known (None: all)."""


class Edges(ABC):
    """Windows numbered one after the other; rows that are in several are in consecutive ones."""

    @abstractmethod
    def numbers(self, ticks: Array) -> Array:
        """For each tick the first window whose edge is at it or later."""

    @abstractmethod
    def ends(self, numbers: Array) -> Known:
        """Where windows end."""

    @abstractmethod
    def starts(self, numbers: Array) -> Known:
        """Where windows start."""

    def times(self, numbers: Array) -> Known:
        """The times of windows' results: their last ticks."""
        ends, known = self.ends(numbers)
        return ends - 1, known

    def exist(self, numbers: Array) -> Array | None:
        """Which numbers are windows; None if all are."""
        return None

    def order(self, numbers: Array) -> Array:
        """What results are sorted by: windows by end, then start."""
        return numbers


@dataclass(frozen=True)
class PeriodicEdges(Edges):
    """Windows that end at ``phase + number * slide``."""

    size: int
    slide: int
    phase: int

    def numbers(self, ticks: Array) -> Array:
        result: Array = -((self.phase - ticks) // self.slide)
        return result

    def ends(self, numbers: Array) -> Known:
        return self.phase + numbers * self.slide, None

    def starts(self, numbers: Array) -> Known:
        return self.phase + numbers * self.slide - self.size, None


@dataclass(frozen=True)
class ListedEdges(Edges):
    """Windows with these ends, in order; ``opens`` are their starts, None if they have none."""

    closes: Array
    opens: Array | None

    def numbers(self, ticks: Array) -> Array:
        result: Array = np.searchsorted(self.closes, ticks)
        return result

    def ends(self, numbers: Array) -> Known:
        return self.closes[numbers], None

    def starts(self, numbers: Array) -> Known:
        if self.opens is None:
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), bool)
        return self.opens[numbers], None

    def exist(self, numbers: Array) -> Array | None:
        return (numbers >= 0) & (numbers < len(self.closes))


@dataclass(frozen=True)
class CountedEdges(Edges):
    """Windows that depend on rows, one after the other; between those of two partitions a number is left out."""

    opens: Array
    closes: Array
    closed: Array
    """Whether a window's end is known."""
    latest: Array
    """The times of their results."""
    real: Array
    """Whether a number is a window."""

    def numbers(self, ticks: Array) -> Array:
        return np.clip(ticks, 0, len(self.real))

    def ends(self, numbers: Array) -> Known:
        return self.closes[numbers], self.closed[numbers]

    def starts(self, numbers: Array) -> Known:
        return self.opens[numbers], None

    def times(self, numbers: Array) -> Known:
        return self.latest[numbers], self.closed[numbers]

    def exist(self, numbers: Array) -> Array | None:
        within = (numbers >= 0) & (numbers < len(self.real))
        within[within] = self.real[numbers[within]]
        return within

    def order(self, numbers: Array) -> Array:
        places = np.lexsort((self.opens, np.where(self.closed, self.closes, FAR_AHEAD)))
        rank = np.empty(len(places), np.int64)
        rank[places] = np.arange(len(places))
        return rank[numbers]
