"""What crosses a stream's shuffle: rows, or slices of them, packed into one payload per bucket of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.choices.stream_choice import StreamStrategy
from sash.plan.logical import make_plan
from sash.plan.request import Request
from sash.slicing.batch.fragments import Fragments
from sash.slicing.batch.time_blocks import numbers
from sash.slicing.persistence import encoding
from sash.slicing.rows.keys import span_of
from sash.spark.workers.batch_tasks import Batches, conform
from sash.spark.workers.pieces import full_tables
from sash.types import FAR_AHEAD, FAR_BACK, Measure

Array = npt.NDArray[Any]

BUCKET = "@sash:bucket"
PASSES = "@passes"
"""Whether a row fulfils the query's condition: the others only advance the watermark."""
PAYLOADS = pa.schema(
    [
        ("bucket", pa.int32()),
        ("stream", pa.int32()),
        ("oldest", pa.int64()),
        ("newest", pa.int64()),
        ("without_time", pa.int64()),
        ("payload", pa.binary()),
    ]
)


@dataclass(frozen=True)
class Timed:
    """Rows that have a time, with the span of their times, and how many had none."""

    table: pa.Table
    oldest: int
    newest: int
    without_time: int

    @staticmethod
    def of(table: pa.Table, time: str, measure: Measure, *, keeps_all: bool = False) -> Timed:
        """Rows by their time column; ``keeps_all`` if rows without a time are retained."""
        table = table.combine_chunks()
        times = arrow_column(table.column(time))
        missing = times.null_count
        if missing:
            table = table if keeps_all else table.filter(times.is_valid())
            times = times.drop_null()
        oldest, newest = span_of(measure.column(times)) if len(times) else (FAR_AHEAD, FAR_BACK)
        if PASSES in table.column_names:
            table = table.filter(table.column(PASSES)).drop_columns([PASSES]).combine_chunks()
        return Timed(table, oldest, newest, missing)


@dataclass(frozen=True)
class Packing:
    """Into which buckets rows are packed, for the stream with this number."""

    labels: tuple[int, ...]
    stream: int = 0

    def payloads(self, rows: pa.Table, timed: Timed) -> pa.Table:
        """One payload per bucket from rows with the column ``BUCKET``: every bucket gets one, so that it takes part in every step."""
        count = len(self.labels)
        bucket = np.zeros(rows.num_rows, np.int64)
        if count > 1:
            bucket = numbers(rows.column(BUCKET))
            rows = rows.drop_columns([BUCKET])
        places = np.argsort(bucket, kind="stable")
        rows = rows.take(pa.array(places)).combine_chunks()
        ends = np.searchsorted(bucket[places], np.arange(count + 1))
        payloads = [
            encoding.of_table(rows.slice(a, b - a)) if b > a else None for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]
        columns = [
            pa.array(self.labels, pa.int32()),
            pa.array([self.stream] * count, pa.int32()),
            pa.array([timed.oldest] * count, pa.int64()),
            pa.array([timed.newest] * count, pa.int64()),
            pa.array([timed.without_time] + [0] * (count - 1), pa.int64()),
            pa.array(payloads, pa.binary()),
        ]
        return pa.table(columns, schema=PAYLOADS)


@dataclass(frozen=True)
class MakePayloads:
    """Turns the rows of a request, in any order, into payloads."""

    request: Request
    schema: pa.Schema
    """The columns, with the bucket's number as the last."""
    strategy: StreamStrategy
    labels: tuple[int, ...]
    most_rows: int
    columns: tuple[str, ...] | None = None
    """The columns that rows are sent with, where these are not those that the plan reads."""

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        plan = make_plan(self.schema, self.request)
        in_buckets = [BUCKET] if len(self.labels) > 1 else []
        fragments = Fragments(replace(plan, by=(*plan.by, *in_buckets)), counted=True) if self.strategy == "fragments" else None
        names = [*(plan.reads if self.columns is None else self.columns), *in_buckets]
        packing = Packing(self.labels)
        for table in full_tables((conform(batch, self.schema) for batch in batches), self.most_rows):
            if table.num_rows:
                timed = Timed.of(table, plan.time, plan.measure, keeps_all=self.request.trailing)
                rows = timed.table.select(names) if fragments is None else fragments.of_rows(timed.table)
                yield packing.payloads(rows, timed)


@dataclass(frozen=True)
class PackRows:
    """Turns the rows of one of several streams, in any order, into payloads."""

    schema: pa.Schema
    """The columns, with the bucket's number as the last."""
    time: str
    packing: Packing
    most_rows: int

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        measure = Measure(self.schema.field(self.time).type)
        for table in full_tables((conform(batch, self.schema) for batch in batches), self.most_rows):
            if table.num_rows:
                timed = Timed.of(table, self.time, measure)
                yield self.packing.payloads(timed.table, timed)


@dataclass(frozen=True)
class BucketInput:
    """A bucket's payloads of one step."""

    payloads: list[Any]

    @staticmethod
    def of(rows: Iterable[Any]) -> BucketInput:
        """From payloads as Spark passes them."""
        return BucketInput(list(rows))

    @cached_property
    def tables(self) -> list[pa.Table]:
        """The tables of all payloads."""
        return self.tables_of(None)

    def tables_of(self, stream: int | None) -> list[pa.Table]:
        """The tables of one stream's payloads; of all with None."""
        chosen = [row for row in self.payloads if row.payload is not None and (stream is None or row.stream == stream)]
        return [encoding.to_table(bytes(row.payload), "a payload") for row in chosen]

    def newest(self, stream: int | None = None) -> int:
        """The newest time that any partition saw, whatever the bucket; of one stream, or of all."""
        return max((row.newest for row in self.payloads if stream is None or row.stream == stream), default=FAR_BACK)

    @property
    def oldest(self) -> int:
        """The oldest time that any partition saw."""
        return min((row.oldest for row in self.payloads), default=FAR_AHEAD)

    @property
    def without_time(self) -> int:
        """The rows without a time."""
        return sum(row.without_time for row in self.payloads)
