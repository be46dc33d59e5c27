"""``sash bench slicing``: figures 8 to 16 of general stream slicing (Traub et al., EDBT 2019), and the operator's own figures.

One key, micro-batches of 10,000 rows, an advance after each; tumbling windows with lengths spread evenly from 1 to 20 s, as in the
paper. Event time runs at a million rows a second.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.baselines import TECHNIQUES, AggregateBuckets, Technique, TupleBuffer
from sash.bench.harness import Figure, Plot, Report, Series, doing, in_turns, new_report, number, seconds
from sash.bench.per_aggregate import per_aggregate
from sash.bench.row_by_row import row_by_row

SECOND = 1_000_000
BATCH = 10_000
RATE = 1_000_000
DELAY = 2 * SECOND
ROUNDS = 11
SESSION = "session"
"""The name of figure 9's session among its windows."""


class Stream:
    """Rows in the order of arrival; some are late by up to ``delay``."""

    def __init__(self, rows: int, late: float = 0.0, delay: int = DELAY, rate: int = RATE, gaps: bool = True) -> None:
        rng = np.random.default_rng(9)
        ticks = np.sort(rng.integers(0, int(rows / rate * SECOND), rows))
        if gaps:  # five a minute separate sessions
            ticks += ticks // (12 * SECOND) * (2 * SECOND)
        arrival = ticks + np.where(rng.random(rows) < late, rng.integers(0, delay + 1, rows), 0)
        order = np.argsort(arrival, kind="stable")
        self.ticks, self.values = ticks[order], rng.integers(0, 1000, rows)[order]
        self.late, self.delay = late, delay if late else 0
        newest = np.maximum.accumulate(self.ticks)
        ends = np.minimum(np.arange(BATCH, rows + BATCH, BATCH), rows) - 1
        self.watermarks = np.maximum(newest[ends] - self.delay, 0)
        self.rows = rows

    @cached_property
    def batches(self) -> list[pa.RecordBatch]:
        table = pa.table({"t": pa.array(self.ticks).cast(pa.timestamp("us")), "v": self.values}).combine_chunks()
        batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=BATCH)
        return batches


def lengths(count: int) -> list[int]:
    """Window lengths spread evenly from 1 to 20 s, in whole milliseconds."""
    return [int(x) * 1000 for x in np.linspace(1000, 20_000, count)]


def run_operator(stream: Stream, specs: dict[str, Any], aggs: Any = None, **options: Any) -> tuple[float, int, Any]:
    """Seconds, the total of the results (without sessions, which the baselines do not support), and the operator."""
    batches = stream.batches
    op = sash.Operator(windows=specs, aggs=aggs or [S.sum("v").alias("s")], time="t", **options)
    op.add(batches[0].slice(0, 0))
    results = []
    started = time.perf_counter()
    for batch, watermark in zip(batches, stream.watermarks.tolist(), strict=True):
        op.add(batch)
        results.append(op.advance(watermark))
    taken = time.perf_counter() - started
    emitted = pa.concat_tables(results)
    if SESSION in specs:
        emitted = emitted.filter(pc.field("query") != SESSION)
    whole = emitted.column("s")
    total = int(np.asarray(whole).sum()) if pa.types.is_integer(whole.type) and len(whole) else 0
    return taken, total, op


def run_in_turns(runs: Sequence[tuple[Stream, dict[str, Any]]], rounds: int = ROUNDS) -> list[tuple[float, int]]:
    """The median seconds of each run of the operator and its total; they take turns, so that noise affects all alike."""
    rounds_of = in_turns({str(at): partial(run_operator, *run) for at, run in enumerate(runs)}, rounds)
    medians = []
    for done in rounds_of.values():
        taken, totals, _ = zip(*done, strict=True)
        if len(set(totals)) > 1:
            raise AssertionError("the same stream gave different results")
        medians.append((statistics.median(taken), totals[0]))
    return medians


def run_technique(stream: Stream, technique: Technique) -> tuple[float, int]:
    """The same for a baseline."""
    total = 0
    started = time.perf_counter()
    for k, watermark in enumerate(stream.watermarks.tolist()):
        part = slice(k * BATCH, (k + 1) * BATCH)
        technique.add(stream.ticks[part], stream.values[part])
        total += technique.advance(watermark)
    return time.perf_counter() - started, total


