"""median: the middle value, or the mean of the two middle ones."""

from __future__ import annotations

from dataclasses import dataclass

from sash.aggregates.percentile import Percentile


@dataclass(frozen=True)
class Median(Percentile):
    """The exact median, as a double."""

    name = "median"
