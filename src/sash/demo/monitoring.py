"""``sash demo``: cluster-monitoring events (the schema of SABER's appendix A.1) on Spark, a one-hour window that slides by a second."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

import sash
from sash import functions as S
from sash import windows as W
from sash.demo import streaming

HOURS = 3
CATEGORIES = 12
ROWS_OF_STREAM = 156_000
MINUTE, HOUR, FIVE = "a minute, every second", "an hour, every second", "five minutes"
WINDOWS = {
    MINUTE: W.sliding("1 minute", every="1 second"),
    HOUR: W.sliding("1 hour", every="1 second"),
    FIVE: W.tumbling("5 minutes"),
}
TEXT = """select window.start, category, avg(cpu) as avgCpu, max(cpu) as maxCpu, count(*) as events
from TaskEvents [range 1 hour slide 1 second]
group by category
having maxCpu > 1.0"""
TWIN = """sash.aggregate(TaskEvents, windows=W.sliding("1 hour", every="1 second"), by="category", time="timestamp",
               aggs=[S.avg("cpu").alias("avgCpu"), S.max("cpu").alias("maxCpu"), S.count().alias("events")]).where("maxCpu > 1.0")"""
AGGREGATES = [S.avg("cpu").alias("avgCpu"), S.max("cpu").alias("maxCpu"), S.count().alias("events")]


def events(spark: Any, rows: int) -> Any:
    """TaskEvents: load that swells and ebbs, each category in its own phase, with bursts."""
    seconds = HOURS * 3600
    noise = "(pmod(xxhash64(id, 11), 1000) / 1000)"
    at = f"(id * {seconds / rows})"
    load = f"0.35 + 0.2 * sin({at} / 1500 + category) + 0.12 * sin({at} / 47 + 2 * category)"
    burst = f"if(pmod(cast({at} / 900 as int) + category, 7) = 0, 0.25, 0)"
    return (
        spark.range(rows)
        .selectExpr("id", f"cast(pmod(xxhash64(id, 3), {CATEGORIES}) as int) as category")
        .selectExpr(
            f"timestamp_micros(1300000000000000 + cast({at} * 1000000 as bigint)) as timestamp",
            "pmod(xxhash64(id, 1), 5000) as jobId",
            "id as taskId",
            "pmod(xxhash64(id, 2), 11000) as machineId",
            "cast(pmod(xxhash64(id, 4), 9) as int) as eventType",
            "cast(pmod(xxhash64(id, 5), 400) as int) as userId",
            "category",
            "cast(pmod(xxhash64(id, 6), 12) as int) as priority",
            f"cast({load} + {burst} + 0.3 * {noise} as float) as cpu",
            f"cast(0.2 + 0.1 * {noise} as float) as ram",
            f"cast(0.05 * {noise} as float) as disk",
            "cast(0 as int) as constraints",
        )
    )


def run(rows: int, folder: Path) -> None:
    """The whole demo."""
    console = Console()
    console.print(
        f"[bold]Sash[/bold] on Spark: {rows:,} task events of {HOURS} hours, {CATEGORIES} categories; average, maximum and count of cpu\n"
        f"over {MINUTE}; {HOUR}; and {FIVE}: three queries in one call, one set of slices.\n"
    )
    with tempfile.TemporaryDirectory(prefix="sash-demo-") as place:
        steps = Steps(console)
        with steps("Starting Spark"):
            spark = sash.spark.session(settings={"spark.local.dir": place})
        try:
            _run(console, steps, spark, rows, folder, str(Path(place) / "events"))
        finally:
            spark.stop()


def _run(console: Console, steps: Steps, spark: Any, rows: int, folder: Path, path: str) -> None:
    with steps("Generating events as Parquet"):
        events(spark, rows).write.parquet(path)
    frame = spark.read.parquet(path)
    request: dict[str, Any] = {"aggs": AGGREGATES, "by": "category", "time": "timestamp"}
    console.print(str(sash.explain(frame, windows=WINDOWS, **request)), style="dim", highlight=False, markup=False, soft_wrap=True)
    with steps("Warming up: compiling kernels (once; they are cached) and Spark's code"):
        sash.aggregate(frame, windows=WINDOWS, **request).write.format("noop").mode("overwrite").save()
        spark_window(frame.limit(200_000)).write.format("noop").mode("overwrite").save()
    taken: list[tuple[str, float, int, str]] = []

    def timed(title: str, make: Callable[[], Any], note: str = "") -> pa.Table:
        with steps(title):
            began = time.perf_counter()
            table = make().toArrow()
            taken.append((title, time.perf_counter() - began, table.num_rows, note))
        return table

    mine = timed(f"sash: {HOUR}", lambda: sash.aggregate(frame, windows=WINDOWS[HOUR], **request))
    together = timed("sash: all three queries", lambda: sash.aggregate(frame, windows=WINDOWS, **request))
    theirs = timed(f"F.window: {MINUTE}", lambda: spark_window(frame), "each row copied 60 times")
    _, seconds, _, _ = taken[-1]
    as_text = timed("sash: the hour as text, with a condition", lambda: sash.sql(TEXT, TaskEvents=frame))
    taken.insert(-1, (f"F.window: {HOUR}", seconds * 60, mine.num_rows, "extrapolated from the line above: each row copied 3,600 times"))
    with steps("Comparing"):
        minute = together.filter(pc.equal(together.column("query"), MINUTE))
        count = compare(minute, theirs)
        above = pc.sum(pc.greater(mine.column("maxCpu"), 1.0)).as_py()
        if as_text.num_rows != above:
            raise AssertionError(f"the query as text has {as_text.num_rows} windows, its twin in Python {above}")
    table = Table(title="Seconds, from Parquet to a table in this process", title_justify="left")
    for name in ("what", "seconds", "windows", ""):
        table.add_column(name, justify="right" if name in ("seconds", "windows") else "left")
    for title, spent, windows, note in taken:
        table.add_row(title, f"[bold]{spent:.2f}[/bold]" if title.startswith("sash") else f"{spent:,.2f}", f"{windows:,}", note)
    console.print(table)
    show_twins(console)
    picture = draw(together, folder)
    console.print(f"\nAll {count:,} windows of {MINUTE} agree with Spark's own. A picture of one category: [bold]{picture}[/bold]")
    streaming.show(console, spark, Path(path).parent, ROWS_OF_STREAM, folder)
    console.print(
        "Next: README.md for the first lines of code, docs/spark.md, docs/streaming.md and docs/cql.md for more of this, "
        "[bold]sash demo stream[/bold] for the stream alone, [bold]sash demo rolling[/bold] for one process."
    )


def show_twins(console: Console) -> None:
    """A query as text and the same in Python, with equal results."""
    console.print("\nA query may be text (docs/cql.md), or Python; both have the same windows:")
    for what, text in (("sash.sql", TEXT), ("Python", TWIN)):
        console.print(Panel(text, title=what, title_align="left", border_style="dim", expand=False), highlight=False)


def spark_window(frame: Any) -> Any:
    """The same query with Spark's own functions."""
    from pyspark.sql import functions as F

    grouped = frame.groupBy("category", F.window("timestamp", "1 minute", "1 second"))
    return grouped.agg(F.avg("cpu").alias("avgCpu"), F.max("cpu").alias("maxCpu"), F.count("*").alias("events"))


