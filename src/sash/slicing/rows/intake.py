"""The buffer of an operator's input: batches of any kind and size, checked before anything changes, and buffered until a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sash.columns import Array, in_known_layouts
from sash.errors import InvalidType, LateRow
from sash.expressions import Expression, parse
from sash.plan.logical import Plan
from sash.slicing.rows.dictionaries import check_names, of_dictionaries
from sash.slicing.rows.keys import span_of
from sash.slicing.rows.python_rows import PythonRows
from sash.slicing.rows.timed import check_span
from sash.types import FAR_BACK
from sash.windows.shapes import Shape

MOST_WAITING = 1 << 16
"""At most so many rows are buffered between steps."""


def to_batches(rows: Any, schema: pa.Schema | None) -> list[pa.RecordBatch]:
    """Rows of any supported kind as Arrow batches; dictionaries are converted to ``schema``."""
    if isinstance(rows, pa.RecordBatch):
        return [in_known_layouts(rows)]
    if isinstance(rows, pa.Table):
        rows = in_known_layouts(rows)
        return rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
    if isinstance(rows, dict):
        rows = [rows]
    if isinstance(rows, list):
        return [of_dictionaries(rows, schema)]
    if type(rows).__module__.partition(".")[0] == "pandas":
        table = pa.Table.from_pandas(rows, preserve_index=False)
        return to_batches(pa.concat_tables([table, table.slice(0, 0)]).combine_chunks(), schema)  # a copy: the frame may change after this
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return to_batches(pa.table(rows), schema)
    raise InvalidType(f"add takes Arrow data or a list of dictionaries, not {type(rows).__qualname__}")


class Arrived(NamedTuple):
    """Rows that passed the checks."""

    rows: pa.RecordBatch | pa.Table
    ticks: Array
    """The times of the rows that have one."""
    first: int
    last: int


class Intake:
    """Rows that are buffered until the next step; dictionaries of simple Python values are buffered as they are."""

    def __init__(self, plan: Plan, latest: Callable[[], int]) -> None:
        self.plan = plan
        self._latest = latest
        """The latest time that a row may have now."""
        self.rows = 0
        self._arrived: list[Arrived] = []
        self._dictionaries: list[dict[str, Any]] = []
        self.python_rows = PythonRows(plan.schema, plan.time)
        self._names = plan.schema.names
        self._time = self._names.index(plan.time)
        self.with_queries(plan)

    def with_queries(self, plan: Plan) -> None:
        """Serve other queries from now on."""
        self.plan = plan
        texts = [text for q in plan.queries for text in q.window.reads]
        expressions = [e for c in plan.columns for e in (*c.inputs, *([c.condition] if c.condition else []))]
        everything = [*expressions, *(parse(text) for text in texts)]
        self._computed: list[Expression] = [e for e in everything if not e.is_defined(plan.schema)]
        """Expressions that can fail on a row, so that they are evaluated before it is buffered."""
        self._limited: list[Shape] = [q.shape for q in plan.queries if type(q.shape).check_rows is not Shape.check_rows]
        """Shapes whose windows cannot be computed around every row."""

    @property
    def is_full(self) -> bool:
        return self.rows >= MOST_WAITING

    @property
    def are_all_dictionaries(self) -> bool:
        """Whether all buffered rows are dictionaries that fit the schema as they are."""
        return not self._arrived

    def put(self, rows: Any) -> tuple[int, int] | None:
        """Buffer rows, or raise and buffer none of them; returns their first and last time, None if none has one."""
        if type(rows) is list and not self._computed and not self._limited and (ticks := self.python_rows.ticks(rows)):
            for row in rows:
                self._dictionaries.append(row.copy())  # they may change after this
            self.rows += len(rows)
            return (ticks[0], ticks[0]) if len(ticks) == 1 else (min(ticks), max(ticks))
        arrived = self.checked(rows)
        self.put_checked(arrived)
        timed = [a for a in arrived if len(a.ticks)]
        return (min(a.first for a in timed), max(a.last for a in timed)) if timed else None

    def put_in_order(self, rows: Any, newest: int) -> int:
        """Buffer rows that must follow ``newest`` in the order of time, or raise and buffer none; returns the time of the last."""
        arrived = self.checked(rows)
        ticks = np.concatenate([a.ticks for a in arrived])
        in_range = ticks <= self._latest()  # the others are set aside, whatever their order
        ticks = ticks if in_range.all() else ticks[in_range]
        steps = np.diff(ticks, prepend=newest)
        if np.any(steps < 0):
            at = int(np.argmax(steps < 0))
            known = pa.chunked_array([a.rows.column(self.plan.time).is_valid() for a in arrived]).to_numpy()
            row = np.flatnonzero(known)[in_range][at]
            late = np.array([ticks[at], newest if at == 0 else ticks[at - 1]], np.int64)
            when, before = self.plan.measure.values(late).cast(pa.string()).to_pylist()
            raise LateRow(f"row {row} of the batch has the time {when}, after {before}; the stream was declared to be in order")
        self.put_checked(arrived)
        return int(ticks[-1]) if len(ticks) else FAR_BACK

    def put_checked(self, arrived: list[Arrived]) -> None:
        """Buffer rows that :meth:`checked` returned."""
        if self._dictionaries:
            self._convert_dictionaries()
        self._arrived += arrived
        self.rows += sum([a.rows.num_rows for a in arrived])

    def checked(self, rows: Any) -> list[Arrived]:
        """Rows as batches of the stream's columns; raises if windows or inputs cannot be computed from them."""
        if isinstance(rows, pa.RecordBatch) and rows.schema.equals(self.plan.schema):
            batches = [rows]
        else:
            batches = [self._in_order(batch) for batch in to_batches(rows, self.plan.schema)]
        arrived = [self._with_times(batch) for batch in batches]
        for batch, ticks, first, last in arrived:
            if len(ticks):
                check_span(first, last, self.plan.time)
                if self._limited:
                    self._check_windows(first, last)
            if self._computed:
                table = pa.Table.from_batches([batch])
                for expression in self._computed:
                    expression.evaluate(table)
        return arrived

    def _with_times(self, batch: pa.RecordBatch) -> Arrived:
        time = batch.column(self._time)
        ticks = self.plan.measure.column(time.drop_null() if time.null_count else time)
        return Arrived(batch, ticks, *span_of(ticks))

    def _check_windows(self, first: int, last: int) -> None:
        """Raise for rows that windows cannot be computed around, except those too far ahead, which are set aside."""
        in_range = min(last, self._latest())
        if first <= in_range:
            for shape in self._limited:
                shape.check_rows(first, in_range)

    def take(self) -> Arrived | None:
        """Remove all buffered rows, as a table; None if there are none."""
        self._convert_dictionaries()
        if not self._arrived:
            return None
        arrived, self._arrived, self.rows = self._arrived, [], 0
        if len(arrived) == 1:
            ((batch, ticks, first, last),) = arrived
            return Arrived(pa.Table.from_batches([batch]), ticks, first, last)
        timed = [a for a in arrived if len(a.ticks)]
        table = pa.Table.from_batches([a.rows for a in arrived]).combine_chunks()
        ticks = np.concatenate([np.empty(0, np.int64), *[a.ticks for a in timed]])
        return Arrived(table, ticks, min([a.first for a in timed], default=0), max([a.last for a in timed], default=0))

    def _convert_dictionaries(self) -> None:
        """Buffer the dictionaries as a batch."""
        if self._dictionaries:
            self._arrived.append(self._with_times(of_dictionaries(self._dictionaries, self.plan.schema)))
            self._dictionaries = []

    def _in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the stream's columns in their order; raises if it has others."""
        schema, wanted = batch.schema, self.plan.schema
        if schema.equals(wanted):
            return batch
        check_names(schema.names, wanted)
        return in_schema(batch, wanted)


def in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns and types of ``schema``; a column of only nulls fits any type."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if column.type != field.type:
            if not pa.types.is_null(column.type):
                raise InvalidType(f"column {field.name!r} has the type {column.type}; in the first batch it was {field.type}")
            column = pa.nulls(len(column), field.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
