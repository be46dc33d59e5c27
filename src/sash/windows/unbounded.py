"""unbounded: everything so far."""

from __future__ import annotations

from dataclasses import dataclass

from sash.types import Measure
from sash.windows.base import Window
from sash.windows.shapes import Everything


@dataclass(frozen=True)
class Unbounded(Window):
    """One window per key that never ends."""

    never_ends = True

    def bind(self, measure: Measure) -> Everything:
        return Everything()

    def __repr__(self) -> str:
        return "unbounded()"
