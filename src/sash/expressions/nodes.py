"""The typed tree of an expression: names are resolved, every implicit cast is a node, and each node knows its type.

All targets start from this tree: :mod:`sash.expressions.evaluate` walks it over Arrow, kernels are generated from it, and Spark gets the
text that it was read from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from sash.expressions.table import Function


@dataclass(frozen=True)
class Node:
    """A part of an expression, with the type of its value."""

    type: pa.DataType


@dataclass(frozen=True)
class Field(Node):
    """A column, or a field of a struct in it."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Constant(Node):
    """The same value for every row."""

    value: pa.Scalar
    is_literal: bool = False
    """Whether it is a numeric literal: decimals beside it take no more digits than it has."""


@dataclass(frozen=True)
class Cast(Node):
    """A value in another type; with ``tries`` it is null where it cannot be cast."""

    argument: Node
    tries: bool = False


@dataclass(frozen=True)
class Call(Node):
    """A function or an operator of the table, over arguments that already have the types it works on."""

    function: Function
    arguments: tuple[Node, ...]


DEFINED = frozenset(["comparisons", "conditions"])
"""The modules of the table whose functions have a value whatever their arguments."""


def is_defined(node: Node) -> bool:
    """Whether an expression has a value, or null, for every row, so that evaluating it never raises."""
    return all(_is_defined(part) for part in walk(node))


def walk(node: Node) -> Iterator[Node]:
    """All nodes of a tree."""
    yield node
    for child in node.arguments if isinstance(node, Call) else (node.argument,) if isinstance(node, Cast) else ():
        yield from walk(child)


def _is_defined(node: Node) -> bool:
    if isinstance(node, Call):
        return node.function.module.rpartition(".")[2] in DEFINED and not node.function.undefined
    if isinstance(node, Cast):
        source, target = node.argument.type, node.type
        widens = pa.types.is_integer(source) and (pa.types.is_floating(target) or _is_wider(source, target))
        return node.tries or widens or (source == pa.float32() and target == pa.float64())
    return isinstance(node, Field | Constant)


def _is_wider(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(pa.types.is_integer(target) and target.bit_width >= source.bit_width)
