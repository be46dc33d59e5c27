"""``sash demo``: a few million sensor readings, rolling statistics over three window lengths, the peers' times, a picture."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import sash
from sash import functions as S

Array = Any

WINDOWS = {"10 seconds": 100, "2 minutes": 1200, "20 minutes": 12000}  # ten readings a second
STATISTICS: dict[str, Any] = {"min": "min", "max": "max", "average": "avg", "95th percentile": S.percentile(q=0.95)}


def readings(rows: int) -> Array:
    """A temperature that drifts over the day, wobbles, is noisy, and sometimes jumps."""
    rng = np.random.default_rng(2026)
    t = np.arange(rows) / 10
    signal = 20 + 6 * np.sin(t / 13750) + 0.8 * np.sin(t / 47) + rng.normal(0, 0.4, rows)
    spikes = rng.integers(0, rows, max(1, rows // 20000))
    signal[spikes] += rng.normal(0, 9, len(spikes))
    return signal


def peers(x: Array, size: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """The same statistics in other libraries."""
    import bottleneck as bn
    import pandas as pd
    import polars as pl

    column, series = pl.Series(x), pd.Series(x)
    return {
        "min": {
            "polars": lambda: column.rolling_min(size),
            "pandas": lambda: series.rolling(size).min(),
            "bottleneck": lambda: bn.move_min(x, size),
        },
        "max": {
            "polars": lambda: column.rolling_max(size),
            "pandas": lambda: series.rolling(size).max(),
            "bottleneck": lambda: bn.move_max(x, size),
        },
        "average": {
            "polars": lambda: column.rolling_mean(size),
            "pandas": lambda: series.rolling(size).mean(),
            "bottleneck": lambda: bn.move_mean(x, size),
        },
        "95th percentile": {
            "polars": lambda: column.rolling_quantile(0.95, interpolation="linear", window_size=size),
            "pandas": lambda: series.rolling(size).quantile(0.95),
        },
    }


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of a call, the best of three unless it is slow, and its result."""
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
        if best > 0.5:
            break
    return best, result


def run(rows: int, folder: Path) -> None:
    """The whole demo."""
    console = Console()
    console.print(
        f"[bold]Sash[/bold] rolls {rows:,} sensor readings: {', '.join(STATISTICS)} over {', '.join(WINDOWS)} at 10 readings a second.\n"
    )
    x = readings(rows)
    with console.status("Compiling vector kernels (once; they are cached) ..."):
        for agg in ("min", "max", "avg"):
            sash.rolling(x[:200_000], 100, agg=agg, algorithm="lanes")
        sash.rolling(x[:10_000], 100, agg="median")
    results: dict[tuple[str, str], Array] = {}
    spent: dict[tuple[str, str], dict[str, float]] = {}
    work = len(WINDOWS) * sum(1 + len(p) for p in peers(x[:10], 2).values())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:  # a refreshing thread would be timed too
        task = progress.add_task("", total=work)
        for length, size in WINDOWS.items():
            others = peers(x, size)
            for statistic, agg in STATISTICS.items():
                progress.update(task, description=f"{statistic} over {length}: sash", refresh=True)
                seconds, result = timed(lambda: sash.rolling(x, size, agg=agg))
                results[length, statistic] = result
                spent[length, statistic] = {"sash": seconds}
                progress.advance(task)
                for peer, call in others[statistic].items():
                    progress.update(task, description=f"{statistic} over {length}: {peer}", refresh=True)
                    seconds, theirs = timed(call)
                    spent[length, statistic][peer] = seconds
                    _compare(result, theirs, size, f"{statistic} over {length}, {peer}")
                    progress.advance(task)
    _print(console, spent)
    picture = _draw(x, results, folder)
    console.print(f"\nAll answers agree with the peers'. A picture of the series and its envelope: [bold]{picture}[/bold]")
    console.print("Next: README.md for the first lines of code, [bold]make bench[/bold] for careful figures.")


def _compare(ours: Array, theirs: Any, size: int, what: str) -> None:
    tail = np.asarray(theirs, dtype=float)[size - 1 :]
    if not np.allclose(ours, tail, rtol=1e-6, atol=1e-6):
        raise AssertionError(f"{what}: the answers differ")


def _print(console: Console, spent: dict[tuple[str, str], dict[str, float]]) -> None:
    table = Table(title="Seconds (and how many times sash's)", title_justify="left")
    for name in ("window", "statistic", "sash", "polars", "pandas", "bottleneck"):
        table.add_column(name, justify="left" if name in ("window", "statistic") else "right")
    last = ""
    for (length, statistic), times in spent.items():
        ours = times["sash"]
        cells = [f"{times[p]:.3f} ({times[p] / ours:.0f}×)" if p in times else "-" for p in ("polars", "pandas", "bottleneck")]
        table.add_row(length if length != last else "", statistic, f"[bold]{ours:.3f}[/bold]", *cells)
        last = length
    console.print(table)


def _draw(x: Array, results: dict[tuple[str, str], Array], folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    length, size = list(WINDOWS.items())[1]
    start, count = len(x) // 3, 60_000
    part = slice(start, start + count)
    minutes = np.arange(count) / 600
    rows = slice(start - size + 1, start - size + 1 + count)
    figure, axis = plt.subplots(figsize=(11, 5.2), layout="constrained")
    axis.plot(minutes, x[part], color="#9a9a9a", linewidth=0.4, label="readings")
    axis.fill_between(
        minutes,
        results[length, "min"][rows],
        results[length, "max"][rows],
        color="tab:blue",
        alpha=0.18,
        label=f"min to max, {length}",
    )
    axis.plot(minutes, results[length, "average"][rows], color="tab:blue", linewidth=1.4, label=f"average, {length}")
    axis.plot(minutes, results[length, "95th percentile"][rows], color="tab:red", linewidth=1.0, label=f"95th percentile, {length}")
    axis.set_xlabel("minutes")
    axis.set_ylabel("°C")
    axis.set_title(f"{len(x):,} readings, a detail of {count:,}", loc="left", fontsize=10)
    axis.margins(x=0)
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    path = folder / "envelope.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
