"""Runs a chosen algorithm over all windows of an array: buffers, threads and the last few windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
import numpy.typing as npt

from sash import algorithms, threads
from sash.algebra import Form
from sash.algorithms import blocks, doubling, lanes, reduce, running
from sash.algorithms.memory import LINE, aligned, pooled
from sash.algorithms.nulls import bits_before
from sash.algorithms.window_algorithm import WindowAlgorithm
from sash.errors import IntegerOverflow
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import Module, generate, vector_reason, vector_width
from sash.types import dtype

Array = npt.NDArray[Any]

BUFFERS_OF_LANES = 4
SLICES_AT_A_TIME = 1 << 16


@dataclass(frozen=True)
class Job:
    """Windows over one column: window ``j`` holds ``size`` rows from row ``j * every`` on."""

    form: Form
    rows: list[Array]
    """The kernel's input columns: values, bitmaps of null-aware inputs, and the bitmap of rows if there are nulls."""
    count: int
    size: int
    every: int
    masked: bool

    @property
    def windows(self) -> int:
        return max(0, (self.count - self.size) // self.every + 1)


@dataclass
class Output:
    """Result columns: the values, which of them are defined, and whether one did not fit."""

    values: list[Array]
    defined: Array | None
    misfit: Array | None

    def arguments(self) -> list[Array]:
        return [*self.values, *(a for a in (self.defined, self.misfit) if a is not None)]


def make_output(form: Form, module: Module, count: int, first: Array | None = None) -> Output:
    """Memory for results; ``first`` takes the place of the first column."""
    values = [pooled(count, m) if first is None or k else first for k, m in enumerate(form.outputs)]
    return Output(
        values,
        np.empty(count, np.uint8) if "defined" in module.result_names else None,
        np.zeros(1, np.uint8) if "misfit" in module.result_names else None,
    )


def slide_modules(name: str, form: Form, masked: bool) -> tuple[Module, ...]:
    """The kernels of an algorithm for ``every = 1``."""
    known = not masked
    if name == "lanes":
        width = vector_width(form)
        fast = generate(
            lanes.slide,
            form,
            masked=masked,
            lanes=width,
            buffers=BUFFERS_OF_LANES,
            known_rows=known,
            counted_bits=masked,
            constants=(*lane_sizes(form).items(), ("LIFT_ONCE", int(masked))),
        )
        return (fast, generate(blocks.slide_by_one, form, masked=masked, known_rows=known))
    if name in ("running", "tiles"):
        last = generate(running.slide_by_one, form, masked=masked, known_rows=known)
        if name == "running":
            return (last,)
        return (generate(running.slide_in_tiles, form, masked=masked, lanes=vector_width(form), known_rows=known), last)
    return (generate(blocks.slide_by_one, form, masked=masked, known_rows=known),)


def lane_sizes(form: Form) -> dict[str, int]:
    """How many rows the buffers of the lane kernel cover, by the size of a partial."""
    wide = sum(dtype(m).itemsize for m in form.state)
    return {
        "PIECE": 256 if vector_width(form) == 16 else 128,
        "TILE": 1024 if wide <= 8 else 512,
        "LONGEST_BLOCK": 8192 if wide <= 4 else 4096,
        "LONG_BLOCK": 6144 if wide <= 4 else 3072,
        "AHEAD": 2048,
    }


def run(name: str, job: Job, out: Array | None = None) -> Output:
    """All windows of a job with the named algorithm."""
    if job.windows == 0:
        return make_output(job.form, _any_module(job), 0, out)
    if name == "lanes":
        return _run_lanes(job, out)
    if name in ("running", "tiles"):
        return _run_running(name, job, out)
    if name == "blocks":
        return _run_blocks(job, out)
    if name == "reduce":
        return _run_reduce(job, out)
    if name == "slices":
        return _run_slices(job, out)
    return _run_window_algorithm(window_algorithms()[name], job, out)


@lru_cache(maxsize=1)
def window_algorithms() -> dict[str, type[WindowAlgorithm]]:
    """The window algorithms by name, from the files of this package."""
    algorithms_by_name: dict[str, type[WindowAlgorithm]] = {}
    for info in iter_modules(algorithms.__path__):
        for value in vars(import_module(f"{algorithms.__name__}.{info.name}")).values():
            if isinstance(value, type) and issubclass(value, WindowAlgorithm) and value is not WindowAlgorithm:
                algorithms_by_name[value.card.name] = value
    return dict(sorted(algorithms_by_name.items()))


def check(output: Output, form: Form) -> Output:
    """Raise if a result did not fit."""
    if output.misfit is not None and output.misfit[0]:
        raise IntegerOverflow(f"{form.name}: the exact result of a window does not fit into 64 bits")
    return output


def _any_module(job: Job) -> Module:
    return generate(blocks.slide_by_one, job.form, masked=job.masked, known_rows=not job.masked)


def _known(job: Job) -> list[int]:
    """The number of rows per window, for forms that need it, where it is known."""
    return [job.size] if job.form.counted and not job.masked else []


def _run_lanes(job: Job, out: Array | None) -> Output:
    fast_module, slow_module = slide_modules("lanes", job.form, job.masked)
    fast, slow = compiled(fast_module), compiled(slow_module)
    output = make_output(job.form, fast_module, job.windows, out)
    width = fast_module.lanes
    places, waiting_places = lanes.memory_places(job.size, width, lane_sizes(job.form))
    counts = [job.rows[-1], bits_before(job.rows[-1]), job.size] if job.form.counted and job.masked else _known(job)

    def work(begin: int, end: int) -> None:
        memory = [aligned(count, m, 5 * (b + 1)) for b, count in enumerate(places) for m in fast_module.state]
        waiting = [aligned(waiting_places, m, 3) for m in fast_module.state]
        done = fast(*job.rows, job.count, begin, end, job.size, *memory, *waiting, *output.arguments(), *counts)
        if done < end:
            scratch = [np.empty(job.size, dtype(m)) for m in slow_module.state]
            slow(*job.rows, done, end, job.size, *scratch, *output.arguments(), *_known(job))

    threads.each(work, threads.shares(0, job.windows, multiple=LINE))
    return check(output, job.form)


def _run_running(name: str, job: Job, out: Array | None) -> Output:
    chosen = slide_modules(name, job.form, job.masked)
    kernels = [compiled(m) for m in chosen]
    output = make_output(job.form, chosen[0], job.windows, out)

    def work(begin: int, end: int) -> None:
        done = begin
        if len(kernels) > 1:
            waiting = [aligned(running.TILE, m) for m in chosen[0].state]
            done = kernels[0](*job.rows, begin, end, job.size, *waiting, *output.arguments(), *_known(job))
        if done < end:
            kernels[-1](*job.rows, done, end, job.size, *output.arguments(), *_known(job))

    threads.each(work, _shares(job))
    return check(output, job.form)


def _run_blocks(job: Job, out: Array | None) -> Output:
    if job.every == 1:
        (module,) = slide_modules("blocks", job.form, job.masked)
    else:
        module = generate(blocks.slide, job.form, masked=job.masked, known_rows=not job.masked)
    kernel = compiled(module)
    output = make_output(job.form, module, job.windows, out)

    def work(begin: int, end: int) -> None:
        step = [] if job.every == 1 else [job.every]
        places = job.size if job.every == 1 else (job.size - 1) // job.every + 1
        scratch = [np.empty(places, dtype(m)) for m in module.state]
        kernel(*job.rows, begin, end, job.size, *step, *scratch, *output.arguments(), *_known(job))

    threads.each(work, _shares(job))
    return check(output, job.form)


def _shares(job: Job) -> list[tuple[int, int]]:
    """Parts of the windows for each thread; a part that is short against the windows would mostly repeat work."""
    parts = threads.shares(0, job.windows, rows_each=job.every)
    return parts if (job.windows // max(1, len(parts))) * job.every >= 2 * job.size else [(0, job.windows)]


def reduce_module(form: Form, masked: bool, vector: bool) -> Module:
    """The kernel for windows that do not overlap."""
    function = reduce.windows_in_lanes if vector else reduce.windows
    width = vector_width(form) if vector else 0
    return generate(function, form, masked=masked, lanes=width, known_rows=not masked)


def _run_reduce(job: Job, out: Array | None) -> Output:
    module = reduce_module(job.form, job.masked, _is_vector_reduce(job))
    kernel = compiled(module)
    output = make_output(job.form, module, job.windows, out)

    def work(begin: int, end: int) -> None:
        # Vector kernels look up to a vector past the rows of a window; the last window must not.
        kernel(*job.rows, begin, end, job.size, job.every, *output.arguments(), *_known(job))

    threads.each(work, threads.shares(0, job.windows, rows_each=job.size, multiple=16))
    return check(output, job.form)


def slices_modules(form: Form, masked: bool) -> tuple[Module, Module]:
    """Rows to slices, and windows over slices."""
    known = not masked
    first = generate(reduce.slices_in_lanes, form, masked=masked, lanes=vector_width(form), known_rows=known)
    second = generate(doubling.slide_by_one, form, masked=masked, lanes=vector_width(form), known_rows=known, partials=True)
    return first, second


def _run_slices(job: Job, out: Array | None) -> Output:
    """Slices of ``every`` rows, then windows of ``size / every`` slices."""
    assert job.size % job.every == 0
    first_module, second_module = slices_modules(job.form, job.masked)
    first, second = compiled(first_module), compiled(second_module)
    output = make_output(job.form, second_module, job.windows, out)
    per_window = job.size // job.every
    chunk = max(SLICES_AT_A_TIME, 4 * per_window)

    def work(begin: int, end: int) -> None:
        # A chunk's slices stay in the cache until its windows are computed from them.
        places = min(chunk, end - begin) + per_window + 2 * second_module.lanes
        state = [np.zeros(places, dtype(m)) for m in first_module.state]
        scratch = [np.zeros(places, dtype(m)) for _ in range(2) for m in second_module.state]
        for start in range(begin, end, chunk):
            stop = min(start + chunk, end)
            first(*job.rows, start, stop + per_window - 1, job.every, *state)
            part = [a if a is output.misfit else a[start:stop] for a in output.arguments()]
            second(*state, stop - start, per_window, *scratch, *part, *_known(job))

    threads.each(work, threads.shares(0, job.windows, rows_each=job.every, multiple=16))
    return check(output, job.form)


def _run_window_algorithm(algorithm: type[WindowAlgorithm], job: Job, out: Array | None) -> Output:
    """The bulk form of a published algorithm: its own functions over the whole array, one thread."""
    algorithm.check_lawful(job.form)
    module = algorithm.module(algorithm.roll_function, job.form, masked=job.masked, known_rows=not job.masked)
    kernel: Kernel = compiled(module)
    output = make_output(job.form, module, job.windows, out)
    memory = algorithm.memory(module, 1 << max(4, job.size - 1).bit_length())
    algorithm.prepare(memory, job.form)
    kernel(*job.rows, 0, job.windows, job.size, job.every, *memory, *output.arguments(), *_known(job))
    return check(output, job.form)


def modules(name: str, job: Job) -> tuple[Module, ...]:
    """The kernels that :func:`run` would use."""
    if name in ("lanes", "running", "tiles") or (name == "blocks" and job.every == 1):
        return slide_modules(name, job.form, job.masked)
    if name == "blocks":
        return (generate(blocks.slide, job.form, masked=job.masked, known_rows=not job.masked),)
    if name == "reduce":
        return (reduce_module(job.form, job.masked, _is_vector_reduce(job)),)
    if name == "slices":
        return slices_modules(job.form, job.masked)
    algorithm = window_algorithms()[name]
    return (algorithm.module(algorithm.roll_function, job.form, masked=job.masked, known_rows=not job.masked),)


def _is_vector_reduce(job: Job) -> bool:
    return job.form.commutative and vector_reason(job.form) is None and job.size >= 2 * vector_width(job.form)
