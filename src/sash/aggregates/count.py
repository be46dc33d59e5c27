"""count: how many rows, or how many values that are not null."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.algebra import Aggregate, Form, Partial, Value


def lift() -> Partial:
    return (1,)


def combine(a: Partial, b: Partial) -> Partial:
    return (a[0] + b[0],)


def invert(a: Partial, b: Partial) -> Partial:
    return (a[0] - b[0],)


def lower(s: Partial) -> Value:
    return s[0]


@dataclass(frozen=True)
class Count(Aggregate):
    """``count()`` counts rows, ``count(x)`` the values of ``x`` that are not null; never null itself."""

    name = "count"
    arity = 0
    counts_rows = True

    def returns(self, *types: pa.DataType) -> pa.DataType:
        return pa.int64()

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return Form(
            name=self.name,
            inputs=(),
            state=("int64",),
            outputs=("int64",),
            identity=(0,),
            lift=lift,
            combine=combine,
            invert=invert,
            lower=lower,
            commutative=True,
        )
