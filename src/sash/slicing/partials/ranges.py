"""Range aggregates: every range ``[lo, hi)`` over slices (or rows), for partials of every kind."""

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
from sash.kernels.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.choices.decision import Decision
from sash.plan.choices.range_choice import ONE_BY_ONE, TWO_STACKS
from sash.types import dtype

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Ranges:
    """Ranges ``[lo, hi)``, and what algorithms ask about them."""

    lo: Array
    hi: Array
    only_advance: bool
    longest: int
    empty: int

    def __len__(self) -> int:
        return len(self.lo)

    @property
    def total(self) -> int:
        """How many places all ranges have together."""
        return int((self.hi - self.lo).sum())

    def without_empty(self) -> tuple[Ranges, Array | None]:
        """Those that hold something, and which of all they are (None: all)."""
        if not self.empty:
            return self, None
        full = self.hi > self.lo
        return look_at(self.lo[full], self.hi[full]), full


def look_at(lo: Array, hi: Array) -> Ranges:
    """Ranges with their facts, found in one pass."""
    found = np.empty(3, np.int64)
    kernel(window_bounds.look_at_ranges)(lo, hi, len(lo), found)
    return Ranges(lo, hi, bool(found[0]), int(found[1]), int(found[2]))


def prefixes(form: Form, source: list[Array], count: int, *, partials: bool, masked: bool) -> list[Array]:
    """What comes before each place, for an aggregate whose inverse is exact: any number of ranges can be had from it."""
    module = generate(running.prefixes, form, masked=masked, partials=partials)
    states = [pooled(count + 1, m) for m in module.state]
    compiled(module)(*source, count, *states)
    return states


def of_prefixes(form: Form, states: list[Array], asked: Ranges) -> Output:
    """The results of ranges of any shape, empty ones too."""
    module = generate(running.differences, form, masked=True, partials=True)
    kernel = compiled(module)
    output = make_output(form, module, len(asked))

    def work(begin: int, end: int) -> None:
        kernel(*states, asked.lo, asked.hi, begin, end, *output.arguments())

    threads.each(work, threads.shares(0, len(asked)))
    return check(output, form)


def of_fields(decision: Decision, form: Form, source: list[Array], count: int, asked: Ranges, *, partials: bool, masked: bool) -> Output:
    """The results of ranges that are not empty, over ``count`` rows or partials, without an inverse."""
    lo, hi, longest = asked.lo, asked.hi, asked.longest
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
        return one_by_one(form, compiled(generate(reduce.ranges, form, masked=masked, partials=partials)), source, asked)
    fill = generate(flat_fat.fill, form, masked=True, partials=partials) if partials else generate(flat_fat.fill, form, masked=masked)
    answer = generate(flat_fat.ranges, form, masked=True, partials=True)
    places = 1 << max(1, count - 1).bit_length()
    tree = [np.zeros(2 * places, dtype(m)) for m in fill.state]
    compiled(fill)(*source, count, *tree, places)
    output = make_output(form, answer, len(lo))
    compiled(answer)(*tree, places, lo, hi, 0, len(lo), *output.arguments())
    return check(output, form)


def one_by_one(form: Form, kernel: Kernel, source: list[Array], asked: Ranges, room: Array | None = None) -> Output:
    """The results of ranges that are not empty, each from scratch by a kernel of :func:`sash.algorithms.reduce.ranges`; the first column of
    them in ``room``."""
    output = make_output(form, kernel.module, len(asked), room)
    kernel(*source, asked.lo, asked.hi, 0, len(asked), *output.arguments())
    return check(output, form)


def of_objects(decision: Decision, definition: Objects, states: list[Any], asked: Ranges) -> list[Any]:
    """The results of ranges over partials that are Python objects."""
    results: list[Any] = [None] * len(asked)
    lows, highs = asked.lo.tolist(), asked.hi.tolist()

    def lift(X: list[Any], i: int) -> Any:
        return X[i]

    def emit(R: list[Any], i: int, s: Any) -> None:
        R[i] = definition.lower(s)

    if decision.choice == TWO_STACKS:
        words = {**objects.words(definition.combine, definition.identity), "lift": lift, "emit": emit}
        objects.bind(blocks.ranges, words)(states, lows, highs, 0, len(lows), [None] * asked.longest, results)
        return results
    for j, (first, last) in enumerate(zip(lows, highs, strict=True)):
        s = states[first]
        for p in range(first + 1, last):
            s = definition.combine(s, states[p])
        results[j] = definition.lower(s)
    return results
