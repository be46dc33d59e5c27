"""session: rows that are no more than a gap apart."""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import InvalidWindow
from sash.types import Duration, Measure
from sash.windows.base import Window
from sash.windows.shapes import Gaps


@dataclass(frozen=True)
class Session(Window):
    """``[first, last + gap)``; two rows exactly ``gap`` apart are in one session."""

    context = "forward context free"
    is_session = True
    gap: Duration

    def bind(self, measure: Measure) -> Gaps:
        gap = measure.ticks(self.gap, "gap")
        if gap < 1:
            raise InvalidWindow(f"gap {self.gap!r} is shorter than the time column's unit ({measure.type})")
        return Gaps(gap)

    def __repr__(self) -> str:
        return f"session({self.gap!r})"
