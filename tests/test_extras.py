"""Each extra alone in a fresh environment, with the wheel, as a new user has it: its first example runs, a batch and a stream."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from sash.errors import SashError
from sash.spark import needs

ROOT = Path(__file__).resolve().parent.parent

CORE = """
import sash, pyarrow as pa, numpy as np
from sash import functions as S, windows as W
assert sash.rolling(np.array([3, 1, 2]), 2, agg="max").tolist() == [3, 2]
table = pa.table({"t": [1, 2, 11], "v": [1, 2, 3]})
out = sash.aggregate(table, windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t", by="v % 2 as odd")
assert sorted(out["s"].to_pylist()) == [1, 2, 3]
op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t", watermark=0)
assert op.add(table).to_pylist() == [{"query": "window", "window": {"start": 0, "end": 10}, "s": 3}]
"""
SPARK = """
import sys, tempfile, datetime
import sash
from sash import functions as S, windows as W
spark = {session}
rows = [(datetime.datetime(2026, 1, 1, 0, 0, n), n) for n in range(30)]
frame = spark.createDataFrame(rows, "ts timestamp, v long")
out = sash.aggregate(frame, windows=W.sliding("10 seconds", every="5 seconds"), aggs=[S.sum("v").alias("s")], time="ts")
assert out.count() == 7, out.count()
with tempfile.TemporaryDirectory() as place:
    frame.coalesce(1).write.parquet(place + "/in")
    stream = spark.readStream.schema(frame.schema).parquet(place + "/in")
    stream = sash.aggregate(stream, windows=W.tumbling("10 seconds"), aggs=[S.max("v").alias("m")], time="ts", watermark="0 seconds")
    writer = stream.writeStream.format("memory").queryName("out").option("checkpointLocation", place + "/c")
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(r.m for r in spark.table("out").collect()) == [9, 19], spark.table("out").collect()
spark.stop()
"""
SESSION = "sash.spark.session(2, {'spark.sql.shuffle.partitions': 2})"
CONNECT = """(
    __import__("pyspark.sql", fromlist=["SparkSession"]).SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.streaming.stateStore.providerClass", "{}").getOrCreate()
)""".format("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
EXAMPLES = {"": CORE, "spark": CORE + SPARK.format(session=SESSION), "connect": CORE + SPARK.format(session=CONNECT)}
COMMAND = """
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "sash", "--help"], capture_output=True, text=True)
assert done.returncode == {code} and "{words}" in done.stdout + done.stderr, (done.returncode, done.stdout, done.stderr)
"""
EXAMPLES[""] += """
try:
    sash.spark.session(1)
except sash.errors.MissingPackage as error:
    assert "pip install 'sash[spark]'" in str(error), error
else:
    raise AssertionError("there is no Spark here")
"""
EXAMPLES[""] += COMMAND.format(code=1, words="pip install 'sash[cli]'")
EXAMPLES["cli"] = CORE + COMMAND.format(code=0, words="bench")
EXAMPLES[""] += """
try:
    sash.rolling(np.arange(9), 3, device="opencl")
except sash.errors.DeviceUnavailable as error:
    assert 'pip install "sash[opencl]"' in str(error), error
else:
    raise AssertionError("there is no pyopencl here")
"""
EXAMPLES["opencl"] = (
    CORE
    + """
found = [d.name for d in sash.devices() if d.self_test == "passed"]
try:
    assert sash.rolling(np.array([3, 1, 2]), 2, agg="max", device="opencl").tolist() == [3, 2]
except sash.errors.DeviceUnavailable as error:
    assert not found and "driver" in str(error), error
"""
)
EXAMPLES["testing"] = CORE + "from sash.testing import check_laws\ncheck_laws(S.max)\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
        ROOT,
    ]
    subprocess.run(command, check=True, cwd=folder)
    (found,) = folder.glob("sash-*.whl")
    return found


def locks(folder):
    """All pinned versions as constraints; what a constraints file refers to with -r would be installed."""
    lines = [line for file in sorted((ROOT / "requirements").glob("*.txt")) for line in file.read_text().splitlines()]
    path = folder / "constraints.txt"
    path.write_text("\n".join(line for line in lines if line and not line.startswith(("#", "-r"))))
    return path


@pytest.mark.parametrize("extra", EXAMPLES)
def test_an_extra_alone(extra, wheel, tmp_path):
    venv.create(tmp_path / "env")
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-compile", "-c", locks(tmp_path), f"{wheel}[{extra}]" if extra else wheel]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode and any(sign in done.stderr for sign in ("No matching distribution", "Failed to establish", "Temporary failure")):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHON", "SPARK"))}
    environment["SASH_CACHE"] = str(tmp_path / "cache")
    environment["PATH"] = os.pathsep.join([str(python.parent), environment["PATH"]])  # as an activated environment has it
    run = subprocess.run([python, "-c", EXAMPLES[extra]], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr[-4000:]


def test_what_is_missing_is_named(monkeypatch):
    needs.check(needs.STREAM, "a stream on Spark")
    monkeypatch.setattr(needs, "_is_installed", lambda module: module != "google.protobuf")
    needs.check(needs.BATCH, "a batch on Spark")
    with pytest.raises(SashError, match=r"a stream on Spark needs protobuf, which is not installed here: pip install 'sash\[spark\]'"):
        needs.check(needs.STREAM, "a stream on Spark")
