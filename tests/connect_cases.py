"""Run by a process of its own, because a process is either classic or Connect: cases on a Connect session, one line for each."""

from __future__ import annotations

import sys
import traceback

import pyarrow as pa
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
