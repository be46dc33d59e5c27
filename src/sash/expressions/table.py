"""The table of functions and operators: each with its types, and its meaning over Arrow.

An entry is a :class:`Function`; modules of :mod:`sash.expressions.library` fill the table. Spark's meaning is the one that all targets
share, so Spark itself needs no entry: it gets the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from sash.errors import InvalidExpression
from sash.expressions.coercion import BINARY, BOOL, DATE, DOUBLE, INT32, INT64, STRING, common, implicit, is_decimal, is_integer, timestamp
from sash.expressions.nodes import Node

Datum = Any
"""An Arrow array, or a scalar for all rows; at least one argument of a function is an array."""


@dataclass(frozen=True)
class Typed:
    """A function's arguments, cast to the types that it works on, and its result's type."""

    arguments: list[Node]
    type: pa.DataType


Typing = Callable[["Function", list[Node], str], Typed]
"""From a function, its arguments and the zone of the expression to types; raises :class:`InvalidExpression`."""


@dataclass(frozen=True, eq=False)
class Function:
    """A row of the table."""

    name: str
    fewest: int
    most: int
    typing: Typing
    arrow: Callable[..., Datum]
    """From the arguments' values, and ``type=`` for the result's type, to the values."""
    aliases: tuple[str, ...] = ()
    undefined: str = ""
    """What is wrong where the result is null though no argument is; empty for functions that are defined everywhere."""
    keeps_nulls: bool = False
    """Whether arguments that are null do not by themselves make the result null."""
    lazy: bool = False
    """Whether it evaluates some arguments for some rows only: ``arrow`` then takes the evaluation and the node."""
    right_first: bool = False
    """Whether the last argument is evaluated first: where it is null, the others are not evaluated."""
    module: str = ""
    """The module that defines it."""

    @property
    def title(self) -> str:
        return self.name if self.name.replace(" ", "_").isidentifier() else f"operator {self.name}"


FUNCTIONS: dict[str, Function] = {}
"""All functions by name, operators among them."""
ALIASES: dict[str, str] = {}
"""Other names of functions."""


class Definer(Protocol):
    """Puts a function into the table."""

    def __call__(
        self,
        name: str,
        arity: int | tuple[int, int],
        typing: Typing,
        arrow: Callable[..., Datum],
        *aliases: str,
        undefined: str = "",
        keeps_nulls: bool = False,
        lazy: bool = False,
        right_first: bool = False,
    ) -> Function: ...


def definer(module: str) -> Definer:
    """The function that puts a module's functions into the table."""

    def define(
        name: str,
        arity: int | tuple[int, int],
        typing: Typing,
        arrow: Callable[..., Datum],
        *aliases: str,
        undefined: str = "",
        keeps_nulls: bool = False,
        lazy: bool = False,
        right_first: bool = False,
    ) -> Function:
        fewest, most = (arity, arity) if isinstance(arity, int) else arity
        nulls = keeps_nulls or lazy
        function = Function(name, fewest, most, typing, arrow, aliases, undefined, nulls, lazy, right_first, module)
        assert name not in FUNCTIONS, name
        assert not set(aliases) & set(ALIASES), aliases
        FUNCTIONS[name] = function
        ALIASES.update(dict.fromkeys(aliases, name))
        return function

    return define


# Typings that many functions share.

ZONED = "timestamp"
"""Stands for the timestamp type in the expression's zone."""
SAME = "same"
"""Stands for the type of the first argument."""


def _known(t: pa.DataType | str, zone: str, arguments: list[Node]) -> pa.DataType:
    return timestamp(zone) if t is ZONED else arguments[0].type if t is SAME else t


def takes(*wanted: pa.DataType | str, returns: pa.DataType | str) -> Typing:
    """Arguments of the types ``wanted``, the last of them for all that follow."""

    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        types = [_known(wanted[min(k, len(wanted) - 1)], zone, arguments) for k in range(len(arguments))]
        cast = [implicit(a, t, function.title) for a, t in zip(arguments, types, strict=True)]
        return Typed(cast, _known(returns, zone, cast))

    return typing


def text(*others: pa.DataType, returns: pa.DataType = STRING) -> Typing:
    """Text as the first argument, then arguments of the types ``others``."""
    return takes(STRING, *others, returns=returns)


doubles = takes(DOUBLE, returns=DOUBLE)


def numeric(returns: Callable[[pa.DataType], pa.DataType] = lambda t: t) -> Typing:
    """A number of any type; text is parsed as a double."""

    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        first, *rest = arguments
        if first.type in (STRING, pa.null()):
            first = implicit(first, DOUBLE, function.title)
        if not (is_integer(first.type) or is_decimal(first.type) or pa.types.is_floating(first.type)):
            raise InvalidExpression(f"{function.title} takes a number, not {first.type}; cast it")
        return Typed([first, *[implicit(r, INT32, function.title) for r in rest]], returns(first.type))

    return typing


def alike(returns: pa.DataType | str = SAME, *, reads_text: bool = True) -> Typing:
    """Arguments of one type in common."""

    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        cast = common(arguments, function.title, reads_text=reads_text)
        return Typed(cast, _known(returns, zone, cast))

    return typing


def anything(returns: pa.DataType) -> Typing:
    """Arguments as they are."""
    return lambda function, arguments, zone: Typed(arguments, returns)


__all__ = [
    "ALIASES",
    "BINARY",
    "BOOL",
    "DATE",
    "DOUBLE",
    "FUNCTIONS",
    "INT32",
    "INT64",
    "SAME",
    "STRING",
    "ZONED",
    "Datum",
    "Function",
    "Typed",
    "Typing",
    "alike",
    "anything",
    "definer",
    "doubles",
    "numeric",
    "takes",
    "text",
]
