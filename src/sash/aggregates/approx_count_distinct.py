"""approx_count_distinct: how many different values there are, from a HyperLogLog sketch of fixed size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.algebra import NOTHING, Aggregate, Objects
from sash.errors import InvalidArgument
from sash.types import is_orderable


@dataclass(frozen=True)
class ApproxCountDistinct(Aggregate):
    """An estimate of the number of different values; 0 over nothing.

    ``rsd`` bounds the relative standard deviation: the sketch has ``2 ** lg_k`` registers with ``1.04 / sqrt(2 ** lg_k) <= rsd``,
    so about two thirds of all estimates are within ``rsd`` of the truth and 95 % within twice that.
    """

    name = "approx_count_distinct"
    kind = "sketch"
    counts_rows = True
    rsd: float = 0.05

    def __post_init__(self) -> None:
        if isinstance(self.rsd, bool) or not isinstance(self.rsd, int | float) or not 0.0008 <= self.rsd <= 0.25:
            raise InvalidArgument(f"rsd of approx_count_distinct must be a number from 0.0008 to 0.25, not {self.rsd!r}")

    @property
    def lg_k(self) -> int:
        """The binary logarithm of the number of registers."""
        return max(4, math.ceil(math.log2((1.04 / self.rsd) ** 2)))

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="any type that has an order")
        return pa.int64()

    def objects(self) -> Objects:
        import datasketches

        def lift(value: Any) -> Any:
            if value is None:
                return NOTHING
            sketch = datasketches.hll_sketch(self.lg_k, datasketches.tgt_hll_type.HLL_8)
            sketch.update(_hashable(value))
            return sketch

        def combine(a: Any, b: Any) -> Any:
            if a is NOTHING or b is NOTHING:
                return b if a is NOTHING else a
            union = datasketches.hll_union(self.lg_k)
            union.update(a)
            union.update(b)
            return union.get_result(datasketches.tgt_hll_type.HLL_8)

        def lower(s: Any) -> Any:
            return 0 if s is NOTHING else round(s.get_estimate())

        return Objects(lift, combine, lower, lambda: NOTHING)


def _hashable(value: Any) -> Any:
    """One representation per value: NaN is NaN, -0.0 is 0.0, and what is no number goes by its text."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    return value if isinstance(value, str) else repr(value)
