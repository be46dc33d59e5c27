"""Processing time: the clock of the operator as the measure of windows."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

CLOCK_TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class ProcessingTime:
    """Stands for a time column that is filled when rows come in."""

    name: str = "processing_time"

    def stamped(self, batch: pa.RecordBatch, newest: int) -> pa.RecordBatch:
        """A batch with the time of now, which never goes back behind ``newest``."""
        now = max(time.time_ns() // 1000, newest)
        column = pa.array([now] * batch.num_rows, pa.int64()).cast(CLOCK_TYPE)
        arrays = [*batch.columns, column]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema.append(pa.field(self.name, CLOCK_TYPE)))


def processing_time() -> ProcessingTime:
    """The time at which a row is taken in, as the measure of a stream's windows.

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
