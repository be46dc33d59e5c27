"""``sash bench rolling``: rolling aggregates against polars, pandas, bottleneck, NumPy and the copy bandwidth."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

import sash
import sash.threads
from sash import functions as S
from sash.bench.harness import Figure, Plot, Report, Series, new_report, number, same, side_by_side, threads
from sash.bench.rolling_subjects import check, data, own_sum, peers, sum_and_count

Array = Any


def measure(quick: bool = False, data: Path | None = None) -> Report:
    """All figures."""
    report = new_report("rolling")
    rows = 1 << (21 if quick else 24)
    _warm()
    with threads(1):
        _against_copy(report, rows)
        _fresh_output(report, rows)
        _richer_aggregates(report, rows)
        _slides(report, rows)
        _quantiles(report, 1 << (18 if quick else 20))
        _own_aggregates(report, rows)
        _nulls(report, rows)
    _two_threads(report, rows)
    _start(report)
    return report


def _warm() -> None:
    """Compile the vector kernels that are measured; this takes about a minute once."""
    for kind in ("int32", "float64"):
        x = data(kind, 1 << 17)
        for name in ("min", "sum", "avg"):
            sash.rolling(x, 100, agg=name, algorithm="lanes")
    for name in ("sum", "avg"):
        sash.rolling(data("int32", 1 << 17), 100, agg=name, algorithm="tiles")
    x = data("float64", 1 << 17)
    for agg in (sum_and_count, own_sum, "max_by", "var_samp", "first", "last"):
        sash.rolling(x, 100, agg=agg, algorithm="lanes")
    for kind in ("int32", "float64"):
        for name in ("min", "avg"):
            sash.rolling(pa.array(data(kind, 1 << 17), mask=np.arange(1 << 17) % 3 == 0), 100, agg=name, algorithm="lanes")


def _against_copy(report: Report, rows: int) -> None:
    table: list[list[str]] = []
    for kind in ("int32", "float64"):
        x = data(kind, rows)
        plot = Plot(f"{kind}, slide 1, one thread, with out=", "window", "M rows/s")
        for name in ("min", "sum", "avg"):
            shares, speeds, sizes = [], [], (64, 100, 500, 1000, 1024, 2000, 4096)
            for size in sizes:
                out = np.empty(rows - size + 1, sash.rolling(x[:size], size, agg=name).dtype)
                head = x[: len(out)]
                times = side_by_side(
                    {"sash": lambda: sash.rolling(x, size, agg=name, out=out), "copy": lambda: np.copyto(out, head)},
                    9,
                )
                sash.rolling(x, size, agg=name, out=out)
                check(name, out, x, size)
                shares.append(times["copy"] / times["sash"])
                speeds.append(rows / times["sash"] / 1e6)
            table.append([f"{name} {kind}", *(f"{number(v)} ({s:.2f})" for v, s in zip(speeds, shares, strict=True))])
            plot.series.append(Series(name, list(sizes), speeds))
            worst = sizes[int(np.argmin(shares))]
            report.figures.append(
                Figure(
                    f"{name} {kind}, with out=: share of np.copyto, worst window",
                    min(shares),
                    "",
                    0.5,
                    0.8,
                    note=f"window {worst}",
                )
            )
        report.plots.append(plot)
    report.tables.append(
        ("M rows/s (share of np.copyto), one thread, with out=", ["", "64", "100", "500", "1000", "1024", "2000", "4096"], table)
    )


def _fresh_output(report: Report, rows: int) -> None:
    sizes = (8, 64, 1000, 4096, 32768, 262144)
    table: list[list[str]] = []
    for kind in ("int32", "float64"):
        x = data(kind, rows)
        plot = Plot(f"{kind}, fresh output, against the peers", "window", "M rows/s", log_y=True)
        for name in ("min", "sum", "avg"):
            curves: dict[str, list[float]] = {}
            for size in sizes:
                calls = {"sash": lambda: sash.rolling(x, size, agg=name), **peers(name, x, size)}
                if size != 1000:
                    calls.pop("pandas", None)
                times = side_by_side(calls, 3)
                for peer, spent in times.items():
                    curves.setdefault(peer, []).append(rows / spent / 1e6)
            check(name, sash.rolling(x, 1000, agg=name), x, 1000)
            ours, bn, pl = (np.array(curves[p]) for p in ("sash", "bottleneck", "polars"))
            for peer, curve in curves.items():
                table.append(
                    [f"{name} {kind}, {peer}", *(number(v) for v in curve)]
                    if len(curve) > 1
                    else [f"{name} {kind}, {peer}", "", "", number(curve[0]), "", "", ""]
                )
            plot.series += [
                Series(f"{name}, {p}", list(sizes), c) for p, c in curves.items() if len(c) > 1 and (p != "polars" or name == "min")
            ]
            if name == "min":
                report.figures.append(
                    Figure(
                        f"min {kind}, fresh output: against the best peer, worst window",
                        float((ours / np.maximum(bn, pl)).min()),
                        "×",
                        6,
                        12,
                    )
                )
            else:
                report.figures.append(
                    Figure(
                        f"{name} {kind}, fresh output: against bottleneck (which drifts), worst window",
                        float((ours / bn).min()),
                        "×",
                        1,
                        2,
                    )
                )
                report.figures.append(
                    Figure(f"{name} {kind}, fresh output: against polars, worst window", float((ours / pl).min()), "×", 4)
                )
            report.figures.append(
                Figure(
                    f"{name} {kind}: fastest over slowest window from 64 up",
                    float(ours[1:].max() / ours[1:].min()),
                    "×",
                    2.5,
                    better="lower",
                )
            )
        report.plots.append(plot)
    report.tables.append(("M rows/s with fresh output, one thread", ["", *map(str, sizes)], table))


def _richer_aggregates(report: Report, rows: int) -> None:
    x = data("float64", rows)
    musts = {"(sum, count)": 0.35, "max_by": 0.25, "var_samp": 0.15, "first": 0.4, "last": 0.4}
    table = []
    for label, must in musts.items():
        name = "avg" if label == "(sum, count)" else label
        agg: Any = sum_and_count if label == "(sum, count)" else label
        shares, ratios = [], []
        for size in (64, 1000, 4096):
            out = np.empty(rows - size + 1, np.int64 if label == "max_by" else np.float64)
            head = x[: len(out)]
            target = out.view(np.float64)
            times = side_by_side({"sash": lambda: sash.rolling(x, size, agg=agg, out=out), "copy": lambda: np.copyto(target, head)}, 7)
            sash.rolling(x, size, agg=agg, out=out)
            check(name, out, x, size)
            shares.append(times["copy"] / times["sash"])
            others = {k: v for k, v in peers(name, x, size).items() if k != "pandas" or size == 1000}
            spent = side_by_side({"sash": lambda: sash.rolling(x, size, agg=agg), **others}, 2)
            ours = spent.pop("sash")
            if spent:
                ratios.append(min(spent.values()) / ours)
            table.append(
                [
                    f"{label} {size}",
                    number(rows / times["sash"] / 1e6),
                    f"{shares[-1]:.2f}",
                    *(f"{p} {number(rows / t / 1e6)}" for p, t in spent.items()),
                ]
            )
        report.figures.append(Figure(f"{label} float64, with out=: share of np.copyto, worst window", min(shares), "", must, 0.5))
        if ratios:
            report.figures.append(Figure(f"{label} float64: against the best peer that has it, worst window", min(ratios), "×", 5))
    width = max(map(len, table))
    report.tables.append(
        (
            "Richer aggregates, float64",
            ["", "M rows/s", "share of copy", *[""] * (width - 3)],
            [r + [""] * (width - len(r)) for r in table],
        )
    )


def _slides(report: Report, rows: int) -> None:
    for kind in ("int32", "float64"):
        x = data(kind, rows)
        for every, must in ((16, 0.45), (64, 0.75), (1024, 0.8)):
            result = sash.rolling(x, 1024, every=every, agg="min")
            same(result, sliding_window_view(x, 1024)[::every].min(1), f"slide {every}")
            out = np.empty_like(result)
            times = side_by_side({"sash": lambda: sash.rolling(x, 1024, every=every, agg="min", out=out), "np.min": lambda: np.min(x)}, 9)
            report.figures.append(
                Figure(f"min {kind}, size 1024, slide {every}: share of np.min", times["np.min"] / times["sash"], "", must, 0.9)
            )


def _quantiles(report: Report, rows: int) -> None:
    x = data("float64", rows)
    others = peers("median", x, 1024)
    times = side_by_side({"sash": lambda: sash.rolling(x, 1024, agg="median"), **others}, 3)
    check("median", sash.rolling(x, 1024, agg="median"), x, 1024)
    ours = times.pop("sash")
    best = min(times, key=times.__getitem__)
    report.figures.append(
        Figure(
            "median, slide 1, window 1024: against the best peer",
            times[best] / ours,
            "×",
            1,
            3,
            note=f"{best}; {number(rows / ours / 1e6)} M rows/s",
        )
    )
    import pandas as pd
    import polars as pl

    column, series = pl.Series(x), pd.Series(x)
    times = side_by_side(
        {
            "sash": lambda: sash.rolling(x, 1024, agg=S.percentile(q=0.95)),
            "polars": lambda: column.rolling_quantile(0.95, interpolation="linear", window_size=1024),
            "pandas": lambda: series.rolling(1024).quantile(0.95),
        },
        3,
    )
    same(
        sash.rolling(x, 1024, agg=S.percentile(q=0.95))[:2000],
        np.quantile(sliding_window_view(x, 1024)[:2000], 0.95, axis=1),
        "percentile",
    )
    ours = times.pop("sash")
    best = min(times, key=times.__getitem__)
    report.figures.append(Figure("95th percentile, slide 1, window 1024: against the best peer", times[best] / ours, "×", 1, 3, note=best))


def _own_aggregates(report: Report, rows: int) -> None:
    x = data("float64", rows)
    out, other = np.empty(rows - 999), np.empty(rows - 999)
    times = side_by_side(
        {
            "own": lambda: sash.rolling(x, 1000, agg=own_sum, out=out),
            "built in": lambda: sash.rolling(x, 1000, agg="sum", out=other),
        },
        9,
    )
    same(out, other, "own sum")
    report.figures.append(
        Figure("a user's sum against the built-in one", times["own"] / times["built in"], "× its time", 1.3, 1.05, "lower")
    )


def _nulls(report: Report, rows: int) -> None:
    for kind in ("int32", "float64"):
        x = data(kind, rows)
        dense, holes = pa.array(x), pa.array(x, mask=np.random.default_rng(3).random(rows) < 0.1)
        for name in ("min", "avg"):
            times = side_by_side(
                {"dense": lambda: sash.rolling(dense, 1000, agg=name), "nulls": lambda: sash.rolling(holes, 1000, agg=name)}, 7
            )
            other = sash.rolling(holes, 1000, agg=name, algorithm="blocks")
            same(sash.rolling(holes, 1000, agg=name).to_numpy(), other.to_numpy(), f"{name} with nulls", 1e-9)
            report.figures.append(
                Figure(
                    f"{name} {kind}, a tenth of the rows null",
                    times["nulls"] / times["dense"],
                    "× the time without",
                    1.5,
                    better="lower",
                )
            )


def _two_threads(report: Report, rows: int) -> None:
    """A second thread for aggregates bound by memory (min) and by arithmetic (var_samp), and for ``np.copyto``."""
    x = data("float64", rows)
    size = 1000
    out = np.empty(rows - size + 1)
    head = x[: len(out)]

    def with_threads(count: int, work: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> None:
            with threads(count):
                work()

        return call

    def copy() -> None:
        parts = sash.threads.shares(0, len(out))
        sash.threads.each(lambda begin, end: np.copyto(out[begin:end], head[begin:end]), parts)

    for name in ("min", "var_samp"):
        calls = {"sash": lambda: sash.rolling(x, size, agg=name, out=out), "copy": copy}
        times = side_by_side({f"{who} {count}": with_threads(count, work) for who, work in calls.items() for count in (1, 2)}, 9)
        sash.rolling(x, size, agg=name, out=out)
        check(name, out, x, size)
        gain = {who: times[f"{who} 1"] / times[f"{who} 2"] for who in calls}
        best_copy = min(times["copy 1"], times["copy 2"])
        report.figures.append(
            Figure(
                f"{name}, window {size}: two threads against one",
                gain["sash"],
                "×",
                1.6,
                1.9,
                note=f"np.copyto gains {gain['copy']:.2f} ×; two threads reach {best_copy / times['sash 2']:.2f} of the best copy",
            )
        )


FIRST_CALL = """
import time; start = time.perf_counter()
import numpy as np; x = np.random.default_rng(0).normal(size=1_000_000); begun = time.perf_counter()
import sash
sash.rolling(x, 1000, agg="{agg}"); print(time.perf_counter() - begun)
"""
IMPORT = "import numpy, pyarrow, time; s = time.perf_counter(); import sash; print(time.perf_counter() - s)"
WARM = """
import numpy as np, time, sash
x = np.arange(100.0)
sash.rolling(x, 10, agg="min")
start = time.perf_counter(); sash.rolling(x, 10, agg="max"); print(time.perf_counter() - start)
"""


def _start(report: Report) -> None:
    def run(script: str, folder: str) -> float:
        environment = {**os.environ, "SASH_CACHE": folder}
        return float(subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stdout)

    for agg in ("min", "avg", "median"):
        spent = []
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                spent.append(run(FIRST_CALL.format(agg=agg), folder))
        report.figures.append(
            Figure(
                f"first {agg} in a new process, empty cache, 1 M rows",
                float(np.median(spent)),
                "s",
                2.5,
                1.0,
                "lower",
                "import of sash and numba included",
            )
        )
    with tempfile.TemporaryDirectory() as folder:
        run(WARM, folder)
        report.figures.append(
            Figure("loading a kernel from disk", float(np.median([run(WARM, folder) for _ in range(5)])), "s", 0.1, better="lower")
        )
    report.figures.append(
        Figure(
            "import sash, after NumPy and pyarrow",
            float(np.median([run(IMPORT, "") for _ in range(5)])),
            "s",
            0.15,
            better="lower",
        )
    )
