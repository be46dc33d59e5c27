"""Fragments and their assembly: slices as a table that can be sent anywhere, and the windows of such tables.

A fragment table has the key's columns, each slice's edge (and, where there are sessions, its first and last time), how many rows each
aggregate includes, and the fields of each aggregate's partial. Other engines can make such tables too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algebra import Form
from sash.plan.logical import Plan
from sash.slicing.batch.results import result_table
from sash.slicing.batch.time_blocks import keys_and_blocks, numbers, own_windows
from sash.slicing.bounds.handler import handler
from sash.slicing.ingest.row_slicer import RowSlicer
from sash.slicing.ingest.slices import Slices, view_of
from sash.slicing.partials.ranges import look_at
from sash.slicing.partials.stored import StoredPartials, stored_state
from sash.slicing.rows.inputs import stored_form
from sash.slicing.rows.keys import encode, key_type
from sash.slicing.rows.timed import read
from sash.types import dtype

Array = npt.NDArray[Any]

CELL, FIRST, LAST, COUNT = "@sash:edge", "@sash:first", "@sash:last", "@sash:rows"


@dataclass(frozen=True)
class Layout:
    """The columns of a plan's fragments."""

    plan: Plan
    forms: tuple[Form, ...]
    machines: tuple[tuple[str, ...], ...]
    """The fields of each aggregate's stored partial."""
    counted: bool = False
    """Whether there is a column with each slice's number of rows: streams count late rows, and detect changes by it."""

    @staticmethod
    def of(plan: Plan, *, counted: bool = False) -> Layout:
        """The layout; nothing is compiled for it."""
        forms = [stored_form(c, plan.schema) for c in plan.columns]
        known = tuple(form for form in forms if form is not None)
        assert len(known) == len(forms), "only aggregates of flat fields have fragments"
        return Layout(plan, known, tuple(stored_state(form) for form in known), counted)

    @cached_property
    def timed(self) -> bool:
        """Whether there are columns with a slice's first and last time: sessions need them, and in a stream all windows without edges."""
        shapes = [q.shape for q in self.plan.queries]
        return any(s.session_gap is not None or (self.counted and s.as_periodic is None) for s in shapes)

    @cached_property
    def count_columns(self) -> tuple[str, ...]:
        """For each aggregate the column with how many rows it includes; those with the same inputs and condition share one."""
        seen: dict[Any, str] = {}
        names = []
        for c in self.plan.columns:
            null_aware = c.call.aggregate.null_aware_inputs
            what = (tuple(e.text for k, e in enumerate(c.inputs) if k not in null_aware), c.call.condition)
            names.append(seen.setdefault(what, f"@sash:held{len(seen)}"))
        return tuple(names)

    @cached_property
    def states(self) -> tuple[tuple[str, ...], ...]:
        """For each aggregate the columns of its partial; that of a count is its column in ``count_columns``."""
        own = (tuple(f"@sash:state{k}_{j}" for j in range(len(m))) for k, m in enumerate(self.machines))
        calls = (c.call.aggregate.name for c in self.plan.columns)
        return tuple((count,) if name == "count" else names for name, count, names in zip(calls, self.count_columns, own, strict=True))

    @cached_property
    def schema(self) -> pa.Schema:
        """All columns, in order."""
        plan = self.plan
        columns = [pa.field(name, key_type(plan.schema.field(name).type)) for name in plan.by]
        times = [CELL, *((FIRST, LAST) if self.timed else ()), *((COUNT,) if self.counted else ())]
        columns += [pa.field(name, pa.int64()) for name in (*times, *dict.fromkeys(self.count_columns))]
        for names, machines in zip(self.states, self.machines, strict=True):
            columns += [pa.field(n, _stored(m)) for n, m in zip(names, machines, strict=True) if n not in self.count_columns]
        return pa.schema(columns)

    def slices(self, table: pa.Table, codes: Array) -> Slices:
        """A table of fragments as slices; ``codes`` are the rows' key numbers."""
        cell = numbers(table.column(CELL))
        first, last = (numbers(table.column(n)) for n in (FIRST, LAST)) if self.timed else (cell, cell)
        states = []
        for form, names, machines in zip(self.forms, self.states, self.machines, strict=True):
            nothing = (*(form.identity or ()), *([0] * len(names)))
            fields = [numbers(table.column(name), _signed(nothing[j], machines[j])) for j, name in enumerate(names)]
            states.append([f.view(dtype(m)) for f, m in zip(fields, machines, strict=True)])
        counts = {name: numbers(table.column(name)).copy() for name in set(self.count_columns)}  # a count's partial is the same column
        rows = numbers(table.column(COUNT)) if self.counted else np.ones(len(cell), np.int64)
        return Slices(codes, cell, first, last, rows, [counts[name] for name in self.count_columns], states)


