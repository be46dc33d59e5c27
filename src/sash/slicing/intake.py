"""What an operator takes in: batches of any kind and size, checked before anything changes, waiting until a step asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sash.columns import without_views
from sash.errors import InvalidArgument, InvalidType, unknown
from sash.expressions import Expression, parse
from sash.plan.logical import Plan
from sash.slicing.batch import check_span
from sash.slicing.keys import span_of
from sash.types import FAR_AHEAD
from sash.windows.base import Shape

MOST_WAITING = 1 << 16
"""Rows wait for a step, but no more than this many."""


def to_batches(given: Any, schema: pa.Schema | None) -> list[pa.RecordBatch]:
    """Whatever a user may add, as Arrow; rows given as dictionaries take the stream's schema."""
    if isinstance(given, pa.RecordBatch):
        return [without_views(given)]
    if isinstance(given, pa.Table):
        given = without_views(given)
        return given.to_batches() or [pa.RecordBatch.from_pylist([], schema=given.schema)]
    if isinstance(given, dict):
        given = [given]
    if isinstance(given, list):
        return [_of_dictionaries(given, schema)]
    if type(given).__module__.partition(".")[0] == "pandas":
        table = pa.Table.from_pandas(given, preserve_index=False)
        return to_batches(pa.concat_tables([table, table.slice(0, 0)]).combine_chunks(), schema)  # a copy: the frame may change after this
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        return to_batches(pa.table(given), schema)
    raise InvalidType(f"add takes Arrow data or a list of dictionaries, not {type(given).__qualname__}")


def _of_dictionaries(rows: list[Any], schema: pa.Schema | None) -> pa.RecordBatch:
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidType("add takes Arrow data or a list of dictionaries, one per row")
    if schema is not None:
        strange = {n for row in rows for n in row} - set(schema.names)
        if strange:
            raise InvalidArgument(f"the batch has the column {sorted(strange)[0]!r}, which the first one had not")
    try:
        if schema is None:
            return pa.RecordBatch.from_pylist(rows)
        return pa.RecordBatch.from_arrays([_exact([row.get(f.name) for row in rows], f.type) for f in schema], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError) as error:
        raise InvalidType(f"the rows do not fit the stream's columns: {error}") from error


def _exact(values: list[Any], wanted: pa.DataType) -> pa.Array:
    """Values as a column of a type; nothing is cut off to make them fit."""
    if pa.types.is_integer(wanted) and not all(v is None or (isinstance(v, int) and not isinstance(v, bool)) for v in values):
        return pa.array(values).cast(wanted)
    return pa.array(values, wanted)


class Intake:
    """Rows that wait. Rows given as dictionaries of plain values wait as they are."""

    def __init__(self, plan: Plan, latest: Callable[[], int]) -> None:
        self.plan = plan
        self._latest = latest
        """The latest time that is believed now."""
        self.rows = 0
        self._batches: list[pa.RecordBatch] = []
        self._dictionaries: list[dict[str, Any]] = []
        self._spans: list[tuple[int, int]] = []
        self.span = (0, 0)
        """The first and the last time of the rows that were taken last."""
        self._types = _python_types(plan.schema)
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
        """Shapes that cannot be reckoned around every row."""

    @property
    def is_full(self) -> bool:
        return self.rows >= MOST_WAITING

    def put(self, given: Any) -> None:
        """Take rows in, or raise and take none."""
        if isinstance(given, list) and self._types is not None and not self._computed and self._are_plain(given):
            self._dictionaries += [dict(row) for row in given]  # they may change after this
            self.rows += len(given)
            return
        batches, spans = self.checked(given)
        self._spans += spans
        if self._dictionaries:
            self._settle()
        self._batches += batches
        self.rows += sum([b.num_rows for b in batches])

    def checked(self, given: Any) -> tuple[list[pa.RecordBatch], list[tuple[int, int]]]:
        """Rows as batches of the stream's columns, with their first and last times; refused if they cannot be worked with."""
        batches = [self._in_order(batch) for batch in to_batches(given, self.plan.schema)]
        spans: list[tuple[int, int]] = []
        for batch in batches:
            time = batch.column(self._time)
            ticks = self.plan.measure.column(time.drop_null() if time.null_count else time)
            if len(ticks):
                low, high = span_of(ticks)
                check_span(low, high, self.plan.time)
                if self._limited:
                    self._check_windows(low, high)
                spans.append((low, high))
            if self._computed:
                table = pa.Table.from_batches([batch])
                for expression in self._computed:
                    expression.evaluate(table)
        return batches, spans

    def _check_windows(self, first: int, last: int) -> None:
        """Refuse rows that windows cannot be reckoned around, but for those too far ahead, which are set aside."""
        believed = min(last, self._latest())
        if first <= believed:
            for shape in self._limited:
                shape.check_rows(first, believed)

    def take(self) -> pa.Table | None:
        """All rows that wait."""
        self._settle()
        if not self._batches:
            return None
        batches, self._batches, self.rows = self._batches, [], 0
        spans, self._spans = self._spans, []
        self.span = (min([s[0] for s in spans], default=0), max([s[1] for s in spans], default=0))
        table = pa.Table.from_batches(batches)
        return table if len(batches) == 1 else table.combine_chunks()

    def _are_plain(self, rows: list[Any]) -> bool:
        types = self._types
        assert types is not None
        for row in rows:
            if not isinstance(row, dict) or row.keys() != types.keys() or not all(isinstance(row[n], t) for n, t in types.items()):
                return False
        return True

    def _settle(self) -> None:
        if self._dictionaries:
            batch = _of_dictionaries(self._dictionaries, self.plan.schema)
            self._batches.append(batch)
            time = batch.column(self._time)
            if time.null_count < len(time):
                self._spans.append(span_of(self.plan.measure.column(time.drop_null() if time.null_count else time)))
            self._dictionaries = []

    def _in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the stream's columns in their order, or an error."""
        schema, wanted = batch.schema, self.plan.schema
        if schema.equals(wanted):
            return batch
        for name in wanted.names:
            if name not in schema.names:
                raise unknown("column: the batch lacks", name, schema.names)
            given, first = schema.field(name).type, wanted.field(name).type
            if given != first:
                raise InvalidType(f"column {name!r} has the type {given}; in the first batch it was {first}")
        strange = [n for n in schema.names if n not in wanted.names]
        if strange:
            raise InvalidArgument(f"the batch has the column {strange[0]!r}, which the first one had not")
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self._names], schema=wanted)


def _python_types(schema: pa.Schema) -> dict[str, tuple[type, ...]] | None:
    """Which Python values each column takes without a look at Arrow; None if some column needs one."""
    plain: dict[pa.DataType, type] = {pa.int64(): _Int64, pa.float64(): float, pa.string(): str, pa.bool_(): bool}
    if any(f.type not in plain for f in schema):
        return None
    return {f.name: (plain[f.type], type(None)) for f in schema}


class _Int64Meta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is int and -(FAR_AHEAD >> 1) < value < FAR_AHEAD >> 1


class _Int64(metaclass=_Int64Meta):
    """An integer that fits, and that would do as a time as well."""
