"""What runs in Spark's Python workers for a query as text over streams: one bucket's step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.plan.queries.relations import Query
from sash.relational.steps.query_steps import QuerySteps
from sash.spark.workers.payloads import BucketInput
from sash.spark.workers.stream_tasks import Clock
from sash.types import FAR_BACK

NEWEST = "newest"
"""The note of each stream's newest time, where Spark has no watermark."""


@dataclass(frozen=True)
class Sent:
    """A stream as it is sent to the buckets."""

    name: str
    schema: pa.Schema


@dataclass(frozen=True)
class QueryBucket:
    """One bucket's step: rows of all streams and a watermark in, results out, the state in a map of Spark's."""

    query: Query
    streams: tuple[Sent, ...]
    order_by: tuple[str, ...]
    described: dict[str, Any]
    clock: Clock

    @property
    def tick_nanos(self) -> int | None:
        return self.query.measure.nanos_per_tick

    def step(self, storage: Any, label: int, inputs: BucketInput, spark: int | None) -> tuple[pa.Table | None, QuerySteps]:
        """Ingest payloads and advance the watermark: the results, and the state to commit."""
        steps = QuerySteps(self.query, storage, self.described, self.order_by)
        rows = {}
        for number, stream in enumerate(self.streams):
            tables = inputs.tables_of(number)
            rows[stream.name] = pa.concat_tables(tables).combine_chunks() if tables else stream.schema.empty_table()
        watermark = self.clock.watermark(steps.watermark, spark, self._newest(steps.notes, inputs))
        return steps.step(rows, watermark).table, steps

    def _newest(self, notes: dict[str, Any], inputs: BucketInput) -> int:
        """The newest time that all streams have reached."""
        before: list[int] = notes.get(NEWEST, [FAR_BACK] * len(self.streams))
        notes[NEWEST] = newest = [max(known, inputs.newest(number)) for number, known in enumerate(before)]
        return min(newest)
