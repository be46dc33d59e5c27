"""The select list over a relation, order and limit per window, and how the sequence of results becomes a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.columns import arrow_column
from sash.expressions import parse
from sash.plan.queries.relations import END, START, TIME, Query, relation_schema
from sash.relational.changes import differences, identities, islands
from sash.relational.edges import Edges, Known
from sash.relational.members import Members, Results, expanded, values_of
from sash.slicing.rows.order import sorted_order
from sash.types import Measure

Array = npt.NDArray[Any]

WINDOW = frozenset([TIME, START, END])


@dataclass(frozen=True)
class Output:
    """A query's results, window by window."""

    table: pa.Table
    measure: Measure
    edges: Edges
    numbers: Array | None
    """The results' windows; None if they are rows of the stream."""
    ticks: Array | None = None
    """The times of rows of the stream."""

    @cached_property
    def times(self) -> Known:
        """The ticks of the results' times."""
        if self.ticks is not None:
            return self.ticks, None
        assert self.numbers is not None
        return self.edges.times(self.numbers)

    def with_time(self, time: str) -> pa.Table:
        """The results as rows of a stream whose time is in a column of this name."""
        others = [n for n in self.table.column_names if n.lower() != time.lower()]
        columns = [values_of(self.measure, self.times), *(self.table.column(n) for n in others)]
        return pa.table(columns, names=[time, *others])


