"""The partial behind variance and standard deviation: count, mean, and the sum of squared distances from the mean.

Two of them merge by the pairwise update of Chan, Golub and LeVeque, which is stable where sums of squares cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Function, Partial, Value, ratio
from sash.types import double_type, is_numeric


def lift(v: Value) -> Partial:
    return (1.0, v, v - v)


def combine(a: Partial, b: Partial) -> Partial:
    n = a[0] + b[0]
    share = ratio(b[0], n)
    distance = b[1] - a[1]
    return (n, a[1] + distance * share, a[2] + b[2] + distance * distance * (a[0] * share))


@dataclass(frozen=True)
class Moment(Aggregate):
    """A result that is computed from the moments of the values."""

    reads = "double"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_numeric(t):
            raise self.refuse(t, wants="integers, floats or decimals")
        return pa.float64()

    def moments_form(self, t: pa.DataType, lower: Function) -> Form:
        return Form(
            name=self.name,
            inputs=(double_type(t),),
            state=("float64", "float64", "float64"),
            outputs=("float64",),
            lift=lift,
            combine=combine,
            lower=lower,
            commutative=True,
        )
