"""Run by a process of its own, as the driver of a classic session on a cluster whose executors lack sash."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import sash
from sash import functions as S
from sash import windows as W
from tests import spark_cases
from tests.connect_cases import FEW, run
from tests.own_aggregates import affine


def main() -> int:
    from pyspark.sql import SparkSession

    master, folder = sys.argv[1:3]
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false", "spark.log.level": "ERROR",
        "spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "4", "spark.ui.showConsoleProgress": "false",
    }  # fmt: skip
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    failed = lacks(spark)
    sash.spark.ship(spark)
    failed += run(spark, FEW)
    failed += survives(spark, Path(folder))
    spark.stop()
    print(f"{failed} failed", flush=True)
    return failed


def lacks(spark) -> int:
    """Before anything is shipped, the message says what to do."""
    frame = spark.createDataFrame(spark_cases.rows(20))
    try:
        sash.aggregate(frame, windows=W.session("1 second"), aggs=[S.count()], by="k", time="t").collect()
    except Exception as error:
        good = "sash needs sash on the executors" in str(error) and "sash.spark.ship(session)" in str(error)
        print("ok lacks" if good else f"FAILED lacks {error}", flush=True)
        return int(not good)
    print("FAILED lacks: no error", flush=True)
    return 1


def survives(spark, folder: Path) -> int:
    """One executor is killed in the middle of a job."""
    rows = spark.range(0, 4_000_000, 1, 16).selectExpr(
        "id", "id % 7 as k", "timestamp_micros(id * 5000) as t", "cast(pmod(xxhash64(id), 100) as bigint) as v"
    )
    rows.write.mode("overwrite").parquet(str(folder / "rows"))
    frame = spark.read.parquet(str(folder / "rows"))
    windows = {"sliding": W.sliding("1 minute", every="7 seconds"), "sessions": W.session("1 second")}

    def job():
        out = sash.aggregate(frame, windows=windows, aggs=[S.sum("v"), affine("v"), S.count()], by="k", time="t", order_by="id")
        return out.toArrow()

    wanted = sash.aggregate(frame.toArrow(), windows=windows, aggs=[S.sum("v"), affine("v"), S.count()], by="k", time="t", order_by="id")
    killed = []

    def kill():
        time.sleep(2.5)
        request = folder / "kill"
        request.write_text("now")
        while request.exists():
            time.sleep(0.05)
        killed.append(True)

    thread = threading.Thread(target=kill)
    thread.start()
    got = job()
    thread.join()
    try:
        assert killed
        spark_cases.assert_same(got.cast(wanted.schema), wanted, ["query", "k", "window"])
    except AssertionError as error:
        print(f"FAILED killed executor {error}", flush=True)
        return 1
    print("ok killed executor", flush=True)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
    sys.exit(main())
