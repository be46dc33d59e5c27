"""collect_list: all values, in the order of the rows (the papers' Collect)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.algebra import Aggregate, Objects


def lift(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return a + b


@dataclass(frozen=True)
class CollectList(Aggregate):
    """A list of the values that are not null, in order; empty over nothing."""

    name = "collect_list"
    kind = "items"
    counts_rows = True

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        return pa.list_(t)

    def objects(self) -> Objects:
        return Objects(lift=lift, combine=combine, lower=list, identity=tuple)
