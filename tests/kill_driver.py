"""A streaming driver that a test kills: ``python -m tests.kill_driver HOME [MASTER]``; it ends when all files are done."""

from __future__ import annotations

import sys
from pathlib import Path

import sash
from sash import functions as S
from sash import windows as W

WINDOWS = {
    "sliding": W.sliding("20 seconds", every="3 seconds"),
    "session": W.session("2 seconds"),
    "rows": W.rows(5, every=3),
    "punctuation": W.punctuation("flag"),
}
AGGS = [S.sum("v").alias("total"), S.count().alias("n"), S.last("v").alias("last"), S.median("v").alias("middle")]
PLAIN = {name: WINDOWS[name] for name in ("sliding", "session")}
PLAIN_AGGS = AGGS[:2]
REQUEST = {"by": "k", "time": "t", "order_by": "id"}
TEXT = """select window.end, max(total) as highest, count(*) as keys
          from (select k, sum(v) as total from S [range 20 seconds slide 5 seconds] group by k)"""
"""A query that is not one call of ``sash.aggregate``: its state is that of a query's steps."""


def session(home: Path, master: str | None):
    settings = {"spark.sql.shuffle.partitions": 2, "spark.local.dir": str(home / "tmp"), "spark.sql.warehouse.dir": str(home / "warehouse")}
    if master is not None:
        settings |= {"spark.master": master, "spark.executor.memory": "1g", "spark.task.maxFailures": 8}
    return sash.spark.session(2, settings)


def started(frame, home: Path, name: str):
    writer = frame.writeStream.format("parquet").option("path", str(home / name))
    return writer.option("checkpointLocation", str(home / f"{name}-state")).trigger(availableNow=True).start()


def main(home: Path, master: str | None) -> None:
    spark = session(home, master)
    source = spark.readStream.schema("k long, t timestamp, v long, flag boolean, id long").option("maxFilesPerTrigger", 1)
    queries = []
    for name, windows, aggs in (("all", WINDOWS, AGGS), ("plain", PLAIN, PLAIN_AGGS)):
        frame = sash.aggregate(source.parquet(str(home / "in")), windows=windows, aggs=aggs, watermark="4 seconds", buckets=3, **REQUEST)
        queries.append(started(frame, home, name))
    text = sash.sql(TEXT, S=source.parquet(str(home / "in")), time="t", watermark="4 seconds")
    queries.append(started(text, home, "text"))
    (home / "started").touch()
    for query in queries:
        query.awaitTermination()
    (home / "finished").touch()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
