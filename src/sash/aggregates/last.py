"""last: the last value in the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value
from sash.types import is_orderable, order_type


def lift(v: Value) -> Partial:
    return (v,)


def lift_nullable(v: Value, known: Value) -> Partial:
    return (v, known)


def combine(a: Partial, b: Partial) -> Partial:
    return b


def lower(s: Partial) -> Value:
    return s[0]


def lower_nullable(s: Partial) -> Value:
    return s[0] if s[1] else None


@dataclass(frozen=True)
class Last(Aggregate):
    """The last value, null if that row's value is null; with ``ignorenulls`` the last one that is not."""

    name = "last"
    ignorenulls: bool = False

    @property
    def null_aware_inputs(self) -> tuple[int, ...]:
        return () if self.ignorenulls else (0,)

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_orderable(t):
            raise self.refuse(t, wants="numbers, booleans, dates, times, decimals, strings or binary")
        return t

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        machine = order_type(types[0])
        null_aware = bool(nullable and nullable[0]) and not self.ignorenulls
        return Form(
            name=self.name,
            inputs=(machine,),
            state=(machine, "bool") if null_aware else (machine,),
            outputs=(machine,),
            lift=lift_nullable if null_aware else lift,
            combine=combine,
            lower=lower_nullable if null_aware else lower,
            null_aware_inputs=(0,) if null_aware else (),
            selective=True,
        )
