"""Aggregates that Spark's own functions compute where no row is in two windows: each as one expression over the rows of a window.

Ties are decided as everywhere: by time, then by ``order_by``. An expression speaks of the rows' own columns; a row counts where its
condition holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.aggregates import registry
from sash.plan.logical import Column
from sash.spark import sql
from sash.spark.catalyst import STATEMENTS, input_type, unstated
from sash.spark.sql import quoted, text


@dataclass(frozen=True)
class Rows:
    """What an expression may speak of."""

    tick: str
    """The row's time."""
    ties: tuple[str, ...]
    """The columns that decide between rows of one time."""
    start: str = ""
    """Where the row's window starts."""
    size: int = 0
    """How long windows are; 0 if they have no end."""

    def place(self, *before: str) -> str:
        """The order of rows, after what comes before it; a single number stays one, since Spark aggregates numbers faster."""
        parts = [*before, self.tick, *map(quoted, self.ties)]
        return parts[0] if len(parts) == 1 else f"struct({', '.join(parts)})"


Whole = Callable[[Any, list[str], tuple[pa.DataType, ...], str, Rows], str]
"""From an aggregate, its inputs' columns and types, its condition and the rows to an expression."""


def _where(value: str, *conditions: str) -> str:
    """A value where all conditions hold."""
    known = [c for c in conditions if c]
    return f"case when {' and '.join(known)} then {value} end" if known else value


def _chosen(function: str) -> Whole:
    """``first`` and ``last``: the value of the row that comes first or last."""

    def whole(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
        (x,) = inputs
        known = f"{x} is not null" if aggregate.ignorenulls else ""
        return f"{function}({x}, {_where(rows.place(), condition, known)})"

    return whole


def _extreme(largest: bool) -> Whole:
    """``max_by`` and ``min_by``: of equal ones the first row."""

    def whole(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
        x, by = inputs
        if rows.size and not rows.ties and rows.size < MOST_PACKED and _is_number(types[0]) and (number := _as_long(by, types[1])):
            return _packed(x, number, condition, rows, largest)
        place = rows.place(*(_reversed(by, types[1]) if largest else [by]))
        return f"min_by({x}, {_where(place, condition, f'{by} is not null')})"

    return whole


MOST_PACKED = 1 << 40
"""The longest windows whose rows' places are packed into one number with what they are ordered by."""


def _is_number(t: pa.DataType) -> bool:
    """Whether Spark aggregates values of a type by hashing: those of fixed width."""
    return bool(
        pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t) or pa.types.is_date(t) or pa.types.is_timestamp(t)
    )


def _as_long(x: str, t: pa.DataType) -> str:
    """A column as a 64-bit number in the same order; empty if it has none."""
    if pa.types.is_integer(t):
        return f"cast({x} as bigint)"
    if pa.types.is_date(t):
        return f"cast(unix_date({x}) as bigint)"
    return sql.micros(x, t) if pa.types.is_timestamp(t) else ""


def _packed(x: str, number: str, condition: str, rows: Rows, largest: bool) -> str:
    """The value of the first row that is extreme, with orders that Spark aggregates by hashing, which it does not do with structs.

    A number and the place in the window are one 64-bit number where the former is small enough, and otherwise one decimal, which is slower.
    The extreme itself tells which of both has the answer: numbers that are too large for the first are beyond all others.
    """
    limit = (1 << 62) // rows.size

    def is_small(value: str) -> str:
        return f"({value} > -{limit}L and {value} < {limit}L)"

    offset = f"({rows.tick} - {rows.start})"
    place = f"({rows.size - 1}L - {offset})" if largest else offset
    function = "max" if largest else "min"
    small, large = f"{number} * {rows.size}L + {place}", f"cast({number} as decimal(20,0)) * cast({rows.size} as decimal(13,0)) + {place}"
    of_small = f"{function}_by({x}, {_where(small, condition, is_small(number))})"
    of_large = f"{function}_by({x}, {_where(large, condition, f'not {is_small(number)}')})"
    return f"if({is_small(f'{function}({_where(number, condition)})')}, {of_small}, {of_large})"


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


def _can_reverse(t: pa.DataType) -> bool:
    plain = pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t) or pa.types.is_date(t) or pa.types.is_timestamp(t)
    return bool(plain or (pa.types.is_decimal(t) and t.precision <= 34))  # Spark rounds longer ones where it changes their sign


def _distinct(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return f"count(distinct {', '.join(_where(x, condition) for x in inputs)})"


def _in_order(aggregate: Any, inputs: list[str], condition: str, rows: Rows) -> str:
    """The values that are not null, in the order of their rows, as an array."""
    (x,) = inputs
    pairs = _where(f"struct({rows.place()} as p, {x} as x)", condition, f"{x} is not null")
    return f"transform(array_sort(collect_list({pairs})), s -> s.x)"


def _list(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return _in_order(aggregate, inputs, condition, rows)


def _joined(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    found = f"count({_where(inputs[0], condition)}) > 0"
    return f"if({found}, array_join({_in_order(aggregate, inputs, condition, rows)}, {text(aggregate.separator)}), null)"


def _quantile(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return f"percentile({_where(f'cast({inputs[0]} as double)', condition)}, {float(aggregate.q)!r}D)"


def _near_quantile(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    (x,) = inputs
    known = f"not isnan({x})" if pa.types.is_floating(types[0]) else ""
    return f"approx_percentile({_where(x, condition, known)}, {float(aggregate.q)!r}D)"


def _near_distinct(aggregate: Any, inputs: list[str], types: tuple[pa.DataType, ...], condition: str, rows: Rows) -> str:
    return f"approx_count_distinct({_where(inputs[0], condition)}, {float(aggregate.rsd)!r}D)"


WHOLES: dict[str, Whole] = {
    "first": _chosen("min_by"),
    "last": _chosen("max_by"),
    "max_by": _extreme(largest=True),
    "min_by": _extreme(largest=False),
    "count_distinct": _distinct,
    "collect_list": _list,
    "collect_set": lambda a, inputs, types, condition, rows: f"collect_set({_where(inputs[0], condition)})",
    "string_agg": _joined,
    "median": _quantile,
    "percentile": _quantile,
    "approx_percentile": _near_quantile,
    "approx_count_distinct": _near_distinct,
}


def unspoken(column: Column) -> str | None:
    """Why Spark's own functions cannot compute an aggregate over the rows of a window; None if they can."""
    aggregate = column.call.aggregate
    reason = unstated(column)
    if reason is None:
        return None
    if registry().get(aggregate.name) is not type(aggregate) or aggregate.name not in WHOLES:
        return reason
    if aggregate.name == "max_by" and not _can_reverse(column.types[1]):
        return f"{column.call!r} is ordered by {column.types[1]}, which has no opposite"
    return None


def whole(column: Column, rows: Rows) -> str:
    """The expression of an aggregate over the rows of a window."""
    aggregate = column.call.aggregate
    condition = "" if column.condition is None else quoted(column.condition.text)
    inputs = [quoted(e.text) for e in column.inputs]
    if unstated(column) is None:
        x = _where(inputs[0] if inputs else "1", condition)
        return STATEMENTS[aggregate.name].result(f"({x})", input_type(column))
    return WHOLES[aggregate.name](aggregate, inputs, column.types, condition, rows)
