"""min_by: the value where another column is smallest; the first one on ties (the papers' ArgMin)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import POSITION, Aggregate, Form, Partial, Value
from sash.types import is_orderable, order_type


def lift(v: Value, by: Value) -> Partial:
    return (by, v)


def lift_nullable(v: Value, by: Value, known: Value) -> Partial:
    return (by, v, known)


def combine(a: Partial, b: Partial) -> Partial:
    return b if b[0] < a[0] or (a[0] != a[0] and b[0] == b[0]) else a


def lower(s: Partial) -> Value:
    return s[1]


def lower_nullable(s: Partial) -> Value:
    return s[1] if s[2] else None


@dataclass(frozen=True)
class MinBy(Aggregate):
    """``min_by(x, by)``: ``x`` of the first row whose ``by`` is smallest. Rows where ``by`` is null are skipped, nulls of ``x`` are not."""

    name = "min_by"
    arity = 2
    null_aware = (0,)

    def returns(self, *types: pa.DataType) -> pa.DataType:
        value, by = types
        if not is_orderable(by):
            raise self.refuse(by, wants="a column that has an order as its second argument")
        if not is_orderable(value):
            raise self.refuse(value, wants="numbers, booleans, dates, times, decimals, strings or binary as its first argument")
        return value

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return self._form(order_type(types[0]), order_type(types[1]), bool(nullable and nullable[0]))

    def positions(self, by: pa.DataType) -> Form:
        """The form whose value is the row's own number."""
        return self._form(POSITION, order_type(by), False)

    def _form(self, value: str, by: str, nullable: bool) -> Form:
        value_field = "int64" if value == POSITION else value
        return Form(
            name=self.name,
            inputs=(value, by),
            state=(by, value_field, "bool") if nullable else (by, value_field),
            outputs=(value_field,),
            lift=lift_nullable if nullable else lift,
            combine=combine,
            lower=lower_nullable if nullable else lower,
            null_aware_inputs=(0,) if nullable else (),
            selective=True,
        )
