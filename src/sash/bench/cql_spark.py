"""Queries as text on Spark, batch, against PySpark by hand."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import sash
from sash.bench.cql_subjects import EXAMPLES, SUBJECTS, Subject, with_spark
from sash.bench.harness import Figure, Report, doing, number
from sash.bench.kafka_broker import connector, jars
from sash.bench.nexmark import BIDS
from sash.bench.spark import Bench

OVERLAP = 60
FEW = ("cm1", "cm2", "sg1")
"""The queries whose results are few beside their rows."""
MANY_ROWS, FEW_ROWS = 4_000_000, 500_000
"""With more rows, PySpark takes minutes for the others: it copies each row sixty times, for results of about as many."""
NEXMARK = {
    "q5": ("window(timestamp, '10 seconds', '2 seconds')", 1.5, 3.0),
    "q7": ("window(timestamp, '10 seconds')", 0.95, 1.0),
    "q11": ("session_window(timestamp, '10 seconds')", 0.95, 1.0),
    "q12": ("window(timestamp, '10 seconds')", 0.95, 1.0),
}


def spark_figures(report: Report, rows: dict[str, pa.Table], *, quick: bool) -> None:
    """All figures on Spark."""
    jars_of_kafka = {"spark.jars": connector()} if jars() is not None else {}  # one Java for all sessions of this process
    spark = sash.spark.session(settings={"spark.driver.memory": "8g", **jars_of_kafka})
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        bench = Bench(spark, Path(folder), report)
        for subject in SUBJECTS:
            doing(f"{subject.name} on Spark")
            few = MANY_ROWS if subject.name in FEW else FEW_ROWS
            _subject(report, bench, subject, rows[subject.stream].slice(0, 50_000 if quick else few))
        doing("bids as text")
        _nexmark(report, bench, 100_000 if quick else 4_000_000)
    spark.stop()


def _subject(report: Report, bench: Bench, subject: Subject, table: pa.Table) -> None:
    seconds = bench.spark.createDataFrame(table).withColumn("timestamp", _seconds())
    frame = bench.stored(subject.name, seconds)
    text = subject.text.replace(f"[range {subject.size} slide 1]", f"[range {OVERLAP} seconds slide 1 second]")
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: sash.sql(text, streams={subject.stream: frame}),
        "spark": partial(with_spark, subject, frame, OVERLAP),
    }
    taken = bench.timed(calls, 3)
    columns = f"unix_micros(timestamp), {''.join(f'{k}, ' for k in subject.keys)}round({subject.result}, 6)"
    digests = [list(call().selectExpr("count(*)", f"bit_xor(xxhash64({columns}))").collect()[0]) for call in calls.values()]
    if digests[0] != digests[1]:
        raise AssertionError(f"{subject.name} on Spark: the answers differ: {digests}")
    must, aim = (8, 20) if subject.name in FEW else (3, 20)
    note = f"{number(taken['ours'])} s against {number(taken['spark'])} s, {digests[0][0]:,} results"
    what = f"{subject.name} on Spark, overlap {OVERLAP}: against F.window by hand"
    report.figures.append(Figure(what, taken["spark"] / taken["ours"], must=must, aim=aim, note=note))


def _seconds() -> Any:
    from pyspark.sql import functions as F

    return F.timestamp_seconds("timestamp")


def _nexmark(report: Report, bench: Bench, rows: int) -> None:
    named = bench.spark.range(rows).selectExpr(*BIDS).withColumnRenamed("ts", "timestamp")
    bids = bench.stored("text-bids", named)
    results = {
        "q5": _q5,
        "q7": lambda grouped: grouped.selectExpr("window.end", "price", "bidder"),
        "q11": lambda grouped: grouped.selectExpr("bidder", "bid_count", "window.start", "window.end"),
        "q12": lambda grouped: grouped.selectExpr("bidder", "bid_count", "window.start", "window.end"),
    }
    for name, (window, must, aim) in NEXMARK.items():
        text = (EXAMPLES / "nexmark" / f"{name}.cql").read_text()
        if name == "q7":
            text = text.replace(", max_by(auction, price) as auction", "")
        calls: dict[str, Callable[[], Any]] = {
            "ours": lambda: sash.sql(text, bid=bids),
            "spark": lambda: results[name](_grouped(name, bids, window)),
        }
        taken = bench.timed(calls, 5)
        counts = [call().count() for call in calls.values()]
        if counts[0] != counts[1]:
            raise AssertionError(f"{name} as text: {counts[0]} results against {counts[1]}")
        note = f"{number(taken['ours'])} s against {number(taken['spark'])} s"
        report.figures.append(
            Figure(f"Nexmark's {name} as text: against plain PySpark", taken["spark"] / taken["ours"], must=must, aim=aim, note=note)
        )


def _grouped(name: str, bids: Any, window: str) -> Any:
    from pyspark.sql import functions as F

    keys = {"q5": ["auction"], "q7": [], "q11": ["bidder"], "q12": ["bidder"]}[name]
    results = {
        "q5": [F.count("*").alias("num")],
        "q7": [F.max("price").alias("price"), F.max_by("bidder", "price").alias("bidder")],
    }.get(name, [F.count("*").alias("bid_count")])
    return bids.groupBy(F.expr(window).alias("window"), *keys).agg(*results)


def _q5(grouped: Any) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    ranked = grouped.withColumn("rank", F.row_number().over(Window.partitionBy("window").orderBy(F.desc("num"), "auction")))
    return ranked.where("rank = 1").selectExpr("window.start", "window.end", "auction", "num")
