"""min: the smallest value. NaN is larger than any number, so it loses whenever there is one."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value, smaller
from sash.types import is_orderable, largest, order_type


def lift(v: Value) -> Partial:
    return (v,)


def combine(a: Partial, b: Partial) -> Partial:
    return (smaller(a[0], b[0]),)


def lower(s: Partial) -> Value:
    return s[0]


@dataclass(frozen=True)
class Min(Aggregate):
    """The smallest value, of any type that has an order."""

    name = "min"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="any type that has an order")
        return t

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        machine = order_type(types[0])
        return Form(
            name=self.name,
            inputs=(machine,),
            state=(machine,),
            outputs=(machine,),
            identity=(largest(machine),),
            lift=lift,
            combine=combine,
            lower=lower,
            commutative=True,
            selective=True,
        )
