"""Kafka to Kafka on Spark, JSON: the same job with ``sash.sql``, with ``F.window``, and without windows."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import sash
from sash.bench.harness import Figure, Report, doing, number
from sash.bench.kafka_broker import Broker, connector, jars

SLIDES = (6, 60, 600)
MUST = {6: (1.0, None), 60: (1.5, None), 600: (10.0, None)}
KEYS = 100
PER_BATCH = 150_000


def kafka_figures(report: Report, *, quick: bool) -> None:
    """Rows per second of micro-batches, in steady state."""
    if jars() is None:
        doing("Kafka is left out: make kafka fetches its jars")
        return
    batches = 3 if quick else 8
    spark = sash.spark.session(settings={"spark.jars": connector(), "spark.driver.memory": "6g"})
    try:
        with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder, Broker(Path(folder) / "broker") as broker:
            doing("filling a topic")
            broker.create("bids", 2)
            broker.send("bids", _messages(PER_BATCH * batches))
            jobs = Jobs(spark, broker, Path(folder))
            rates: dict[str, float] = {"pass through": jobs.rate("pass", jobs.rows().selectExpr("to_json(struct(*)) as value"))}
            for slides in SLIDES:
                doing(f"Kafka to Kafka, {slides} slides")
                rates[f"sash {slides}"] = jobs.rate(f"sash-{slides}", jobs.ours(slides))
                limited = 2 if slides == 600 else batches
                rates[f"F.window {slides}"] = jobs.rate(
                    f"spark-{slides}", jobs.theirs(slides), limited, rows=PER_BATCH // (10 if slides == 600 else 1)
                )
    finally:
        spark.stop()
    lines = [[name, number(rate / 1e3)] for name, rate in rates.items()]
    report.tables.append(("Kafka to Kafka, JSON, micro-batches of 150,000 rows", ["job", "k rows/s"], lines))
    for slides in SLIDES:
        must, aim = MUST[slides]
        note = f"{number(rates[f'sash {slides}'] / 1e3)} k rows/s; a pass through has {number(rates['pass through'] / 1e3)}"
        ratio = rates[f"sash {slides}"] / rates[f"F.window {slides}"]
        report.figures.append(Figure(f"Kafka to Kafka, {slides} slides: rows/s against F.window", ratio, must=must, aim=aim, note=note))


def _messages(rows: int) -> Any:
    rng = np.random.default_rng(9)
    keys, values = rng.integers(0, KEYS, rows).tolist(), rng.integers(0, 1000, rows).tolist()
    for n, (k, v) in enumerate(zip(keys, values, strict=True)):
        yield json.dumps({"timestamp": 1_700_000_000 + n / 10_000, "k": k, "v": v})


class Jobs:
    """The jobs over one topic."""

    def __init__(self, spark: Any, broker: Broker, folder: Path) -> None:
        self.spark, self.broker, self.folder = spark, broker, folder

    def rows(self, per_batch: int = PER_BATCH) -> Any:
        from pyspark.sql import functions as F

        options = {
            "kafka.bootstrap.servers": self.broker.servers,
            "subscribe": "bids",
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": per_batch,
        }
        text = self.spark.readStream.format("kafka").options(**options).load().selectExpr("cast(value as string) as value")
        parsed = text.select(F.from_json("value", "timestamp double, k long, v long").alias("row"))
        return parsed.selectExpr("timestamp_millis(cast(row.timestamp * 1000 as bigint)) as timestamp", "row.k", "row.v")

    def ours(self, slides: int) -> Any:
        text = f"select window.end, k, sum(v) as s, count(*) as n from S [range {slides} seconds slide 1 second] group by k"
        return sash.sql(text, S=self.rows(), watermark="1 second").selectExpr("cast(k as string) as key", "to_json(struct(*)) as value")

    def theirs(self, slides: int) -> Any:
        from pyspark.sql import functions as F

        rows = self.rows(PER_BATCH // (10 if slides == 600 else 1)).withWatermark("timestamp", "1 second")
        grouped = rows.groupBy(F.window("timestamp", f"{slides} seconds", "1 second"), "k").agg(
            F.sum("v").alias("s"), F.count("*").alias("n")
        )
        return grouped.selectExpr("cast(k as string) as key", "to_json(struct(window.end, k, s, n)) as value")

    def rate(self, name: str, frame: Any, batches: int | None = None, rows: int = PER_BATCH) -> float:
        """The median rows per second of the micro-batches after the first."""
        self.broker.create(f"out-{name}", 2)
        writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", self.broker.servers).option("topic", f"out-{name}")
        writer = writer.option("checkpointLocation", str(self.folder / name)).outputMode("append")
        query = writer.trigger(availableNow=True).start() if batches is None else writer.start()
        while query.isActive and (batches is None or _done(query) < batches + 1):
            time.sleep(0.2)
        taken = [p.batchDuration / 1000 for p in query.recentProgress if p.numInputRows >= rows * 0.9]
        query.stop()
        return float(rows / statistics.median(taken[1:] or taken))


def _done(query: Any) -> int:
    return sum(p.numInputRows > 0 for p in query.recentProgress)
