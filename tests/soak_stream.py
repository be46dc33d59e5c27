"""A stream that runs long: ``python -m tests.soak_stream SECONDS``; its memory, state and batch time must stay flat."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import sash
from sash import functions as S
from sash import windows as W

WINDOWS = {"sliding": W.sliding("10 minutes", every="10 seconds"), "session": W.session("3 seconds"), "rows": W.rows(20, every=10)}


def resident() -> int:
    """The largest Python worker's resident size, in KiB."""
    found = [0]
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if b".daemon" in (status.parent / "cmdline").read_bytes():
                found += [int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS")]
    return max(found)


def main(seconds: float) -> None:
    settings = {
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.streaming.numRecentProgressUpdates": 10,
        "spark.sql.streaming.minBatchesToRetain": 5,
    }
    spark = sash.spark.session(2, settings)
    with tempfile.TemporaryDirectory(prefix="sash-soak-") as home:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20_000).option("numPartitions", 2)
        made = source.option("startTimestamp", 1_700_000_000_000).option("advanceMillisPerBatch", 15_000).load()
        rows = made.selectExpr(
            # keys that come and go, so fast that they are forgotten several times
            "pmod(xxhash64(value), 500) + floor(value / 200000) * 100 as k",
            "timestamp_millis(unix_millis(timestamp) + pmod(value, 20000) * 15000 div 20000) as t", "value % 1000 as v",
        )  # fmt: skip
        request = {"by": "k", "time": "t", "watermark": "5 seconds", "idle": "10 minutes", "buckets": 4}
        frame = sash.aggregate(rows, windows=WINDOWS, aggs=[S.sum("v"), S.max("v"), S.count()], **request)
        query = frame.writeStream.format("noop").option("checkpointLocation", f"{home}/state").trigger(processingTime="0 seconds").start()
        lines, end = [], time.monotonic() + seconds
        while time.monotonic() < end and query.isActive:
            time.sleep(min(10, seconds / 30))
            told = sash.spark.progress(query)
            if told:
                last, spent = told[-1], float(np.median([p["seconds"] for p in told]))
                lines.append((resident(), last["slices"] + last["kept_rows"], spent, last["keys"]))
                print(json.dumps({"batch": last["batch"], "KiB, held, seconds, keys": lines[-1]}), flush=True)
        assert query.isActive, query.exception()
        query.stop()
    spark.stop()
    third = len(lines) // 3
    middle, late = np.array(lines[third : 2 * third]), np.array(lines[2 * third :])
    for k, name in enumerate(("resident size", "slices and rows held", "seconds a batch", "keys")):
        before, after = np.median(middle[:, k]), np.median(late[:, k])
        print(f"{name}: {before:,.2f} in the middle third, {after:,.2f} in the last")
        assert after <= 1.3 * before, f"{name} grows"


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1800)
