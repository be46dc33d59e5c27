"""avg: the arithmetic mean, exact sums for integers and decimals, no drift for floats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, Decimal

import pyarrow as pa

from sash.aggregates import _limbs as limbs
from sash.aggregates._limbs import BITS, LIMB
from sash.aggregates.sum import ROWS_IN_ONE_LIMB, combine, invert, lift
from sash.algebra import Aggregate, Form, Partial, Value, ratio
from sash.errors import IntegerOverflow
from sash.types import avg_type, is_numeric, machine_type


def lower(s: Partial, n: Value) -> Value:
    return ratio(s[0], n)


def lower_two_limbs(s: Partial, n: Value) -> Value:
    """Exact up to the division while the sum has 64 bits; beyond that, in doubles."""
    narrow = s[0] >= -2 and s[0] <= 1
    return ratio((s[0] << BITS) + s[1] if narrow else s[0] * LIMB + s[1], n)


def lower_limbs_and_count(s: Partial, n: Value) -> Value:
    return (s[0], s[1], n)


def lower_three_limbs_and_count(s: Partial, n: Value) -> Value:
    return (s[0], s[1], s[2], n)


@dataclass(frozen=True)
class Avg(Aggregate):
    """The arithmetic mean: double, or for decimals a decimal with four digits more."""

    name = "avg"
    reads = "limbs"

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not is_numeric(t):
            raise self.refuse(t, wants="integers, floats or decimals")
        return avg_type(t)

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        (t,) = types
        machine = machine_type(t)
        if pa.types.is_decimal(t):
            wide = limbs.wide_form(self.name, count=2 if machine else 3)
            return replace(
                wide,
                outputs=("int64",) * (len(wide.state) + 1),
                lower=lower_limbs_and_count if machine else lower_three_limbs_and_count,
                counted=True,
            )
        assert machine is not None
        if pa.types.is_integer(t) and not (t.bit_width <= 32 and rows is not None and rows < ROWS_IN_ONE_LIMB):
            wide = limbs.sum_form(self.name, machine)
            return replace(wide, outputs=("float64",), lower=lower_two_limbs, fits=None, counted=True)
        state = "int64" if pa.types.is_integer(t) else "float64"
        return Form(
            name=self.name,
            inputs=(machine,),
            state=(state,),
            outputs=("float64",),
            identity=(0,) if state == "int64" else (0.0,),
            lift=lift,
            combine=combine,
            invert=invert,
            exact=state == "int64",
            lower=lower,
            counted=True,
            commutative=True,
        )

    def lower_logical(self, raw: list[pa.Array], *types: pa.DataType) -> pa.Array:
        (t,) = types
        if not pa.types.is_decimal(t):
            return super().lower_logical(raw, t)
        logical = self.returns(t)
        sums, counts = limbs.to_integers(raw[:-1]), raw[-1].to_pylist()
        shift = 10 ** (logical.scale - t.scale)
        values = [None if s is None else _rounded(s * shift, n) for s, n in zip(sums, counts, strict=True)]
        bound = 10**logical.precision
        if any(v is not None and not -bound < v < bound for v in values):
            raise IntegerOverflow(f"the average of a window needs more than the {logical.precision} digits of {logical}")
        exact = [None if v is None else Decimal(v).scaleb(-logical.scale, CONTEXT) for v in values]
        return pa.array(exact, logical)


CONTEXT = Context(prec=80)


def _rounded(numerator: int, denominator: int) -> int:
    """The quotient, rounded half away from zero, as Spark rounds decimals."""
    quotient, remainder = divmod(abs(numerator), denominator)
    quotient += 2 * remainder >= denominator
    return quotient if numerator >= 0 else -quotient
