"""band: one window between two points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sash.errors import InvalidWindow
from sash.types import FAR_AHEAD, Measure
from sash.windows.base import Window
from sash.windows.own import ContextFreeWindow
from sash.windows.shapes import Shape


@dataclass(frozen=True)
class Band(Window):
    """``[begin, end)``."""

    begin: Any
    end: Any

    def bind(self, measure: Measure) -> Shape:
        begin, end = measure.tick(self.begin, "start"), measure.tick(self.end, "end")
        if begin >= end:
            raise InvalidWindow(f"band: start {self.begin!r} must come before end {self.end!r}")
        return BandTicks(begin, end)

    def __repr__(self) -> str:
        return f"band({self.begin!r}, {self.end!r})"


@dataclass(frozen=True)
class BandTicks(ContextFreeWindow):
    """A band in ticks."""

    begin: int
    end: int

    @property
    def longest(self) -> int:
        return self.end - self.begin

    def next_edge(self, t: int) -> int:
        return self.begin if t < self.begin else self.end if t < self.end else FAR_AHEAD

    def ended(self, after: int, until: int) -> Iterable[tuple[int, int]]:
        if after < self.end <= until:
            yield self.begin, self.end
