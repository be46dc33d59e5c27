"""sum: exact for integers and decimals, free of drift for floats.

Integers are added in limbs of 62 bits, so a partial has 124 bits, and only the sum of a reported window must fit
into its type. Narrow integers over few rows fit into one limb. Floats are added as they come; their inverse is inexact, and unused.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.aggregates import _limbs as limbs
from sash.algebra import Aggregate, Form, Partial, Value
from sash.types import is_numeric, machine_type, sum_type

ROWS_IN_ONE_LIMB = 1 << 31


def lift(v: Value) -> Partial:
    return (v,)


def combine(a: Partial, b: Partial) -> Partial:
    return (a[0] + b[0],)


def invert(a: Partial, b: Partial) -> Partial:
    return (a[0] - b[0],)


def lower(s: Partial) -> Value:
    return s[0]


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum of the values; 64-bit for integers, double for floats, ten digits more for decimals."""

    name = "sum"
    reads = "limbs"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_numeric(t):
            raise self.refuse(t, wants="integers, floats or decimals")
        return sum_type(t)

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        (t,) = types
        machine = machine_type(t)
        if pa.types.is_decimal(t):
            return limbs.wide_form(self.name, count=2 if machine else 3)
        assert machine is not None
        if pa.types.is_floating(t):
            return Form(
                name=self.name,
                inputs=(machine,),
                state=("float64",),
                outputs=("float64",),
                identity=(0.0,),
                lift=lift,
                combine=combine,
                invert=invert,
                exact=False,
                lower=lower,
                commutative=True,
            )
        if t.bit_width <= 32 and rows is not None and rows < ROWS_IN_ONE_LIMB:
            return Form(
                name=self.name,
                inputs=(machine,),
                state=("int64",),
                outputs=("int64",),
                identity=(0,),
                lift=lift,
                combine=combine,
                invert=invert,
                lower=lower,
                commutative=True,
            )
        return limbs.sum_form(self.name, machine)

    def lower_logical(self, raw: list[pa.Array], *types: pa.DataType) -> pa.Array:
        (t,) = types
        if pa.types.is_decimal(t):
            return limbs.to_decimal(raw, self.returns(t))
        return super().lower_logical(raw, t)
