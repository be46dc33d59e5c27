"""Aggregates by Spark's own functions, where no row is in two windows: each is one SQL expression over the rows of a window.

Ties are broken as everywhere: by time, then by ``order_by``. An expression reads the rows' own columns; a row counts where the
aggregate's condition holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.aggregates import registry
from sash.plan.logical import Column
from sash.spark.language import sql
from sash.spark.language.catalyst import CATALYST_AGGREGATES, input_type, why_not_catalyst
from sash.spark.language.packing import first_extreme, packing
from sash.spark.language.sql import quoted, text, where


@dataclass(frozen=True)
class Rows:
    """What an expression may refer to."""

    tick: str
    """The row's time."""
    ties: tuple[str, ...]
    """The columns that order rows of the same time."""
    start: str = ""
    """Where the row's window starts."""
    size: int = 0
    """How long windows are; 0 if they have no end."""
    keyed: bool = True
    """Whether there are keys, and so perhaps many windows at a time."""

    def place(self, *before: str) -> str:
        """What rows are ordered by: ``before``, time, ties; in a struct unless it is one number, since Spark aggregates numbers faster."""
        parts = [*before, self.tick, *map(quoted, self.ties)]
        return parts[0] if len(parts) == 1 else f"struct({', '.join(parts)})"


NativeExpression = Callable[[Any, list[str], tuple[pa.DataType, ...], str, Rows], str]
"""Returns SQL for an aggregate, its inputs' columns and types, its condition, and the rows."""


def _chosen(function: str) -> NativeExpression:
    """``first`` and ``last``: the value of the row that comes first or last."""

    def expression(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
        (x,) = inputs
        known = f"{x} is not null" if aggregate.ignorenulls else ""
        return f"{function}({x}, {where(rows.place(), condition, known)})"

    return expression


def _extreme(largest: bool) -> NativeExpression:
    """``max_by`` and ``min_by``: of equal ones the first row."""

    def expression(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
        x, by = inputs
        # Packing all bits of a double costs more than sorting the rows of a few windows.
        is_apt = not rows.ties and _is_number(types[0]) and (rows.keyed or not pa.types.is_floating(types[1]))
        packed = packing(by, types[1], rows.start, rows.size) if is_apt else None
        if packed is not None:
            return first_extreme(x, packed, condition, f"({rows.tick} - {rows.start})", rows.size, largest=largest)
        known = f"{by} is not null"
        if not largest:
            return f"min_by({x}, {where(rows.place(by), condition, known)})"
        if can_reverse(types[1]):
            return f"min_by({x}, {where(rows.place(*_reversed(by, types[1])), condition, known)})"
        return f"max_by({x}, {where(f'struct({by}, -{rows.tick})', condition, known)})"

    return expression


def _is_number(t: pa.DataType) -> bool:
    """Whether Spark aggregates values of a type by hashing: those of fixed width."""
    numeric = pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)
    return bool(numeric or pa.types.is_boolean(t) or pa.types.is_date(t) or pa.types.is_timestamp(t))


def _reversed(x: str, t: pa.DataType) -> list[str]:
    """Columns in whose order the largest value comes first."""
    if pa.types.is_floating(t):
        return [f"not isnan({x})", f"-{x}"]
    if pa.types.is_integer(t):
        return [f"~{x}"]
    if pa.types.is_boolean(t):
        return [f"not {x}"]
    if pa.types.is_date(t):
        return [f"-unix_date({x})"]
    return [f"-{sql.micros(x, t)}"] if pa.types.is_timestamp(t) else [f"-{x}"]


def can_reverse(t: pa.DataType) -> bool:
    """Whether there are columns in whose order the largest value comes first."""
    plain = pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t) or pa.types.is_date(t) or pa.types.is_timestamp(t)
    return bool(plain or (pa.types.is_decimal(t) and t.precision <= 34))  # Spark rounds longer ones where it changes their sign


def _distinct(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return f"count(distinct {', '.join(where(x, condition) for x in inputs)})"


def _in_order(aggregate: Any, inputs: list[str], condition: str, rows: Rows) -> str:
    """The values that are not null, in the order of their rows, as an array."""
    (x,) = inputs
    pairs = where(f"struct({rows.place()} as p, {x} as x)", condition, f"{x} is not null")
    return f"transform(sort_array(collect_list({pairs})), s -> s.x)"


def _list(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return _in_order(aggregate, inputs, condition, rows)


def _joined(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    has_values = f"count({where(inputs[0], condition)}) > 0"
    return f"if({has_values}, array_join({_in_order(aggregate, inputs, condition, rows)}, {text(aggregate.separator)}), null)"


def _quantile(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return f"percentile({where(f'cast({inputs[0]} as double)', condition)}, {float(aggregate.q)!r}D)"


def _near_quantile(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    (x,) = inputs
    known = f"not isnan({x})" if pa.types.is_floating(types[0]) else ""
    return f"approx_percentile({where(x, condition, known)}, {float(aggregate.q)!r}D)"


def _near_distinct(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return f"approx_count_distinct({where(inputs[0], condition)}, {float(aggregate.rsd)!r}D)"


NATIVE_AGGREGATES: dict[str, NativeExpression] = {
    "first": _chosen("min_by"),
    "last": _chosen("max_by"),
    "max_by": _extreme(largest=True),
    "min_by": _extreme(largest=False),
    "count_distinct": _distinct,
    "collect_list": _list,
    "collect_set": lambda a, inputs, types, condition, rows: f"collect_set({where(inputs[0], condition)})",
    "string_agg": _joined,
    "median": _quantile,
    "percentile": _quantile,
    "approx_percentile": _near_quantile,
    "approx_count_distinct": _near_distinct,
}


def why_not_native(column: Column, order_by: tuple[str, ...]) -> str | None:
    """Why Spark's own functions cannot compute an aggregate over the rows of a window; None if they can."""
    aggregate = column.call.aggregate
    reason = why_not_catalyst(column)
    if reason is None:
        return None
    if registry().get(aggregate.name) is not type(aggregate) or aggregate.name not in NATIVE_AGGREGATES:
        return reason
    if aggregate.name == "max_by" and order_by and not can_reverse(column.types[1]):
        return f"{column.call!r} is ordered by {column.types[1]}, which has no opposite, and then by {order_by[0]!r}"
    return None


def native_expression(column: Column, rows: Rows) -> str:
    """An aggregate over the rows of a window, as SQL."""
    aggregate = column.call.aggregate
    condition = "" if column.condition is None else quoted(column.condition.text)
    inputs = [quoted(e.text) for e in column.inputs]
    if why_not_catalyst(column) is None:
        x = where(inputs[0] if inputs else "1", condition)
        return CATALYST_AGGREGATES[aggregate.name].result(f"({x})", input_type(column))
    return NATIVE_AGGREGATES[aggregate.name](aggregate, inputs, column.types, condition, rows)
