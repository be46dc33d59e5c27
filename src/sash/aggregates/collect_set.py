"""collect_set: the different values, in no promised order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.aggregates import _runs as runs
from sash.algebra import Aggregate, Objects
from sash.types import is_orderable


@dataclass(frozen=True)
class CollectSet(Aggregate):
    """A list of the different values that are not null; empty over nothing."""

    name = "collect_set"
    kind = "runs"
    counts_rows = True

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="any type that has an order")
        return pa.list_(t)

    def objects(self) -> Objects:
        return runs.objects(self.lower)

    def lower(self, s: runs.Runs) -> Any:
        return s.values.tolist()
