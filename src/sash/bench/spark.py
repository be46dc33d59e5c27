"""``sash bench spark``: ``sash.aggregate`` and ``sash.over`` on Spark frames, against Spark's own, in one session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.harness import Figure, Report, doing, new_report, number, same
from sash.bench.nexmark import BIDS, nexmark

OVERLAPS = (1, 10, 60, 600, 3600)
AGGREGATES = [S.sum("v").alias("total"), S.count().alias("amount"), S.min("v").alias("least")]
QUERIES = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


def measure(*, quick: bool = False, data: Path | None = None) -> Report:
    """All figures."""
    report = new_report("spark")
    spark = sash.spark.session(settings={"spark.driver.memory": "8g"})
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        bench = Bench(spark, Path(folder), report)
        with bench.memory():
            doing("overlaps")
            bench.overlaps(200_000 if quick else 2_000_000)
            doing("many keys")
            bench.many_keys(*((20_000, 200_000) if quick else (1_000_000, 8_000_000)))
            doing("own aggregate")
            bench.own_aggregate(20_000 if quick else 1_000_000)
            doing("over")
            bench.over(100_000 if quick else 2_000_000)
            doing("sessions")
            bench.sessions(200_000 if quick else 4_000_000)
            doing("bids")
            nexmark(report, bench.stored("bids", spark.range(100_000 if quick else 4_000_000).selectExpr(*BIDS)), bench.timed)
        spark.stop()
        doing("one key")
        bench.one_key(1_000_000 if quick else 16_000_000)
    report.tables.append(("plans that were measured", ["what", "plan", "stages"], bench.plans))
    return report


@sash.udaf(state=("float64", "float64"))
class mean_of:
    """The same as avg, as a user writes it."""

    identity = (0.0, 0.0)
    commutative = True
    returns = "float64"

    def lift(v):
        return (v, 1.0)

    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1])

    def lower(s):
        return s[0] / s[1]


own_mean: Any = mean_of


class Bench:
    """A session, a folder for data, and the report."""

    def __init__(self, spark: Any, folder: Path, report: Report) -> None:
        self.spark, self.folder, self.report = spark, folder, report
        self.plans: list[list[str]] = []

    # What everything shares.

    def stored(self, name: str, frame: Any) -> Any:
        """The frame written as Parquet and read back, so that generating rows is not measured."""
        path = str(self.folder / name)
        frame.write.mode("overwrite").parquet(path)
        return self.spark.read.parquet(path)

    def timed(self, calls: dict[str, Callable[[], Any]], runs: int = 3) -> dict[str, float]:
        """The median seconds of each, in turns, after one run of each to warm up."""
        for call in calls.values():
            run(call())
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(runs):
            for name, call in calls.items():
                began = time.perf_counter()
                run(call())
                taken[name].append(time.perf_counter() - began)
        return {name: float(np.median(values)) for name, values in taken.items()}

    def plan(self, title: str, frame: Any, **request: Any) -> None:
        """Record the plan that is measured."""
        lines = str(sash.explain(frame, **request)).splitlines()
        shown = [line.strip() for line in lines if line.strip().startswith(("plan:", "stage"))]
        self.plans.append([title, shown[0].removeprefix("plan: "), "; ".join(shown[1:])])

    def memory(self) -> Any:
        """A context in which the largest resident size of a Python worker is measured."""
        return Watched(self)

    # The figures.

    def overlaps(self, rows: int) -> None:
        from pyspark.sql import functions as F

        columns = ("cast(id % 16 as int) k", "timestamp_micros(id * 500) t", "cast(pmod(xxhash64(id), 1000) as bigint) v")
        frame = self.stored("overlaps", self.spark.range(rows).selectExpr(*columns))

        def ours(overlap: int) -> Any:
            return sash.aggregate(frame, windows=W.sliding(f"{overlap} seconds", every="1 second"), aggs=AGGREGATES, by="k", time="t")

        def theirs(overlap: int) -> Any:
            grouped = frame.groupBy("k", F.window("t", f"{overlap} seconds", "1 second"))
            return grouped.agg(F.sum("v").alias("total"), F.count("*").alias("amount"), F.min("v").alias("least"))

        times: dict[int, dict[str, float]] = {}
        lines = []
        for overlap in (1, 10, 600, 3600) * 3:  # overlaps are compared with each other, too: all of them on a session that is warm
            run(ours(overlap))
            run(theirs(1))
        for overlap in OVERLAPS:
            calls: dict[str, Any] = {"ours": lambda: ours(overlap)}
            if overlap <= 60:
                calls["spark"] = lambda: theirs(overlap)
            times[overlap] = self.timed(calls, 1 if overlap == 60 else 9 if overlap == 1 else 5)
            if overlap == 60:
                times[overlap]["ours"] = self.timed({"ours": lambda: ours(60)})["ours"]
            if overlap <= 10 or (overlap == 60 and rows <= 200_000):
                agree(ours(overlap), theirs(overlap), f"F.window, overlap {overlap}")
            spark = number(times[overlap]["spark"]) if overlap <= 60 else ""
            lines.append([str(overlap), number(times[overlap]["ours"]), spark])
        self.report.tables.append(
            (f"{rows:,} rows, 16 keys, sum + count + min, sliding by 1 s", ["overlap", "sash s", "F.window s"], lines)
        )
        copied = times[60]["spark"] * 10
        request = {"windows": W.sliding("60 seconds", every="1 second"), "aggs": AGGREGATES, "by": "k", "time": "t"}
        self.plan("overlap 60", frame, **request)
        self.plan("overlap 1", frame, **{**request, "windows": W.tumbling("1 second")})
        add = self.report.figures.append
        add(Figure("overlap 60 against F.window", times[60]["spark"] / times[60]["ours"], must=12, aim=25))
        note = "F.window's time extrapolated from overlap 60 by rows copied"
        add(Figure("overlap 600 against F.window", copied / times[600]["ours"], must=100, aim=200, note=note))
        long = times[3600]["ours"] / times[1]["ours"]
        add(Figure("overlap 3600 against our overlap 1", long, "× the time", must=1.7, aim=1.3, better="lower"))
        plain = times[1]["ours"] / times[1]["spark"]
        add(Figure("overlap 1 against F.window", plain, "× the time", must=1.1, aim=1.0, better="lower"))
        many = {f"{s} s": W.sliding(f"{s} seconds", every="1 second") for s in QUERIES}
        calls = {
            "ten": lambda: sash.aggregate(frame, windows=many, aggs=AGGREGATES, by="k", time="t"),
            "one": lambda: ours(3600),
        }
        taken = self.timed(calls)
        add(Figure("10 queries (1 s to 1 h) against one", taken["ten"] / taken["one"], "× the time", must=1.5, aim=1.2, better="lower"))

    def many_keys(self, keys: int, rows: int) -> None:
        from pyspark.sql import functions as F

        columns = (f"pmod(xxhash64(id), {keys}) k", f"timestamp_micros(id * {20_000_000 // (rows // 1000)} div 1000) t", "id % 1000 v")
        frame = self.stored("keys", self.spark.range(rows).selectExpr(*columns))
        window = W.sliding("6 seconds", every="1 second")
        calls = {
            "ours": lambda: sash.aggregate(frame, windows=window, aggs=AGGREGATES, by="k", time="t"),
            "spark": lambda: frame.groupBy("k", F.window("t", "6 seconds", "1 second")).agg(
                F.sum("v").alias("total"), F.count("*").alias("amount"), F.min("v").alias("least")
            ),
        }
        calls["rows"] = lambda: sash.aggregate(frame, windows=window, aggs=AGGREGATES, by="k", time="t", plan="rows")
        taken = self.timed(calls)
        self.plan("many keys", frame, windows=window, aggs=AGGREGATES, by="k", time="t")
        if rows <= 200_000:
            agree(calls["ours"](), calls["spark"](), "F.window, many keys")
        else:
            totals(calls["ours"](), calls["spark"](), "F.window, many keys")
        note = f"{number(taken['ours'])} s against {number(taken['spark'])} s"
        name = f"{keys:,} keys, {rows:,} rows, 6 slides a window, against F.window"
        self.report.figures.append(Figure(name, taken["spark"] / taken["ours"], must=2.5, aim=4, note=note))
        note = f"{number(taken['rows'])} s"
        self.report.figures.append(Figure('the same, with plan="rows"', taken["spark"] / taken["rows"], must=2, aim=4, note=note))

    def own_aggregate(self, rows: int) -> None:
        from pyspark.sql import functions as F

        columns = ("cast(id % 16 as int) k", "timestamp_micros(id * 5000) t", "cast(pmod(xxhash64(id), 1000) as double) v")
        frame = self.stored("own", self.spark.range(rows).selectExpr(*columns))
        mean = import_module("pyspark.sql.functions").pandas_udf(pandas_mean, "double")
        calls = {
            "ours": lambda: sash.aggregate(
                frame, windows=W.sliding("10 seconds", every="1 second"), aggs=[own_mean("v").alias("total")], by="k", time="t"
            ),
            "spark": lambda: frame.groupBy("k", F.window("t", "10 seconds", "1 second")).agg(mean("v").alias("total")),
        }
        taken = self.timed(calls, 1)
        taken["ours"] = self.timed({"ours": calls["ours"]})["ours"]
        self.plan("own aggregate", frame, windows=W.sliding("10 seconds", every="1 second"), aggs=[own_mean("v")], by="k", time="t")
        agree(calls["ours"](), calls["spark"](), "pandas UDF", ("total",))
        note = f"{rows:,} rows, 16 keys: {number(taken['ours'])} s against {number(taken['spark'])} s"
        name = "a user's own aggregate against a grouped-aggregate pandas UDF, overlap 10"
        self.report.figures.append(Figure(name, taken["spark"] / taken["ours"], must=20, aim=100, note=note))

    def over(self, rows: int) -> None:
        span = 36 * 3600 * 1_000_000  # microseconds: of 2 M rows about 55 in an hour of a key
        columns = (
            "id",
            "pmod(xxhash64(id), 1000) k",
            f"timestamp_micros(pmod(xxhash64(id, 7), {span}L)) t",
            "cast(pmod(xxhash64(id, 3), 1000) as bigint) v",
        )
        frame = self.stored("over", self.spark.range(rows).selectExpr(*columns))
        aggs = [S.sum("v").alias("total"), S.max("v").alias("most"), S.count().alias("amount")]
        hours = {"1h": 1, "12h": 12, "2h": 2, "6h": 6, "24h": 24}

        def ours(*names: str) -> Any:
            specs = {n: W.trailing(f"{hours[n]} hours") for n in names}
            return sash.over(frame, windows=specs, aggs=aggs, by="k", time="t", order_by="id")

        def theirs(*names: str) -> Any:
            def one(n: str, call: str) -> str:
                return f"{call} over (partition by k order by t range between interval {hours[n]} hours preceding and current row)"

            calls = [f"{one(n, c)} as {a}_{n}" for n in names for c, a in (("sum(v)", "total"), ("max(v)", "most"), ("count(*)", "amount"))]
            return frame.selectExpr("*", *calls)

        lines = []
        ratios = {}
        for names in (("1h",), ("12h",), tuple(hours)):
            taken = {"ours": self.timed({"ours": lambda: ours(*names)})["ours"]}
            for tree in ("false", "true"):
                self.spark.conf.set("spark.sql.window.segmentTree.enabled", tree)
                taken[tree] = self.timed({"spark": lambda: theirs(*names)}, 1)["spark"]
            best = min(taken["false"], taken["true"])
            ratios[names] = best / taken["ours"]
            lines.append([", ".join(names), number(taken["ours"]), number(taken["false"]), number(taken["true"])])
        self.plan("over", frame, windows=W.trailing("1 hour"), aggs=aggs, by="k", time="t")
        mine, spark = ours("1h").toArrow().sort_by("id"), theirs("1h").toArrow().sort_by("id")
        for name in ("total_1h", "most_1h", "amount_1h"):
            same(np.asarray(mine[name]), np.asarray(spark[name]), f"OVER, {name}")
        head = ["lengths", "sash s", "OVER s", "OVER, segment tree s"]
        self.report.tables.append((f"over: {rows:,} rows, 1,000 keys, sum + max + count", head, lines))
        add = self.report.figures.append
        add(Figure("over, one hour, against OVER, the better of both", ratios[("1h",)], must=2, aim=4))
        add(Figure("over, twelve hours, against OVER, the better of both", ratios[("12h",)], must=2, aim=4))
        add(Figure("over, five lengths in one call, against OVER, the better of both", ratios[tuple(hours)], must=4, aim=8))

    def sessions(self, rows: int) -> None:
        from pyspark.sql import functions as F

        columns = ("pmod(xxhash64(id), 1000) k", "timestamp_micros(id * 1000 + pmod(xxhash64(id, 5), 900000)) t", "id % 1000 v")
        frame = self.stored("sessions", self.spark.range(rows).selectExpr(*columns))
        calls = {
            "ours": lambda: sash.aggregate(frame, windows=W.session("5 seconds"), aggs=AGGREGATES, by="k", time="t"),
            "spark": lambda: frame.groupBy("k", F.session_window("t", "5 seconds").alias("window")).agg(
                F.sum("v").alias("total"), F.count("*").alias("amount"), F.min("v").alias("least")
            ),
        }
        taken = self.timed(calls)
        self.plan("sessions", frame, windows=W.session("5 seconds"), aggs=AGGREGATES, by="k", time="t")
        agree(calls["ours"](), calls["spark"](), "session_window")
        note = f"{rows:,} rows, 1,000 keys: {number(taken['ours'])} s against {number(taken['spark'])} s"
        self.report.figures.append(Figure("sessions against session_window", taken["spark"] / taken["ours"], must=1, aim=3, note=note))

    def one_key(self, rows: int) -> None:
        """The same job on one core and on two, each in a process and a session of its own that may use no others."""
        taken = {}
        for cores in (1, 2):
            command = [sys.executable, "-m", "sash.bench.spark", str(cores), str(rows), str(self.folder / f"one-{cores}")]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
            taken[cores] = json.loads(done.stdout.strip().splitlines()[-1])
        same(np.array(taken[1]["answer"]), np.array(taken[2]["answer"]), "one core and two")
        ratio = taken[1]["seconds"] / taken[2]["seconds"]
        note = f"{number(taken[1]['seconds'])} s against {number(taken[2]['seconds'])} s"
        self.report.figures.append(Figure(f"one key, {rows:,} rows: two cores against one", ratio, must=1.6, aim=1.9, note=note))


def one_key_job(cores: int, rows: int, folder: str) -> dict[str, Any]:
    """One key, a minute that slides by a second: blocks of its time are spread over the cores.

    The process keeps to its cores: in a session of one core, Java and Python would otherwise work on two.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = sash.spark.session(cores, {"spark.driver.memory": "8g", "spark.sql.shuffle.partitions": "8"})
    spark.range(rows).selectExpr("timestamp_micros(id * 5000) t", "cast(pmod(xxhash64(id), 1000) as bigint) v").write.parquet(folder)
    frame = spark.read.parquet(folder)

    def call() -> Any:
        return sash.aggregate(frame, windows=W.sliding("60 seconds", every="1 second"), aggs=AGGREGATES, time="t")

    run(call())
    run(call())
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        run(call())
        taken.append(time.perf_counter() - began)
    answer = call().selectExpr("sum(total) a", "sum(amount) b", "sum(least) c", "count(*) d").collect()[0]
    spark.stop()
    return {"seconds": float(np.median(taken)), "answer": [int(x) for x in answer]}


