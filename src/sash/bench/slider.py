"""``sash bench slider``: the Slider paper's figures, as shares of the bandwidth with which a device copies.

Rows are in the device's memory, as in the paper; a figure's time is that of its kernels. There is no GPU here, so the devices are CPUs
through OpenCL, and where the paper's primitives need groups, the chooser takes those for items that work alone.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sash
from sash.aggregates import named
from sash.aggregates.max_by import MaxBy
from sash.algebra import Form
from sash.algorithms.device.measure import measure as measure_device
from sash.algorithms.device.runner import Limits, device_algorithms, shape_of
from sash.algorithms.device.self_test import self_test
from sash.algorithms.device.work import Work, lower_all
from sash.algorithms.rolling import Job
from sash.bench.harness import Figure, Report, doing, new_report, number, same
from sash.kernels.generate import generate
from sash.kernels.opencl.device_memory import DeviceMemory
from sash.kernels.opencl.devices import Device, devices
from sash.plan.choices.device_choice import decide_on_device

EXPONENTS = range(2, 21, 3)
REPEATS = 3


def measure(*, quick: bool = False, data: Path | None = None) -> Report:
    """All figures, on every device that works."""
    del data
    report = new_report("slider")
    chosen = [d for d in devices() if d.kind != "checker" and self_test(d) is None]
    for d in devices():
        wrong = self_test(d)
        if wrong is not None:
            report.tables.append((f"not used: {d.title}", ["why"], [[wrong]]))
    for device in chosen:
        _device(report, device, 1 << (20 if quick else 25), quick)
    return report


class Subject:
    """Rows on a device, and the time that kernels over them take."""

    def __init__(self, device: Device, rows: int) -> None:
        self.device, self.rows = device, rows
        self.values = np.random.default_rng(7).integers(-1000, 1000, rows).astype(np.int32)
        self.memory = DeviceMemory(device)
        cl, queue = self.memory.cl, self.memory.session.queue
        flags = cl.mem_flags.READ_WRITE
        padded = np.concatenate([self.values, np.zeros(64, np.int32)])
        self.source = cl.Buffer(self.memory.session.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=padded)
        self.target = cl.Buffer(self.memory.session.context, flags, 8 * rows + 256)
        size = self.values.nbytes
        self.copy = self.seconds(lambda: cl.enqueue_copy(queue, self.target, self.source, byte_count=size), 9)

    def seconds(self, call: Callable[[], Any], repeats: int = REPEATS) -> float:
        """The median of several runs after one to warm up."""
        times = []
        for _ in range(repeats + 1):
            began = time.perf_counter()
            call()
            self.memory.finish()
            times.append(time.perf_counter() - began)
        return statistics.median(times[1:])

    def job(self, form: Form, size: int, every: int) -> Job:
        return Job(form, [self.values], self.rows, size, every, False)

    def algorithm(
        self, form: Form, size: int, every: int, name: str, limits: Limits | None = None, rows: int | None = None
    ) -> float | None:
        """The seconds of one algorithm, None if it cannot run."""
        rows = rows or self.rows
        shape = shape_of(form, size, every, False, self.device, limits)
        algorithm = device_algorithms()[name]
        if algorithm.missing(form, shape) is not None or rows < size:
            return None
        windows = (rows - size) // every + 1
        module = generate(lower_all, form, known_rows=True, partials=True)
        columns = [a.machine for a in module.arguments if a.pointer and a.name.startswith("r_")]

        def call() -> None:
            with DeviceMemory(self.device) as memory:
                work = Work(memory, form, shape, masked=False, rows=rows, windows=windows)
                work.source, work.outputs = [self.source], [memory.empty(windows, m) for m in columns]
                algorithm.run(work)
                memory.finish()

        return self.seconds(call)

    def chosen(self, form: Form, size: int, every: int) -> str:
        return decide_on_device(form, self.job(form, size, every), self.device).choice


def _form(name: str, size: int) -> Form:
    return named(name)().form(pa.int32(), rows=size)


def _device(report: Report, device: Device, rows: int, quick: bool) -> None:
    doing(f"{device.name}: bandwidths")
    measure_device(device)
    subject = Subject(device, rows)
    gbs = subject.values.nbytes / subject.copy / 1e9
    report.facts[f"{device.name}: copy, GB/s"] = gbs
    _answers(device)
    maps = {name: _map(report, subject, name, gbs) for name in ("sum", "min")}
    _chooser(report, subject, maps)
    _baselines(report, subject, quick)
    _richer(report, subject)
    _start(report, device)


def _answers(device: Device) -> None:
    """The chooser's own results against the CPU's."""
    values = np.random.default_rng(5).integers(-1000, 1000, 200_000).astype(np.int32)
    for size, every in ((4096, 64), (4097, 64), (64, 1), (100_000, 4), (10, 30)):
        for agg in ("sum", "min", "avg", "var_samp", "max_by"):
            here, there = (sash.rolling(values, size, every=every, agg=agg, device=d) for d in ("cpu", device.name))
            same(there, here, f"{device.name}: {agg} over {size} by {every}")


def _map(report: Report, subject: Subject, name: str, gbs: float) -> dict[tuple[int, int], float]:
    """Figure 3: the share of the copy's bandwidth for every size and slide, by the chooser."""
    shares: dict[tuple[int, int], float] = {}
    lines = []
    for e in (0, *EXPONENTS):
        doing(f"{subject.device.name}: {name}, slide {1 << e}")
        line = [f"{1 << e:,}"]
        for s in EXPONENTS:
            size, every = 1 << s, 1 << e
            if every > size or size > subject.rows:
                line.append("")
                continue
            form = _form(name, size)
            taken = subject.algorithm(form, size, every, subject.chosen(form, size, every))
            assert taken is not None
            shares[size, every] = subject.copy / taken
            line.append(number(shares[size, every]))
        lines.append(line)
    title = f"{subject.device.name}, {name} of int32: share of the copy ({number(gbs)} GB/s), by slide and size"
    report.tables.append((title, ["slide", *(f"{1 << s:,}" for s in EXPONENTS)], lines))
    of = f"{subject.device.name}: {name} int32"
    least = {k: v for k, v in shares.items() if k[1] >= 16}
    worst = min(least, key=lambda k: least[k])
    note = f"size {worst[0]:,}, slide {worst[1]:,}"
    report.figures.append(Figure(f"{of}, slide ≥ 16: share of the copy, worst cell", least[worst], "", 0.6, 1.0, note=note))
    four = {k: v for k, v in shares.items() if k[1] == 4}
    worst = min(four, key=lambda k: four[k])
    report.figures.append(Figure(f"{of}, slide 4: share of the copy, worst cell", four[worst], "", 0.4, 0.6, note=f"size {worst[0]:,}"))
    ones = {k: v for k, v in shares.items() if k[1] == 1}
    widening = 1.5 if name == "sum" else 1.0  # 4 bytes in and 8 out, where a copy has 4 and 4
    worst = min(ones, key=lambda k: ones[k])
    must = 0.4 if name == "sum" else 0.3
    what = f"{of}, slide 1: share of a copy of the same bytes, worst size"
    report.figures.append(Figure(what, ones[worst] * widening, "", must, 0.6, note=f"size {worst[0]:,}"))
    wide = [v >= 0.6 for k, v in shares.items() if k[1] >= 4]
    report.figures.append(Figure(f"{of}, slide ≥ 4: share of cells at 0.6 of the copy and more", 100 * sum(wide) / len(wide), "%", 80, 95))
    return shares


