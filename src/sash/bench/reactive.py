"""``sash bench reactive``: tables 3 and 4 and figures 6 to 11 of the Reactive Aggregator (Tangwongsan et al., VLDB 2015).

ISS, the paper's baseline, re-evaluates the whole window: here :class:`~sash.algorithms.Recalculate`, compiled, one value at a time.
AW is :class:`~sash.algorithms.BInt`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sash.aggregates import named
from sash.algebra import Form
from sash.algorithms import ReactiveAggregator
from sash.algorithms.rolling import Job
from sash.bench import subjects
from sash.bench.harness import Figure, Plot, Report, Series, new_report, number, same, side_by_side, threads

Array = Any
BUDGET = 60_000_000
"""Combines that one measurement may take; larger windows get fewer firings."""

FUNCTIONS = {
    "Count": ("count", "int32"),
    "Sum": ("sum", "int32"),
    "Sum<double>": ("sum", "float64"),
    "Max": ("max", "int32"),
    "Max<double>": ("max", "float64"),
    "ArithmeticMean": ("avg", "int32"),
    "MinCount": ("min_count", "int32"),
    "SampleStdDev": ("stddev_samp", "int32"),
    "PopulationStdDev": ("stddev_pop", "int32"),
    "ArgMax": ("max_by", "int32"),
    "ArgMax<double>": ("max_by", "float64"),
}


def form_of(name: str, kind: str, rows: int) -> Form:
    aggregate = named(name)()
    if name == "max_by":
        return aggregate.positions(pa.from_numpy_dtype(kind))  # type: ignore[attr-defined, no-any-return]
    return aggregate.form(*[pa.from_numpy_dtype(kind)] * aggregate.arity, rows=rows)


def make_job(label: str, size: int, every: int, firings: int) -> Job:
    name, kind = FUNCTIONS[label]
    rows = size + firings * every
    x = np.random.default_rng(4).integers(0, 1 << 20, rows).astype(kind)
    form = form_of(name, kind, rows)
    return Job(form, [x] if form.inputs else [], rows, size, every, False)


def cost(algorithm: str, label: str, size: int, every: int = 1, firings: int | None = None, repeats: int = 3) -> float:
    """Seconds per inserted and evicted row, once the window is full."""
    per_firing = size if algorithm == "recalculate" else every * (2 + math.log2(max(2, size / every)))
    if firings is None:
        firings = int(min(400_000, max(20, BUDGET / per_firing / 3)))
    full, filled = make_job(label, size, every, firings), make_job(label, size, every, 0)
    times = side_by_side({"all": subjects.roll(algorithm, full), "fill": subjects.roll(algorithm, filled)}, repeats)
    return max(times["all"] - times["fill"], 1e-12) / (firings * every)


def break_even(label: str, factor: float, limit: int) -> int | None:
    """The smallest window, to the nearest ten, at which RA is ``factor`` times as fast as ISS."""

    def wins(size: int) -> bool:
        return cost("recalculate", label, size) >= factor * cost("reactive_aggregator", label, size)

    high = 8
    while not wins(high):
        high *= 2
        if high > limit:
            return None
    low = high // 2
    while high - low > max(10, low // 16):
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return round(high, -1) or high


def measure(quick: bool = False, data: Path | None = None) -> Report:
    """Everything but figure 12."""
    report = new_report("reactive")
    largest = 13 if quick else 20
    with threads(1):
        _check()
        _table_3(report, quick)
        _table_4(report, [3, 13] if quick else [3, 13, 22])
        _figures_6_7(report, largest)
        _figure_8(report, largest)
        _figure_9(report, 10 if quick else 13)
        _figures_10_11(report, largest)
    return report


def _check() -> None:
    for label in FUNCTIONS:
        work = make_job(label, 100, 7, 300)
        results = [subjects.roll(a, work)().values[0].copy() for a in ("reactive_aggregator", "b_int", "recalculate")]
        for result in results[1:]:
            same(result, results[0], f"{label}: RA, AW and ISS")


def _table_3(report: Report, quick: bool) -> None:
    paper = {
        "Count": ("never", "never"),
        "Sum": ("370", "5,200"),
        "Sum<double>": ("290", "5,200"),
        "Max": ("260", "5,200"),
        "Max<double>": ("130", "3,600"),
        "ArithmeticMean": ("10", "900"),
        "MinCount": ("200", "4,480"),
        "SampleStdDev": ("10", "700"),
        "PopulationStdDev": ("10", "700"),
        "ArgMax": ("130", "2,770"),
        "ArgMax<double>": ("250", "5,810"),
    }
    rows = []
    for label in ["Max", "SampleStdDev"] if quick else FUNCTIONS:
        even, ten = break_even(label, 1, 1 << 13), break_even(label, 10, 1 << 15)
        rows.append([label, f"{even:,}" if even else "never", paper[label][0], f"{ten:,}" if ten else "never", paper[label][1]])
        if label in ("Max", "SampleStdDev") and ten:
            report.figures.append(
                Figure(f"{label}: window from which RA is 10 times as fast as re-evaluation (paper: {paper[label][1]})", ten, "rows")
            )
    report.tables.append(("Table 3: smallest window at which RA beats re-evaluation", ["", "even", "paper", "10×", "paper"], rows))


def _table_4(report: Report, powers: list[int]) -> None:
    rows = []
    for label in ("Sum", "Max", "ArithmeticMean", "MinCount", "PopulationStdDev"):
        ratios = [cost("b_int", label, 1 << p) / cost("reactive_aggregator", label, 1 << p) for p in powers]
        rows.append([label, *(f"{r:.2f}" for r in ratios)])
    report.tables.append(
        (
            "Table 4: time of AW (B-Int) over that of RA (paper: 1.02 to 1.06, 1.20 to 1.26, 1.35 to 1.39)",
            ["", *(f"n = {1 << p:,}" for p in powers)],
            rows,
        )
    )


def _figures_6_7(report: Report, largest: int) -> None:
    powers = range(1, largest + 1, 2)
    sizes = [1 << p for p in powers]
    six = Plot("Figure 6: firing after every row", "window", "M rows/s", log_y=True)
    seven = Plot("Figure 7: cost of a (1, 1) change", "window", "ns")
    for label in ("Max", "PopulationStdDev"):
        ra = [cost("reactive_aggregator", label, n) for n in sizes]
        small = [n for n in sizes if n <= 1 << 13]
        iss = [cost("recalculate", label, n) for n in small]
        six.series += [
            Series(f"{label}, RA", [float(n) for n in sizes], [1e-6 / c for c in ra]),
            Series(f"{label}, ISS", [float(n) for n in small], [1e-6 / c for c in iss]),
        ]
        seven.series.append(Series(label, [float(n) for n in sizes], [c * 1e9 for c in ra]))
        slope, base = np.polyfit([math.log2(n) for n in sizes], [c * 1e9 for c in ra], 1)
        seven.series.append(
            Series(f"{label}, best log fit", [float(n) for n in sizes], [float(base + slope * math.log2(n)) for n in sizes])
        )
        report.figures.append(Figure(f"{label}: nanoseconds per doubling of the window (a straight line in figure 7)", float(slope), "ns"))
    report.plots += [six, seven]
    report.tables.append(
        ("Figures 6 and 7: ns per row", ["", *(f"{n:,}" for n in sizes)], [[s.name, *map(number, s.y)] for s in seven.series])
    )


def _figure_8(report: Report, largest: int) -> None:
    sizes = [1 << p for p in range(3, largest + 1, 3)]
    plot = Plot("Figure 8: tumbling windows, m = n", "window", "µs per firing", log_y=True)
    for label in ("Max", "PopulationStdDev"):
        for name, algorithm in (("RA", "reactive_aggregator"), ("ISS", "recalculate")):
            firings = [max(4, int(4_000_000 / n)) for n in sizes]
            spent = [cost(algorithm, label, n, n, f) * n * 1e6 for n, f in zip(sizes, firings, strict=True)]
            plot.series.append(Series(f"{label}, {name}", [float(n) for n in sizes], spent))
    report.plots.append(plot)
    report.tables.append(
        (
            "Figure 8: tumbling, µs per firing",
            ["", *(f"{n:,}" for n in sizes)],
            [[s.name, *map(number, s.y)] for s in plot.series],
        )
    )


def _figure_9(report: Report, largest: int) -> None:
    """Through the object, because only it resizes; its price per call is Python's, the same in both cases."""
    sizes = [1 << p for p in range(6, largest + 1)]
    plot = Plot("Figure 9: fixed and oscillating capacity", "window", "µs per row")

    def fixed(label: str, n: int) -> None:
        window = ReactiveAggregator(FUNCTIONS[label][0], dtype="int64", capacity=n)
        for v in range(n):
            window.insert(v)
        for v in range(n):
            window.evict()
            window.insert(v)
            window.query()

    def oscillating(label: str, n: int) -> None:
        window = ReactiveAggregator(FUNCTIONS[label][0], dtype="int64", capacity=n)
        for v in range(n + 1):
            window.insert(v)
        for _ in range(n // 2):
            window.evict()
            window.query()
        for v in range(n // 2):
            window.insert(v)
            window.query()

    for label in ("Max", "PopulationStdDev"):
        for name, function in (("fixed", fixed), ("osc.", oscillating)):
            spent = [side_by_side({"it": lambda: function(label, n)}, 3)["it"] / (2 * n) * 1e6 for n in sizes]
            plot.series.append(Series(f"{label}, {name}", [float(n) for n in sizes], spent))
    report.plots.append(plot)
    report.tables.append(
        (
            "Figure 9: µs per row, through the Python object",
            ["", *(f"{n:,}" for n in sizes)],
            [[s.name, *map(number, s.y)] for s in plot.series],
        )
    )


def _figures_10_11(report: Report, largest: int) -> None:
    sizes = [1 << p for p in range(4, largest + 1, 4)]
    shapes = {
        "m = 1": lambda n: 1,
        "m = 4": lambda n: 4,
        "m = 64": lambda n: 64,
        "m = n/16": lambda n: n // 16,
        "m = n/4": lambda n: n // 4,
        "m = n": lambda n: n,
    }
    ten = Plot("Figure 10: StdDev, m rows per firing, RA", "window", "ns per row")
    eleven = Plot("Figure 11: Max, RA against AW", "window", "ns per row")
    for name, rows_of in shapes.items():
        used = [n for n in sizes if 1 <= rows_of(n) <= n]
        firings = [int(min(200_000, max(8, 3_000_000 / rows_of(n)))) for n in used]
        ten.series.append(
            Series(
                name,
                [float(n) for n in used],
                [cost("reactive_aggregator", "PopulationStdDev", n, rows_of(n), f) * 1e9 for n, f in zip(used, firings, strict=True)],
            )
        )
        if name in ("m = 1", "m = 64", "m = n/4"):
            for label, algorithm in (("RA", "reactive_aggregator"), ("AW", "b_int")):
                eleven.series.append(
                    Series(
                        f"{name}, {label}",
                        [float(n) for n in used],
                        [cost(algorithm, "Max", n, rows_of(n), f) * 1e9 for n, f in zip(used, firings, strict=True)],
                    )
                )
    report.plots += [ten, eleven]
    for plot in (ten, eleven):
        report.tables.append(
            (
                f"{plot.title}, ns per row",
                ["", *(f"{n:,}" for n in sizes)],
                [[s.name, *([""] * (len(sizes) - len(s.y))), *map(number, s.y)] for s in plot.series],
            )
        )