class Fragments:
    """Makes a plan's fragments, and joins them to results."""

    def __init__(self, plan: Plan, *, counted: bool = False) -> None:
        self.plan = plan
        self._slicer = RowSlicer(plan)
        self.layout = Layout.of(plan, counted=counted)

    def of_rows(self, table: pa.Table) -> pa.Table:
        """Rows as a table of fragments: one row for each key and slice."""
        rows = read(self.plan, table)
        if not len(rows.ticks):
            return self.layout.schema.empty_table()
        slices = self._slicer.slices(rows.table, np.ascontiguousarray(rows.ticks), rows.keys.codes, (rows.first, rows.last))
        columns: dict[str, Any] = dict(zip(self.plan.by, rows.keys.take(slices.key), strict=True))
        columns |= {CELL: slices.cell, FIRST: slices.first, LAST: slices.last, COUNT: slices.count}
        columns |= dict(zip(self.layout.count_columns, slices.included_counts, strict=True))
        for names, arrays in zip(self.layout.states, slices.states, strict=True):
            columns |= dict(zip(names, arrays, strict=True))
        return pa.table([_sent(columns[f.name], f.type) for f in self.layout.schema], schema=self.layout.schema)

    def assembled(self, table: pa.Table, block: int | None = None) -> pa.Table:
        """The windows of whole keys, from all of their fragments.

        With ``block``, a stretch of time, a key's fragments are those of the windows that start in the stretch whose number stands in
        the column :data:`~sash.slicing.batch.time_blocks.BLOCK`; only these windows are returned.
        """
        keys, blocks = (encode(table, self.plan.by), np.empty(0)) if block is None else keys_and_blocks(table, self.plan.by)
        slices, _ = self._slicer.coalesced(self.layout.slices(table, keys.codes))
        parts = zip(self.plan.columns, self._slicer.kernels, slices.states, slices.included_counts, strict=True)
        view, partials = view_of(slices, keys.count), [StoredPartials(*part, None) for part in parts]
        bounds = [handler(q.shape).bounds(q.shape, view, self.plan.empty) for q in self.plan.queries]
        if block is not None:
            bounds = [own_windows(b, blocks, block) for b in bounds]
        query_ranges = [look_at(b.lo, b.hi) for b in bounds]
        columns = [pa.chunked_array([p.results(ranges) for ranges in query_ranges]) for p in partials]
        return result_table(self.plan, keys, bounds, columns)


def _stored(machine: str) -> pa.DataType:
    """The type of a field in a fragment table: a boolean, or a signed number, which every engine has."""
    signed = np.dtype(dtype(machine).str.replace("u", "i"))
    return pa.bool_() if machine == "bool" else pa.from_numpy_dtype(signed)


def _signed(value: Any, machine: str) -> Any:
    """A value with the same bits in the type of the field in a fragment table."""
    return bool(value) if machine == "bool" else np.array(value, dtype(machine)).view(_stored(machine).to_pandas_dtype()).item()


def _sent(column: Any, t: pa.DataType) -> pa.Array:
    if isinstance(column, np.ndarray):
        column = column.astype(bool) if pa.types.is_boolean(t) else column.view(t.to_pandas_dtype())
    return pa.array(column, t)
