"""What runs in Spark's Python workers behind a stream's shuffle: a bucket's step, and payloads into results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from sash.plan.choices.stream_choice import StreamStrategy
from sash.plan.logical import Plan, make_plan
from sash.plan.options import Emit, StreamOptions
from sash.plan.request import Request
from sash.slicing.stream.stored_engine import StepMetrics, StoredEngine
from sash.slicing.stream.stored_trail import StoredTrail
from sash.spark.workers.batch_tasks import Batches, as_user_error, unpack_task
from sash.spark.workers.payloads import BucketInput
from sash.types import FAR_BACK, Duration, Measure

ROWS_IN_PAYLOAD = 1 << 16
MEASURED = (
    "rows",
    "late_rows",
    "without_time",
    "slices",
    "kept_rows",
    "keys",
    "bytes_read",
    "bytes_written",
    "open_windows",
    "own_windows",
    "reached",
    "oldest",
    "newest",
    "next_end",
    "tick_nanos",
    "emitted",
)
"""What a bucket's step reports."""
SPANS = ("reached", "oldest", "newest", "next_end", "tick_nanos")
"""Those that may be None: times, in ticks, and the length of a tick."""
NOTHING: dict[str, int | None] = {name: None if name in SPANS else 0 for name in MEASURED}


@dataclass(frozen=True)
class Clock:
    """How the watermark of a step is computed."""

    delay: int | None
    """How far it stays behind the newest row, in ticks, if Spark does not track it; None if there is no watermark."""
    shift: int
    """What is added to Spark's watermark, in ticks."""
    ticks_per_milli: int

    def watermark(self, previous: int, spark: int | None, newest: int) -> int:
        """The watermark of a step, in ticks."""
        if spark is not None:
            return spark * self.ticks_per_milli + self.shift if spark > 0 else FAR_BACK
        if self.delay is None:
            return FAR_BACK
        return max(previous, newest - self.delay) if newest > FAR_BACK else previous


@dataclass(frozen=True)
class Bucket:
    """One bucket's step: payloads and a watermark in, results out, the state in a map of Spark's."""

    request: Request
    schema: pa.Schema
    strategy: StreamStrategy
    labels: tuple[int, ...]
    described: dict[str, Any]
    emit: Emit
    lateness: Duration | None
    idle: Duration | None
    clock: Clock

    def open(self, storage: Any, label: int) -> StoredEngine:
        """The bucket's engine, with the state that the last step wrote."""
        options = StreamOptions(store="lazy", lateness=self.lateness, emit=self.emit, idle=self.idle)
        place = self.labels.index(label)
        slack = 1.5 + place / len(self.labels)  # so that buckets do not all look for expired keys in the same step
        return StoredEngine(self.plan, options, storage, self.described, slack)

    @cached_property
    def plan(self) -> Plan:
        """The plan over the columns that it reads, without the others."""
        reads = make_plan(self.schema, self.request).reads
        return make_plan(pa.schema([self.schema.field(n) for n in reads]), self.request)

    @property
    def tick_nanos(self) -> int | None:
        return self.plan.measure.nanos_per_tick

    def step(self, storage: Any, label: int, inputs: BucketInput, spark: int | None) -> tuple[pa.Table | None, StoredEngine]:
        """Ingest payloads and advance the watermark: the results, and the state to commit."""
        engine = self.open(storage, label)
        watermark = self.clock.watermark(engine.watermark, spark, inputs.newest())
        sort = {"fragments": inputs.tables} if self.strategy == "fragments" else {"rows": inputs.tables}
        results = engine.step(watermark, **sort)
        return results if self.request.is_named else results.drop_columns(["query"]), engine


@dataclass(frozen=True)
class OverBucket:
    """One bucket's step for trailing windows: rows and a watermark in, rows with their windows out."""

    request: Request
    schema: pa.Schema
    columns: tuple[str, ...]
    """The columns of the result."""
    described: dict[str, Any]
    clock: Clock

    @property
    def tick_nanos(self) -> int | None:
        return Measure(self.schema.field(str(self.request.time)).type).nanos_per_tick

    def step(self, storage: Any, label: int, inputs: BucketInput, spark: int | None) -> tuple[pa.Table | None, StoredTrail]:
        """Ingest payloads and advance the watermark: the results, and the state to commit."""
        trail = StoredTrail(make_plan(self.schema, self.request), storage, self.described)
        results = trail.step(self.clock.watermark(trail.watermark, spark, inputs.newest()), inputs.tables)
        return None if results is None else results.select(list(self.columns)), trail


