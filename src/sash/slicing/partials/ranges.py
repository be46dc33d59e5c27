"""Range aggregates: the result of every range ``[lo, hi)`` of slices (or rows), for partials of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash import threads
from sash.algebra import Form, Objects
from sash.algorithms import blocks, flat_fat, reduce, running
from sash.algorithms.memory import pooled
from sash.algorithms.pipe import kernel, window_bounds
from sash.algorithms.rolling import Output, check, make_output
from sash.kernels import objects
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.choices.decision import Decision
from sash.plan.choices.range_choice import ONE_BY_ONE, TWO_STACKS
from sash.types import dtype

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Ranges:
    """Ranges ``[lo, hi)``, with the facts that algorithms are chosen by."""

    lo: Array
    hi: Array
    only_advance: bool
    longest: int
    empty: int

    def __len__(self) -> int:
        return len(self.lo)

    @property
    def total(self) -> int:
        """The sum of the ranges' lengths."""
        return int((self.hi - self.lo).sum())

    def without_empty(self) -> tuple[Ranges, Array | None]:
        """The nonempty ranges, and for each range whether it is one of them (None: all are)."""
        if not self.empty:
            return self, None
        full = self.hi > self.lo
        return look_at(self.lo[full], self.hi[full]), full


def look_at(lo: Array, hi: Array) -> Ranges:
    """Ranges with their facts, computed in one pass."""
    facts = np.empty(3, np.int64)
    kernel(window_bounds.look_at_ranges)(lo, hi, len(lo), facts)
    return Ranges(lo, hi, bool(facts[0]), int(facts[1]), int(facts[2]))


def prefixes(form: Form, source: list[Array], count: int, *, partials: bool, masked: bool) -> list[Array]:
    """The partial of everything before each place, for an aggregate with an exact inverse: a range's result is a difference of two."""
    module = generate(running.prefixes, form, masked=masked, partials=partials)
    states = [pooled(count + 1, m) for m in module.state]
    compiled(module)(*source, count, *states)
    return states


def of_prefixes(form: Form, states: list[Array], ranges: Ranges) -> Output:
    """The results of any ranges, empty ones too."""
    module = generate(running.differences, form, masked=True, partials=True)
    kernel = compiled(module)
    output = make_output(form, module, len(ranges))

    def work(begin: int, end: int) -> None:
        kernel(*states, ranges.lo, ranges.hi, begin, end, *output.arguments())

    threads.each(work, threads.shares(0, len(ranges)))
    return check(output, form)


def of_fields(decision: Decision, form: Form, source: list[Array], count: int, ranges: Ranges, *, partials: bool, masked: bool) -> Output:
    """The results of nonempty ranges over ``count`` rows or partials, without an inverse."""
    lo, hi, longest = ranges.lo, ranges.hi, ranges.longest
    if decision.choice == TWO_STACKS:
        module = generate(blocks.ranges, form, masked=masked, partials=partials)
        kernel = compiled(module)
        output = make_output(form, module, len(lo))

        def work(begin: int, end: int) -> None:
            scratch = [np.empty(longest, dtype(m)) for m in module.state]
            kernel(*source, lo, hi, begin, end, *scratch, *output.arguments())

        parts = threads.shares(0, len(lo), rows_each=4)
        few = parts and longest * len(parts) > 2 * max(len(lo), count)
        threads.each(work, [(0, len(lo))] if few else parts)
        return check(output, form)
    if decision.choice == ONE_BY_ONE:
        return one_by_one(form, compiled(generate(reduce.ranges, form, masked=masked, partials=partials)), source, ranges)
    fill = generate(flat_fat.fill, form, masked=True, partials=partials) if partials else generate(flat_fat.fill, form, masked=masked)
    answer = generate(flat_fat.ranges, form, masked=True, partials=True)
    places = 1 << max(1, count - 1).bit_length()
    tree = [np.zeros(2 * places, dtype(m)) for m in fill.state]
    compiled(fill)(*source, count, *tree, places)
    output = make_output(form, answer, len(lo))
    compiled(answer)(*tree, places, lo, hi, 0, len(lo), *output.arguments())
    return check(output, form)


def one_by_one(form: Form, kernel: Kernel, source: list[Array], ranges: Ranges, out: Array | None = None) -> Output:
    """The results of nonempty ranges, each from scratch by a kernel of :func:`sash.algorithms.reduce.ranges`; the first column of
    them in ``out``."""
    output = make_output(form, kernel.module, len(ranges), out)
    kernel(*source, ranges.lo, ranges.hi, 0, len(ranges), *output.arguments())
    return check(output, form)


def of_objects(decision: Decision, definition: Objects, states: list[Any], ranges: Ranges) -> list[Any]:
    """The results of ranges over partials that are Python objects."""
    results: list[Any] = [None] * len(ranges)
    lows, highs = ranges.lo.tolist(), ranges.hi.tolist()

    def lift(X: list[Any], i: int) -> Any:
        return X[i]

    def emit(R: list[Any], i: int, s: Any) -> None:
        R[i] = definition.lower(s)

    if decision.choice == TWO_STACKS:
        words = {**objects.words(definition.combine, definition.identity), "lift": lift, "emit": emit}
        objects.bind(blocks.ranges, words)(states, lows, highs, 0, len(lows), [None] * ranges.longest, results)
        return results
    for j, (first, last) in enumerate(zip(lows, highs, strict=True)):
        s = states[first]
        for p in range(first + 1, last):
            s = definition.combine(s, states[p])
        results[j] = definition.lower(s)
    return results
