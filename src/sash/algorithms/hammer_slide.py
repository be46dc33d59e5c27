"""Hammer Slide: two stacks for modern processors (Theodorakis, Koliousis, Pietzuch and Pirk, ADMS 2018).

The optimisations of section 3.2, each of which can be switched off:

1. ``ring``: values lie in one ring buffer, and a flip walks it backwards without copying anything.
2. ``decomposed``: the front stack keeps only its values and one running aggregate, the back stack only aggregates; and
   ``per_slide``: the back stack has one entry per slide, because a slide leaves as a whole.
3. ``simd``: slides are inserted and scanned in vector lanes.

A slide ends after ``slide`` rows, or wherever :meth:`HammerSlide.cut` is called: windows in time have slides of any length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.algebra import Form, Function, Partial
from sash.algorithms import driver
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.scan import scan, scan_scalar
from sash.algorithms.window_algorithm import HEADER, Array, Card, WindowAlgorithm
from sash.errors import InvalidArgument
from sash.kernels import objects
from sash.kernels.generate import Module, generate, vector_reason, vector_width
from sash.kernels.vocabulary import (
    LANES,
    Index,
    Memory,
    Results,
    Rows,
    States,
    combine,
    combine_lanes,
    emit,
    fold_lanes,
    identity,
    lift,
    lift_lanes,
    load,
    store,
    store_lanes,
)

SPLIT = 3  # where the front stack begins
OLDEST, NEWEST, FLIPPED = 4, 5, 6  # numbers of slides: the oldest, the one being filled, the first one not on the back stack
SLIDE, LAST_CUT = 8, 9
ENDS = HEADER  # from here on, a ring of the slides' ends
CHUNK = 9  # binary logarithm of a chunk's length, where there is no ring

VALUES, BACK_SUMS, RUNNING, FRONT_SUMS, BACK_VALUES = 0, 1, 2, 3, 4

# The constants that the kernel is generated with; see the module's docstring.
RING, DECOMPOSED, PER_SLIDE, SIMD = True, True, True, True


def place(w: Index, p: int) -> int:
    """Where position ``p`` lies: in a ring, or in a chunk that a directory points to (as in C++'s deque)."""
    if RING:
        at: int = p & w[MASK]
        return at
    chunk: int = w[ENDS + w[MASK] + 1 + ((p & w[MASK]) >> CHUNK)]
    return (chunk << CHUNK) + (p & 511)


def insert(w: Index, M: Memory, s: Partial) -> None:
    p = w[BACK]
    store(M[VALUES], place(w, p), s)
    if p == w[SPLIT]:
        store(M[RUNNING], 0, s)
    else:
        store(M[RUNNING], 0, combine(load(M[RUNNING], 0), s))
    if not DECOMPOSED:
        store(M[FRONT_SUMS], place(w, p), load(M[RUNNING], 0))
    w[BACK] = p + 1
    if p + 1 - w[LAST_CUT] == w[SLIDE]:
        cut(w)


def cut(w: Index) -> None:
    """The slide being filled is complete."""
    w[ENDS + (w[NEWEST] & w[MASK])] = w[BACK]
    w[NEWEST] += 1
    w[LAST_CUT] = w[BACK]


def evict(w: Index, M: Memory) -> None:
    """Drop the oldest slide; all that is there, if no slide is complete."""
    if w[OLDEST] == w[NEWEST]:
        w[FRONT] = w[SPLIT] = w[LAST_CUT] = w[BACK]
        return
    if w[OLDEST] == w[FLIPPED]:
        flip(w, M)
    w[FRONT] = w[ENDS + (w[OLDEST] & w[MASK])]
    w[OLDEST] += 1


def flip(w: Index, M: Memory) -> None:
    """Aggregate the complete slides from the youngest to the oldest; the slide being filled stays in front."""
    s = identity()
    stop = w[ENDS + ((w[NEWEST] - 1) & w[MASK])]
    split = stop
    for k in range(w[NEWEST] - 1, w[OLDEST] - 1, -1):
        start = w[ENDS + ((k - 1) & w[MASK])] if k > w[OLDEST] else w[FRONT]
        if PER_SLIDE:
            if start < stop:
                s = combine(scan_slide(w, M[VALUES], start, stop), s)
            store(M[BACK_SUMS], k & w[MASK], s)
        else:
            for p in range(stop - 1, start - 1, -1):
                value = load(M[VALUES], place(w, p))
                s = combine(value, s)
                store(M[BACK_SUMS], place(w, p), s)
                if not DECOMPOSED:
                    store(M[BACK_VALUES], place(w, p), value)
        stop = start
    w[FLIPPED] = w[NEWEST]
    w[SPLIT] = split
    if split < w[BACK]:
        store(M[RUNNING], 0, scan_slide(w, M[VALUES], split, w[BACK]))


def scan_slide(w: Index, S: States, first: int, last: int) -> Partial:
    """The aggregate of the positions ``first`` to ``last - 1``."""
    if RING:
        return scan(S, w[MASK], first, last)
    s = load(S, place(w, first))
    for p in range(first + 1, last):
        s = combine(s, load(S, place(w, p)))
    return s


def query(w: Index, M: Memory) -> Partial:
    if w[FRONT] == w[SPLIT]:  # nothing but empty slides on the back stack
        return load(M[RUNNING], 0) if w[SPLIT] < w[BACK] else identity()
    top = load(M[BACK_SUMS], w[OLDEST] & w[MASK]) if PER_SLIDE else load(M[BACK_SUMS], place(w, w[FRONT]))
    return combine(top, load(M[RUNNING], 0)) if w[SPLIT] < w[BACK] else top


def insert_rows(X: Rows, row: int, stop: int, w: Index, M: Memory) -> None:
    """Bulk insertion: rows that belong to one slide, stored and aggregated in vector lanes."""
    p = w[BACK]
    if SIMD and stop - row >= LANES and place(w, p) + (stop - row) <= w[MASK] + 1:
        a = lift_lanes(X, row)
        store_lanes(M[VALUES], place(w, p), a)
        r = row + LANES
        while r + LANES <= stop:
            b = lift_lanes(X, r)
            store_lanes(M[VALUES], place(w, p) + r - row, b)
            a = combine_lanes(a, b)
            r += LANES
        s = fold_lanes(a)
        while r < stop:
            b1 = lift(X, r)
            store(M[VALUES], place(w, p) + r - row, b1)
            s = combine(s, b1)
            r += 1
        store(M[RUNNING], 0, s if p == w[SPLIT] else combine(load(M[RUNNING], 0), s))
        w[BACK] = p + stop - row
        if w[BACK] - w[LAST_CUT] == w[SLIDE]:
            cut(w)
    else:
        for r in range(row, stop):
            insert(w, M, lift(X, r))


def insert_rows_scalar(X: Rows, row: int, stop: int, w: Index, M: Memory) -> None:
    """:func:`insert_rows`, one row at a time."""
    for r in range(row, stop):
        insert(w, M, lift(X, r))


def roll(X: Rows, begin: int, end: int, size: int, every: int, w: Index, M: Memory, R: Results) -> int:
    """The bulk form: windows of ``size`` rows, inserting a slide of ``every`` rows and evicting one at a time."""
    w[SLIDE] = every
    row = begin * every
    for j in range(begin, end):
        start = j * every
        if j > begin:
            evict(w, M)
        row = max(row, start)  # where every > size, rows between windows belong to none
        while row < start + size:
            stop = min(start + size, row + every - (w[BACK] - w[LAST_CUT]))
            insert_rows(X, row, stop, w, M)
            row = stop
        emit(R, j, query(w, M))
    return end


def roll_slides(X: Rows, offsets: Index, slides: int, per_window: int, w: Index, M: Memory, R: Results) -> int:
    """Windows in time (section 4.5): window ``j`` holds ``per_window`` slides; slide ``k`` the rows from ``offsets[k]`` on."""
    w[SLIDE] = -1
    for k in range(slides):
        if k >= per_window:
            evict(w, M)
        insert_rows(X, offsets[k], offsets[k + 1], w, M)
        cut(w)
        if k >= per_window - 1:
            emit(R, k - per_window + 1, query(w, M))
    return slides - per_window + 1


class HammerSlide(WindowAlgorithm):
    """Two stacks with ring buffers, one entry per slide, and vector scans. ``evict()`` drops one slide.

    >>> w = HammerSlide("max", slide=2)
    >>> for v in (9, 3, 5, 2): w.insert(v)
    >>> w.evict(); w.query(), len(w)
    (5, 2)

    With ``slide=None`` slides end where :meth:`cut` says, as windows in time need it:

    >>> w = HammerSlide("sum", slide=None)
    >>> for second in ([1, 2, 3], [], [4]):
    ...     for v in second: w.insert(v)
    ...     w.cut()
    >>> w.evict(); w.query()
    4
    """

    card = Card(
        name="hammer_slide",
        title="Hammer Slide",
        idea="Two stacks in one ring buffer: a flip walks it backwards and copies nothing; the front stack is a running aggregate, the "
        "back stack one aggregate per slide; slides are inserted and scanned in vector lanes.",
        insert="O(1)",
        evict="O(1) amortised per row, O(n) worst; drops a slide",
        query="O(1), one combine",
        space="n partials, and one per slide",
        paper="Hammer Slide, section 3.2",
    )
    functions = (insert, evict, query)
    buffers = ("ring", "slides", "one", "ring", "ring")
    roll_function = roll

    def __init__(
        self,
        aggregate: Any,
        slide: int | None = 1,
        *,
        ring: bool = True,
        decomposed: bool = True,
        per_slide: bool = True,
        simd: bool = True,
        **options: Any,
    ) -> None:
        if slide is not None and (isinstance(slide, bool) or not isinstance(slide, int) or slide < 1):
            raise InvalidArgument(f"slide must be a positive integer, or None for slides that end at cut(), not {slide!r}")
        self.slide = slide
        self.switches = {"RING": ring, "DECOMPOSED": decomposed, "PER_SLIDE": per_slide, "SIMD": simd}
        if not per_slide:
            self.buffers = ("ring", "ring", "one", "ring", "ring")
        if not ring:
            options["capacity"] = max(1 << CHUNK, options.get("capacity", 1))
        super().__init__(aggregate, **options)

    def cut(self) -> None:
        """End the slide that is being filled, also if it is empty."""
        if not self._started:
            raise InvalidArgument("cut() before the first value: the type of the rows is not known yet; pass dtype=")
        w = self._w
        if w[NEWEST] - w[OLDEST] == self._capacity:
            self._grow()
            w = self._w
        w[ENDS + (w[NEWEST] & w[MASK])] = w[BACK]
        w[NEWEST] += 1
        w[LAST_CUT] = w[BACK]

    def evict(self) -> None:
        if not self._started:
            super().evict()
            return
        before = int(self._w[FRONT])
        if len(self) == 0 and self._w[OLDEST] == self._w[NEWEST]:
            super().evict()
        self._evict()
        while self._nulls and before <= self._nulls[0] < self._w[FRONT]:
            self._nulls.popleft()

    @classmethod
    def module(
        cls,
        function: Function,
        form: Form,
        *,
        masked: bool = False,
        known_rows: bool = False,
        switches: dict[str, bool] | None = None,
    ) -> Module:
        chosen = {"RING": True, "DECOMPOSED": True, "PER_SLIDE": True, "SIMD": True, **(switches or {})}
        vector = chosen["SIMD"] and chosen["RING"] and form.commutative and vector_reason(form) is None
        chosen["SIMD"] = vector
        bindings: tuple[tuple[str, Function], ...] = (("insert", insert), ("evict", evict), ("query", query))
        if not vector:
            bindings = (*bindings, ("scan", scan_scalar), ("insert_rows", insert_rows_scalar))
        return generate(
            function,
            form,
            masked=masked,
            lanes=vector_width(form) if vector else 0,
            buffers=len(cls.buffers),
            known_rows=known_rows,
            bindings=bindings,
            constants=tuple(chosen.items()),
        )

    @classmethod
    def memory(cls, module: Module, capacity: int) -> list[Array]:
        memory = super().memory(module, capacity)
        chunks = max(1, capacity >> CHUNK)
        w = np.zeros(HEADER + capacity + chunks, np.int64)
        w[:HEADER] = memory[0]
        w[HEADER + capacity :] = np.arange(chunks)[::-1]  # chunks anywhere, as an allocator would place them
        memory[0] = w
        return memory

    def _step_module(self, form: Form) -> Module:
        return self.module(driver.step, form, masked=True, switches=self.switches)

    def _start(self) -> None:
        super()._start()
        if self._binding.form is None:
            w = np.zeros(HEADER + 2 * self._capacity, np.int64)
            w[:HEADER] = self._w[:HEADER]
            self._w = w
        self._w[SLIDE] = -1 if self.slide is None else self.slide

    def _grow(self) -> None:
        old_w, old = self._w, self._capacity
        super()._grow()
        new = self._capacity
        w = np.zeros(HEADER + new + max(1, new >> CHUNK), np.int64)
        w[:HEADER] = self._w[:HEADER]
        w[HEADER + new :] = np.arange(max(1, new >> CHUNK))[::-1]
        for k in range(int(w[OLDEST]) - 1, int(w[NEWEST])):
            w[ENDS + (k & (new - 1))] = old_w[ENDS + (k & (old - 1))]
        self._w = w
        if self._binding.form is not None:
            self._bind_arguments()

    def _place(self, p: int, capacity: int) -> int:
        if self.switches["RING"]:
            return super()._place(p, capacity)
        chunks = max(1, capacity >> CHUNK)
        return ((chunks - 1 - ((p & (capacity - 1)) >> CHUNK)) << CHUNK) + (p & ((1 << CHUNK) - 1))

    def _moves(self, kind: str, old: int, new: int) -> list[tuple[int, int]]:
        if kind == "slides":
            slides = range(int(self._w[OLDEST]), int(self._w[FLIPPED]))
            return [(k & (old - 1), k & (new - 1)) for k in slides]
        return super()._moves(kind, old, new)

    def _object_words(self) -> dict[str, Any]:
        words = {**super()._object_words(), **self.switches, "SIMD": False}
        return {**words, "scan": objects.bind(scan_scalar, words)}
