"""``sash demo stream``: files arrive, twenty queries run over them as one stream, the driver is killed and started again, nothing is lost.

The stream runs in a process of its own (``python -m sash.demo.streaming FOLDER``), so that it can be killed.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.box import SIMPLE
from rich.console import Console
from rich.live import Live
from rich.table import Table

import sash
from sash import functions as S
from sash import windows as W

LENGTHS = {
    "10 s": 10,
    "30 s": 30,
    "1 min": 60,
    "2 min": 120,
    "5 min": 300,
    "10 min": 600,
    "15 min": 900,
    "20 min": 1200,
    "30 min": 1800,
    "1 h": 3600,
}
WINDOWS = {f"{name}, tumbling": W.tumbling(f"{n} seconds") for name, n in LENGTHS.items()} | {
    f"{name}, every 10 s": W.sliding(f"{n} seconds", every="10 seconds") for name, n in LENGTHS.items()
}
AGGREGATES = [S.avg("cpu").alias("avgCpu"), S.max("cpu").alias("maxCpu"), S.count().alias("events")]
REQUEST: dict[str, Any] = {"windows": WINDOWS, "aggs": AGGREGATES, "by": "category", "time": "timestamp"}
FILES, SECONDS = 26, 300
"""Files that arrive, and the event time that each spans."""
START = 1_300_000_200


def table_of(number: int, rows: int) -> pa.Table:
    """The events of one file, some of them a little late."""
    rng = np.random.default_rng(number)
    at = START + number * SECONDS + rng.uniform(-8, SECONDS, rows)
    category = rng.integers(0, 8, rows)
    cpu = 0.35 + 0.2 * np.sin(at / 700 + category) + 0.3 * rng.random(rows)
    times = pa.array((at * 1e6).astype(np.int64), pa.timestamp("us", "UTC"))
    return pa.table({"timestamp": times, "category": pa.array(category, pa.int32()), "cpu": cpu})


def run(rows: int, folder: Path) -> None:
    """The demo on its own."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="sash-demo-") as place:
        spark = sash.spark.session(settings={"spark.local.dir": place})
        try:
            show(console, spark, Path(place), rows, folder)
        finally:
            spark.stop()


def show(console: Console, spark: Any, home: Path, rows: int, folder: Path) -> None:
    """Files arrive while a stream runs; it is killed once; then it is compared with a batch over the same files."""
    rows_each = rows // FILES
    console.print(
        f"\n[bold]A stream[/bold]: {FILES} files of {rows_each:,} events arrive, one after the other; {len(WINDOWS)} queries, from 10 "
        "seconds to an hour,\ntumbling and sliding by 10 seconds, share one set of slices in Spark's state store. "
        "The driver is killed once on the way."
    )
    inbox = home / "arriving"
    inbox.mkdir()
    driver = start(home)
    arrived, killed, status = 0, False, "starting Spark"
    due = 0.0
    try:
        with Live(console=console, refresh_per_second=4, transient=False) as live:
            while not (home / "done").exists():
                state = _read(home / "progress.json")
                if arrived < FILES and state and time.monotonic() >= due:
                    _arrive(inbox, arrived, rows_each)
                    arrived, due = arrived + 1, time.monotonic() + 0.6
                    if arrived == FILES:
                        (home / "all").touch()
                if state:
                    status = "running" + (", after the kill" if killed else "")
                if not killed and state and state["batches"] >= 6:
                    os.killpg(driver.pid, signal.SIGKILL)
                    driver.wait()
                    (home / "progress.json").unlink(missing_ok=True)
                    killed, status = True, "[bold red]killed[/bold red] (SIGKILL), started again from its checkpoint"
                    live.update(_picture(state, arrived, status))
                    driver = start(home)
                if driver.poll() not in (None, 0):
                    raise RuntimeError((home / "driver.log").read_text()[-2000:])
                live.update(_picture(state, arrived, status))
                time.sleep(0.25)
            final = _picture(_read(home / "progress.json"), arrived, "all files done")
            live.update(final)
        driver.wait()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    _compare(console, spark, home)
    console.print(f"The last table as a picture: {_saved(final, folder)}")