class MapStorage:
    """Spark's map state of one bucket."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, name: str) -> bytes | None:
        row = self._state.getValue((name,))
        return None if row is None else bytes(row[0])

    def put(self, name: str, value: bytes) -> None:
        self._state.updateValue((name,), (value,))

    def remove(self, name: str) -> None:
        self._state.removeKey((name,))


class BucketTask(Protocol):
    """What a bucket does in a step."""

    @property
    def tick_nanos(self) -> int | None:
        """The length of a tick; None for integer times."""
        ...

    def step(self, storage: Any, label: int, inputs: BucketInput, spark: int | None) -> tuple[pa.Table | None, Stored]:
        """Ingest payloads and advance the watermark: the results, and the state to commit."""
        ...


class Stored(Protocol):
    """A bucket's state after a step."""

    notes: dict[str, Any]

    def commit(self) -> StepMetrics:
        """Write what has changed."""
        ...

    def next_end(self, oldest: int) -> int | None:
        """The end of the first window that is open, as far as it is known; ``oldest`` is the oldest row of the step."""
        ...


_tasks: dict[bytes, BucketTask] = {}
"""Unpacked tasks by their bytes. Tasks are plain data without state, so a cached one is right for every version of the state."""
TIMER = "timer"


def handle(payload: bytes, state: Any, processor_handle: Any, key: Any, rows: Iterable[Any] | None, timer_values: Any) -> Iterator[Any]:
    """A bucket's output for its rows, or (with ``rows`` None) for a timer that fired because the watermark advanced."""
    try:
        if payload not in _tasks:
            _tasks[payload] = unpack_task(payload)[0]
        yield from _stepped(_tasks[payload], state, processor_handle, int(key[0]), rows or (), timer_values, woken=rows is None)
    except Exception as error:
        raise as_user_error(error) from None


def _stepped(
    task: BucketTask, state: Any, processor_handle: Any, label: int, rows: Iterable[Any], timer_values: Any, *, woken: bool
) -> Iterator[Any]:
    from pyspark.sql import Row

    spark = None if timer_values is None else timer_values.getCurrentWatermarkInMs()
    inputs = BucketInput.of(rows)
    results, stored = task.step(MapStorage(state), label, inputs, spark)
    if spark is not None and stored.notes.get(TIMER) != spark + 1:
        # The timer fires at the next watermark, whatever that is. If it has just fired, there is none to delete.
        if TIMER in stored.notes and not woken:
            processor_handle.deleteTimer(stored.notes[TIMER])
        processor_handle.registerTimer(spark + 1)
        stored.notes[TIMER] = spark + 1
    oldest, newest = inputs.oldest, inputs.newest()
    span = (None, None) if newest <= FAR_BACK else (oldest, newest)
    done = replace(
        stored.commit(), without_time=inputs.without_time, oldest=span[0], newest=span[1], next_end=stored.next_end(oldest),
        tick_nanos=task.tick_nanos, emitted=0 if results is None else results.num_rows,
    )  # fmt: skip
    yield Row(payload=None, **{name: getattr(done, name) for name in MEASURED})
    for batch in [] if results is None else results.combine_chunks().to_batches(max_chunksize=ROWS_IN_PAYLOAD):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_batch(batch)
        yield Row(payload=sink.getvalue().to_pybytes(), **NOTHING)


@dataclass(frozen=True)
class Unpack:
    """Turns payloads into results."""

    def run(self, batches: Batches) -> Iterator[pa.Table]:
        for batch in batches:
            for payload in batch.column(0):
                if payload.is_valid:
                    with pa.ipc.open_stream(payload.as_buffer()) as reader:
                        yield reader.read_all()
