"""trailing: for each row the rows of the time before it."""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import InvalidWindow
from sash.types import Duration, Measure
from sash.windows.base import Window
from sash.windows.shapes import Trailing

CLOSED = ("both", "right", "left", "neither")


@dataclass(frozen=True)
class TrailingWindow(Window):
    """SQL's ``RANGE BETWEEN size PRECEDING AND CURRENT ROW``; ``closed`` says which ends belong to it."""

    is_trailing = True
    size: Duration
    closed: str = "both"

    def bind(self, measure: Measure) -> Trailing:
        size = measure.ticks(self.size, "size")
        if size < 0:
            raise InvalidWindow(f"size must not be negative, not {self.size!r}")
        return Trailing(size, self.closed in ("both", "left"), self.closed in ("both", "right"))

    def __repr__(self) -> str:
        return f"trailing({self.size!r}{f', closed {self.closed}' if self.closed != 'both' else ''})"
