"""What an operator takes in: batches of any kind and size, checked before anything changes, waiting until a step asks for them."""

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
from sash.slicing.rows.plain_rows import PlainRows
from sash.slicing.rows.timed import check_span
from sash.types import FAR_BACK
from sash.windows.shapes import Shape

MOST_WAITING = 1 << 16
"""Rows wait for a step, but no more than this many."""


def to_batches(given: Any, schema: pa.Schema | None) -> list[pa.RecordBatch]:
    """Whatever a user may add, as Arrow; rows given as dictionaries take the stream's schema."""
    if isinstance(given, pa.RecordBatch):
        return [in_known_layouts(given)]
    if isinstance(given, pa.Table):
        given = in_known_layouts(given)
        return given.to_batches() or [pa.RecordBatch.from_pylist([], schema=given.schema)]
    if isinstance(given, dict):
        given = [given]
    if isinstance(given, list):
        return [of_dictionaries(given, schema)]
    if type(given).__module__.partition(".")[0] == "pandas":
        table = pa.Table.from_pandas(given, preserve_index=False)
        return to_batches(pa.concat_tables([table, table.slice(0, 0)]).combine_chunks(), schema)  # a copy: the frame may change after this
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        return to_batches(pa.table(given), schema)
    raise InvalidType(f"add takes Arrow data or a list of dictionaries, not {type(given).__qualname__}")


class Arrived(NamedTuple):
    """Rows that can be worked with."""

    rows: pa.RecordBatch | pa.Table
    ticks: Array
    """The times of those that have one."""
    first: int
    last: int


class Intake:
    """Rows that wait. Rows given as dictionaries of plain values wait as they are."""

    def __init__(self, plan: Plan, latest: Callable[[], int]) -> None:
        self.plan = plan
        self._latest = latest
        """The latest time that is believed now."""
        self.rows = 0
        self._arrived: list[Arrived] = []
        self._dictionaries: list[dict[str, Any]] = []
        self.plain = PlainRows(plan.schema, plan.time)
        self._names = plan.schema.names
        self._time = self._names.index(plan.time)
        self.with_queries(plan)

    def with_queries(self, plan: Plan) -> None:
        """Other queries from now on."""
        self.plan = plan
        texts = [text for q in plan.queries for text in q.window.reads]
        expressions = [e for c in plan.columns for e in (*c.inputs, *([c.condition] if c.condition else []))]
        everything = [*expressions, *(parse(text) for text in texts)]
        self._computed: list[Expression] = [e for e in everything if e.text not in self._names]
        """Expressions that can fail on a row, so that they are tried before it is taken in."""
        self._limited: list[Shape] = [q.shape for q in plan.queries if type(q.shape).check_rows is not Shape.check_rows]
        """Shapes whose windows cannot be computed around every row."""

    @property
    def is_full(self) -> bool:
        return self.rows >= MOST_WAITING

    @property
    def are_all_plain(self) -> bool:
        """Whether all that waits are dictionaries that fit as they are."""
        return not self._arrived

    def put(self, given: Any) -> tuple[int, int] | None:
        """Take rows in, or raise and take none; their first and last time, None if none has one."""
        if type(given) is list and not self._computed and not self._limited and (ticks := self.plain.ticks(given)):
            for row in given:
                self._dictionaries.append(row.copy())  # they may change after this
            self.rows += len(given)
            return (ticks[0], ticks[0]) if len(ticks) == 1 else (min(ticks), max(ticks))
        arrived = self.checked(given)
        self.put_checked(arrived)
        timed = [a for a in arrived if len(a.ticks)]
        return (min(a.first for a in timed), max(a.last for a in timed)) if timed else None

    def put_in_order(self, given: Any, newest: int) -> int:
        """Take rows in that must follow ``newest`` in the order of time, or raise and take none; the time of the last."""
        arrived = self.checked(given)
        ticks = np.concatenate([a.ticks for a in arrived])
        believed = ticks <= self._latest()  # the others are set aside, whatever their order
        ticks = ticks if believed.all() else ticks[believed]
        steps = np.diff(ticks, prepend=newest)
        if np.any(steps < 0):
            at = int(np.argmax(steps < 0))
            known = pa.chunked_array([a.rows.column(self.plan.time).is_valid() for a in arrived]).to_numpy()
            row = np.flatnonzero(known)[believed][at]
            late = np.array([ticks[at], newest if at == 0 else ticks[at - 1]], np.int64)
            when, before = self.plan.measure.values(late).cast(pa.string()).to_pylist()
            raise LateRow(f"row {row} of the batch has the time {when}, after {before}; the stream was declared to be in order")
        self.put_checked(arrived)
        return int(ticks[-1]) if len(ticks) else FAR_BACK

    def put_checked(self, arrived: list[Arrived]) -> None:
        """Take rows in that :meth:`checked` has found fit."""
        if self._dictionaries:
            self._settle()
        self._arrived += arrived
        self.rows += sum([a.rows.num_rows for a in arrived])

    def checked(self, given: Any) -> list[Arrived]:
        """Rows as batches of the stream's columns, or an error if they cannot be worked with."""
        if isinstance(given, pa.RecordBatch) and given.schema.equals(self.plan.schema):
            batches = [given]
        else:
            batches = [self._in_order(batch) for batch in to_batches(given, self.plan.schema)]
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
        """Refuse rows that windows cannot be computed around, but for those too far ahead, which are set aside."""
        believed = min(last, self._latest())
        if first <= believed:
            for shape in self._limited:
                shape.check_rows(first, believed)

    def take(self) -> Arrived | None:
        """All rows that wait, as a table."""
        self._settle()
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

    def _settle(self) -> None:
        if self._dictionaries:
            self._arrived.append(self._with_times(of_dictionaries(self._dictionaries, self.plan.schema)))
            self._dictionaries = []

    def _in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the stream's columns in their order, or an error."""
        schema, wanted = batch.schema, self.plan.schema
        if schema.equals(wanted):
            return batch
        check_names(schema.names, wanted)
        return in_schema(batch, wanted)


def in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch's columns as the first batch had them; a column of only nulls fits any type."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if column.type != field.type:
            if not pa.types.is_null(column.type):
                raise InvalidType(f"column {field.name!r} has the type {column.type}; in the first batch it was {field.type}")
            column = pa.nulls(len(column), field.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
