"""Algorithms as benchmark subjects: calls that run one variant over a job, without one-time work such as compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from sash.aggregates import named
from sash.algebra import Form
from sash.algorithms import (
    BInt,
    Daba,
    HammerSlide,
    ReactiveAggregator,
    Recalculate,
    SubtractOnEvict,
    TwoStacks,
    WindowAlgorithm,
    reduce,
)
from sash.algorithms.rolling import Job, Output, make_output, run
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import Module, generate, vector_reason, vector_width

Array = Any
Run = Callable[[], Output]

ALGORITHMS: dict[str, type[WindowAlgorithm]] = {
    a.card.name: a for a in (BInt, Daba, HammerSlide, ReactiveAggregator, Recalculate, SubtractOnEvict, TwoStacks)
}


def form_of(name: str, x: Array, *, subtract: bool = False) -> Form:
    """A built-in's form over an array; with ``subtract`` it counts as invertible even if rounding makes that inexact, as in the papers."""
    form = named(name)().form(pa.from_numpy_dtype(x.dtype), rows=len(x))
    return form.forced_invertible() if subtract else form


def job(form: Form, x: Array, size: int, every: int = 1) -> Job:
    return Job(form, [x], len(x), size, every, False)


def roll(algorithm: str, work: Job, module: Module | None = None, fewest: int = 16) -> Run:
    """A call that runs a window algorithm's bulk form over a job, with memory allocated beforehand."""
    cls = ALGORITHMS[algorithm]
    chosen = module or cls.module(cls.roll_function, work.form, known_rows=True)
    kernel = compiled(chosen)
    memory = cls.memory(chosen, max(fewest, 1 << (work.size - 1).bit_length()))
    fresh = memory[0].copy()
    cls.prepare(memory, work.form)
    output = make_output(work.form, chosen, work.windows)
    known = [work.size] if work.form.counted else []

    def call() -> Output:
        memory[0][:] = fresh
        kernel(*work.rows, 0, work.windows, work.size, work.every, *memory, *output.arguments(), *known)
        return output

    return call


def non_incremental(work: Job, simd: bool = True) -> Run:
    """Every window from scratch; with ``simd`` in vector lanes, as a compiler would do it for C++."""
    vector = simd and work.form.commutative and vector_reason(work.form) is None
    function = reduce.windows_in_lanes if vector else reduce.windows
    module = generate(function, work.form, lanes=vector_width(work.form) if vector else 0, known_rows=True)
    kernel = compiled(module)
    output = make_output(work.form, module, work.windows)
    known = [work.size] if work.form.counted else []

    def call() -> Output:
        kernel(*work.rows, 0, work.windows, work.size, work.every, *output.arguments(), *known)
        return output

    return call


def subtract_on_evict(work: Job, simd: bool) -> Run:
    module = SubtractOnEvict.module(SubtractOnEvict.roll_function, work.form, known_rows=True, simd=simd)
    return roll("subtract_on_evict", work, module)


def hammer(work: Job, **switches: bool) -> Run:
    module = HammerSlide.module(HammerSlide.roll_function, work.form, known_rows=True, switches={k.upper(): v for k, v in switches.items()})
    return roll("hammer_slide", work, module, fewest=16 if switches.get("ring", True) else 512)


def sash_itself(work: Job) -> Run:
    """What ``sash.rolling`` does: lanes, slices or a reduction."""
    name = "lanes" if work.every == 1 else "reduce" if work.every >= work.size else "slices" if work.size % work.every == 0 else "blocks"
    out = np.empty(work.windows, run(name, work).values[0].dtype)
    return lambda: run(name, work, out)
