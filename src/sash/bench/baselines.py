"""The techniques that general stream slicing is compared with (sections 3 and 6), over one key, in the same kernels.

Each takes rows in batches and tumbling windows of several lengths, and emits the windows that end by a watermark. They are
written with care: columnar, compiled, and without work that the technique does not need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.aggregates import named
from sash.algebra import Form
from sash.algorithms import flat_fat, reduce
from sash.algorithms.pipe import scattering
from sash.algorithms.rolling import make_output
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate, vector_width
from sash.types import dtype

Array = npt.NDArray[Any]


def sum_form() -> Form:
    """The aggregate of most figures."""
    return named("sum")().form(pa.int64())


class Technique(ABC):
    """Windows of several lengths, side by side, over one stream."""

    title: str
    only_in_order = False

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        self.lengths = np.array(lengths, np.int64)
        self.form = form or sum_form()
        self.watermark = 0

    @abstractmethod
    def add(self, ticks: Array, values: Array) -> None:
        """Ingest rows."""

    @abstractmethod
    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        """The results of these windows, each of the length numbered ``which``."""

    def drop(self, oldest: int) -> None:
        """Free what lies before ``oldest``."""
        return

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The size of what is stored."""

    def advance(self, watermark: int) -> int:
        """The total of the results of the windows that end by then, for checking."""
        first, last = self.watermark // self.lengths + 1, watermark // self.lengths
        counts = np.maximum(0, last - first + 1)
        which = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        self.watermark = watermark
        total = 0
        if len(which):
            ends = number * self.lengths[which]
            total = int(self.answer(ends - self.lengths[which], ends, which).sum())
        self.drop(int((watermark // self.lengths * self.lengths).min()))
        return total


class TupleBuffer(Technique):
    """Section 3.1: rows in the order of time; every window is aggregated on its own when it ends."""

    title = "tuple buffer"

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        super().__init__(lengths, form)
        self.ticks, self.values = np.empty(0, np.int64), np.empty(0, np.int64)
        self.module = generate(reduce.ranges_in_lanes, self.form, lanes=vector_width(self.form))

    def add(self, ticks: Array, values: Array) -> None:
        in_order = np.all(ticks[1:] >= ticks[:-1])
        if not in_order:
            order = np.argsort(ticks, kind="stable")
            ticks, values = ticks[order], values[order]
        if len(self.ticks) and ticks[0] < self.ticks[-1]:
            # Only the rows behind the oldest new one have to move.
            at = int(np.searchsorted(self.ticks, ticks[0], side="right"))
            tail = np.concatenate([self.ticks[at:], ticks])
            order = np.argsort(tail, kind="stable")
            self.ticks = np.concatenate([self.ticks[:at], tail[order]])
            self.values = np.concatenate([self.values[:at], np.concatenate([self.values[at:], values])[order]])
        else:
            self.ticks, self.values = np.concatenate([self.ticks, ticks]), np.concatenate([self.values, values])

    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        lo, hi = np.searchsorted(self.ticks, starts), np.searchsorted(self.ticks, ends)
        output = make_output(self.form, self.module, len(lo))
        compiled(self.module)(self.values, lo, hi, 0, len(lo), *output.arguments())
        return output.values[0]

    def drop(self, oldest: int) -> None:
        at = int(np.searchsorted(self.ticks, oldest))
        if at > len(self.ticks) // 2:
            self.ticks, self.values = self.ticks[at:].copy(), self.values[at:].copy()

    @property
    def nbytes(self) -> int:
        return int(self.ticks.nbytes + self.values.nbytes)


class AggregateTree(TupleBuffer):
    """Section 3.2: FlatFAT over the rows; a row out of order moves the leaves behind it, and the tree above them is rebuilt."""

    title = "aggregate tree"

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        super().__init__(lengths, form)
        self.fill = compiled(generate(flat_fat.fill, self.form, masked=False))
        self.ranges = generate(flat_fat.ranges, self.form, masked=True, partials=True)
        self.tree: list[Array] = []
        self.places = 0

    def add(self, ticks: Array, values: Array) -> None:
        super().add(ticks, values)
        self.places = 1 << max(4, len(self.values) - 1).bit_length()
        self.tree = [np.empty(2 * self.places, dtype(m)) for m in self.fill.module.state]
        self.fill(self.values, len(self.values), *self.tree, self.places)

    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        lo, hi = np.searchsorted(self.ticks, starts), np.searchsorted(self.ticks, ends)
        full = hi > lo
        output = make_output(self.form, self.ranges, int(full.sum()))
        compiled(self.ranges)(*self.tree, self.places, lo[full], hi[full], 0, len(output.values[0]), *output.arguments())
        return output.values[0]

    def drop(self, oldest: int) -> None:
        before = len(self.values)
        super().drop(oldest)
        if len(self.values) < before and len(self.values):
            self.fill(self.values, len(self.values), *self.tree, self.places)

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(t.nbytes for t in self.tree)


class AggregateBuckets(Technique):
    """Section 3.3: a partial per window; a row is added to one window of each length."""

    title = "aggregate buckets"

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        super().__init__(lengths, form)
        self.scatter = compiled(generate(scattering.scatter, self.form))
        self.clear = compiled(generate(scattering.clear, self.form, masked=True))
        self.first = [0] * len(lengths)
        self.buckets: list[list[Array]] = [self._fresh(1) for _ in lengths]

    def _fresh(self, count: int) -> list[Array]:
        states = [np.empty(count, dtype(m)) for m in self.scatter.module.state]
        self.clear(*states, 0, count)
        return states

    def add(self, ticks: Array, values: Array) -> None:
        top = int(ticks.max())
        for k, length in enumerate(self.lengths.tolist()):
            needed = top // length - self.first[k] + 1
            count = len(self.buckets[k][0])
            if needed > count:
                more = self._fresh(needed - count)
                self.buckets[k] = [np.concatenate([a, b]) for a, b in zip(self.buckets[k], more, strict=True)]
            self.scatter(values, ticks // length - self.first[k], 0, len(ticks), *self.buckets[k])

    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        results = np.empty(len(which), np.int64)
        for j, k in enumerate(which.tolist()):
            place = int(starts[j]) // int(self.lengths[k]) - self.first[k]
            # The lower of two limbs: the figures' sums are small.
            results[j] = self.buckets[k][-1][place] if place < len(self.buckets[k][0]) else 0
        return results

    def advance(self, watermark: int) -> int:
        total = super().advance(watermark)
        for k, length in enumerate(self.lengths.tolist()):
            gone = min(watermark // length - self.first[k], len(self.buckets[k][0]) - 1)
            if gone > 0:
                self.buckets[k] = [s[gone:].copy() for s in self.buckets[k]]
                self.first[k] += gone
        return total

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for bucket in self.buckets for s in bucket) + 16 * sum(len(b[0]) for b in self.buckets)


class TupleBuckets(Technique):
    """Section 3.3: the rows of each window; a row is stored once for each length."""

    title = "tuple buckets"

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        super().__init__(lengths, form)
        self.rows: list[dict[int, list[Array]]] = [{} for _ in lengths]
        self.module = generate(reduce.ranges_in_lanes, self.form, lanes=vector_width(self.form))

    def add(self, ticks: Array, values: Array) -> None:
        for k, length in enumerate(self.lengths.tolist()):
            bucket = ticks // length
            order = np.argsort(bucket, kind="stable")
            bucket = bucket[order]
            cuts = np.flatnonzero(np.diff(bucket)) + 1
            for part in np.split(order, cuts):
                self.rows[k].setdefault(int(ticks[part[0]] // length), []).append(values[part])

    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        results = np.zeros(len(which), np.int64)
        for j, k in enumerate(which.tolist()):
            parts = self.rows[k].pop(int(starts[j]) // int(self.lengths[k]), None)
            if parts:
                values = np.concatenate(parts)
                output = make_output(self.form, self.module, 1)
                bounds = np.array([0]), np.array([len(values)])
                compiled(self.module)(values, *bounds, 0, 1, *output.arguments())
                results[j] = output.values[0][0]
        return results

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for group in self.rows for parts in group.values() for a in parts)


class Pairs(Technique):
    """Krishnamurthy et al.: slices at every start and end of any window, of rows in order; windows add their slices up."""

    title = "Pairs"
    only_in_order = True
    with_tree = False

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        super().__init__(lengths, form)
        self.scatter = compiled(generate(scattering.scatter, self.form))
        self.clear = compiled(generate(scattering.clear, self.form, masked=True))
        self.module = generate(reduce.ranges_in_lanes, self.form, masked=True, partials=True, lanes=vector_width(self.form))
        self.edges = np.zeros(1, np.int64)
        self.states = [np.empty(1, dtype(m)) for m in self.scatter.module.state]
        self.clear(*self.states, 0, 1)

    def add(self, ticks: Array, values: Array) -> None:
        top, newest = int(ticks[-1]), int(self.edges[-1])
        upcoming = (newest // self.lengths + 1) * self.lengths
        if top >= upcoming.min():
            counts = np.maximum(0, (top - upcoming) // self.lengths + 1)
            steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            fresh = np.unique(np.repeat(upcoming, counts) + steps * np.repeat(self.lengths, counts))
            more = [np.empty(len(fresh), s.dtype) for s in self.states]
            self.clear(*more, 0, len(fresh))
            self.edges = np.concatenate([self.edges, fresh])
            self.states = [np.concatenate([a, b]) for a, b in zip(self.states, more, strict=True)]
        places = np.searchsorted(self.edges, ticks, side="right") - 1
        self.scatter(values, places, 0, len(ticks), *self.states)

    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        lo, hi = np.searchsorted(self.edges, starts), np.searchsorted(self.edges, ends)
        output = make_output(self.form, self.module, len(lo))
        compiled(self.module)(*self.states, lo, hi, 0, len(lo), *output.arguments())
        return output.values[0]

    def drop(self, oldest: int) -> None:
        at = int(np.searchsorted(self.edges, oldest))
        if at > len(self.edges) // 2:
            self.edges, self.states = self.edges[at:].copy(), [s[at:].copy() for s in self.states]

    @property
    def nbytes(self) -> int:
        return int(self.edges.nbytes + sum(s.nbytes for s in self.states))


class Cutty(Pairs):
    """Carbone et al.: slices at the starts of windows, of rows in order, and FlatFAT over the slices."""

    title = "Cutty"

    def __init__(self, lengths: list[int], form: Form | None = None) -> None:
        super().__init__(lengths, form)
        self.fill = compiled(generate(flat_fat.fill, self.form, masked=True, partials=True))
        self.ranges = generate(flat_fat.ranges, self.form, masked=True, partials=True)

    def answer(self, starts: Array, ends: Array, which: Array) -> Array:
        lo, hi = np.searchsorted(self.edges, starts), np.searchsorted(self.edges, ends)
        places = 1 << max(1, len(self.edges) - 1).bit_length()
        tree = [np.empty(2 * places, s.dtype) for s in self.states]
        self.fill(*self.states, len(self.edges), *tree, places)
        output = make_output(self.form, self.ranges, len(lo))
        compiled(self.ranges)(*tree, places, lo, hi, 0, len(lo), *output.arguments())
        return output.values[0]


TECHNIQUES: tuple[type[Technique], ...] = (TupleBuffer, AggregateTree, AggregateBuckets, TupleBuckets, Pairs, Cutty)
