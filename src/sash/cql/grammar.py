"""The syntax tree of a script: clauses, sources and windows as they were written; expressions are runs of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sash.cql.tokens import Token

Relation2Stream = Literal["istream", "rstream", "dstream"]
WindowKind = Literal["range", "unbounded", "now", "rows", "session", "punctuation"]


@dataclass(frozen=True)
class Phrase:
    """An expression: its tokens, which are never empty."""

    tokens: tuple[Token, ...]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end


@dataclass(frozen=True)
class Name:
    """A name, with its place."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Amount:
    """A duration or a number as it was written."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class WindowClause:
    """``[range 60 slide 1]``, or the window of a table function."""

    kind: WindowKind
    size: Amount | None
    slide: Amount | None
    offset: Amount | None
    when: Phrase | None
    partition: tuple[Phrase, ...]
    start: int
    end: int
    function: str = ""
    """``hop``, ``tumble`` or ``session``, where it is a table function's."""
    time: Name | None = None
    """The time column that a table function names."""


@dataclass(frozen=True)
class Call:
    """A user's window function over windowed sources."""

    name: Name
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Source:
    """A stream, a nested query or a window function, with its window and alias."""

    of: Name | Query | Call
    window: WindowClause | None
    alias: Name | None
    start: int
    end: int


@dataclass(frozen=True)
class Item:
    """A column of the select list; ``*`` has no expression."""

    expression: Phrase | None
    alias: Name | None
    star_of: Name | None
    start: int
    end: int


@dataclass(frozen=True)
class Order:
    """A key of ORDER BY."""

    expression: Phrase
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Select:
    """One SELECT."""

    distinct: bool
    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    conditions: tuple[Phrase, ...]
    """WHERE, and ON of joins."""
    group_by: tuple[Phrase, ...]
    having: Phrase | None
    order_by: tuple[Order, ...]
    limit: Amount | None
    start: int
    end: int


@dataclass(frozen=True)
class Query:
    """A SELECT, and how its relations become a stream."""

    kind: Relation2Stream | None
    select: Select


@dataclass(frozen=True)
class Definition:
    """A name for a query: a stream (``create stream``), or a relation (``( query ) as NAME``)."""

    name: Name
    query: Query
    is_stream: bool


@dataclass(frozen=True)
class Statements:
    """A whole script."""

    definitions: tuple[Definition, ...]
    query: Query
