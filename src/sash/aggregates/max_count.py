"""max_count: how often the largest value occurs (the Reactive Aggregator's MaxCount)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value
from sash.types import is_orderable, order_type, smallest


def lift(v: Value) -> Partial:
    return (v, 1)


def combine(a: Partial, b: Partial) -> Partial:
    """Pick the larger side, or add up where they are equal; NaN is larger than any number."""
    a_wins = a[0] > b[0] or (a[0] != a[0] and b[0] == b[0])
    b_wins = b[0] > a[0] or (b[0] != b[0] and a[0] == a[0])
    return (b[0] if b_wins else a[0], (0 if b_wins else a[1]) + (0 if a_wins else b[1]))


def lower(s: Partial) -> Value:
    return s[1]


@dataclass(frozen=True)
class MaxCount(Aggregate):
    """How often the largest value occurs; null over nothing."""

    name = "max_count"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="any type that has an order")
        return pa.int64()

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        machine = order_type(types[0])
        return Form(
            name=self.name,
            inputs=(machine,),
            state=(machine, "int64"),
            outputs=("int64",),
            identity=(smallest(machine), 0),
            lift=lift,
            combine=combine,
            lower=lower,
            commutative=True,
        )