def pandas_mean(values: pd.Series) -> float:
    """The peer of :class:`own_mean`."""
    return float(values.mean())


def run(frame: Any) -> None:
    """Compute all rows, and store none."""
    frame.write.format("noop").mode("overwrite").save()


def agree(mine: Any, theirs: Any, what: str, names: tuple[str, ...] = ("total", "amount", "least")) -> None:
    """Raise unless two results have the same windows with the same values."""
    tables = []
    for frame in (mine, theirs):
        flat = frame.selectExpr("k", "unix_micros(window.start) s", "unix_micros(window.end) e", *names)
        tables.append(flat.toArrow().sort_by([("k", "ascending"), ("s", "ascending")]))
    for name in ("k", "s", "e", *names):
        same(np.asarray(tables[0][name]).astype(np.float64), np.asarray(tables[1][name]).astype(np.float64), f"{what}: {name}")


def totals(mine: Any, theirs: Any, what: str) -> None:
    """Raise unless two results, too large to collect, have as many rows and the same sums."""
    sums = ["count(*) n", "sum(k) k", "sum(unix_micros(window.start)) s", "sum(total) t", "sum(amount) a", "sum(least) l"]
    rows = [[int(x) for x in frame.selectExpr(*sums).collect()[0]] for frame in (mine, theirs)]
    same(np.array(rows[0]), np.array(rows[1]), what)


class Watched:
    """Looks at the Python workers' memory twice a second."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self._done = bench, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._peak = 0

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._thread.join()
        if self._peak:
            self.bench.report.figures.append(Figure("largest resident size of a Python worker", self._peak / 1024, "MiB"))

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            for status in Path("/proc").glob("[0-9]*/status"):
                try:
                    if b"pyspark.daemon" in (status.parent / "cmdline").read_bytes():
                        lines = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
                        self._peak = max([self._peak, *(int(line.split()[1]) for line in lines)])
                except OSError:
                    continue


if __name__ == "__main__":
    print(json.dumps(one_key_job(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
