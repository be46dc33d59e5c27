"""Processing time: windows over the time at which rows are ingested."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

CLOCK_TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class ProcessingTime:
    """Stands for a time column that is filled when rows are ingested."""

    name: str = "processing_time"

    def stamped(self, batch: pa.RecordBatch, newest: int) -> pa.RecordBatch:
        """The batch with the current time, which never goes back behind ``newest``, as a column."""
        now = max(time.time_ns() // 1000, newest)
        column = pa.array([now] * batch.num_rows, pa.int64()).cast(CLOCK_TYPE)
        arrays = [*batch.columns, column]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema.append(pa.field(self.name, CLOCK_TYPE)))


def processing_time() -> ProcessingTime:
    """The time at which a row is ingested, as the time of a stream's windows.

    Returns:
        What `time=` of `sash.Operator`, or of `sash.aggregate` on a stream, takes instead of a column.

    Examples:
        >>> import sash
        >>> from sash import functions as S, windows as W
        >>> op = sash.Operator(windows=W.tumbling("1 hour"), aggs=[S.count().alias("n")], time=sash.processing_time())
        >>> op.add([{"v": 1}, {"v": 2}])
        >>> sum(op.close()["n"].to_pylist())
        2
    """
    return ProcessingTime()