class _Columns:
    """The select list and the order of a query, as columns that are computed before rows are repeated per window, and after."""

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        self.query = query
        self.names = [f"@v{k}" for k in range(len(query.columns))]
        self.texts = [c.text for c in query.columns]
        self.order_names = [f"@o{k}" for k in range(len(query.order))]
        texts = [*self.texts, *(key.text for key in query.order)]
        whole = pa.schema([*schema, *(pa.field(n, query.measure.type) for n in (TIME, START, END))])
        self.reads = {text: set(_columns_of(text, whole)) for text in texts}
        self.wanted = {name for reads in self.reads.values() for name in reads if name in WINDOW}
        """The columns of the window that are read."""

    def reads_window(self, text: str) -> bool:
        """Whether an expression reads the window, so that it has a value per window."""
        return bool(self.reads[text] & WINDOW)

    def carried(self, table: pa.Table) -> pa.Table:
        """The columns that do not depend on the window, and those that others are computed from."""
        columns: dict[str, Any] = {}
        named = [*zip(self.names, self.texts, strict=True), *zip(self.order_names, (k.text for k in self.query.order), strict=True)]
        for name, text in named:
            if not self.reads_window(text):
                columns[name] = _value(text, table)
            else:
                columns.update({n: table.column(n) for n in sorted(self.reads[text] - WINDOW)})
        if not columns:
            columns["@none"] = pa.nulls(table.num_rows, pa.int8())
        return pa.table(columns)

    def with_windows(self, carried: pa.Table, window: dict[str, pa.Array]) -> pa.Table:
        """All columns, once each row has its window."""
        table = carried
        for name, column in window.items():
            table = table.append_column(name, column)
        missing = [(n, t) for n, t in zip(self.names, self.texts, strict=True) if self.reads_window(t)]
        missing += [(n, k.text) for n, k in zip(self.order_names, self.query.order, strict=True) if self.reads_window(k.text)]
        for name, text in missing:
            table = table.append_column(name, _value(text, table))
        return table

    def values(self, carried: pa.Table) -> pa.Table:
        """The columns in which results of different windows are compared: all but the window's."""
        return carried.select([n for n, t in zip(self.names, self.texts, strict=True) if not self.reads_window(t)])

    def final(self, table: pa.Table) -> pa.Table:
        """The select list."""
        columns = [_typed(table.column(n), c.type) for n, c in zip(self.names, self.query.columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.query.schema)


class Before(Protocol):
    """What is known of earlier windows where a sequence of relations is computed a part at a time."""

    def extended(self, rows: Results) -> Results:
        """Results with those of the window before them."""
        ...


def select(query: Query, rows: Members | Results, before: Before | None = None) -> Output:
    """The results of a query over the rows of its relation; ``before`` has the window that precedes them."""
    columns = _Columns(query, rows.table.schema)
    if isinstance(rows, Results):
        if query.having is not None:
            wanted = set(_columns_of(query.having, _with_window(rows.table.schema, query.measure))) & WINDOW
            rows = rows.where(_flags(query.having, rows.with_window(wanted)))
        rows = replace(rows, table=columns.carried(rows.table))
        return _of_results(query, columns, rows, None, before=before)
    rows = replace(rows, table=columns.carried(rows.table))
    if before is not None:
        places, numbers = expanded(*rows.span)
        return _of_results(query, columns, _at(rows, places, numbers), None, before=before)
    return _of_members(query, columns, rows)


def projected(query: Query, rows: Members, time: str) -> Members:
    """A nested projection or selection: the rows with its columns, still with their spans; ``time`` is the column of their own times."""
    columns = _Columns(query, rows.table.schema)
    assert rows.ticks is not None
    own = {TIME: rows.measure.values(rows.ticks)}
    table = columns.final(columns.with_windows(columns.carried(rows.table), own))
    schema = relation_schema(query, time)
    arrays = [own[TIME] if n == time else table.column(n) for n in schema.names]
    return replace(rows, table=pa.table(arrays, schema=schema))


def _of_members(query: Query, columns: _Columns, rows: Members) -> Output:
    """Rows with spans as a stream."""
    lo, hi = rows.span
    is_stream = rows.ticks is not None and not query.distinct and query.limit is None
    if is_stream and query.kind == "istream":
        return _own_rows(query, columns, rows.where(lo < hi))
    if is_stream and query.kind == "dstream":
        return _of_results(query, columns, _at(rows, np.flatnonzero(lo < hi), hi[lo < hi]), "rstream")
    if query.distinct:
        places, lo, hi = islands(identities(columns.values(rows.table)), lo, hi)
        if query.limit is None and query.kind != "rstream":
            return _of_results(query, columns, _at(rows, places, lo if query.kind == "istream" else hi), "rstream")
        inside, numbers = expanded(lo, hi)
        return _of_results(replace(query, distinct=False), columns, _at(rows, places[inside], numbers), None)
    if query.limit is None and query.kind != "rstream":
        places, numbers = differences(identities(columns.values(rows.table)), lo, hi, gone=query.kind == "dstream")
        return _of_results(query, columns, _at(rows, places, numbers), "rstream")
    places, numbers = expanded(lo, hi)
    repeated = _at(rows, places, numbers)
    return _of_results(query, columns, repeated, None, places if rows.ticks is not None else None)


def _at(rows: Members, places: Array, numbers: Array) -> Results:
    """The rows at these places, each in one window; those whose window does not exist are left out."""
    exist = rows.edges.exist(numbers)
    if exist is not None and not exist.all():
        places, numbers = places[exist], numbers[exist]
    is_all = len(places) == rows.table.num_rows and bool((places[1:] - places[:-1] == 1).all()) and (not len(places) or places[0] == 0)
    return Results(rows.table if is_all else rows.table.take(pa.array(places)), rows.edges, numbers, rows.measure)


def _own_rows(query: Query, columns: _Columns, rows: Members) -> Output:
    """Each row once, at its own time."""
    ticks = rows.ticks
    assert ticks is not None
    table = columns.with_windows(rows.table, {TIME: rows.measure.values(ticks)} if columns.wanted else {})
    places = _sorted(query, columns, table, ticks)
    if places is not None:
        table, ticks = table.take(pa.array(places)), ticks[places]
    return Output(columns.final(table), rows.measure, rows.edges, None, ticks)


def _of_results(
    query: Query, columns: _Columns, rows: Results, kind: str | None, identity: Array | None = None, before: Before | None = None
) -> Output:
    """Rows of which each is in one window as a stream; ``identity`` tells rows apart that are no values."""
    kind = kind or query.kind
    table = columns.with_windows(rows.table, rows.window_columns(columns.wanted))
    if query.distinct:
        same = np.lexsort((identities(columns.values(rows.table)), rows.numbers))
        ids = identities(columns.values(rows.table))[same]
        first = np.append(True, (np.diff(ids) != 0) | (np.diff(rows.numbers[same]) != 0)) if len(same) else np.zeros(0, bool)
        chosen = np.sort(same[first])
        rows, table = rows.take(chosen), table.take(pa.array(chosen))
        identity = None if identity is None else identity[chosen]
    places = _sorted(query, columns, table, rows.edges.order(rows.numbers))
    if places is not None:
        rows, table = rows.take(places), table.take(pa.array(places))
        identity = None if identity is None else identity[places]
    if query.limit is not None:
        chosen = _first_of_each(rows.numbers, query.limit)
        rows, table = rows.take(chosen), table.take(pa.array(chosen))
        identity = None if identity is None else identity[chosen]
    if kind != "rstream":
        rows = rows if before is None else before.extended(rows)
        ids = identities(columns.values(rows.table)) if identity is None else identity
        places, numbers = differences(ids, rows.numbers, rows.numbers + 1, gone=kind == "dstream")
        exist = rows.edges.exist(numbers)
        if exist is not None:
            places, numbers = places[exist], numbers[exist]
        changed = Results(rows.table.take(pa.array(places)), rows.edges, numbers, rows.measure)
        return _of_results(replace(query, distinct=False, limit=None), columns, changed, "rstream")
    return Output(columns.final(table), rows.measure, rows.edges, rows.numbers)


def _sorted(query: Query, columns: _Columns, table: pa.Table, windows: Array) -> Array | None:
    """The order of results: window by window, then as the query says; None if they are in order."""
    if not query.order:
        if query.limit is None:
            return sorted_order(np.zeros(len(windows), np.int64), 1, windows, []) if len(windows) else None
        if query.limit is not None and not len(windows):
            return None
    keys: dict[str, Any] = {"@window": pa.array(windows)}
    order: list[tuple[str, str, str]] = [("@window", "ascending", "at_start")]

    def add(name: str, column: Any, descending: bool, nulls_first: bool) -> None:
        column = arrow_column(column)
        if pa.types.is_nested(column.type):
            return
        direction, nulls = "descending" if descending else "ascending", "at_start" if nulls_first else "at_end"
        if pa.types.is_floating(column.type):  # NaN is larger than any number
            keys[f"{name}n"] = pc.is_nan(column)
            order.append((f"{name}n", direction, nulls))
            column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 equals 0.0
        keys[name] = column
        order.append((name, direction, nulls))

    for name, key in zip(columns.order_names, query.order, strict=True):
        add(name, table.column(name), key.descending, key.nulls_first)
    for name in columns.names:  # ties, by the select list
        add(f"t{name}", table.column(name), False, True)
    places: Array = pc.sort_indices(pa.table(keys), sort_keys=order).to_numpy()
    return places


def _first_of_each(numbers: Array, limit: int) -> Array:
    """The places of the first rows of each window; windows lie side by side."""
    if not len(numbers):
        return np.empty(0, np.int64)
    begin = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    sizes = np.diff(np.append(begin, len(numbers)))
    rank = np.arange(len(numbers)) - np.repeat(begin, sizes)
    return np.flatnonzero(rank < limit)


def _with_window(schema: pa.Schema, measure: Measure) -> pa.Schema:
    return pa.schema([*schema, *(pa.field(n, measure.type) for n in (TIME, START, END))])


def _columns_of(text: str, schema: pa.Schema) -> list[str]:
    name = text[1:-1].replace("``", "`") if text.startswith("`") and text.endswith("`") else text
    return [name] if name in schema.names else parse(text).columns(schema)


def _value(text: str, table: pa.Table) -> Any:
    """An expression's value; a column itself as it is."""
    name = text[1:-1].replace("``", "`") if text.startswith("`") and text.endswith("`") else text
    return table.column(name) if name in table.column_names else parse(text).evaluate(table)


def _typed(column: Any, t: pa.DataType) -> Any:
    if column.type == t:
        return column
    if pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type):
        column = arrow_column(column)
    return column if column.type == t else column.cast(t)


def _flags(text: str, table: pa.Table) -> Array:
    return np.asarray(arrow_column(_value(text, table)).fill_null(False).to_numpy(zero_copy_only=False), bool)
