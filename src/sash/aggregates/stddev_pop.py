"""stddev_pop: the population standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from sash.aggregates._moments import Moment
from sash.algebra import Form, Partial, Value


def lower(s: Partial) -> Value:
    return math.sqrt(s[2] / s[0])


@dataclass(frozen=True)
class StddevPop(Moment):
    """The population standard deviation."""

    name = "stddev_pop"

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return self.moments_form(types[0], lower)
