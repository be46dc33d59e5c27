"""trailing_rows: for each row itself and the rows before it, up to a number."""

from __future__ import annotations

from dataclasses import dataclass

from sash.types import Measure
from sash.windows.base import Window
from sash.windows.shapes import TrailingRows


@dataclass(frozen=True)
class TrailingRowWindow(Window):
    """SQL's ``ROWS BETWEEN count - 1 PRECEDING AND CURRENT ROW``, or ``count PRECEDING AND 1 PRECEDING`` where the end is open."""

    is_trailing = True
    counts_rows = True
    count: int
    closed: str = "both"

    def bind(self, measure: Measure) -> TrailingRows:
        return TrailingRows(self.count, self.closed in ("both", "right"))

    def __repr__(self) -> str:
        return f"trailing_rows({self.count}{f', closed {self.closed}' if self.closed != 'both' else ''})"
