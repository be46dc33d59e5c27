"""Run by a process of its own, because a process is either classic or Connect: cases on a Connect session, one line for each."""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
import traceback
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sash
from sash import functions as S
from sash import windows as W
from tests import spark_cases
from tests.own_aggregates import mean
from tests.own_windows import Faulty

NAMES = (
    "common, sliding",
    "common, tumbling",
    "common, session",
    "common, rows",
    "common, own, context aware",
    "others, sliding",
    "others, session",
    "others, own, context free",
    "ordered, sliding",
    "ordered, punctuation",
    "ordered, last rows",
    "two keys, rows",
    "a key with a dot",
    "all at once",
    "empty windows",
)


FEW = ("common, sliding", "others, session", "ordered, sliding", "common, own, context aware")


def checks(spark, names):
    """Names and functions."""
    table = spark_cases.rows()
    frame = spark.createDataFrame(table)
    cases = spark_cases.cases()
    for name in names:
        yield name, lambda name=name: spark_cases.compare(frame, table, *cases[name])
    yield "over", lambda: spark_cases.compare_over(frame, table, spark_cases.TRAILING, spark_cases.COMMON, {"order_by": "id"})
    yield "over, in order", lambda: spark_cases.compare_over(frame, table, W.trailing_rows(3), spark_cases.ORDERED, {"order_by": "id"})
    yield "explain", lambda: _explained(frame)
    yield "a user's error", lambda: _named(frame)
    yield "a view", lambda: _view(spark, frame, table)
    yield "a stream", lambda: _stream(spark, table)


def _explained(frame):
    text = str(sash.explain(frame, windows=W.sliding("1 minute", every="1 second"), aggs=[S.sum("v")], by="k", time="t"))
    assert "plan: catalyst" in text, text


def _named(frame):
    with pytest.raises(Exception, match=r"notify \(own_windows.py, line"):
        sash.aggregate(frame, windows=Faulty("i", 3), aggs=[S.count()], by="k", time="t").collect()


def _view(spark, frame, table):
    out = sash.aggregate(frame, windows=W.tumbling("1 minute"), aggs=[mean("v").alias("m")], by="k", time="t")
    out.createOrReplaceTempView("minutes")
    wanted = sash.aggregate(table, windows=W.tumbling("1 minute"), aggs=[mean("v").alias("m")], by="k", time="t")
    assert spark.sql("select count(*) n from minutes").collect()[0].n == pa.table(wanted).num_rows


def _stream(spark, table):
    """Files through the operator behind the state store, with an aggregate of ours and one of a user's."""
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
    moved = pa.array([None if v is None else v + 10**15 for v in table["t"].cast(pa.int64()).to_pylist()], pa.int64())
    table = table.set_column(table.column_names.index("t"), "t", moved.cast(pa.timestamp("us", "UTC"))).sort_by("t")
    windows = {"w": W.sliding("10 seconds", every="3 seconds"), "s": W.session("2 seconds")}
    aggs = [S.sum("v").alias("sum"), mean("v").alias("mean"), S.count().alias("n")]
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "in").mkdir()
        for n in range(3):
            pq.write_table(table.select(["k", "t", "v"]).slice(200 * n, 200), f"{home}/in/{n}.parquet")
            os.utime(f"{home}/in/{n}.parquet", (n + 1, n + 1))
        source = spark.readStream.schema("k string, t timestamp, v bigint").option("maxFilesPerTrigger", 1).parquet(f"{home}/in")
        frame = sash.aggregate(source, windows=windows, aggs=aggs, by="k", time="t", watermark="20 seconds", buckets=2)
        writer = frame.writeStream.format("parquet").option("path", f"{home}/out").option("checkpointLocation", f"{home}/state")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        told = sash.spark.progress(query)
        assert sum(p["rows"] for p in told) == 600 - table["t"].null_count, told
        got = spark.read.parquet(f"{home}/out").toArrow()
    op = sash.Operator(windows=windows, aggs=aggs, by="k", time="t")
    op.add(table.select(["k", "t", "v"]))
    wanted = op.advance(pc.max(table["t"]).as_py() - datetime.timedelta(seconds=20))
    spark_cases.assert_same(got.cast(wanted.schema), wanted, ["query", "k", "window"])


def run(spark, names=NAMES) -> int:
    """How many failed."""
    failed = 0
    for name, check in checks(spark, names):
        try:
            check()
            print("ok", name, flush=True)
        except Exception:
            failed += 1
            print("FAILED", name, traceback.format_exc(limit=-3), flush=True)
    return failed


def main() -> int:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(sys.argv[1]).config("spark.sql.shuffle.partitions", "3")
    spark = builder.getOrCreate()
    if "--ship" in sys.argv:
        sash.spark.ship(spark)
    failed = run(spark, FEW if "--few" in sys.argv else NAMES)
    print(f"{failed} failed", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
