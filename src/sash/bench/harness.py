"""What benchmarks share: timing side by side, checked answers, tables, JSON and pictures."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

Call = Callable[[], Any]
Result = TypeVar("Result")


@dataclass
class Figure:
    """One measured number, with the bound that it must reach and the one that is the aim."""

    what: str
    value: float
    unit: str = "×"
    must: float | None = None
    aim: float | None = None
    better: Literal["higher", "lower"] = "higher"
    note: str = ""

    def reaches(self, bound: float | None) -> bool:
        if bound is None:
            return True
        return self.value >= bound if self.better == "higher" else self.value <= bound

    @property
    def verdict(self) -> str:
        if self.must is None and self.aim is None:
            return ""
        if not self.reaches(self.must):
            return "MISSED"
        return "aim" if self.aim is not None and self.reaches(self.aim) else "ok"


@dataclass
class Series:
    """A curve of a figure: throughput or cost over something."""

    name: str
    x: list[float]
    y: list[float]


@dataclass
class Plot:
    """A figure to draw."""

    title: str
    x_label: str
    y_label: str
    series: list[Series] = field(default_factory=list)
    log_x: bool = True
    log_y: bool = False
    note: str = ""


@dataclass
class Report:
    """All that a benchmark measured."""

    name: str
    figures: list[Figure] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    """Measurements that other figures refer to."""
    machine: str = ""
    date: str = ""

    @property
    def missed(self) -> list[Figure]:
        return [f for f in self.figures if f.verdict == "MISSED"]


def machine() -> str:
    """The processor and what runs on it."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def new_report(name: str) -> Report:
    return Report(name, machine=machine(), date=datetime.now(UTC).strftime("%Y-%m-%d"))


def doing(what: str) -> None:
    """Print what is being measured, since it takes minutes."""
    Console(stderr=True).print(f"{datetime.now().strftime('%H:%M:%S')} {what}", highlight=False, style="dim")


def in_turns(calls: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    """What each call returned in each round: calls take turns, so that noise affects all of them alike."""
    results: dict[str, list[Result]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            results[name].append(call())
    return results


def side_by_side(calls: dict[str, Call], repeats: int = 7) -> dict[str, float]:
    """The median seconds of each call, after one to warm up."""
    in_turns(calls, 1)
    taken = in_turns({name: partial(_timed, call) for name, call in calls.items()}, repeats)
    return {name: statistics.median(times) for name, times in taken.items()}


def _timed(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def seconds(call: Call, repeats: int = 3) -> float:
    """The median seconds of a call, after one to warm up."""
    return side_by_side({"it": call}, repeats)["it"]


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, Sash uses this many threads."""
    before = os.environ.get("SASH_THREADS")
    os.environ["SASH_THREADS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SASH_THREADS"]
        else:
            os.environ["SASH_THREADS"] = before


def same(ours: Any, theirs: Any, what: str, tolerance: float = 1e-6) -> None:
    """Raise unless two arrays of results are equal, up to rounding."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True):
        raise AssertionError(f"{what}: the answers differ")


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def figures_table(report: Report) -> tuple[str, list[str], list[list[str]]]:
    rows = []
    for f in report.figures:
        sign = "≥" if f.better == "higher" else "≤"
        bounds = [f"{sign} {number(b)}" if b is not None else "" for b in (f.must, f.aim)]
        rows.append([f.what, f"{number(f.value)} {f.unit}".strip(), *bounds, f.verdict, f.note])
    return "Figures", ["what", "measured", "must", "aim", "", "note"], rows


def print_table(console: Console, title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for k, name in enumerate(header):
        table.add_column(name, justify="left" if k == 0 else "right")
    for row in rows:
        style = "red" if "MISSED" in row else None
        table.add_row(*row, style=style)
    console.print(table)


def markdown(report: Report) -> str:
    """The report as Markdown, for the docs."""
    lines = [f"Measured {report.date} on {report.machine}, with `make bench NAME={report.name}`.", ""]
    for title, header, rows in [figures_table(report), *report.tables]:
        if rows:
            lines += [f"**{title}**", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
            lines += ["| " + " | ".join(cell or " " for cell in row) + " |" for row in rows] + [""]
    return "\n".join(lines)


def finish(report: Report, folder: Path, docs: Path | None) -> None:
    """Print, and write JSON, Markdown and a picture; with ``docs`` put the tables between a page's markers."""
    console = Console(width=max(120, Console().width))
    for title, header, rows in [figures_table(report), *report.tables]:
        if rows:
            print_table(console, f"{report.name}: {title}", header, rows)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{report.name}.json").write_text(json.dumps(asdict(report), indent=1))
    (folder / f"{report.name}.md").write_text(markdown(report))
    if report.plots:
        draw(report, folder / f"{report.name}.png")
    missed = len(report.missed)
    console.print(f"{len(report.figures)} figures, {missed} missed; written to {folder}/{report.name}.json, .md and .png")
    if docs is not None:
        page = docs.read_text()
        start, end = f"<!-- {report.name}: begin -->", f"<!-- {report.name}: end -->"
        before, _, rest = page.partition(start)
        _, _, after = rest.partition(end)
        docs.write_text(f"{before}{start}\n{markdown(report)}\n{end}{after}")
        console.print(f"{docs} brought up to date")


def draw(report: Report, path: Path) -> None:
    """All plots of a report in one picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(3, len(report.plots))
    rows = -(-len(report.plots) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5.2 * columns, 3.8 * rows), squeeze=False)
    for axis in axes.flat[len(report.plots) :]:
        axis.set_visible(False)
    for axis, plot in zip(axes.flat, report.plots, strict=False):
        for series in plot.series:
            axis.plot(series.x, series.y, marker="o", markersize=3, linewidth=1.2, label=series.name)
        axis.set_title(plot.title, fontsize=10, loc="left")
        axis.set_xlabel(plot.x_label, fontsize=8)
        axis.set_ylabel(plot.y_label, fontsize=8)
        if plot.log_x:
            axis.set_xscale("log", base=2)
        if plot.log_y:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.25)
        axis.legend(fontsize=7)
    figure.suptitle(f"sash bench {report.name}, {report.date}, {report.machine}", fontsize=8, x=0.01, ha="left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
