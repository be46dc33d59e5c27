"""stddev_samp: the sample standard deviation; null over a single value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from sash.aggregates._moments import Moment
from sash.algebra import Form, Partial, Value


def lower(s: Partial) -> Value:
    return math.sqrt(s[2] / (s[0] - 1)) if s[0] > 1 else None


@dataclass(frozen=True)
class StddevSamp(Moment):
    """The sample standard deviation; null over a single value."""

    name = "stddev_samp"

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return self.moments_form(types[0], lower)
