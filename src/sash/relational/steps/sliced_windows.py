"""Aggregates over windows of one stream, step by step, by the stream engine: slices are kept, not rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.columns import arrow_column
from sash.expressions import parse
from sash.functions import count
from sash.plan.logical import WINDOW, make_plan
from sash.plan.options import StreamOptions
from sash.plan.queries.flows import conditions_of, sliced
from sash.plan.queries.relations import Grouped
from sash.plan.request import Request
from sash.relational.edges import PeriodicEdges
from sash.relational.groups import with_keys
from sash.relational.members import Results
from sash.slicing.persistence.transactions import Storage
from sash.slicing.stream.stored_engine import StepMetrics, StoredEngine
from sash.types import Measure

Array = npt.NDArray[Any]
NOTHING = "@nothing"
"""The name of the count that stands for no aggregate at all."""


class SlicedWindows:
    """The windows of one aggregation, in a storage of its own."""

    def __init__(self, relation: Grouped, storage: Storage, described: dict[str, Any], order_by: tuple[str, ...]) -> None:
        source = sliced(relation)
        assert source is not None
        assert source.windowing.window is not None
        self.relation, self.source = relation, source
        self.measure = Measure(source.origin.measure_type)
        periodic = source.windowing.window.bind(self.measure).as_periodic
        assert periodic is not None
        self._edges = PeriodicEdges(periodic.size, periodic.every, (periodic.offset + periodic.size) % periodic.every)
        self._extra = tuple(n for n in order_by if n in source.origin.schema.names and n not in source.schema.names)
        schema = self._rows(source.origin.schema.empty_table()).schema
        calls = list(relation.calls) or [count().alias(NOTHING)]
        ties = [n for n in order_by if n in schema.names]
        request = Request.of(source.windowing.window, calls, [n for n, _ in relation.keys] or None, source.time, ties or None)
        reads = make_plan(schema, request).reads
        self._plan = make_plan(pa.schema([schema.field(n) for n in reads]), request)
        self._engine = StoredEngine(self._plan, StreamOptions(store="lazy"), storage, described)

    def step(self, new: pa.Table, watermark: int) -> Results:
        """Add the stream's rows and apply a watermark: the groups of the windows that ended."""
        rows = self._rows(new).select(list(self._plan.reads))
        results = self._engine.step(watermark, rows=[rows] if rows.num_rows else [])
        ends = self.measure.column(arrow_column(pc.struct_field(arrow_column(results.column(WINDOW)), "end")))
        names = self.relation.schema.names
        columns = [results.column(f.name).cast(f.type) for f in self.relation.schema]
        table = pa.Table.from_arrays(columns, schema=self.relation.schema) if names else pa.table({NOTHING: results.column(NOTHING)})
        return Results(table, self._edges, np.asarray(self._edges.numbers(ends)), self.measure)

    def next_end(self, oldest: int) -> int | None:
        """The end of the first window that is open; ``oldest`` is the oldest row of the step."""
        return self._engine.next_end(oldest)

    def commit(self) -> StepMetrics:
        """Write what has changed."""
        return self._engine.commit()

    def _rows(self, new: pa.Table) -> pa.Table:
        """Rows of the stream as the relation below names them, without those that its conditions refuse, with the keys."""
        source = self.source
        table = new.select([*source.names, *self._extra]).rename_columns([*source.schema.names, *self._extra])
        for condition in conditions_of(self.relation.child):
            table = table.filter(parse(condition).evaluate(table))
        return with_keys(self.relation, table)
