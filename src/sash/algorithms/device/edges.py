"""Where the slices of sliding windows lie, by arithmetic.

Windows of ``size`` rows that slide by ``every`` cut each slide in one piece or in two: at its start, where a window starts, and ``rest =
size % every`` rows later, where one ends. (A common divisor of size and slide, as the Slider paper has it, would cut a slide of 1,024
rows into 1,024 pieces for a window of 4,097.) Windows that lie apart have one slice each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cut:
    """The slices of one job: slice ``k`` is in slide ``k // per``; the first of a slide has ``first`` rows, the second ``second``."""

    per: int
    every: int
    first: int
    second: int
    span: int
    """How many slices a window has; window ``j`` starts at slice ``j * per``."""

    def count(self, windows: int) -> int:
        """How many slices these windows have."""
        return (windows - 1) * self.per + self.span if windows else 0


def cut(size: int, every: int) -> Cut:
    """The slices of windows of ``size`` rows that slide by ``every``."""
    if every >= size:
        return Cut(1, every, size, 0, 1)
    rest = size % every
    if rest == 0:
        return Cut(1, every, every, 0, size // every)
    return Cut(2, every, rest, every - rest, 2 * (size // every) + 1)


def slice_start(k: int, per: int, every: int, first: int) -> int:
    """The first row of slice ``k``."""
    return k * every if per == 1 else (k >> 1) * every + (k & 1) * first


def slice_rows(k: int, per: int, first: int, second: int) -> int:
    """How many rows slice ``k`` has."""
    return first if per == 1 or k & 1 == 0 else second
