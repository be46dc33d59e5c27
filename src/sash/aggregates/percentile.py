"""percentile: the exact value below which a share of the rows lies, between two rows by linear interpolation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import pyarrow as pa

from sash.aggregates import _runs as runs
from sash.algebra import Aggregate, Objects
from sash.errors import InvalidArgument
from sash.types import is_numeric


def interpolated(position: float, below: float, above: float) -> float:
    """Spark's interpolation between the values around a fractional rank."""
    low, high = math.floor(position), math.ceil(position)
    if low == high or below == above:
        return below
    return below + (above - below) * (position - low)


@dataclass(frozen=True)
class Percentile(Aggregate):
    """The exact ``q``-quantile, as a double; NaN is larger than any number."""

    name = "percentile"
    kind = "runs"
    reads = "double"
    q: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.q, bool) or not isinstance(self.q, Real) or not 0 <= self.q <= 1:
            raise InvalidArgument(f"q of {self.name} must be a number from 0 to 1, not {self.q!r}")

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_numeric(t):
            raise self.refuse(t, wants="integers, floats or decimals")
        return pa.float64()

    def objects(self) -> Objects:
        return runs.objects(self.lower)

    def lower(self, s: runs.Runs) -> Any:
        if s.total == 0:
            return None
        position = (s.total - 1) * self.q
        below, above = runs.at(s, math.floor(position)), runs.at(s, math.ceil(position))
        return interpolated(position, float(below), float(above))
