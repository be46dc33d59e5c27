"""m4: the smallest, largest, first and last value: what a line chart needs of each pixel column."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value, larger, smaller
from sash.types import is_orderable, order_type


def lift(v: Value) -> Partial:
    return (v, v, v, v)


def combine(a: Partial, b: Partial) -> Partial:
    return (smaller(a[0], b[0]), larger(a[1], b[1]), a[2], b[3])


def lower(s: Partial) -> Value:
    return s


@dataclass(frozen=True)
class M4(Aggregate):
    """A struct of ``min``, ``max``, ``first`` and ``last``; nulls are skipped."""

    name = "m4"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="any type that has an order")
        return pa.struct([(name, t) for name in ("min", "max", "first", "last")])

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        machine = order_type(types[0])
        return Form(
            name=self.name,
            inputs=(machine,),
            state=(machine,) * 4,
            outputs=(machine,) * 4,
            lift=lift,
            combine=combine,
            lower=lower,
        )
