"""Results as a table: the query, the keys, the window, the aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sash.plan.logical import QUERY, ROWS, WINDOW, Plan, check_names, output_type
from sash.slicing.bounds.view import Bounds
from sash.slicing.rows.keys import Keys
from sash.types import value_type

RANKS = pa.struct([("start", pa.int64()), ("end", pa.int64())])


def output_schema(plan: Plan, *, extra: tuple[pa.Field, ...] = ()) -> pa.Schema:
    """The result's columns, in order; raises where two have one name."""
    measure = plan.measure.type
    columns = [pa.field(QUERY, pa.string())] if plan.named else []
    columns += [pa.field(name, value_type(plan.schema.field(name).type)) for name in plan.by]
    columns.append(pa.field(WINDOW, pa.struct([("start", measure), ("end", measure)])))
    if plan.has_rows:
        columns.append(pa.field(ROWS, RANKS))
    columns += [pa.field(c.call.name, output_type(c)) for c in plan.columns]
    columns += extra
    check_names([f.name for f in columns], "the result")
    return pa.schema(columns)


def result_table(plan: Plan, keys: Keys, bounds: list[Bounds], columns: list[pa.ChunkedArray]) -> pa.Table:
    """All queries' windows with their results."""
    schema = output_schema(plan)
    parts: list[Any] = []
    if plan.named:
        names = pa.array([q.name for q in plan.queries], pa.string())
        numbers = np.repeat(np.arange(len(bounds)), [len(b) for b in bounds])
        parts.append(names.take(pa.array(numbers)))
    numbers = np.concatenate([b.keys for b in bounds])
    parts += keys.take(numbers)
    parts.append(pa.chunked_array([window_column(plan, b) for b in bounds]))
    if plan.has_rows:
        parts.append(pa.chunked_array([rank_column(b) for b in bounds]))
    parts += columns
    return pa.Table.from_arrays([as_type(p, f.type) for p, f in zip(parts, schema, strict=True)], schema=schema)


def as_type(column: Any, t: pa.DataType) -> Any:
    """A column converted to the type that the schema has for it."""
    if column.type == t:
        return column
    return pa.nulls(len(column), t) if pa.types.is_null(t) else column.cast(t)


def window_column(plan: Plan, bounds: Bounds) -> pa.Array:
    """Start and end of each window."""
    start = plan.measure.values(bounds.start, bounds.start_known)
    end = plan.measure.values(bounds.end, bounds.end_known)
    return pa.StructArray.from_arrays([start, end], names=["start", "end"])


def rank_column(bounds: Bounds) -> pa.Array:
    """The first rank of each row window and the one after its last; null for other windows."""
    if bounds.rows is None:
        return pa.nulls(len(bounds), RANKS)
    return pa.StructArray.from_arrays([pa.array(r, pa.int64()) for r in bounds.rows], fields=list(RANKS))


def flat_names(schema: pa.Schema) -> list[str]:
    """The names of a result whose windows are columns; raises where two are the same."""
    names = [flat for f in schema for flat in ([f"{f.name}_start", f"{f.name}_end"] if is_window(f) else [f.name])]
    check_names(names, "the result")
    return names


def is_window(field: pa.Field) -> bool:
    """Whether a result's column is a window or its ranks, and no key of that name."""
    return field.name in (WINDOW, ROWS) and pa.types.is_struct(field.type)


def flattened(result: pa.Table) -> pa.Table:
    """A result with a window's ends as columns of their own."""
    columns: list[Any] = []
    for field, column in zip(result.schema, result.columns, strict=True):
        columns += column.flatten() if is_window(field) else [column]
    return pa.Table.from_arrays(columns, names=flat_names(result.schema))
