"""geometric_mean: through logarithms, so that a product of many values does not overflow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value
from sash.types import double_type, is_numeric


def lift(v: Value) -> Partial:
    return (math.log(v) if v > 0 else -math.inf if v == 0 else math.nan,)


def combine(a: Partial, b: Partial) -> Partial:
    return (a[0] + b[0],)


def invert(a: Partial, b: Partial) -> Partial:
    return (a[0] - b[0],)


def lower(s: Partial, n: Value) -> Value:
    return math.exp(s[0] / n)


@dataclass(frozen=True)
class GeometricMean(Aggregate):
    """The n-th root of the product of n values: 0 if one of them is 0, NaN if one is negative."""

    name = "geometric_mean"
    reads = "double"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_numeric(t):
            raise self.refuse(t, wants="integers, floats or decimals")
        return pa.float64()

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return Form(
            name=self.name,
            inputs=(double_type(types[0]),),
            state=("float64",),
            outputs=("float64",),
            identity=(0.0,),
            lift=lift,
            combine=combine,
            invert=invert,
            exact=False,
            lower=lower,
            counted=True,
            commutative=True,
        )
