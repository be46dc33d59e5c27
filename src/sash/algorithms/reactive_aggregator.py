"""The Reactive Aggregator: a circular buffer over a FlatFAT (Tangwongsan, Hirzel, Schneider and Wu, VLDB 2015, section 5).

Inserts and evicts only note which places have changed; the next query recomputes what depends on any of them, once. Rows may
leave from anywhere: ``insert`` returns a handle that ``evict`` takes. Holes are squeezed out when the buffer is full but at most
three quarters used; otherwise it doubles, and it halves when less than a quarter is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sash.algebra import Form, Partial
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.flat_fat import ROOT, build, prefix, propagate, suffix
from sash.algorithms.per_key import PerKey
from sash.algorithms.window_algorithm import CAPACITY, HEADER, SMALLEST_CAPACITY, Array, Card, WindowAlgorithm
from sash.errors import EmptyWindow, InvalidArgument
from sash.kernels import objects
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import Module, generate
from sash.kernels.vocabulary import Index, Memory, Results, Rows, States, combine, emit, identity, lift, load, store
from sash.types import dtype

INSERT, EVICT, QUERY = 0, 1, 2


def step(what: int, p: int, X: Rows, w: Index, T: States, R: Results) -> int:
    """Write or clear the leaf of position ``p``, or emit the result; inner nodes must be up to date for that."""
    leaf = w[CAPACITY] + (p & w[MASK])
    if what == INSERT:
        store(T, leaf, lift(X, 0))
    elif what == EVICT:
        store(T, leaf, identity())
    else:
        emit(R, 0, whole(w, T))
    return 0


def whole(w: Index, T: States) -> Partial:
    """The window in its own order: where the circle has come round, the suffix is older than the prefix (section 5.1.2)."""
    first, last = w[FRONT] & w[MASK], (w[BACK] - 1) & w[MASK]
    if first <= last:
        return load(T, ROOT)
    return combine(suffix(T, w[CAPACITY], first), prefix(T, w[CAPACITY], last))


# The first-in, first-out form (section 5.2): unused places are skipped, so they need no marker.


def is_used(w: Index, first: int, width: int) -> bool:
    """Whether some of the places ``first`` to ``first + width - 1`` lie in the window."""
    mask, front, rows = w[MASK], w[FRONT], w[BACK] - w[FRONT]
    used: bool = ((first - front) & mask) < rows or (rows > 0 and ((front - first) & mask) < width)
    return used


def recompute(w: Index, T: States, v: int, level: int) -> None:
    """A node from those of its children that have rows; it has ``2 ** level`` leaves."""
    width = 1 << (level - 1)
    first = (v << level) - w[CAPACITY]
    left, right = is_used(w, first, width), is_used(w, first + width, width)
    if left and right:
        store(T, v, combine(load(T, 2 * v), load(T, 2 * v + 1)))
    elif left:
        store(T, v, load(T, 2 * v))
    elif right:
        store(T, v, load(T, 2 * v + 1))


def propagate_used(w: Index, T: States, nodes: Index, count: int) -> int:
    """:func:`~sash.algorithms.flat_fat.propagate` that skips what is not in use."""
    level = 0
    while count > 0 and nodes[0] > ROOT:
        level += 1
        parents = 0
        for k in range(count):
            parent = nodes[k] >> 1
            if parents == 0 or nodes[parents - 1] != parent:
                recompute(w, T, parent, level)
                nodes[parents] = parent
                parents += 1
        count = parents
    return 0


def build_used(w: Index, T: States) -> int:
    """Every inner node over places that are in use."""
    refresh(w, T, 0, w[MASK])
    return 0


def refresh(w: Index, T: States, first: int, last: int) -> None:
    """Recompute what depends on the places ``first`` to ``last``, level by level."""
    a, b, level = w[CAPACITY] + first, w[CAPACITY] + last, 0
    while a > ROOT:
        a >>= 1
        b >>= 1
        level += 1
        for v in range(a, b + 1):
            recompute(w, T, v, level)


def refresh_circle(w: Index, T: States, start: int, stop: int) -> None:
    """The same for the positions ``start`` to ``stop - 1``, which may go round the circle."""
    if start == stop:
        return
    first, last = start & w[MASK], (stop - 1) & w[MASK]
    if stop - start > w[MASK]:
        refresh(w, T, 0, w[MASK])
    elif first <= last:
        refresh(w, T, first, last)
    else:
        refresh(w, T, first, w[MASK])
        refresh(w, T, 0, last)


def roll(X: Rows, begin: int, end: int, size: int, every: int, w: Index, M: Memory, R: Results) -> int:
    """The bulk form: evict ``every`` rows, insert ``every`` rows, then bring the tree up to date once."""
    T = M[0]
    row = begin * every
    w[FRONT] = w[BACK] = row
    for j in range(begin, end):
        start = j * every
        evicted_to = min(start, w[BACK])
        evicted_from = w[FRONT]
        w[FRONT] = evicted_to
        if w[BACK] < start:
            evicted_from = evicted_to = w[FRONT] = w[BACK] = start
        inserted_from = w[BACK]
        while w[BACK] < start + size:
            store(T, w[CAPACITY] + (w[BACK] & w[MASK]), lift(X, w[BACK]))
            w[BACK] += 1
        if evicted_to - evicted_from != w[BACK] - inserted_from or (evicted_from & w[MASK]) != (inserted_from & w[MASK]):
            refresh_circle(w, T, evicted_from, evicted_to)
        refresh_circle(w, T, inserted_from, w[BACK])
        emit(R, j, whole(w, T))
    return end


class ReactiveAggregator(WindowAlgorithm):
    """A window that rows may leave from anywhere; changes are batched until the next query.

    With ``fifo=True`` rows leave in the order of their insertion, and places that are not in use need no marker (section 5.2).

    >>> w = ReactiveAggregator("max")
    >>> a, b, c = (w.insert(v) for v in (3, 9, 2))
    >>> w.evict(b); w.query()
    3
    >>> w.evict(); w.query()
    2
    """

    card = Card(
        name="reactive_aggregator",
        title="Reactive Aggregator",
        idea="A circular buffer whose places are the leaves of a FlatFAT. Changes are noted, and propagated together by the next "
        "query; the buffer is compacted at three quarters, doubled when full, halved at a quarter.",
        insert="O(1), O(log n) of the next query",
        evict="O(1) for the oldest, O(log n) for any; O(log n) of the next query",
        query="O(m + m log(n/m)) after m changes; O(log n) where the circle has come round",
        space="2n partials and n handles, n being a power of two",
        paper="Reactive Aggregator, section 5",
        order="any",
    )
    functions = ()  # type: ignore[assignment]
    buffers = ("tree",)
    roll_function = roll
    _put: Callable[[int, Any], None]
    _clear: Callable[[int], None]
    _answer: Callable[[], Any]
    _build_function: Callable[..., Any]
    _propagate_function: Callable[..., Any]

    def __init__(self, aggregate: Any, *, fifo: bool = False, dtype: Any = None, capacity: int = SMALLEST_CAPACITY) -> None:
        self._fifo = fifo
        self._next = 0
        self._used = 0
        self._dirty: list[int] = []
        self._null_handles: set[int] = set()
        self._early: list[int] = []  # handles of nulls inserted before the first value
        super().__init__(aggregate, dtype=dtype, capacity=2 if capacity == 1 else capacity)

    @classmethod
    def per_key(cls, aggregate: Any, **options: Any) -> PerKey:
        """One window for each key (section 5.4)."""
        return PerKey(lambda: cls(aggregate, **options))

    @classmethod
    def module(cls, function: Any, form: Form, *, masked: bool = False, known_rows: bool = False) -> Module:
        return generate(function, form, masked=masked, buffers=1, known_rows=known_rows)

    # The four methods.

    def insert(self, value: Any) -> int:
        """Add a row at the back; returns a handle for :meth:`evict`."""
        if not self._started:
            if value is None:
                self._early.append(self._next)
                self._next += 1
                return self._next - 1
            self._binding.bind_type(value)
            self._start()
            handles, last = self._early, self._next
            for self._next in handles:
                self.insert(None)
            self._next = last
        if self._w[BACK] - self._w[FRONT] == self._capacity:
            self._compact_or_grow()
        p, handle = int(self._w[BACK]), self._next
        self._put(p, value)
        self._ids[p & int(self._w[MASK])] = handle
        self._alive[p & int(self._w[MASK])] = True
        self._w[BACK] += 1
        self._next += 1
        self._used += 1
        if value is None:
            self._null_handles.add(handle)
        self._note(p)
        return handle

    def evict(self, handle: int | None = None) -> None:
        """Drop the oldest row, or the one that ``handle`` stands for."""
        if len(self) == 0:
            raise EmptyWindow("ReactiveAggregator.evict(): the window is empty")
        if handle is not None and (isinstance(handle, bool) or not isinstance(handle, int)):
            raise InvalidArgument(f"evict takes a handle that insert returned, not {handle!r}")
        if not self._started:
            if handle is not None and handle not in self._early:
                raise InvalidArgument(f"handle {handle!r} is not in the window: it was evicted, or comes from another one")
            self._early.remove(self._early[0] if handle is None else handle)
            return
        mask = int(self._w[MASK])
        p = int(self._w[FRONT]) if handle is None else self._position(handle)
        if self._fifo and p != self._w[FRONT]:
            raise InvalidArgument(f"fifo=True: rows leave in the order of their insertion, and handle {handle!r} is not the oldest row's")
        self._null_handles.discard(int(self._ids[p & mask]))
        self._alive[p & mask] = False
        self._used -= 1
        self._clear(p)
        while self._w[FRONT] < self._w[BACK] and not self._alive[int(self._w[FRONT]) & mask]:
            self._w[FRONT] += 1
        while self._w[FRONT] < self._w[BACK] and not self._alive[int(self._w[BACK] - 1) & mask]:
            self._w[BACK] -= 1
        self._note(p)
        if self._used < self._capacity // 4 and self._capacity > SMALLEST_CAPACITY:
            self._rebuild(self._capacity // 2)

    def query(self) -> Any:
        """The aggregate of the window, after all changes since the last query are propagated together."""
        if not self._started or self._used == 0 or (self._used == len(self._null_handles) and not self._binding.keeps_nulls):
            return self._binding.of_nothing
        self._propagate()
        return self._answer()

    def __len__(self) -> int:
        return self._used if self._started else len(self._early)

    @property
    def capacity(self) -> int:
        """How many places the tree has."""
        return self._capacity

    def _position(self, handle: int) -> int:
        """Where a handle's row is; handles ascend along the buffer, holes included."""
        low, high, mask = int(self._w[FRONT]), int(self._w[BACK]), int(self._w[MASK])
        while low < high:
            middle = (low + high) // 2
            if self._ids[middle & mask] < handle:
                low = middle + 1
            else:
                high = middle
        if low < self._w[BACK] and self._ids[low & mask] == handle and self._alive[low & mask]:
            return low
        raise InvalidArgument(f"handle {handle!r} is not in the window: it was evicted, or comes from another one")

    # Capacity.

    def _compact_or_grow(self) -> None:
        self._rebuild(self._capacity if self._used <= self._capacity * 3 // 4 else 2 * self._capacity)

    def _rebuild(self, capacity: int) -> None:
        """Compact (same capacity) or resize: move the remaining rows to the front, in order, and build the tree again."""
        mask = int(self._w[MASK])
        positions = [p for p in range(int(self._w[FRONT]), int(self._w[BACK])) if self._alive[p & mask]]
        leaves = [self._capacity + (p & mask) for p in positions]
        ids = self._ids[[p & mask for p in positions]]
        if self._binding.form is None:
            partials = [self._lists[0][v] for v in leaves]
            self._lists = [[self._binding.objects.identity()] * (2 * capacity)]
            self._lists[0][capacity : capacity + len(partials)] = partials
        else:
            fresh = [np.zeros(2 * capacity, dtype(m)) for m in self._state]
            self.prepare([self._w, *fresh], self._binding.form)
            for old, new in zip(self._memory, fresh, strict=True):
                new[capacity : capacity + len(leaves)] = old[leaves]
            self._memory = fresh
        self._set_capacity(capacity)
        self._ids[: len(ids)] = ids
        self._alive[: len(ids)] = True
        self._w[FRONT], self._w[BACK] = 0, len(ids)
        self._dirty.clear()
        if self._binding.form is not None:
            self._bind_arguments()
        self._build()

    def _set_capacity(self, capacity: int) -> None:
        self._capacity = capacity
        self._w[MASK], self._w[CAPACITY] = capacity - 1, capacity
        self._ids: Array = np.zeros(capacity, np.int64)
        self._alive: Array = np.zeros(capacity, bool)

    def _note(self, p: int) -> None:
        self._dirty.append(self._capacity + (p & int(self._w[MASK])))
        if len(self._dirty) >= self._capacity:
            self._propagate()

    def _propagate(self) -> None:
        if not self._dirty:
            return
        nodes = np.array(sorted(set(self._dirty)) if len(self._dirty) > 1 else self._dirty, np.int64)
        first: list[Any] = [self._w] if self._fifo else []
        memory = self._lists if self._binding.form is None else self._memory
        self._propagate_function(*first, *memory, nodes, len(nodes))
        self._dirty.clear()

    def _build(self) -> None:
        memory = self._lists if self._binding.form is None else self._memory
        if self._fifo:
            self._build_function(self._w, *memory)
        else:
            self._build_function(*memory, self._capacity)

    # Kernels or objects.

    def _start(self) -> None:
        self._started = True
        self._w = np.zeros(HEADER, np.int64)
        self._set_capacity(self._capacity)
        form = self._binding.form
        if form is None:
            objective = self._binding.objects
            words = objects.words(objective.combine, objective.identity)
            self._build_function = objects.bind(build_used if self._fifo else build, words)
            self._propagate_function = objects.bind(propagate_used if self._fifo else propagate, words)
            answer = objects.bind(whole, words)
            self._lists = [[objective.identity()] * (2 * self._capacity)]
            self._put = lambda p, value: self._set_leaf(p, objective.lift(value))
            self._clear = (lambda p: None) if self._fifo else (lambda p: self._set_leaf(p, objective.identity()))
            self._answer = lambda: objective.lower(answer(self._w, self._lists[0]))
            return
        module = self.module(step, form, masked=True)
        self._kernel = compiled(module)
        self._state = module.state
        self._build_function = compiled(self.module(build_used if self._fifo else build, form, masked=True))
        self._propagate_function = compiled(self.module(propagate_used if self._fifo else propagate, form, masked=True))
        self._row, self._result = self._binding.row_buffers(), self._binding.result_buffers(module)
        self._memory = [np.zeros(2 * self._capacity, dtype(m)) for m in module.state]
        self.prepare([self._w, *self._memory], form)
        self._bind_arguments()
        self._put = self._put_compiled
        self._clear = (lambda p: None) if self._fifo else self._clear_compiled
        self._answer = self._answer_compiled

    def _put_compiled(self, p: int, value: Any) -> None:
        self._binding.fill_row(self._row, value)
        self._kernel(INSERT, p, *self._arguments)

    def _clear_compiled(self, p: int) -> None:
        self._kernel(EVICT, p, *self._arguments)

    def _answer_compiled(self) -> Any:
        self._kernel(QUERY, 0, *self._arguments)
        return self._binding.read_result(self._result)

    def _set_leaf(self, p: int, partial: Any) -> None:
        self._lists[0][self._capacity + (p & int(self._w[MASK]))] = partial
