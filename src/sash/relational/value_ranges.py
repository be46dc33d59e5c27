"""Comparisons of one side of a join with the other, as ranges of places among sorted values: a band join looks at few pairs.

``A.x between B.x and B.x + 10`` is two comparisons, ``A.x >= B.x`` and ``A.x <= B.x + 10``. The right side is sorted by the first one's
expression; as far as another one's ascends in that order too, it bounds the same range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from sash.errors import InvalidExpression
from sash.expressions import parse
from sash.expressions.syntax import DIALECT

Array = npt.NDArray[Any]
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
SYMBOLS: dict[type[exp.Expression], str] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


@dataclass(frozen=True)
class Comparison:
    """``left symbol right``, each over the rows of its own side."""

    symbol: str
    left: Array
    right: Array


@dataclass(frozen=True)
class Ordered:
    """An expression's values over one side, in the order of what they stand for; values of one ``kind`` can be compared."""

    kind: str
    values: Array


@dataclass(frozen=True)
class ValueRanges:
    """For each row of the left side, the range of places in ``order`` among which its partners are."""

    order: Array
    begin: Array
    end: Array
    is_exact: bool
    """Whether every comparison bounds the ranges."""

    @property
    def pairs(self) -> int:
        return int(np.maximum(self.end - self.begin, 0).sum())


def comparisons_of(condition: str, left: pa.Table, right: pa.Table) -> tuple[list[Comparison], bool]:
    """The comparisons of numbers or times that all pairs have to fulfil, and whether the condition says nothing else."""
    found = []
    parts = _compared(parse(condition).tree)
    for part in parts:
        if part is None:
            continue
        symbol, one, other = part
        values = [_values(one, left), _values(other, right)]
        if values[0] is None or values[1] is None:
            values, symbol = [_values(other, left), _values(one, right)], MIRRORED[symbol]
        if values[0] is not None and values[1] is not None and values[0].kind == values[1].kind:
            found.append(Comparison(symbol, values[0].values, values[1].values))
    return found, len(found) == len(parts)


def value_ranges(comparisons: list[Comparison], codes: Array, others: Array) -> ValueRanges | None:
    """The ranges of partners with equal keys (``codes``, ``others``) by values; None if there is no comparison."""
    if not comparisons:
        return None
    first = comparisons[0].right
    order = np.lexsort((first, others))
    key = others[order]
    begin = np.searchsorted(key, codes, side="left")
    end = np.searchsorted(key, codes, side="right")
    same_key = key[1:] == key[:-1]
    is_exact = True
    for c in comparisons:
        ordered = c.right[order]
        if c.right is not first and np.any(same_key & (ordered[1:] < ordered[:-1])):
            is_exact = False
            continue
        ticks = np.unique(np.concatenate([ordered, c.left]))
        step = len(ticks) + 1
        places = key * step + np.searchsorted(ticks, ordered)
        wanted = codes * step + np.searchsorted(ticks, c.left)
        if c.symbol in (">", ">="):  # the right side's value is at most the left one's
            end = np.minimum(end, np.searchsorted(places, wanted, side="right" if c.symbol == ">=" else "left"))
        else:
            begin = np.maximum(begin, np.searchsorted(places, wanted, side="left" if c.symbol == "<=" else "right"))
    return ValueRanges(order, begin, np.maximum(begin, end), is_exact)


def _compared(tree: exp.Expression) -> list[tuple[str, exp.Expression, exp.Expression] | None]:
    """The comparisons that a condition is a conjunction of; None for each of its other parts."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*_compared(tree.this), *_compared(tree.expression)]
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        return [(">=", tree.this, tree.args["low"]), ("<=", tree.this, tree.args["high"])]
    symbol = SYMBOLS.get(type(tree))
    return [None] if symbol is None else [(symbol, tree.this, tree.expression)]


def _values(tree: exp.Expression, side: pa.Table) -> Ordered | None:
    """An expression over the rows of one side; None if it reads others, or has no order of numbers."""
    try:
        expression = parse(tree.sql(dialect=DIALECT))
        if not expression.columns(side.schema):
            return None
        t = expression.type(side.schema)
        if not (pa.types.is_integer(t) or pa.types.is_timestamp(t) or pa.types.is_date(t) or pa.types.is_floating(t)) or t == pa.uint64():
            return None
        values = expression.evaluate(side)
    except (InvalidExpression, LookupError):
        return None
    if values.null_count:
        return None
    if pa.types.is_floating(t):
        array = np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
        return None if np.isnan(array).any() else Ordered("float", array)
    whole = values.cast(pa.int32() if pa.types.is_date32(t) else pa.int64())
    return Ordered("integer" if pa.types.is_integer(t) else str(t), whole.to_numpy(zero_copy_only=False).astype(np.int64))
