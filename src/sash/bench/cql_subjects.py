"""SABER's application queries as people would write them for the peers: DuckDB in its best way, polars, and PySpark by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

INSTALLED, CHECKOUT = Path(__file__).parents[1] / "examples", Path(__file__).parents[3] / "examples"
EXAMPLES = INSTALLED if INSTALLED.exists() else CHECKOUT
"""The shipped queries."""
SEGMENT = "position // 5280"


@dataclass(frozen=True)
class Subject:
    """One query: an aggregate of a value by keys, over the last ``size`` seconds, every second."""

    name: str
    stream: str
    keys: tuple[str, ...]
    size: int
    aggregate: str
    """``sum``, ``avg`` or ``distinct``."""
    value: str
    result: str
    where: str | None = None
    below: float | None = None
    """HAVING: results below it."""

    @property
    def text(self) -> str:
        """The query as it is shipped in ``examples/``."""
        return (EXAMPLES / "saber" / f"{self.name}.cql").read_text()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its results."""
        return ("timestamp", *self.keys, self.result)


SUBJECTS = (
    Subject("cm1", "TaskEvents", ("category",), 60, "sum", "cpu", "totalCpu"),
    Subject("cm2", "TaskEvents", ("jobId",), 60, "avg", "cpu", "avgCpu", where="eventType = 1"),
    Subject("sg1", "SmartGridStr", (), 3600, "avg", "value", "globalAvgLoad"),
    Subject("sg2", "SmartGridStr", ("plug", "household", "house"), 3600, "avg", "value", "localAvgLoad"),
    Subject("lrb3", "PosSpeedStr", ("highway", "direction", "segment"), 300, "avg", "speed", "avgSpeed", below=40.0),
    Subject("lrb4", "PosSpeedStr", ("highway", "direction", "segment"), 30, "distinct", "vehicle", "numVehicles"),
)


def columns_of(subject: Subject, divided: str) -> str:
    """The keys as SQL; ``divided`` is the segment."""
    return ", ".join(f"{divided} as segment" if k == "segment" else k for k in subject.keys)


def with_duckdb(subject: Subject, source: pa.Table, connection: Any) -> pa.Table:
    """Slices of a second, then a frame over a grid of keys and seconds: no row is repeated for each of its windows."""
    keys = "".join(f"{k}, " for k in subject.keys)
    read = columns_of(subject, SEGMENT)
    where = f"where {subject.where}" if subject.where else ""
    comma = ", " if read else ""
    connection.register("source", source)
    partition = f"partition by {', '.join(subject.keys)}" if subject.keys else ""
    if subject.aggregate == "distinct":  # a vehicle enters when it was not seen for a window, and leaves a window after it was seen last
        of_vehicle = f"partition by {keys}{subject.value} order by timestamp"
        slices = f"""
            seen as (select distinct timestamp, {read}, {subject.value} from source),
            moves as (select {keys}timestamp as t, 1 as n from seen
                      qualify coalesce(timestamp - lag(timestamp) over ({of_vehicle}) > {subject.size - 1}, true)
                      union all select {keys}timestamp + {subject.size}, -1 from seen
                      qualify coalesce(lead(timestamp) over ({of_vehicle}) - timestamp > {subject.size - 1}, true)),
            slices as (select {keys}t, sum(n) as n from moves group by all)"""
        frame = f"over ({partition} order by t rows unbounded preceding)"
        value, present = f"sum(n) {frame}", f"sum(n) {frame} > 0"
    else:
        slices = f"""
            slices as (select {read}{comma}timestamp as t, sum({subject.value}::double) as s, count(*) as n
                       from source {where} group by all)"""
        frame = f"over ({partition} order by t rows between {subject.size - 1} preceding and current row)"
        value = f"sum(s) {frame}" if subject.aggregate == "sum" else f"sum(s) {frame} / sum(n) {frame}"
        present = f"sum(n) {frame} > 0"
    grid = f"(select distinct {keys[:-2]} from slices) k," if keys else ""
    using = f"using ({keys}t)"
    having = f"where {subject.result} < {subject.below}" if subject.below is not None else ""
    return connection.sql(
        f"""
        with {slices},
        seconds as (select t from generate_series((select min(t) from slices), (select max(t) + {subject.size} from slices)) g(t)),
        grid as (from {grid} seconds),
        results as (select t as timestamp, {keys}{value} as {subject.result} from grid left join slices {using} qualify {present})
        from results {having}
        """
    ).to_arrow_table()


def with_polars(subject: Subject, frame: pl.DataFrame) -> pl.DataFrame:
    """polars leaves out the windows that start before the first row."""
    value = pl.col(subject.value)
    result = {"sum": value.cast(pl.Float64).sum(), "avg": value.cast(pl.Float64).mean(), "distinct": value.n_unique()}[subject.aggregate]
    if subject.where:
        frame = frame.filter(pl.col("eventType") == 1)
    if "segment" in subject.keys:
        frame = frame.with_columns((pl.col("position") // 5280).alias("segment"))
    grouped = frame.group_by_dynamic("timestamp", every="1i", period=f"{subject.size}i", group_by=list(subject.keys) or None)
    out = grouped.agg(result.alias(subject.result))
    return out.filter(pl.col(subject.result) < subject.below) if subject.below is not None else out


def for_polars(subject: Subject, table: pa.Table) -> pl.DataFrame:
    """The columns that polars reads, marked as sorted by time, which they are."""
    names = {"timestamp", subject.value, *subject.keys, *(["eventType"] if subject.where else [])}
    names |= {"position"} if "segment" in names else set()
    frame = pl.from_arrow(table.select([n for n in table.column_names if n in names]))
    assert isinstance(frame, pl.DataFrame)
    return frame.set_sorted("timestamp")


def with_spark(subject: Subject, frame: Any, size: int) -> Any:
    """``F.window`` by hand."""
    from pyspark.sql import functions as F

    divided = frame.withColumn("segment", F.expr("position div 5280")) if "segment" in subject.keys else frame
    if subject.where:
        divided = divided.where(subject.where)
    result = {"sum": F.sum(subject.value), "avg": F.avg(subject.value), "distinct": F.count_distinct(subject.value)}[subject.aggregate]
    grouped = divided.groupBy(F.window("timestamp", f"{size} seconds", "1 second"), *subject.keys).agg(result.alias(subject.result))
    grouped = grouped.where(F.col(subject.result) < subject.below) if subject.below is not None else grouped
    time = F.expr("timestamp_micros(unix_micros(window.end) - 1)").alias("timestamp")
    return grouped.select(time, *subject.keys, subject.result)
