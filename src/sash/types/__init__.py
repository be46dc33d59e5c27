"""Types: machine types and how column types map onto them, durations, and what windows are measured in."""

from __future__ import annotations

from sash.types.data import ArrowData, FrameT, PandasFrame, PointLike, PolarsFrame, Rows, SeriesT, SparkFrame, Values
from sash.types.durations import Duration, DurationLike
from sash.types.machine import (
    DECIMAL_DIGITS_IN_64_BITS,
    FLOATS,
    INTEGERS,
    MACHINE_TYPES,
    SIGNED,
    UNSIGNED,
    Reading,
    avg_type,
    double_type,
    dtype,
    is_numeric,
    is_orderable,
    is_ranked,
    largest,
    machine_type,
    order_type,
    smallest,
    sum_type,
)
from sash.types.measures import FAR_AHEAD, FAR_BACK, Measure, measure_of

__all__ = [
    "DECIMAL_DIGITS_IN_64_BITS",
    "FAR_AHEAD",
    "FAR_BACK",
    "FLOATS",
    "INTEGERS",
    "MACHINE_TYPES",
    "SIGNED",
    "UNSIGNED",
    "ArrowData",
    "Duration",
    "DurationLike",
    "FrameT",
    "Measure",
    "PandasFrame",
    "PointLike",
    "PolarsFrame",
    "Reading",
    "Rows",
    "SeriesT",
    "SparkFrame",
    "Values",
    "avg_type",
    "double_type",
    "dtype",
    "is_numeric",
    "is_orderable",
    "is_ranked",
    "largest",
    "machine_type",
    "measure_of",
    "order_type",
    "smallest",
    "sum_type",
]
