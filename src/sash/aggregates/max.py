"""max: the largest value. NaN is larger than any number, so it wins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value, larger
from sash.types import is_orderable, order_type, smallest


def lift(v: Value) -> Partial:
    return (v,)


def combine(a: Partial, b: Partial) -> Partial:
    return (larger(a[0], b[0]),)


def lower(s: Partial) -> Value:
    return s[0]


@dataclass(frozen=True)
class Max(Aggregate):
    """The largest value, of any type that has an order."""

    name = "max"

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
            identity=(smallest(machine),),
            lift=lift,
            combine=combine,
            lower=lower,
            commutative=True,
            selective=True,
        )
