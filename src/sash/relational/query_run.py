"""Runs the plan of a query over tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from sash.expressions import parse
from sash.plan.queries.axes import axis_of
from sash.plan.queries.relations import Applied, Grouped, Inner, Joined, Query, Relation, Selected, StreamOf, Windowed, children
from sash.relational.functions import applied
from sash.relational.groups import grouped
from sash.relational.members import Members, Results
from sash.relational.pairs import as_members, joined
from sash.relational.selection import Output, projected, select
from sash.relational.windows_of_rows import in_time_order, members_of
from sash.types import Measure

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Loaded:
    """A stream's rows that have a time, in its order, and their ticks."""

    table: pa.Table
    ticks: Array


class QueryRun:
    """One run of a query: streams are read and named queries are computed once, however often they are used."""

    def __init__(self, tables: Mapping[str, pa.Table], order_by: tuple[str, ...] = ()) -> None:
        self.tables = tables
        self.order_by = order_by
        self._loaded: dict[tuple[Any, ...], Loaded] = {}
        self._outputs: dict[int, Output] = {}
        self._nested: dict[int, Members | Results] = {}

    def output(self, query: Query) -> Output:
        """The results of a query as a stream."""
        known = self._outputs.get(id(query))
        if known is None:
            known = self._outputs[id(query)] = self._computed(query)
        return known

    def _computed(self, query: Query) -> Output:
        return select(query, self.relation(query.relation))

    def relation(self, relation: Relation) -> Members | Results:
        """The rows of a relation."""
        if isinstance(relation, Windowed):
            return self._windowed(relation)
        if isinstance(relation, Selected):
            rows = self.relation(relation.child)
            flags = parse(relation.condition).evaluate(rows.table)
            return rows.where(flags.fill_null(False).to_numpy(zero_copy_only=False))
        if isinstance(relation, Grouped):
            return grouped(relation, self.relation(relation.child))
        if isinstance(relation, Joined):
            by_number = axis_of(relation, measure_of_relation(relation)).kind in ("rows", "sessions", "marks")
            left, right = (as_members(self.relation(side), by_number=by_number) for side in (relation.left, relation.right))
            return joined(relation, left, right)
        if isinstance(relation, Applied):
            return applied(relation, [self.relation(source) for source in relation.sources])
        return self._inner(relation)

    def _windowed(self, relation: Windowed) -> Members:
        loaded = self.load(relation)
        table = loaded.table.select(list(relation.names)).rename_columns(relation.schema.names)
        rows = members_of(relation, table, loaded.ticks, loaded.table)
        return replace(rows, ticks=None) if relation.windowing.expands else rows

    def load(self, relation: Windowed) -> Loaded:
        """A source's rows, in order."""
        origin = relation.origin
        key = (id(origin.query), origin.name) if isinstance(origin, StreamOf) else (origin.name, origin.time)
        if key not in self._loaded:
            table = self.output(origin.query).with_time(origin.time) if isinstance(origin, StreamOf) else self.tables[origin.name]
            self._loaded[key] = Loaded(*in_time_order(table, origin.time, self.order_by))
        return self._loaded[key]

    def _inner(self, relation: Inner) -> Members | Results:
        """A nested query's relations: its rows with their spans, or its results per window."""
        query, time = relation.query, relation.names[0]
        if id(query) not in self._nested:
            rows = self.relation(query.relation)
            if query.is_rows and isinstance(rows, Members):
                self._nested[id(query)] = projected(query, rows, time)
            else:
                output = select(replace(query, kind="rstream"), rows)
                assert output.numbers is not None
                self._nested[id(query)] = Results(output.with_time(time), output.edges, output.numbers, output.measure)
        rows = self._nested[id(query)]
        return replace(rows, table=rows.table.select(list(relation.names)).rename_columns(relation.schema.names))


def measure_of_relation(relation: Relation) -> Measure:
    """What a relation's windows are measured in."""
    if isinstance(relation, Windowed):
        return Measure(relation.origin.measure_type)
    if isinstance(relation, Inner):
        return relation.query.measure
    return measure_of_relation(children(relation)[0])