def start(home: Path) -> subprocess.Popen[bytes]:
    """Start the stream's driver process."""
    with (home / "driver.log").open("ab") as log:
        command = [sys.executable, "-m", "sash.demo.streaming", str(home)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _arrive(inbox: Path, number: int, rows: int) -> None:
    """Add a file to the inbox, atomically."""
    path = inbox / f".{number:03d}.parquet"
    pq.write_table(table_of(number, rows), path)
    path.rename(inbox / f"{number:03d}.parquet")


def _read(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return state


def _picture(state: dict[str, Any], arrived: int, status: str) -> Table:
    """The newest window of each query: one line for each length."""
    table = Table(
        title=f"{arrived} of {FILES} files have arrived; {status}", title_justify="left", caption_justify="left", box=SIMPLE, padding=0
    )
    heads = ("length", "tumbling", "ended", "cpu", "every 10 s", "ended", "cpu", "")
    for place, name in enumerate(heads):
        table.add_column(name, justify="left" if place in (0, 7) else "right", min_width=(7, 9, 9, 7, 11, 9, 7, 18)[place], no_wrap=True)
    newest = state.get("newest", {})
    for length in LENGTHS:
        cells = []
        for kind in ("tumbling", "every 10 s"):
            count, end, value = newest.get(f"{length}, {kind}", (0, "", None))
            cells += [f"{count:,}", end, "" if value is None else f"{value:.3f}"]
        table.add_row(length, *cells, f" [blue]{'█' * round(24 * (value or 0))}[/blue]")
    if state:
        text = "micro-batch {batch}: {rows:,} rows, {slices:,} slices, {bytes_read:,} bytes read, {bytes_written:,} written"
        table.caption = text.format(**state["last"])
    return table


def _saved(table: Table, folder: Path) -> Path:
    """The table as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "stream.svg"
    recorder = Console(record=True, file=io.StringIO(), width=90)
    recorder.print(table)
    recorder.save_svg(str(path), title="sash demo stream")
    return path


def _compare(console: Console, spark: Any, home: Path) -> None:
    """Raise unless the stream's results are a batch's, for every window that the watermark has passed."""
    results = spark.read.parquet(str(home / "results")).toArrow()
    batch = sash.aggregate(spark.read.parquet(str(home / "arriving")), **REQUEST).toArrow()
    newest = pc.max(pq.read_table(home / "arriving" / f"{FILES - 1:03d}.parquet")["timestamp"]).as_py()
    horizon = pa.scalar(int(newest.timestamp() * 1000) * 1000 - 10_000_000)
    ends = pc.struct_field(batch["window"], "end").cast(pa.int64())
    wanted = batch.filter(pc.less_equal(ends, horizon))

    def flat(table: pa.Table) -> pa.Table:
        window = table["window"].combine_chunks()
        flat_table = table.drop_columns(["window"]).append_column("start", window.field("start").cast(pa.int64()))
        return flat_table.sort_by([("query", "ascending"), ("category", "ascending"), ("start", "ascending")])

    mine, theirs = flat(results), flat(wanted)
    for name in theirs.column_names:
        a, b = mine[name].to_numpy(), theirs[name].to_numpy()
        if len(a) != len(b) or not (np.allclose(a, b, rtol=1e-9) if a.dtype.kind == "f" else np.array_equal(a, b)):
            raise AssertionError(f"{name}: the stream and the batch differ")
    console.print(
        f"All {results.num_rows:,} windows of the stream, each emitted once, equal those of a batch over the same {FILES} files, "
        "the kill notwithstanding (docs/streaming.md)."
    )


def drive(home: Path) -> None:
    """Run the stream, until all files have arrived and are processed."""
    spark = sash.spark.session(settings={"spark.local.dir": str(home), "spark.sql.shuffle.partitions": "2"})
    source = spark.readStream.schema("timestamp timestamp, category int, cpu double").option("maxFilesPerTrigger", 2)
    frame = sash.aggregate(source.parquet(str(home / "arriving")), watermark="10 seconds", buckets=4, **REQUEST)
    writer = (
        frame.writeStream.format("parquet").option("path", str(home / "results")).option("checkpointLocation", str(home / "checkpoint"))
    )
    query = writer.trigger(processingTime="300 milliseconds").start()
    _report(home, spark, frame.schema, query, {})
    newest: dict[str, Any] = {}
    while True:
        last = (home / "all").exists()
        if last:
            query.processAllAvailable()
        newest = _report(home, spark, frame.schema, query, newest)
        if last:
            break
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        time.sleep(0.2)
    query.stop()
    (home / "done").touch()
    spark.stop()


def _report(home: Path, spark: Any, schema: Any, query: Any, before: dict[str, Any]) -> dict[str, Any]:
    """Write the progress of the stream to a file: the newest window of each query, so far."""
    reports = sash.spark.progress(query)
    newest = dict(before)
    if (home / "results" / "_spark_metadata").exists():
        table = spark.read.schema(schema).parquet(str(home / "results")).where("category = 3").toArrow()
        ends = pc.struct_field(table["window"], "end")
        for name in WINDOWS:
            places = np.flatnonzero(table["query"].to_numpy() == name)
            if len(places):
                at = int(places[np.argmax(ends.cast(pa.int64()).to_numpy()[places])])
                newest[name] = (len(places), f"{ends[at].as_py():%H:%M:%S}", table["avgCpu"][at].as_py())
    batches = [p for p in reports if p["rows"]]
    nothing = {"batch": 0, "rows": 0, "slices": 0, "bytes_read": 0, "bytes_written": 0, "late_rows": 0}
    state = {"batches": len(batches), "last": batches[-1] if batches else nothing, "newest": newest}
    temporary = home / "progress.tmp"
    temporary.write_text(json.dumps(state))
    temporary.rename(home / "progress.json")
    return newest


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
