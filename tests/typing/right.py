"""What a user writes, under ``mypy --strict``; each ``reveal_type`` is followed by what it must print."""

from datetime import timedelta

import numpy as np
import polars as pl
import pyspark.sql

import sash
from sash import functions as S
from sash import windows as W


def tables(frame: pl.DataFrame, spark_frame: pyspark.sql.DataFrame) -> None:
    reveal_type(sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs=S.sum("v"), time="t"))  # polars.dataframe.frame.DataFrame
    reveal_type(sash.aggregate(spark_frame, windows=W.tumbling("1 hour"), aggs=[S.sum("v")], time="t"))  # pyspark.sql.*DataFrame
    reveal_type(sash.over(frame, windows=W.trailing("1 hour"), aggs=[S.sum("v"), S.count()], time="t", by="k"))  # polars.*DataFrame
    several: dict[str, W.Window] = {"hour": W.sliding("1 hour", every=timedelta(minutes=1)), "rows": W.rows(10)}
    sash.aggregate(frame, windows=several, aggs=[S.sum("v").alias("total").where("v > 0")], time="t", by=["k", "v % 2 as odd"])
    sash.aggregate(
        spark_frame, windows=several, aggs=S.count(), time=sash.processing_time(), emit="update", watermark="1 minute", buckets=4
    )
    reveal_type(sash.explain(frame, windows=several, aggs=S.count(), time="t"))  # sash.api.explain.Explanation


def arrays(values: np.ndarray[tuple[int], np.dtype[np.float64]], series: pl.Series) -> None:
    reveal_type(sash.rolling(values, 10, agg="max"))  # numpy.ndarray[*]
    reveal_type(sash.rolling(series, 10, every=5, agg=S.percentile(q=0.95)))  # polars.series.series.Series
    reveal_type(sash.explain(values, 10, agg=S.sum, source=True))  # sash.api.explain.Explanation


def streams() -> None:
    op = sash.Operator(windows={"w": W.session("10 seconds")}, aggs=[S.first("v")], time="t", emit="running", lateness="1 minute")
    op.add([{"t": 1, "v": 2}])
    op.add_query("other", W.tumbling(10))
    restored: sash.Operator = sash.Operator.restore(op.snapshot())
    restored.close()