def tumbling(count: int) -> dict[str, Any]:
    return {f"w{k}": W.tumbling(f"{length} microseconds") for k, length in enumerate(lengths(count))}


def measure(*, quick: bool = False, data: Path | None = None) -> Report:
    """All figures."""
    report = new_report("slicing")
    rows = 4_000_000 if quick else 16_000_000
    warm = Stream(200_000, 0.2)
    run_operator(warm, {**tumbling(4), SESSION: W.session("1 second")})
    doing("figure 8: in order")
    _figure_8(report, rows)
    doing("figure 9: out of order, with a session")
    _figure_9(report, rows)
    doing("figures 10 to 12: memory, latency, disorder")
    _figure_10(report, 50_000)
    _figure_11(report, quick)
    _figure_12(report, rows)
    doing("figures 13 to 16: aggregates and measures; rows one at a time")
    _figures_13_14(report, rows // 16)
    _figure_15(report, quick)
    _figure_16(report, rows // 16)
    _one_row_at_a_time(report, 20_000 if quick else 300_000)
    row_by_row(report, 2_000 if quick else 20_000)
    per_aggregate(report, 500_000 if quick else 2_000_000)
    return report


WINDOWS = (1, 10, 100, 1000)
FEW = {"aggregate tree": 300_000, "tuple buckets": 400_000, "aggregate buckets": 800_000}
"""Rows for techniques that would take minutes."""


def _rows_for(technique: type[Technique], windows: int, rows: int) -> int:
    return min(rows, max(60_000, FEW.get(technique.title, 4_000_000) * 20 // max(20, windows)))


def _figure_8(report: Report, rows: int) -> None:
    """In order, context free windows."""
    plot = Plot("Figure 8: in order", "windows", "M rows/s", log_y=True)
    speeds: dict[str, list[float]] = {"sash": []}
    stream = Stream(rows)
    ours = run_in_turns([(stream, tumbling(count)) for count in WINDOWS])
    for count, (taken, total) in zip(WINDOWS, ours, strict=True):
        speeds["sash"].append(rows / taken / 1e6)
        for kind in TECHNIQUES:
            few = _rows_for(kind, count, rows)
            part = stream if few == rows else Stream(few)
            theirs, other = run_technique(part, kind(lengths(count)))
            _compare(kind, count, other, total if few == rows else run_operator(part, tumbling(count))[1])
            speeds.setdefault(kind.title, []).append(few / theirs / 1e6)
    _add(report, plot, speeds, WINDOWS)


def _compare(kind: type[Technique], count: int, theirs: int, ours: int) -> None:
    if theirs != ours:
        raise AssertionError(f"{kind.title}, {count} windows: {theirs} instead of {ours}")


def _add(report: Report, plot: Plot, speeds: dict[str, list[float]], xs: Any) -> None:
    plot.series = [Series(name, [float(x) for x in xs], values) for name, values in speeds.items()]
    report.plots.append(plot)
    header = [plot.x_label, *[str(x) for x in xs]]
    report.tables.append((f"{plot.title}, {plot.y_label}", header, [[n, *[number(v) for v in values]] for n, values in speeds.items()]))


def _figure_9(report: Report, rows: int) -> None:
    """20 % out of order, and a session."""
    plot = Plot("Figure 9: 20 % out of order, with a session", "windows", "M rows/s", log_y=True)
    stream = Stream(rows, 0.2)
    speeds: dict[str, list[float]] = {"sash": []}
    spec_sets = [{**tumbling(count), SESSION: W.session("1 second")} for count in WINDOWS]
    ours = run_in_turns([(stream, specs) for specs in spec_sets])
    for count, specs, (taken, total) in zip(WINDOWS, spec_sets, ours, strict=True):
        speeds["sash"].append(rows / taken / 1e6)
        for kind in TECHNIQUES:
            if kind.only_in_order:
                continue
            few = _rows_for(kind, count, rows)
            part = stream if few == rows else Stream(few, 0.2)
            theirs, other = run_technique(part, kind(lengths(count)))
            _compare(kind, count, other, total if few == rows else run_operator(part, specs)[1])
            speeds.setdefault(f"{kind.title} (without the session)", []).append(few / theirs / 1e6)
    _add(report, plot, speeds, WINDOWS)
    retained = 100 * speeds["sash"][-1] / speeds["sash"][0]
    what = "1 to 1,000 windows with 20 % disorder and a session: throughput retained"
    report.figures.append(
        Figure(what, retained, "%", must=80, aim=95, note=f"{number(speeds['sash'][0])} to {number(speeds['sash'][-1])} M rows/s")
    )


def _figure_10(report: Report, rows: int) -> None:
    """Memory, in bytes."""
    lines = []
    for slices in (10, 100, 1000, 10_000):
        span = rows * SECOND // RATE
        step = max(1, span // slices)
        stream = Stream(rows, 0.2, delay=span // 2, gaps=False)
        op = sash.Operator(windows=W.tumbling(f"{step} microseconds"), aggs=[S.sum("v").alias("s")], time="t")
        ranked = sash.Operator(windows=W.rows(max(1, rows // slices)), aggs=[S.sum("v").alias("s")], time="t")
        for batch in stream.batches:
            op.add(batch)
            ranked.add(batch)
        buffer, buckets = TupleBuffer([step]), AggregateBuckets([step])
        for technique in (buffer, buckets):
            technique.add(stream.ticks, stream.values)
        lines.append([str(slices), f"{op.stats.bytes:,}", f"{buckets.nbytes:,}", f"{buffer.nbytes:,}", f"{ranked.stats.bytes:,}"])
    header = ["slices", "sash, time windows", "aggregate buckets", "tuple buffer", "sash, row windows (rows are retained)"]
    report.tables.append((f"Figure 10: bytes stored for {rows:,} rows within the lateness", header, lines))


def _figure_11(report: Report, quick: bool) -> None:
    """How long it takes to compute one window when it ends."""
    from sash.algorithms import flat_fat, reduce
    from sash.algorithms.rolling import make_output
    from sash.bench.baselines import sum_form
    from sash.kernels.cpu.compiler import compiled
    from sash.kernels.generate import generate, vector_width

    form = sum_form()
    lazy = generate(reduce.ranges_in_lanes, form, masked=True, partials=True, lanes=vector_width(form))
    fill = compiled(generate(flat_fat.fill, form, masked=True, partials=True))
    eager = generate(flat_fat.ranges, form, masked=True, partials=True)
    lines, plot = [], Plot("Figure 11: latency of a window's result", "slices", "µs", log_y=True)
    curves: dict[str, list[float]] = {"lazy": [], "eager": [], "buckets": []}
    counts = (10, 100, 1000, 10_000) if quick else (10, 100, 1000, 10_000, 100_000)
    for count in counts:
        states = [np.zeros(count, np.int64), np.arange(count)]
        bounds = np.array([0]), np.array([count])
        one, two = make_output(form, lazy, 1), make_output(form, eager, 1)
        places = 1 << max(1, count - 1).bit_length()
        tree = [np.zeros(2 * places, np.int64) for _ in states]
        fill(*states, count, *tree, places)
        lazily, eagerly = compiled(lazy), compiled(eager)
        lazily(*states, *bounds, 0, 1, *one.arguments())
        eagerly(*tree, places, *bounds, 0, 1, *two.arguments())
        if one.values[0][0] != two.values[0][0]:
            raise AssertionError("lazy and eager differ")
        curves["lazy"].append(_micros(lambda: lazily(*states, *bounds, 0, 1, *one.arguments())))
        curves["eager"].append(_micros(lambda: eagerly(*tree, places, *bounds, 0, 1, *two.arguments())))
        curves["buckets"].append(_micros(lambda: states[1][count - 1]))
        lines.append([str(count), *[number(c[-1]) for c in curves.values()]])
    plot.series = [Series(n, [float(c) for c in counts], v) for n, v in curves.items()]
    report.plots.append(plot)
    report.tables.append(("Figure 11: latency in µs, the call of the kernel included", ["slices", *curves], lines))


def _micros(call: Any, repeats: int = 200) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e6


def _figure_12(report: Report, rows: int) -> None:
    """Out of order: how many, and by how much."""
    shares = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
    curve = [rows / taken / 1e6 for taken, _ in run_in_turns([(Stream(rows, share, gaps=False), tumbling(20)) for share in shares])]
    buffer = [min(rows, 300_000) / run_technique(Stream(min(rows, 300_000), s), TupleBuffer(lengths(20)))[0] / 1e6 for s in shares]
    plot = Plot("Figure 12a: rows out of order", "share %", "M rows/s", log_x=False)
    _add(report, plot, {"sash": curve, "tuple buffer": buffer}, [int(100 * s) for s in shares])
    retained = 100 * min(curve) / curve[0]
    report.figures.append(Figure("0 to 50 % of rows out of order: throughput retained", retained, "%", must=80, aim=95))
    report.figures.append(Figure("sum over 20 windows, up to 50 % out of order", min(curve), "M rows/s", must=40, aim=150))
    delays = (0, 1, 2, 4, 8)
    late = [(Stream(rows, 0.2, delay=d * SECOND, gaps=False), tumbling(20)) for d in delays]
    curve = [rows / taken / 1e6 for taken, _ in run_in_turns(late)]
    _add(report, Plot("Figure 12b: delay of rows out of order", "up to s", "M rows/s", log_x=False), {"sash": curve}, delays)


def _figures_13_14(report: Report, rows: int) -> None:
    """Aggregates, over time and over rows."""
    lines = []
    stream = Stream(rows, 0.2)
    for name in ("count", "sum", "min", "max", "avg", "stddev_pop", "min_count", "max_by", "median"):
        call = S.max_by("v", "v") if name == "max_by" else getattr(S, name)("v")
        speeds = []
        for specs in (tumbling(20), {f"r{k}": W.rows(length // 1000 * RATE // 1000) for k, length in enumerate(lengths(20))}):
            part = stream if name != "median" else Stream(rows // 10, 0.2)
            run_operator(Stream(20_000, 0.2), specs, [call.alias("s")])  # compiles
            taken, _, _ = run_operator(part, specs, [call.alias("s")])
            speeds.append(part.rows / taken / 1e6)
        lines.append([name, *[number(s) for s in speeds]])
    report.tables.append(
        ("Figures 13 and 14: aggregates, M rows/s, 20 windows, 20 % out of order", ["aggregate", "time windows", "row windows"], lines)
    )


def _figure_15(report: Report, quick: bool) -> None:
    """How long it takes to aggregate a slice of so many rows again, as after a split."""
    lines = []
    for count in (100, 1000, 10_000, 100_000):
        table = pa.table({"t": np.zeros(count, np.int64), "v": np.random.default_rng(1).integers(0, 1 << 20, count)})
        row = [str(count)]
        for call in (S.sum("v"), S.median("v")):
            row.append(number(seconds(lambda: sash.aggregate(table, windows=W.unbounded(), aggs=[call], time="t"), 5) * 1e6))
        lines.append(row)
    report.tables.append(("Figure 15: µs to aggregate a slice from its rows", ["rows", "sum", "median"], lines))


def _figure_16(report: Report, rows: int) -> None:
    """Windows measured in time and in rows."""
    curves: dict[str, list[float]] = {"time": [], "rows": []}
    counts = (1, 10, 100)
    stream = Stream(rows, 0.2)
    for count in counts:
        curves["time"].append(rows / run_operator(stream, tumbling(count))[0] / 1e6)
        ranked = {f"r{k}": W.rows(length // 1000 * RATE // 1000) for k, length in enumerate(lengths(count))}
        curves["rows"].append(rows / run_operator(stream, ranked)[0] / 1e6)
    _add(report, Plot("Figure 16: measures, 20 % out of order", "windows", "M rows/s"), curves, counts)


def _one_row_at_a_time(report: Report, rows: int) -> None:
    specs = {f"w{k}": W.tumbling((k + 1) * 1000) for k in range(20)}
    batches = [[{"t": k, "v": k % 100}] for k in range(rows)]
    op = sash.Operator(windows=specs, aggs=[S.sum("v").alias("s")], time="t")
    started = time.perf_counter()
    for batch in batches:
        op.add(batch)
    result = op.advance(rows)
    taken = time.perf_counter() - started
    expected = sum(k % 100 for k in range(rows // 1000 * 1000))
    if sum(r["s"] for r in result.to_pylist() if r["query"] == "w0") != expected:
        raise AssertionError("one row at a time: the answers differ")
    report.figures.append(
        Figure("one row at a time through op.add (dictionaries), 20 windows", rows / taken / 1e3, "k rows/s", must=100, aim=300)
    )
