"""The table that a step emits: the query, the keys, the window, the aggregates, and the revision."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pyarrow as pa

from sash.plan.logical import RETRACTED, REVISION, Plan
from sash.plan.options import Emit
from sash.slicing.batch.results import as_type, output_schema, rank_column, window_column
from sash.slicing.partials.ranges import look_at
from sash.slicing.rows.keys import KeyIndex
from sash.slicing.stream.pages import Pages, fit_on_pages
from sash.slicing.stream.window_manager import Part

Array = npt.NDArray[Any]

FEW_WINDOWS = 64
"""Up to so many windows, their queries' names are collected in Python, which is faster."""


def emitted_schema(plan: Plan, emit: Emit) -> pa.Schema:
    """The columns that an operator emits."""
    extra = () if emit == "final" else (pa.field(REVISION, pa.int64()), pa.field(RETRACTED, pa.bool_()))
    return output_schema(plan, extra=extra)


class Emission:
    """The tables that an operator emits for a set of queries."""

    def __init__(self, plan: Plan, emit: Emit) -> None:
        self.plan = plan
        self.schema = emitted_schema(plan, emit)
        self.nothing = self.schema.empty_table()
        """What a step without due windows emits."""
        self._pages = Pages(plan, self.schema) if fit_on_pages(plan, self.schema) else None

    def table(self, keys: KeyIndex, parts: list[Part]) -> pa.Table:
        """The reports' windows with their results."""
        if not parts:
            return self.nothing
        part = None if self._pages is None else self._pages.part(parts)
        return self._new_table(keys, parts) if part is None else part

    def _new_table(self, keys: KeyIndex, parts: list[Part]) -> pa.Table:
        """The reports' windows as a table that is not part of a page."""
        tables: list[pa.Table] = []
        for store, slices, reports in parts:
            partials = slices.partials()
            for report in reports:
                bounds, retracted = report.bounds, report.retracted
                ranges = look_at(bounds.lo, bounds.hi)
                columns: list[Any] = [_named(store.plan, report.queries)]
                columns += keys.take(bounds.keys)
                columns.append(window_column(self.plan, bounds))
                if self.plan.has_rows:
                    columns.append(rank_column(bounds))
                for p in partials:
                    values = p.results(ranges)
                    if retracted is not None and retracted.any():
                        values = pa.array(values.to_pylist(), values.type, mask=retracted)
                    columns.append(values)
                if REVISION in self.schema.names:
                    columns += [pa.array(report.revision), pa.array(retracted)]
                arrays = [as_type(c, f.type) for c, f in zip(columns, self.schema, strict=True)]
                tables.append(pa.Table.from_arrays(arrays, schema=self.schema))
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _named(plan: Plan, queries: Array) -> pa.Array:
    """The name of each window's query."""
    if len(queries) == 1:
        return plan.query_names.slice(int(queries[0]), 1)
    if len(queries) > FEW_WINDOWS:
        return plan.query_names.take(pa.array(queries))
    return pa.array([plan.queries[k].name for k in queries.tolist()], pa.string())
