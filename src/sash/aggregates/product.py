"""product: the product of the values, as a double."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value
from sash.types import double_type, is_numeric


def lift(v: Value) -> Partial:
    return (v,)


def combine(a: Partial, b: Partial) -> Partial:
    return (a[0] * b[0],)


def lower(s: Partial) -> Value:
    return s[0]


@dataclass(frozen=True)
class Product(Aggregate):
    """The product of the values, as a double."""

    name = "product"
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
            identity=(1.0,),
            lift=lift,
            combine=combine,
            lower=lower,
            commutative=True,
        )
