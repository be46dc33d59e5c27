"""From the syntax tree to the logical plan: names, types, windows and streams are checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sash.cql import grammar as g
from sash.cql.aggregate_calls import Aggregates
from sash.cql.joins import join
from sash.cql.parser import parse_script
from sash.cql.phrases import check_condition, rewritten
from sash.cql.scopes import BoundSource, RowScope, unknown_name
from sash.cql.select_binder import SelectBinder
from sash.cql.tokens import Script
from sash.cql.window_binder import NO_WINDOW, windowing_of
from sash.errors import InvalidArgument, SashError
from sash.functions.udaf import UserAggregate
from sash.plan.queries.relations import (
    Applied,
    Inner,
    Origin,
    Query,
    Relation,
    Selected,
    Stream,
    StreamOf,
    Windowed,
    Windowing,
    is_rows,
    relation_schema,
)
from sash.types import Measure, measure_of


def plan_query(text: str, streams: Mapping[str, pa.Schema], time: str = "timestamp", functions: Mapping[str, Any] | None = None) -> Query:
    """The checked plan of a query over streams of these schemas.

    >>> schema = pa.schema({"timestamp": pa.int64(), "cpu": pa.float32()})
    >>> plan = plan_query("select timestamp, sum(cpu) as total from S [range 60 slide 1]", {"S": schema})
    >>> plan.kind, plan.schema.names, str(plan.schema.field("total").type)
    ('rstream', ['timestamp', 'total'], 'double')
    """
    script, statements = parse_script(text)
    return Binder(script, streams, time, functions or {}).bind(statements)


class Binder:
    """What is known while a script is read: the streams that were passed, and those that it has defined so far."""

    def __init__(self, script: Script, streams: Mapping[str, pa.Schema], time: str, functions: Mapping[str, Any]) -> None:
        self.script = script
        self.time = time
        self.streams: dict[str, pa.Schema] = dict(streams)
        self.defined: dict[str, Query | StreamOf] = {}
        self.used: set[str] = set()
        _check_functions(functions)
        self.aggregates = Aggregates(functions)
        self.window_functions: dict[str, Callable[..., Any]] = {n: f for n, f in functions.items() if not isinstance(f, UserAggregate)}

    def bind(self, statements: g.Statements) -> Query:
        """The plan of the script's last query."""
        for definition in statements.definitions:
            name = definition.name
            if any(name.text.lower() == known.lower() for known in (*self.streams, *self.defined)):
                raise self.script.error(f"there is a stream named {name.text!r} already", name.start, name.end)
            query = self._query(definition.query)
            is_stream = definition.is_stream or definition.query.kind is not None
            self.defined[name.text] = StreamOf(name.text, query, self.time) if is_stream else query
        query = self._query(statements.query)
        unused = [name for name in (*self.streams, *self.defined) if name not in self.used]
        if unused:
            raise InvalidArgument(f"{unused[0]!r} is not used by the query; its streams are {', '.join(sorted(self.used))}")
        return query

    def _query(self, query: g.Query) -> Query:
        select = query.select
        sources = self._sources(select)
        names, measure = RowScope(self.script, sources), self._measure(sources)
        binder = SelectBinder(self.script, names, self.aggregates, self.time, measure)
        binder.check_clauses(select)
        return binder.bind(query, join(self.script, select, sources, names, measure))

    def _measure(self, sources: Sequence[BoundSource]) -> Measure:
        return Measure(sources[0].relation.schema.field(sources[0].time).type)

    # Sources.

    def _sources(self, select: g.Select) -> tuple[BoundSource, ...]:
        several = len(select.sources) > 1
        bound, seen = [], dict[str, g.Source]()
        for number, source in enumerate(select.sources):
            alias = self._alias(source, number)
            if alias.lower() in seen:
                message = f"two sources are named {alias!r}; give one of them an alias: {_written(source)} [...] AS B"
                raise self.script.error(message, source.start, source.end)
            seen[alias.lower()] = source
            bound.append(self._source(source, alias, prefix=f"{alias}." if several else ""))
        first = bound[0]
        for source, other in zip(select.sources[1:], bound[1:], strict=True):
            own, theirs = first.relation.schema.field(first.time).type, other.relation.schema.field(other.time).type
            if own != theirs:
                message = f"{other.alias!r} is measured in {theirs} and {first.alias!r} in {own}; sources that are joined need one time"
                raise self.script.error(message, source.start, source.end)
        return tuple(bound)

    def _alias(self, source: g.Source, number: int) -> str:
        if source.alias is not None:
            return source.alias.text
        if isinstance(source.of, g.Name):
            return source.of.text
        return source.of.name.text if isinstance(source.of, g.Call) else f"_{number + 1}"

    def _source(self, source: g.Source, alias: str, prefix: str) -> BoundSource:
        if isinstance(source.of, g.Call):
            return self._applied(source, source.of, alias, prefix)
        if isinstance(source.of, g.Query):
            query = self._query(source.of)
            if source.window is not None or source.of.kind is not None:
                return self._windowed(source, StreamOf(alias, query, self.time), alias, prefix)
            return self._inner(query, alias, prefix)
        origin = self._origin(source.of)
        if isinstance(origin, Query):
            if source.window is not None:
                message = f"{source.of.text!r} is a relation and has its windows; CREATE STREAM {source.of.text} AS ... makes a stream"
                raise self.script.error(message, source.window.start, source.window.end)
            return self._inner(origin, alias, prefix)
        return self._windowed(source, origin, alias, prefix)

    def _origin(self, name: g.Name) -> Origin | Query:
        known = {known.lower(): known for known in (*self.defined, *self.streams)}
        exact = name.text if name.text in self.defined or name.text in self.streams else known.get(name.text.lower())
        if exact is None:
            names = [*self.streams, *self.defined]
            passed = "" if names else f"; no stream was passed: sash.sql(text, {name.text}=table)"
            error = unknown_name(self.script, name.text, "stream", names, name.start, name.end)
            raise self.script.error(f"unknown stream {name.text!r}{passed}", name.start, name.end) if passed else error
        self.used.add(exact)
        if exact in self.defined:
            return self.defined[exact]
        return Stream(exact, self.streams[exact], self._time_column(exact, self.streams[exact], name))

    def _time_column(self, stream: str, schema: pa.Schema, name: g.Name) -> str:
        found = [n for n in schema.names if n == self.time] or [n for n in schema.names if n.lower() == self.time.lower()]
        if len(found) != 1:
            message = f"{stream!r} has no column {self.time!r} for the time of its rows; pass time=, one of {', '.join(schema.names)}"
            raise self.script.error(message, name.start, name.end)
        try:
            measure_of(schema.field(found[0]).type, found[0])
        except SashError as error:
            raise self.script.error(str(error), name.start, name.end) from error
        return str(found[0])

    def _windowed(self, source: g.Source, origin: Origin, alias: str, prefix: str) -> BoundSource:
        names, schema = _prefixed(origin.schema, prefix)
        time = origin.time
        clause = source.window
        if clause is not None and clause.time is not None and clause.time.text.lower() != time.lower():
            origin, time = self._other_time(origin, clause.time)
        own = RowScope(self.script, (BoundSource(alias, _unwindowed(origin), {n: n for n in origin.schema.names}, time),))
        windowing = windowing_of(self.script, clause, origin, lambda phrase: rewritten(self.script, phrase, own.resolve))
        relation = Windowed(origin, windowing, tuple(origin.schema.names), schema, prefix + time)
        return BoundSource(alias, relation, names, prefix + time, windowing.expands)

    def _other_time(self, origin: Origin, name: g.Name) -> tuple[Origin, str]:
        """A stream measured in the column that a table function names."""
        found = [n for n in origin.schema.names if n.lower() == name.text.lower()]
        if len(found) != 1:
            raise unknown_name(self.script, name.text, "column", origin.schema.names, name.start, name.end)
        if isinstance(origin, StreamOf):
            raise self.script.error(f"the time of {origin.name!r} is in its column {origin.time!r}", name.start, name.end)
        self._time_column_type(origin.schema.field(found[0]), name)
        return replace(origin, time=found[0]), found[0]

    def _time_column_type(self, field: pa.Field, name: g.Name) -> None:
        try:
            measure_of(field.type, field.name)
        except SashError as error:
            raise self.script.error(str(error), name.start, name.end) from error

    def _inner(self, query: Query, alias: str, prefix: str) -> BoundSource:
        own = relation_schema(query, self.time)
        names, schema = _prefixed(own, prefix)
        relation = Inner(query, tuple(own.names), schema, prefix + self.time)
        return BoundSource(alias, relation, names, prefix + self.time)

    def _applied(self, source: g.Source, call: g.Call, alias: str, prefix: str) -> BoundSource:
        function = next((f for n, f in self.window_functions.items() if n.lower() == call.name.text.lower()), None)
        if function is None:
            known = [*self.window_functions, "hop", "tumble", "session"]
            raise unknown_name(self.script, call.name.text, "window function", known, call.name.start, call.name.end)
        if source.window is not None:
            raise self.script.error("a window function's result has windows already", source.window.start, source.window.end)
        inner = [self._source(s, self._alias(s, n), "") for n, s in enumerate(call.sources)]
        relations: tuple[Relation, ...] = tuple(b.relation for b in inner)
        own = self._result_schema(call, function, relations, inner[0].relation.schema.field(inner[0].time).type)
        names, schema = _prefixed(own, prefix)
        applied = Applied(call.name.text, function, relations, schema, prefix + self.time)
        return BoundSource(alias, applied, names, prefix + self.time)

    def _result_schema(self, call: g.Call, function: Callable[..., Any], relations: Sequence[Relation], time: pa.DataType) -> pa.Schema:
        """The columns that a window function returns: what it makes of empty tables."""
        try:
            result = pa.table(function(*[r.schema.empty_table() for r in relations]))
        except Exception as error:
            message = f"{call.name.text} fails over empty tables, from which its columns are read: {type(error).__name__}: {error}"
            raise self.script.error(message, call.name.start, call.name.end) from error
        own = [f for f in result.schema if f.name.lower() != self.time.lower()]
        return pa.schema([pa.field(self.time, time), *own])


def _unwindowed(origin: Origin) -> Windowed:
    return Windowed(origin, NO_WINDOW, tuple(origin.schema.names), origin.schema, origin.time)


def _prefixed(schema: pa.Schema, prefix: str) -> tuple[dict[str, str], pa.Schema]:
    """Columns' own names with their names in a relation, and the relation's schema."""
    return {n: prefix + n for n in schema.names}, pa.schema([f.with_name(prefix + f.name) for f in schema])


def _written(source: g.Source) -> str:
    return source.of.text if isinstance(source.of, g.Name) else "(...)"


def _check_functions(functions: Mapping[str, Any]) -> None:
    for name, function in functions.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidArgument(f"functions has the name {name!r}; names are words")
        if not callable(function):
            raise InvalidArgument(f"functions[{name!r}] must be an aggregate made with @sash.udaf or a window function, not {function!r}")


__all__ = ["Binder", "Selected", "Windowing", "check_condition", "is_rows", "plan_query"]
