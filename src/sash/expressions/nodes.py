"""The typed tree of an expression: names are resolved, every implicit cast is a node, and each node knows its type.

All targets start from this tree: :mod:`sash.expressions.evaluate` walks it over Arrow, kernels are generated from it, and Spark gets the
text that it was read from.
"""

from __future__ import annotations

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
