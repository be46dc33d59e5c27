"""count_distinct: how many different values there are, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.aggregates import _runs as runs
from sash.algebra import Aggregate, Objects
from sash.types import is_orderable


@dataclass(frozen=True)
class CountDistinct(Aggregate):
    """The number of different values that are not null; NaN equals NaN, and 0 over nothing."""

    name = "count_distinct"
    kind = "runs"
    counts_rows = True
    counts_values = True

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="any type that has an order")
        return pa.int64()

    def objects(self) -> Objects:
        return runs.objects(self.lower)

    def lower(self, s: runs.Runs) -> Any:
        return len(s.values)
