"""Exactly once: drivers, executors and Python workers that are killed at random moments, and the results are those of one process."""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sash
from tests.cluster import ROOT, Cluster
from tests.kill_driver import AGGS, PLAIN, PLAIN_AGGS, REQUEST, TEXT, WINDOWS
from tests.spark_cases import assert_same

pytestmark = pytest.mark.xdist_group("cluster")

FEW = 5
KILLS = int(os.environ.get("SASH_KILLS", str(FEW)))
FILES = int(os.environ.get("SASH_KILL_FILES", str(2 * KILLS)))


def written(home: Path, files: int) -> pa.Table:
    """Rows a little out of order, in files that arrive one after the other."""
    (home / "in").mkdir()
    rng = np.random.default_rng(7)
    tables = []
    for n in range(files):
        ticks = 1_700_000_000_000 + n * 5_000 + rng.integers(-3_000, 5_000, 60)
        table = pa.table({
            "k": rng.integers(0, 7, 60), "t": pa.array(ticks * 1000, pa.timestamp("us", "UTC")), "v": rng.integers(-99, 99, 60),
            "flag": pa.array(rng.random(60) < 0.1), "id": np.arange(60) + 60 * n,
        })  # fmt: skip
        pq.write_table(table, home / "in" / f"{n:05d}.parquet")
        os.utime(home / "in" / f"{n:05d}.parquet", (n + 1, n + 1))
        tables.append(table)
    return pa.concat_tables(tables)


def check(home: Path, table: pa.Table, spark) -> None:
    """All windows that the last watermark has passed, each once."""
    for name, windows, aggs in (("all", WINDOWS, AGGS), ("plain", PLAIN, PLAIN_AGGS)):
        op = sash.Operator(windows=windows, aggs=aggs, **REQUEST)
        op.add(table)
        wanted = op.advance(pc.max(table["t"]).as_py() - datetime.timedelta(seconds=4))
        got = spark.read.parquet(str(home / name)).toArrow().select(wanted.column_names).cast(wanted.schema)
        assert_same(got, wanted, [n for n in ("query", "k", "window", "rows") if n in wanted.column_names])
    wanted = sash.sql(TEXT, S=table, time="t")
    wanted = wanted.filter(pc.less(wanted["end"], pc.max(table["t"]).as_py() - datetime.timedelta(seconds=4)))
    got = spark.read.parquet(str(home / "text")).toArrow().select(wanted.column_names).cast(wanted.schema)
    assert_same(got, wanted, ["end"])


def start(home: Path, environment, *more: str) -> subprocess.Popen:
    with (home / "driver.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.kill_driver", str(home), *more]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment, start_new_session=True)


def test_a_driver_that_is_killed_again_and_again(tmp_path, spark):
    table = written(tmp_path, FILES)
    rng = random.Random(int(os.environ.get("SASH_SEED", "1")))
    killed = amid = 0
    while not (tmp_path / "finished").exists():
        (tmp_path / "started").unlink(missing_ok=True)
        before = committed(tmp_path)
        driver = start(tmp_path, os.environ)
        while driver.poll() is None and not (tmp_path / "started").exists():
            time.sleep(0.1)
        # One in three dies early, perhaps before its first micro-batch; the others at any point of a later one.
        batches = 0 if killed % 3 == 0 else rng.randint(1, 2)
        while driver.poll() is None and (killed >= KILLS or committed(tmp_path) < before + batches):
            time.sleep(0.02)
        moment = time.monotonic() + rng.uniform(0, 1 if batches else 4)
        while driver.poll() is None and time.monotonic() < moment:
            time.sleep(0.02)
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)  # the driver's Python, its JVM and their workers
            driver.wait()
            killed += 1
            amid += batches > 0 and committed(tmp_path) > before
        else:
            assert driver.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    assert killed == KILLS or (KILLS == FEW and killed > FEW // 2)  # a quick machine may be done with few files before the last one
    assert amid >= killed // 2 - 1
    check(tmp_path, table, spark)


def committed(home: Path) -> int:
    """How many micro-batches all streams have done."""
    done = 0
    for name in ("all", "plain", "text"):  # Spark removes old ones, so they are not counted
        done += max((int(path.name) + 1 for path in (home / f"{name}-state" / "commits").glob("[0-9]*")), default=0)
    return done


def descendants(pid: int, *, named: bytes) -> list[int]:
    """The processes below one whose command line has a text in it."""
    parents: dict[int, int] = {}
    lines: dict[int, bytes] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
            lines[int(status.parent.name)] = (status.parent / "cmdline").read_bytes()
    found = []
    for child in parents:
        at = child
        while at in parents and at != pid:
            at = parents[at]
        if at == pid and named in lines.get(child, b""):
            found.append(child)
    return found


def test_executors_and_python_workers_that_are_killed_alone(tmp_path, spark):
    table = written(tmp_path, 12)
    rng = random.Random(int(os.environ.get("SASH_SEED", "1")))
    with Cluster(tmp_path) as cluster:
        environment = {**cluster.environment(), "PYSPARK_PYTHON": sys.executable}
        driver = start(tmp_path, environment, cluster.master)
        while driver.poll() is None and not (tmp_path / "started").exists():
            time.sleep(0.1)
        killed = {"executor": 0, "worker": 0}
        while driver.poll() is None:
            time.sleep(rng.uniform(1.5, 4))
            what = "executor" if killed["executor"] < 2 and rng.random() < 0.5 else "worker"
            if sum(killed.values()) >= 5:
                continue
            if what == "executor":
                victims = cluster.executors()
            else:
                victims = [v for w in cluster.workers for v in descendants(w.pid, named=b".daemon")]
            if victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(victims), signal.SIGKILL)
                    killed[what] += 1
        assert driver.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
        assert sum(killed.values()) >= 3
        check(tmp_path, table, spark)
