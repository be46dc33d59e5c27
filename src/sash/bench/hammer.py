"""``sash bench hammer``: the figures of Hammer Slide (Theodorakis et al., ADMS 2018), and its ablation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sash.algorithms import HammerSlide
from sash.algorithms.hammer_slide import roll_slides
from sash.algorithms.rolling import Job, make_output
from sash.bench import rle, subjects
from sash.bench.harness import Figure, Plot, Report, Series, new_report, number, same, side_by_side, threads
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate
from sash.types import dtype

Array = Any
BUDGET = 1_500_000_000
"""Row visits that a slow algorithm may take in one measurement; it is measured on fewer rows instead of for longer."""


def variants(work: Job, *, subtract: bool, ours: bool = True) -> dict[str, Callable[[], Any]]:
    """The paper's algorithms, plain and optimised, and ``sash.rolling``."""
    form = work.form.forced_invertible() if subtract else work.form
    paper = Job(form, work.rows, work.count, work.size, work.every, False)
    calls = {
        "non-incremental": subjects.non_incremental(work),
        "SoE": subjects.subtract_on_evict(paper, simd=False),
        "SoE, SIMD": subjects.subtract_on_evict(paper, simd=True),
        "Two-Stacks": subjects.roll("two_stacks", work),
        "Hammer Slide": subjects.hammer(work),
    }
    return {**calls, "sash.rolling": subjects.sash_itself(work)} if ours else calls


def measured(name: str, x: Array, size: int, every: int, repeats: int) -> dict[str, float]:
    """M rows/s of every variant; slow ones on fewer rows."""
    subtract = name == "avg"
    form = subjects.form_of(name, x)
    result = {}
    work = subjects.job(form, x, size, every)
    calls = variants(work, subtract=subtract)
    expected = calls["Two-Stacks"]().values[0].copy()
    for variant, call in calls.items():
        cost = (
            size / every
            if variant == "non-incremental"
            else max(1.0, size / 64)
            if variant.startswith("SoE") and name == "min" and every < 16
            else 1.0
        )
        rows = len(x)
        if rows * cost > BUDGET:
            rows = max(4 * size, int(BUDGET / cost))
            short = subjects.job(form, x[:rows], size, every)
            call = variants(short, subtract=subtract, ours=False)[variant]
        values = call().values[0]
        same(values, expected[: len(values)], f"{variant} {name} {size}/{every}", 1e-6)
        result[variant] = rows / side_by_side({"it": call}, repeats)["it"] / 1e6
    return result


def curve(
    report: Report, title: str, name: str, x: Array, points: list[tuple[int, int, float]], x_label: str, repeats: int
) -> dict[str, list[float]]:
    """A figure: one measurement per point (size, slide, place on the axis)."""
    plot = Plot(title, x_label, "M rows/s", log_y=True)
    curves: dict[str, list[float]] = {}
    for size, every, _ in points:
        for variant, speed in measured(name, x, size, every, repeats).items():
            curves.setdefault(variant, []).append(speed)
    places = [p for _, _, p in points]
    plot.series = [Series(v, places, c) for v, c in curves.items()]
    report.plots.append(plot)
    report.tables.append(
        (
            title + ", M rows/s",
            ["", *(number(p) if p < 1 else f"{p:,.0f}" for p in places)],
            [[v, *map(number, c)] for v, c in curves.items()],
        )
    )
    return curves


def measure(quick: bool = False, data: Path | None = None) -> Report:
    """Figures 4a, 6, 7, 8, 9, 10, 11 and the ablation of section 3.2."""
    report = new_report("hammer")
    rows, repeats = (1 << 20, 2) if quick else (1 << 22, 3)
    rng = np.random.default_rng(0)
    few = rng.integers(0, 64, rows).astype(np.int32)
    many = rng.integers(0, 1 << 20, rows).astype(np.int32)
    with threads(1):
        sizes = [8, 64, 512, 4096, 32768, 262144][: 5 if quick else 6]
        curve(report, "Figure 4a: min, slide 1, values in [0, 64)", "min", few, [(s, 1, s) for s in sizes], "window", repeats)
        slides = [1, 4, 16, 64, 256, 1024]
        six = curve(report, "Figure 6: avg, window 1024", "avg", many, [(1024, s, s) for s in slides], "slide", repeats)
        seven = curve(report, "Figure 7: min, window 1024", "min", many, [(1024, s, s) for s in slides], "slide", repeats)
        _figure_8(report, rng, rows, repeats)
        curve(report, "Figure 9: avg, slide 1", "avg", many, [(s, 1, s) for s in sizes], "window", repeats)
        ten = curve(report, "Figure 10: min, slide 1", "min", many, [(s, 1, s) for s in sizes], "window", repeats)
        _figure_11(report, rng, rows, repeats, data)
        _ablation(report, few, repeats)
    middle = slides.index(64)
    report.figures += [
        Figure(
            "min 1024/64: Hammer Slide against plain Two-Stacks (paper: up to 11×)",
            seven["Hammer Slide"][middle] / seven["Two-Stacks"][middle],
        ),
        Figure(
            "min 1024/64: Hammer Slide against non-incremental (paper: up to 1.8×)",
            seven["Hammer Slide"][middle] / seven["non-incremental"][middle],
        ),
        Figure(
            "min, tumbling 1024: Hammer Slide against non-incremental (paper: ≥ 0.9)",
            seven["Hammer Slide"][-1] / seven["non-incremental"][-1],
        ),
        Figure("avg 1024/64: Hammer Slide against plain Two-Stacks", six["Hammer Slide"][middle] / six["Two-Stacks"][middle]),
        Figure(
            "min, slide 1, window 4096: sash.rolling against Hammer Slide",
            ten["sash.rolling"][sizes.index(4096)] / ten["Hammer Slide"][sizes.index(4096)],
        ),
    ]
    return report