def _chooser(report: Report, subject: Subject, maps: dict[str, dict[tuple[int, int], float]]) -> None:
    """The chooser's algorithm against the best one, timed apart."""
    worst, where = 9.0, ""
    for name, shares in maps.items():
        doing(f"{subject.device.name}: {name}, every algorithm")
        for size, every in [k for k in shares if k[1] in (1, 4, 32, 2048) and k[0] in (32, 256, 2048, 131072, 1048576)]:
            form = _form(name, size)
            mine = subject.chosen(form, size, every)
            times = {n: subject.algorithm(form, size, every, n) for n in ("direct_prefix", "reduced_prefix", "block_scan")}
            if size // every <= 64:
                times["coop_opt"] = subject.algorithm(form, size, every, "coop_opt")
            known = {n: t for n, t in times.items() if t is not None}
            ratio = min(known.values()) / known[mine]
            if ratio < worst:
                best = min(known, key=lambda n: known[n])
                worst, where = ratio, f"{name}, size {size:,}, slide {every:,}: {mine}, best {best}"
    report.figures.append(
        Figure(f"{subject.device.name}: the chooser against the best primitive, worst cell", worst, "", 0.8, 0.9, note=where)
    )


def _baselines(report: Report, subject: Subject, quick: bool) -> None:
    """Figures 1 and 4: SH and GBL against the chooser, over part of the rows, since they are slow."""
    groups = dataclasses.replace(Limits.of(subject.device), by_items=False)
    rows = 1 << (16 if quick else 20)
    copy = subject.copy * rows / subject.rows
    for size, slides in ((2048, (1, 4, 16, 64, 256, 2048)), (65536, (16, 64, 1024, 16384))):
        doing(f"{subject.device.name}: baselines, window {size}")
        lines = []
        for every in slides:
            form = _form("sum", size)
            mine = subject.algorithm(form, size, every, subject.chosen(form, size, every), None, rows)
            small = max(2 * size, rows // max(1, min(64, size // every)))
            sh, gbl = (subject.algorithm(form, size, every, n, groups, small) for n in ("sh", "gbl"))
            scaled = [None if t is None else t * rows / small for t in (sh, gbl)]
            assert mine is not None
            lines.append([f"{every:,}", number(copy / mine), *("" if t is None else f"{copy / t:.5f}" for t in scaled)])
            if every == 64 and scaled[0] is not None:
                report.figures.append(Figure(f"{subject.device.name}: sum over {size:,} by {every}: against SH", scaled[0] / mine, "×", 3))
        report.tables.append((f"{subject.device.name}, sum, window {size:,}: share of the copy", ["slide", "Slider", "SH", "GBL"], lines))
    size, every = 1 << 17, 4
    form = _form("min", size)
    mine = subject.algorithm(form, size, every, subject.chosen(form, size, every), None, 1 << 18)
    few = size + 64
    gbl = subject.algorithm(form, size, every, "gbl", groups, few)
    assert mine is not None
    assert gbl is not None
    ratio = gbl * (1 << 18) / few / mine
    what = f"{subject.device.name}: min over {size:,} by {every}, where the paper falls back to GBL: against GBL"
    report.figures.append(Figure(what, ratio, "×", 100, 1000, note="GBL over few rows, scaled by rows"))


class Spread:
    """A user's aggregate of two fields."""

    identity = (1 << 40, -(1 << 40))
    commutative = True
    returns = "int64"

    def lift(v):
        return (v, v)

    def combine(a, b):
        return (min(a[0], b[0]), max(a[1], b[1]))

    def lower(s):
        return s[1] - s[0]


spread = sash.udaf(state=("int64", "int64"))(Spread)


def _richer(report: Report, subject: Subject) -> None:
    """Aggregates of several fields, slides of 16 rows and more."""
    lines = []
    for title in ("avg", "var_samp", "max_by", "a user's spread"):
        doing(f"{subject.device.name}: {title}")
        line, least = [title], (9.0, "")
        for size, every in ((64, 16), (4096, 16), (4096, 64), (65536, 1024)):
            if title == "max_by":
                form = MaxBy().positions(pa.int32())
            elif title == "a user's spread":
                form = spread.form_with(("int32",), "int64")
            else:
                form = _form(title, size)
            taken = subject.algorithm(form, size, every, subject.chosen(form, size, every))
            assert taken is not None
            share = subject.copy / taken
            least = min(least, (share, f"size {size:,}, slide {every}"))
            line.append(number(share))
        lines.append(line)
        what = f"{subject.device.name}: {title} of int32, slide ≥ 16: share of the copy, worst of four"
        report.figures.append(Figure(what, least[0], "", 0.3, 0.6, note=least[1]))
    report.tables.append(
        (f"{subject.device.name}: share of the copy", ["", "64 by 16", "4,096 by 16", "4,096 by 64", "65,536 by 1,024"], lines)
    )


START = """
import time, numpy as np, sash
sash.devices()
values = np.arange(100000, dtype=np.int32)
began = time.perf_counter()
sash.rolling(values, 4096, every=64, agg="min", device={name!r})
print(time.perf_counter() - began)
"""


def _start(report: Report, device: Device) -> None:
    """The first call in a new process, with programs to build and with stored ones."""
    doing(f"{device.name}: first call")
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder:
        os.chmod(folder, 0o700)
        environment = {**os.environ, "SASH_CACHE": folder, "POCL_CACHE_DIR": folder, "POCL_KERNEL_CACHE": "0", "PYOPENCL_NO_CACHE": "1"}
        times = []
        for _ in range(4):
            command = [sys.executable, "-c", START.format(name=device.name)]
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            times.append(float(ran.stdout))
    warm = statistics.median(times[1:])
    note = f"{number(warm * 1e3)} ms against {number(times[0] * 1e3)} ms"
    what = f"{device.name}: first call with stored programs against building them"
    report.figures.append(Figure(what, warm / times[0], "of its time", 0.25, 0.1, "lower", note))
