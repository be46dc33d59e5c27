"""Aggregates as SQL expressions for Catalyst: the fields of their partials over a slice, and their results where a window is one slice.

Each expression reads one column of inputs, which is null where the row does not count. It may repeat an aggregate, since Spark computes
equal aggregates once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from sash.aggregates import registry
from sash.plan.logical import Column
from sash.spark.language.sql import micros, text

MASK32, MASK30, MASK62 = (1 << 32) - 1, (1 << 30) - 1, (1 << 62) - 1
TOO_LARGE = "sum: the exact sum of a window does not fit in 64 bits; cast the column to a wider type, such as decimal(38, 0)"


@dataclass(frozen=True)
class CatalystAggregate:
    """How Catalyst computes an aggregate of one input."""

    partial: Callable[[str, pa.DataType], tuple[str, ...]]
    """SQL for the fields of the partial, from the input's text and type."""
    result: Callable[[str, pa.DataType], str]
    """SQL for the result over all rows."""


def _is_long(t: pa.DataType) -> bool:
    return bool(pa.types.is_int64(t))


def _halves(x: str) -> tuple[str, str]:
    """The exact sum of 64-bit integers as ``high * 2**32 + low``: two sums that cannot overflow."""
    low, high = f"sum({x} & {MASK32}L)", f"sum(shiftright({x}, 32))"
    return f"({high} + shiftright({low}, 32))", f"({low} & {MASK32}L)"


def _sum_partial(x: str, t: pa.DataType) -> tuple[str, ...]:
    if pa.types.is_floating(t):
        return (f"sum(cast({x} as double))",)
    if _is_long(t):
        high, low = _halves(x)
        return f"shiftright({high}, 30)", f"shiftleft({high} & {MASK30}L, 32) | {low}"
    whole = f"sum(cast({x} as bigint))"
    return f"shiftright({whole}, 62)", f"{whole} & {MASK62}L"


def _sum_result(x: str, t: pa.DataType) -> str:
    if pa.types.is_floating(t):
        return f"sum(cast({x} as double))"
    if not _is_long(t):
        return f"sum(cast({x} as bigint))"
    high, low = _halves(x)
    far = 1 << 31
    fits = f"({high} >= -{far}L and {high} < {far}L)"
    return f"if({high} is null or {fits}, shiftleft({high}, 32) | {low}, cast(raise_error({text(TOO_LARGE)}) as bigint))"


def _avg_result(x: str, t: pa.DataType) -> str:
    if pa.types.is_floating(t):
        return f"sum(cast({x} as double)) / nullif(count({x}), 0)"
    if not _is_long(t):
        return f"cast(sum(cast({x} as bigint)) as double) / nullif(count({x}), 0)"
    high, low = _halves(x)
    return f"(cast({high} as double) * 4294967296.0D + cast({low} as double)) / nullif(count({x}), 0)"


def _ordered(function: str) -> CatalystAggregate:
    def partial(x: str, t: pa.DataType) -> tuple[str, ...]:
        extreme = f"{function}({x})"
        if pa.types.is_timestamp(t):
            return (micros(extreme, t),)
        return (f"unix_date({extreme})",) if pa.types.is_date(t) else (extreme,)

    return CatalystAggregate(partial, lambda x, t: f"{function}({x})")


def _moments(function: str) -> CatalystAggregate:
    def partial(x: str, t: pa.DataType) -> tuple[str, ...]:
        d, n = f"cast({x} as double)", f"count({x})"
        return f"cast({n} as double)", f"avg({d})", f"var_pop({d}) * {n}", f"{n} > 0"

    return CatalystAggregate(partial, lambda x, t: f"{function}(cast({x} as double))")


CATALYST_AGGREGATES = {
    "count": CatalystAggregate(lambda x, t: (f"count({x})",), lambda x, t: f"count({x})"),
    "sum": CatalystAggregate(_sum_partial, _sum_result),
    "avg": CatalystAggregate(lambda x, t: (*_sum_partial(x, t), f"count({x})"), _avg_result),
    "min": _ordered("min"),
    "max": _ordered("max"),
    **{name: _moments(name) for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")},
}


def why_not_catalyst(column: Column) -> str | None:
    """Why Catalyst cannot compute an aggregate's partials; None if it can."""
    aggregate = column.call.aggregate
    name = aggregate.name
    if registry().get(name) is not type(aggregate):
        return f"{aggregate.label} is the user's own"
    if name not in CATALYST_AGGREGATES:
        return f"Catalyst has no mergeable partial for {name}"
    if len(column.inputs) > 1:
        return f"{column.call!r} has several inputs"
    for t in column.types:
        simple = pa.types.is_integer(t) or pa.types.is_floating(t)
        wide = name == "count" or (name.startswith(("var", "std")) and pa.types.is_decimal(t))
        in_order = name in ("min", "max") and (pa.types.is_temporal(t) or pa.types.is_boolean(t))
        if not (simple or wide or in_order):
            return f"{column.call!r} is over {t}"
    return None


def input_type(column: Column) -> pa.DataType:
    """The type of the column that an aggregate's Catalyst expressions read."""
    return column.types[0] if column.types else pa.int64()
