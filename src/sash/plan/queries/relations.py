"""The logical plan of a query: relations that change from window to window, and how they become a stream.

A windowed stream is a *sequence of relations*, one per edge: the rows of the window that ends there. Every operator works relation by
relation. Carriers (tables, Spark) compute the whole sequence at once; the plan says nothing of how.

Expressions are SQL text over the columns of the relation below, with the names that ``schema`` has; where a result's window may be read,
the columns :data:`TIME`, :data:`START` and :data:`END` have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from sash.functions.call import Call
from sash.types import Measure
from sash.windows.base import Window

TIME, START, END = "@time", "@start", "@end"
"""The time of a result (its window's last tick), and its window's ends."""

Kind = Literal["istream", "rstream", "dstream"]


@dataclass(frozen=True)
class Stream:
    """Rows that were passed under a name."""

    name: str
    schema: pa.Schema
    time: str

    @property
    def measure_type(self) -> pa.DataType:
        return self.schema.field(self.time).type


@dataclass(frozen=True)
class StreamOf:
    """The results of a query as a stream; the time of a result is in the column ``time``."""

    name: str
    query: Query
    time: str

    @property
    def schema(self) -> pa.Schema:
        return relation_schema(self.query, self.time)

    @property
    def measure_type(self) -> pa.DataType:
        return self.query.measure.type


Origin = Stream | StreamOf


@dataclass(frozen=True)
class Windowing:
    """Which rows of a stream each relation has.

    - ``time``: those of ``window``, at equal distances;
    - ``instants``: one tick after each distinct time, the rows of the last ``reach`` ticks (None: all so far);
    - ``last rows``: at the same instants, the last ``count`` rows of each partition;
    - ``rows``, ``sessions``, ``marks``: those of ``window``, over the whole stream or per partition.
    """

    kind: Literal["time", "instants", "last rows", "rows", "sessions", "marks"]
    text: str
    window: Window | None = None
    reach: int | None = None
    count: int = 0
    partition: tuple[str, ...] = ()
    is_implied: bool = False
    """Whether the query says nothing of a window."""
    expands: bool = False
    """Whether each row appears once per window, with the window's ends: a table function."""


@dataclass(frozen=True)
class Windowed:
    """A stream with a window; ``names`` are the stream's columns in the order of ``schema``."""

    origin: Origin
    windowing: Windowing
    names: tuple[str, ...]
    schema: pa.Schema
    time: str
    """The column with a row's own time."""


@dataclass(frozen=True)
class Inner:
    """A nested query: the sequence of its relations, each window's result."""

    query: Query
    names: tuple[str, ...]
    schema: pa.Schema
    time: str


@dataclass(frozen=True)
class Applied:
    """A user's function over each window's relations: one Arrow table per source in, one out."""

    name: str
    function: Callable[..., Any]
    sources: tuple[Relation, ...]
    schema: pa.Schema
    time: str


@dataclass(frozen=True)
class Selected:
    """The rows for which a condition is true."""

    child: Relation
    condition: str

    @property
    def schema(self) -> pa.Schema:
        return self.child.schema


@dataclass(frozen=True)
class Joined:
    """The pairs of rows for which ``equal`` expressions of both sides are equal and ``condition`` is true."""

    left: Relation
    right: Relation
    equal: tuple[tuple[str, str], ...]
    condition: str | None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.left.schema, *self.right.schema])


@dataclass(frozen=True)
class Grouped:
    """Aggregates per window and group; ``keys`` are names with expressions."""

    child: Relation
    keys: tuple[tuple[str, str], ...]
    calls: tuple[Call, ...]
    schema: pa.Schema


Relation = Windowed | Inner | Applied | Selected | Joined | Grouped


@dataclass(frozen=True)
class Column:
    """A column of a result."""

    name: str
    text: str
    type: pa.DataType


@dataclass(frozen=True)
class OrderKey:
    """What rows of one window are ordered by."""

    text: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Query:
    """A select list over a relation, and how the sequence of results becomes a stream."""

    relation: Relation
    having: str | None
    columns: tuple[Column, ...]
    distinct: bool
    order: tuple[OrderKey, ...]
    limit: int | None
    kind: Kind
    measure: Measure

    @property
    def schema(self) -> pa.Schema:
        """The columns of its results."""
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    @property
    def is_rows(self) -> bool:
        """Whether its results are the stream's own rows, each with a time of its own, rather than results per window."""
        return is_rows(self.relation) and not self.distinct and self.limit is None


def is_rows(relation: Relation) -> bool:
    """Whether the rows of a relation are rows of a stream: each keeps its own time, and lives from edge to edge."""
    if isinstance(relation, Windowed):
        return not relation.windowing.expands
    if isinstance(relation, Inner):
        return relation.query.is_rows
    return isinstance(relation, Selected) and is_rows(relation.child)


def relation_schema(query: Query, time: str) -> pa.Schema:
    """The columns of a query's results as a source of another one: the time of a result is in the column ``time``."""
    own = [pa.field(c.name, c.type) for c in query.columns if c.name.lower() != time.lower()]
    return pa.schema([pa.field(time, query.measure.type), *own])


def children(relation: Relation) -> tuple[Relation, ...]:
    """The relations directly below."""
    if isinstance(relation, Selected | Grouped):
        return (relation.child,)
    if isinstance(relation, Joined):
        return (relation.left, relation.right)
    if isinstance(relation, Applied):
        return relation.sources
    return (relation.query.relation,) if isinstance(relation, Inner) else ()
