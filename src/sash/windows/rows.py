"""rows: windows over the numbers of a key's rows, counted from 0 in the order of time."""

from __future__ import annotations

from dataclasses import dataclass

from sash.types import Measure
from sash.windows.base import Window
from sash.windows.shapes import Ranks


@dataclass(frozen=True)
class RowWindow(Window):
    """``size`` rows from every multiple of ``every`` on; incomplete ones at the end only with ``partial``."""

    context = "forward context free"
    counts_rows = True
    never_ends = True
    size: int
    every: int
    partial: bool = False

    def bind(self, measure: Measure) -> Ranks:
        return Ranks(self.size, self.every, self.partial)

    def __repr__(self) -> str:
        return f"rows({self.size}, every {self.every}{', partial' * self.partial})"
