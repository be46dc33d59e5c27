"""last_rows: the last n rows every so often, the paper's example of a window on two measures."""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import InvalidWindow
from sash.types import Duration, Measure
from sash.windows.base import Window
from sash.windows.shapes import RowsBefore


@dataclass(frozen=True)
class LastRows(Window):
    """At each multiple of ``every`` that follows at least one new row of the key: its last ``count`` rows before."""

    context = "forward context aware"
    counts_rows = True
    never_ends = True
    count: int
    every: Duration

    def bind(self, measure: Measure) -> RowsBefore:
        every = measure.ticks(self.every, "every")
        if every < 1:
            raise InvalidWindow(f"every {self.every!r} is shorter than the time column's unit ({measure.type})")
        return RowsBefore(self.count, every)

    def __repr__(self) -> str:
        return f"last_rows({self.count}, every {self.every!r})"
