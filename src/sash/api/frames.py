"""Frames of all kinds as Arrow tables, and results as frames of the input's kind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.columns import in_known_layouts
from sash.errors import InvalidType


def is_spark(data: Any) -> bool:
    """Whether data is a Spark frame, classic or Connect; Spark is not imported to find out."""
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(data).__mro__)


def library_of(data: Any) -> str:
    """The package that a value's class comes from."""
    return type(data).__module__.partition(".")[0]


def to_table(data: Any) -> pa.Table:
    """Arrow-compatible data as a table, in the layouts that Sash's kernels read."""
    return in_known_layouts(arrow_table(data))


def arrow_table(data: Any) -> pa.Table:
    """Arrow-compatible data as a table, with its own types."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if library_of(data) == "pandas":
        if not hasattr(data, "columns"):
            raise InvalidType(f"data must be a frame, not a pandas {type(data).__name__}; use .to_frame(), or sash.rolling for one column")
        return pa.Table.from_pandas(data, preserve_index=False)
    if library_of(data) == "polars" and hasattr(data, "collect"):  # a LazyFrame
        return pa.table(data.collect())
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if hasattr(data, "to_arrow_table"):  # DuckDB relations of older versions
        return data.to_arrow_table()
    if isinstance(data, dict):
        return pa.table(data)
    raise InvalidType(
        f"data must speak Arrow (a pyarrow Table, a pandas or polars frame, a DuckDB relation), not {type(data).__qualname__}"
    )


def like(data: Any, table: pa.Table) -> Any:
    """A table as a frame of the same library as ``data``: a polars or pandas frame, otherwise a :class:`pyarrow.Table`."""
    library = library_of(data)
    if library == "polars":
        import polars

        return polars.from_arrow(table)
    if library == "pandas":
        import pandas

        uses_arrow = any(isinstance(t, pandas.ArrowDtype) for t in data.dtypes)
        return table.to_pandas(types_mapper=pandas.ArrowDtype if uses_arrow else None)
    return table


def series_like(values: Any, result: pa.Array) -> Any:
    """A result as a series of the same library as ``values``: a polars or pandas series, otherwise an Arrow array."""
    library = library_of(values)
    if library == "polars":
        import polars

        return polars.Series(values.name, result)
    if library == "pandas":
        import pandas

        uses_arrow = isinstance(values.dtype, pandas.ArrowDtype)
        series = result.to_pandas(types_mapper=pandas.ArrowDtype) if uses_arrow else result.to_pandas()
        return series.rename(values.name)
    return result