def _figure_8(report: Report, rng: Any, rows: int, repeats: int) -> None:
    """How often the extreme leaves: with u distinct values, the minimum is evicted about once in u rows."""
    plot = Plot("Figure 8: min, window 1024, slide 1", "share of evictions that rescan", "M rows/s", log_x=False, log_y=True)
    curves: dict[str, list[float]] = {}
    shares = []
    for distinct in (1024, 64, 16, 8, 4, 2):
        x = rng.integers(0, distinct, rows).astype(np.int32)
        shares.append(float((x == 0).mean()))
        for variant, speed in measured("min", x, 1024, 1, repeats).items():
            if variant != "non-incremental":
                curves.setdefault(variant, []).append(speed)
    plot.series = [Series(v, shares, c) for v, c in curves.items()]
    report.plots.append(plot)
    report.tables.append(
        (
            plot.title + " by rescan rate, M rows/s",
            ["", *(f"{s:.3f}" for s in shares)],
            [[v, *map(number, c)] for v, c in curves.items()],
        )
    )


def cluster_trace(rng: Any, rows: int, data: Path | None) -> tuple[Array, Array, str]:
    """Times in seconds and CPU shares of task events: the real trace repeated, or one as spiky as it."""
    if data is not None:
        table = np.loadtxt(data / "google-cluster-data.txt", usecols=(0, 8))
        stamps, cpu = table[:, 0], table[:, 1]
        seconds = ((stamps - stamps[0]) * 256 / max(1.0, stamps[-1] - stamps[0])).astype(np.int64)
        repeats = -(-rows // len(seconds))
        span = int(seconds[-1]) + 1
        long = np.concatenate([seconds + k * span for k in range(repeats)])[:rows]
        return long, np.tile(cpu, repeats)[:rows].astype(np.float64), "the Google cluster trace, repeated"
    rates = np.where(rng.random(4096) < 0.2, rng.integers(20_000, 100_000, 4096), rng.integers(0, 400, 4096))
    times = np.repeat(np.arange(4096), rates)[:rows]
    return times, rng.random(len(times)), "a generated stream of 0 to 100,000 events a second"


def _figure_11(report: Report, rng: Any, rows: int, repeats: int, data: Path | None) -> None:
    times, cpu, source = cluster_trace(rng, rows, data)
    form = subjects.form_of("avg", cpu)
    plot = Plot("Figure 11: avg over 64 seconds", "slide in seconds", "M rows/s", note=source)
    curves: dict[str, list[float]] = {
        "Hammer Slide": [],
        "Hammer Slide, no SIMD": [],
        "non-incremental": [],
        "sash (slices, two stacks)": [],
    }
    slides = (1, 4, 16, 64)
    for slide in slides:
        last = int(times[-1]) // slide
        offsets = np.searchsorted(times, np.arange(last + 1) * slide)
        per_window = 64 // slide
        windows = last - per_window + 1
        bounds = [(int(offsets[k]), int(offsets[k + per_window])) for k in range(windows)]
        expected = np.array([cpu[a:b].mean() if b > a else np.nan for a, b in bounds])
        calls: dict[str, Any] = {}
        for label, simd in (("Hammer Slide", True), ("Hammer Slide, no SIMD", False)):
            module = HammerSlide.module(roll_slides, form, known_rows=False, switches={"SIMD": simd})
            calls[label] = _slides_call(module, form, cpu, offsets, last, per_window, windows, int(max(b - a for a, b in bounds)))
        calls["non-incremental"] = _ranges_call(form, cpu, bounds)
        calls["sash (slices, two stacks)"] = _slices_call(form, cpu, offsets, per_window, windows)
        has_rows = ~np.isnan(expected)
        for label, call in calls.items():
            same(call()[has_rows], expected[has_rows], f"figure 11, {label}", 1e-9)
            curves[label].append(len(cpu) / side_by_side({"it": call}, repeats)["it"] / 1e6)
    plot.series = [Series(v, list(slides), c) for v, c in curves.items()]
    report.plots.append(plot)
    report.tables.append(
        (
            f"{plot.title} ({source}), by slide, M rows/s",
            ["", *map(str, slides)],
            [[v, *map(number, c)] for v, c in curves.items()],
        )
    )


def _slides_call(
    module: Any, form: Any, cpu: Array, offsets: Array, slides: int, per_window: int, windows: int, longest: int
) -> Callable[[], Array]:
    kernel = compiled(module)
    memory = HammerSlide.memory(module, 1 << (longest + int(np.diff(offsets).max())).bit_length())
    fresh = memory[0].copy()
    output = make_output(form, module, windows)

    def call() -> Array:
        memory[0][:] = fresh
        kernel(cpu, offsets, slides, per_window, *memory, *output.arguments())
        return output.values[0]

    return call


def _ranges_call(form: Any, cpu: Array, bounds: list[tuple[int, int]]) -> Callable[[], Array]:
    from sash.algorithms import reduce

    module = generate(reduce.ranges_in_lanes, form, lanes=8)
    kernel, output = compiled(module), make_output(form, module, len(bounds))
    lo, hi = (np.array([b[k] for b in bounds]) for k in (0, 1))

    def call() -> Array:
        kernel(cpu, lo, hi, 0, len(lo), *output.arguments())
        return output.values[0]

    return call


def _slices_call(form: Any, cpu: Array, offsets: Array, per_window: int, windows: int) -> Callable[[], Array]:
    from sash.algorithms import blocks, reduce

    first = generate(reduce.segments_in_lanes, form, lanes=8)
    second = generate(blocks.slide_by_one, form, partials=True)
    slice_up, assemble = compiled(first), compiled(second)
    count = len(offsets) - 1
    state = [np.zeros(count, dtype(m)) for m in first.state]
    scratch = [np.zeros(per_window, dtype(m)) for m in first.state]
    output = make_output(form, second, windows)

    def call() -> Array:
        slice_up(cpu, offsets, 0, count, *state)
        assemble(*state, 0, windows, per_window, *scratch, *output.arguments())
        return output.values[0]

    return call


def _ablation(report: Report, x: Array, repeats: int) -> None:
    """Section 3.2: min, window 1024, slide 64, one optimisation after the other."""
    work = subjects.job(subjects.form_of("min", x), x, 1024, 64)
    calls: dict[str, Any] = {
        "growing stacks, as C++'s deque": subjects.hammer(work, ring=False, decomposed=False, per_slide=False, simd=False),
        "(1) ring buffers, flip without copying": subjects.hammer(work, decomposed=False, per_slide=False, simd=False),
        "(2) decomposed intermediates": subjects.hammer(work, per_slide=False, simd=False),
        "(2) one entry per slide": subjects.hammer(work, simd=False),
        "(3) bulk insertion and SIMD scans": subjects.hammer(work),
        "(4) run-length encoding, on top of (2), decomposed": _rle_call(work),
    }
    expected = calls["(3) bulk insertion and SIMD scans"]().values[0].copy()
    for label, call in calls.items():
        result = call()
        same(result.values[0], expected, f"ablation, {label}")
    times = side_by_side(calls, max(5, repeats))
    base = next(iter(times.values()))
    report.tables.append(
        (
            "Ablation (section 3.2): min, window 1024, slide 64",
            ["", "ms", "M rows/s", "against the first"],
            [[k, f"{t * 1e3:.2f}", number(len(x) / t / 1e6), f"{base / t:.2f}×"] for k, t in times.items()],
        )
    )
    report.figures.append(
        Figure(
            "ablation: run-length encoding against without it (paper: 0.82 to 0.91)",
            times["(2) decomposed intermediates"] / times["(4) run-length encoding, on top of (2), decomposed"],
        )
    )


def _rle_call(work: Job) -> Callable[[], Any]:
    module = generate(rle.roll, work.form, known_rows=True)
    kernel, output = compiled(module), make_output(work.form, module, work.windows)
    buffers = [np.zeros(n, dtype(m)) for n in (work.size + work.every, work.size + work.every, 1) for m in module.state]
    counts = np.zeros(work.size + work.every, np.int64)

    def call() -> Any:
        kernel(*work.rows, 0, work.windows, work.size, work.every, *buffers, counts, *output.arguments())
        return output

    return call
