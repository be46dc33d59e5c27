"""The logical plan: a request bound to a schema, checked before any work starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, InvalidType, unknown
from sash.expressions import Expression, parse
from sash.functions.call import Call
from sash.functions.udaf import UserAggregate, user_type
from sash.kernels.opencl.devices import Device
from sash.plan.clock import ProcessingTime
from sash.plan.hints import hint
from sash.plan.request import WINDOW, Request
from sash.types import FAR_BACK, Measure, measure_of, value_type
from sash.windows.base import Window
from sash.windows.shapes import Shape

__all__ = ["QUERY", "RETRACTED", "REVISION", "ROWS", "WINDOW", "Column", "Plan", "Query", "make_plan"]

QUERY = "query"
ROWS = "rows"
REVISION = "revision"
RETRACTED = "retracted"


@dataclass(frozen=True)
class Query:
    """A named window spec, and the same in ticks."""

    name: str
    window: Window
    shape: Shape
    since: int = FAR_BACK
    """The earliest start of its windows, in ticks: a query added to a running stream has no edges before that."""

    @property
    def is_late_comer(self) -> bool:
        """Whether it was added to a running stream."""
        return self.since > FAR_BACK


@dataclass(frozen=True)
class Column:
    """An aggregate's column: the call, the expressions it reads, and its types."""

    call: Call
    inputs: tuple[Expression, ...]
    condition: Expression | None
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True)
class Plan:
    """Windows, aggregates and keys over the columns of one schema."""

    schema: pa.Schema
    queries: tuple[Query, ...]
    named: bool
    """Whether the result says which query a row belongs to."""
    columns: tuple[Column, ...]
    by: tuple[str, ...]
    time: str
    measure: Measure
    order_by: tuple[str, ...] = ()
    empty: bool = False
    device: Device | None = None
    """The OpenCL device that aggregates a table; None for the CPU."""

    @cached_property
    def has_rows(self) -> bool:
        """Whether there are row windows, so that results have a column of ranks."""
        return any(q.window.counts_rows and q.window.context == "forward context free" for q in self.queries)

    @cached_property
    def session_gaps(self) -> tuple[int, ...]:
        """The gaps of the sessions among the windows."""
        return tuple(gap for q in self.queries if (gap := q.shape.session_gap) is not None)

    @cached_property
    def query_names(self) -> pa.Array:
        """The queries' names, in order."""
        return pa.array([q.name for q in self.queries], pa.string())

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read, in the schema's order."""
        names = {self.time, *self.by, *self.order_by, *self.inputs}
        for text in (text for q in self.queries for text in q.window.reads):
            names.update(parse(text).columns(self.schema))
        return tuple(n for n in self.schema.names if n in names)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The columns that aggregates and their conditions read."""
        expressions = [e for c in self.columns for e in (*c.inputs, *([c.condition] if c.condition else []))]
        return frozenset(name for e in expressions for name in e.columns(self.schema))

    def with_queries(self, queries: tuple[Query, ...]) -> Plan:
        """The plan with other queries."""
        return replace(self, queries=queries)


def make_plan(schema: pa.Schema, request: Request) -> Plan:
    """The plan of a request over these columns, or an error that names the argument, what was passed, and what would be right.

    Computed keys are columns of the schema already, so ``request.by`` has names only.
    """
    check_columns(schema, request)
    time = _column(request.time, "time", schema)
    measure = measure_of(schema.field(time).type, time)
    queries = tuple(make_query(name, window, measure, schema) for name, window in request.windows.items())
    columns = tuple(call_column(call, schema) for call in request.aggs)
    by, order_by = _names(request.by, "by", schema), _names(request.order_by, "order_by", schema)
    for name in by:
        if pa.types.is_nested(schema.field(name).type):
            raise InvalidType(f"by column {name!r} has the type {schema.field(name).type}, which cannot be grouped by; use its fields")
    for name in order_by:
        if pa.types.is_nested(schema.field(name).type):
            raise InvalidType(f"order_by column {name!r} has the type {schema.field(name).type}, which has no order")
    return Plan(schema, queries, request.is_named, columns, by, time, measure, order_by, request.empty)


def make_query(name: str, window: Window, measure: Measure, schema: pa.Schema) -> Query:
    """A query, checked against the measure and the columns."""
    for text in window.reads:
        expression = parse(text)
        expression.columns(schema)
        window.check_type(text, expression.type(schema))
    return Query(name, window, window.bind(measure))


def check_names(names: Iterable[str], where: str) -> None:
    """Raise if two output columns have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidArgument(f"{where} would have two columns named {name!r}; give one of them another name with .alias(...)")
        seen.add(name)


def output_type(column: Column) -> pa.DataType:
    """The type of an aggregate's column."""
    aggregate = column.call.aggregate
    if isinstance(aggregate, UserAggregate):
        from sash.algorithms.binding import form_of

        (machine,) = form_of(aggregate, *column.types).outputs
        return pa.bool_() if machine == "bool" else pa.from_numpy_dtype(machine)
    return aggregate.returns(*column.types)


def call_column(call: Call, schema: pa.Schema) -> Column:
    """A call bound to a schema, or an error."""
    inputs = tuple(expression_of(text, schema) for text in call.inputs)
    types = tuple(_plain_type(e.type(schema)) for e in inputs)
    if isinstance(call.aggregate, UserAggregate):
        types = tuple(user_type(t) for t in types)
    condition = None
    if call.condition is not None:
        condition = expression_of(call.condition, schema)
        if not pa.types.is_boolean(condition.type(schema)):
            raise InvalidArgument(f"where {call.condition!r} must be true or false for each row; it is {condition.type(schema)}")
    column = Column(call, inputs, condition, types)
    output_type(column)
    return column


def _plain_type(t: pa.DataType) -> pa.DataType:
    t = value_type(t)
    return pa.float64() if pa.types.is_null(t) else t


def expression_of(text: str, schema: pa.Schema) -> Expression:
    """Text as an expression over these columns; a column's own name is that column."""
    if text in schema.names:
        return Expression.of_column(text)
    expression = parse(text)
    expression.columns(schema)
    return expression


def check_columns(schema: pa.Schema, request: Request) -> None:
    """Raise unless the columns that the request names exist, and no column name is used twice."""
    duplicates = {n for n in schema.names if schema.names.count(n) > 1}
    if duplicates:
        raise InvalidArgument(f"the data has several columns named {sorted(duplicates)[0]!r}; rename them")
    if isinstance(request.time, ProcessingTime):
        raise InvalidArgument("processing_time() is for streams: the rows of a table have no time of arrival")
    _column(request.time, "time", schema)
    _names(request.by, "by", schema)
    _names(request.order_by, "order_by", schema)


def _column(name: Any, argument: str, schema: pa.Schema) -> str:
    if not isinstance(name, str):
        raise InvalidArgument(f"{argument} must be the name of a column, not {name!r}{hint(name)}")
    if name not in schema.names:
        raise unknown(f"column in {argument}", name, schema.names)
    return name


def _names(value: Any, argument: str, schema: pa.Schema) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, Iterable) or hint(value):
        raise InvalidArgument(f"{argument} must be a column's name or several, not {value!r}{hint(value)}")
    names = [value] if isinstance(value, str) else list(value)
    for name in names:
        _column(name, argument, schema)
    check_names(names, argument)
    return tuple(names)
