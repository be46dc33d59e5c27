"""What data may be, for type checkers: protocols of the libraries' own classes, none of which need be installed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np


class ArrowStream(Protocol):
    """Anything with the Arrow PyCapsule interface for tables: pyarrow, polars, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """Anything with the Arrow PyCapsule interface for arrays and batches."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


class LazyFrame(Protocol):
    """A frame that is computed when it is collected: polars' LazyFrame."""

    def collect(self) -> Any: ...


class SparkFrame(Protocol):
    """A Spark frame, classic or Connect."""

    def withWatermark(self, eventTime: str, delayThreshold: str) -> Any: ...  # noqa: N802


class PandasFrame(Protocol):
    """A pandas frame."""

    def iterrows(self) -> Any: ...


class PolarsFrame(Protocol):
    """A polars frame."""

    def iter_rows(self) -> Any: ...


class PandasSeries(Protocol):
    """A pandas series."""

    def to_frame(self) -> Any: ...
    def reindex(self) -> Any: ...


class PolarsSeries(Protocol):
    """A polars series."""

    def to_frame(self) -> Any: ...
    def to_physical(self) -> Any: ...


FrameT = TypeVar("FrameT", bound=SparkFrame | PandasFrame | PolarsFrame)
"""A frame whose kind the result has, too."""
SeriesT = TypeVar("SeriesT", bound=PandasSeries | PolarsSeries)
"""A series whose kind the result has, too."""
ArrowData = ArrowStream | ArrowArray | LazyFrame | Mapping[str, Any]
"""A table of any other kind; a dictionary has columns by their names."""
Rows = ArrowStream | ArrowArray | PandasFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A batch of rows: a table, or rows as dictionaries."""
Values = ArrowStream | ArrowArray | Sequence[Any]
"""One column."""
PointLike = int | datetime.date | datetime.datetime | np.datetime64 | str
"""A point in time, in the type or unit of the time column; text is read as ISO 8601."""