def compare(mine: pa.Table, theirs: pa.Table) -> int:
    """The number of windows; raises unless all of them are equal."""

    def flat(table: pa.Table) -> dict[str, Any]:
        start = pc.struct_field(table.column("window"), "start").cast(pa.int64())
        order = np.lexsort((np.asarray(start), np.asarray(table.column("category"))))
        columns = {"start": start, **{n: table.column(n) for n in ("category", "avgCpu", "maxCpu", "events")}}
        return {name: np.asarray(column)[order] for name, column in columns.items()}

    ours, others = flat(mine), flat(theirs)
    for name, values in others.items():
        if len(values) != len(ours[name]) or not np.allclose(ours[name], values, rtol=1e-6):
            raise AssertionError(f"{name}: the answers differ")
    return len(others["start"])


def draw(results: pa.Table, folder: Path) -> Path:
    """One category's windows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axis = plt.subplots(figsize=(11, 5.2), layout="constrained")
    one = results.filter(pc.equal(results.column("category"), 3))
    styles = {MINUTE: ("#7a7a7a", 0.7), FIVE: ("#0b62a4", 1.6), HOUR: ("#c1272d", 2.4)}
    begin = None
    for name, (color, width) in styles.items():
        part = one.filter(pc.equal(one.column("query"), name))
        ends = np.asarray(pc.struct_field(part.column("window"), "end").cast(pa.int64())) / 6e7
        begin = ends.min() if begin is None else begin
        order = np.argsort(ends)
        values = np.asarray(part.column("avgCpu"))[order]
        if name == MINUTE:  # behind the others
            largest = np.asarray(part.column("maxCpu"))[order]
            axis.plot(ends[order] - begin, largest, color="#e8a33d", linewidth=0.9, label=f"maximum over {name}")
        axis.plot(ends[order] - begin, values, color=color, linewidth=width, label=f"average over {name}")
    axis.set(xlabel="minutes (end of the window)", ylabel="cpu", title="Category 3: every window of three queries, from one set of slices")
    axis.grid(axis="y", color="0.9", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    axis.set_xlim(0, HOURS * 60)
    path = folder / "monitoring.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


class Steps:
    """A line for each step, with its time."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextmanager
    def __call__(self, title: str) -> Iterator[None]:
        began = time.perf_counter()
        with self.console.status(f"{title} ..."):
            yield
        self.console.print(f"  {title}: {time.perf_counter() - began:.1f} s", highlight=False)
