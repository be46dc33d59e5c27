"""FlatFAT: a complete binary tree over a fixed number of places, flat in one array (Reactive Aggregator, section 4).

The root is at 1, the children of ``v`` at ``2v`` and ``2v + 1``, the leaves at ``n`` to ``2n - 1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sash.algebra import Function, Partial
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.window_algorithm import CAPACITY, Card, WindowAlgorithm
from sash.errors import InvalidArgument
from sash.kernels import objects
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.kernels.vocabulary import Index, Memory, Results, Rows, States, combine, emit, identity, lift, load, store

ROOT = 1


def build(T: States, n: int) -> int:
    """Algorithm 1: compute every inner node, bottom up; ``n - 1`` combines."""
    for v in range(n - 1, 0, -1):
        store(T, v, combine(load(T, 2 * v), load(T, 2 * v + 1)))
    return 0


def fill(X: Rows, count: int, T: States, n: int) -> int:
    """A tree over ``count`` rows; the leaves behind them hold the identity."""
    for i in range(count):
        store(T, n + i, lift(X, i))
    for i in range(count, n):
        store(T, n + i, identity())
    return build(T, n)


def propagate(T: States, nodes: Index, count: int) -> int:
    """Algorithm 2 (``update``): recompute what depends on ``count`` changed nodes, in ascending order, level by level."""
    while count > 0 and nodes[0] > ROOT:
        parents = 0
        for k in range(count):
            parent = nodes[k] >> 1
            if parents == 0 or nodes[parents - 1] != parent:
                store(T, parent, combine(load(T, 2 * parent), load(T, 2 * parent + 1)))
                nodes[parents] = parent
                parents += 1
        count = parents
    return 0


def write(X: Rows, T: States, v: int) -> int:
    """Put a row into a leaf."""
    store(T, v, lift(X, 0))
    return 0


def prefix(T: States, n: int, last: int) -> Partial:
    """Algorithm 3: the places 0 to ``last``."""
    v = n + last
    s = load(T, v)
    while v > ROOT:
        if v & 1 == 1:
            s = combine(load(T, v - 1), s)
        v >>= 1
    return s


def suffix(T: States, n: int, first: int) -> Partial:
    """The places ``first`` to ``n - 1``."""
    v = n + first
    s = load(T, v)
    while v > ROOT:
        if v & 1 == 0:
            s = combine(s, load(T, v + 1))
        v >>= 1
    return s


def between(T: States, n: int, first: int, last: int) -> Partial:
    """The places ``first`` to ``last``, in order: one climb from either side until they meet."""
    a, b = n + first, n + last
    left, right = load(T, a), load(T, b)
    if a == b:
        return left
    while a >> 1 != b >> 1:
        if a & 1 == 0:
            left = combine(left, load(T, a + 1))
        if b & 1 == 1:
            right = combine(load(T, b - 1), right)
        a >>= 1
        b >>= 1
    return combine(left, right)


def ranges(T: States, n: int, lo: Index, hi: Index, begin: int, end: int, R: Results) -> int:
    """Ranges ``[lo[j], hi[j])`` of any shape, none of them empty."""
    for j in range(begin, end):
        emit(R, j, between(T, n, lo[j], hi[j] - 1))
    return end


def ask(T: States, n: int, what: int, place: int, R: Results) -> int:
    """One of the tree's questions: everything (0), a prefix (1), a suffix (2)."""
    if what == 0:
        emit(R, 0, load(T, ROOT))
    elif what == 1:
        emit(R, 0, prefix(T, n, place))
    else:
        emit(R, 0, suffix(T, n, place))
    return 0


# As a window: places are used in a circle, and unused ones have the identity.


def put(T: States, v: int, s: Partial) -> None:
    store(T, v, s)
    v >>= 1
    while v >= ROOT:
        store(T, v, combine(load(T, 2 * v), load(T, 2 * v + 1)))
        v >>= 1


def insert(w: Index, M: Memory, s: Partial) -> None:
    put(M[0], w[CAPACITY] + (w[BACK] & w[MASK]), s)
    w[BACK] += 1


def evict(w: Index, M: Memory) -> None:
    put(M[0], w[CAPACITY] + (w[FRONT] & w[MASK]), identity())
    w[FRONT] += 1


def query(w: Index, M: Memory) -> Partial:
    """The inverted buffer (section 5.1.2): where the circle has come round, the suffix is older than the prefix."""
    first, last = w[FRONT] & w[MASK], (w[BACK] - 1) & w[MASK]
    if first <= last:
        return load(M[0], ROOT)
    return combine(suffix(M[0], w[CAPACITY], first), prefix(M[0], w[CAPACITY], last))


class FlatFat(WindowAlgorithm):
    """A flat tree of aggregates over a fixed number of places.

    As a tree it takes all values at once, changes any of them, and answers for everything, a prefix or a suffix:

    >>> tree = FlatFat("max", values=[5, 1, 4, 2])
    >>> tree.update([0, 3], [0, 3])
    >>> tree.aggregate(), tree.prefix(1), tree.suffix(3)
    (4, 1, 3)

    As a window it is used like the other algorithms, and doubles when it is full:

    >>> w = FlatFat("max")
    >>> for v in (3, 9, 2): w.insert(v)
    >>> w.evict(); w.query()
    9
    """

    card = Card(
        name="flat_fat",
        title="FlatFAT",
        idea="A complete binary tree of aggregates in one flat array: a change recomputes the path to the root, m changes together "
        "recompute shared paths once, and any prefix, suffix or range is O(log n) nodes.",
        insert="O(log n); m changes O(m + m log(n/m))",
        evict="O(log n), anywhere",
        query="O(1) for everything, O(log n) for a prefix, suffix or range",
        space="2n partials",
        paper="Reactive Aggregator, section 4",
    )
    functions = (insert, evict, query)
    buffers = ("tree",)

    def __init__(self, aggregate: Any, values: Sequence[Any] | None = None, **options: Any) -> None:
        if values is None:
            super().__init__(aggregate, **options)
            return
        values = list(values)
        if not values:
            raise InvalidArgument("values of a FlatFat must not be empty")
        if options.get("dtype") is None:
            options["dtype"] = common_number_type(values)
        super().__init__(aggregate, capacity=len(values), **options)
        if not self._started:
            self._binding.bind_type(next((v for v in values if v is not None), None))
            self._start()
        self._w[BACK] = len(values)
        self._write(range(len(values)), values)
        self._build()

    # The tree's own operations (section 4).

    def update(self, places: Sequence[int], values: Sequence[Any]) -> None:
        """Write each value to its place, and recompute what depends on any of them once."""
        if len(places) != len(values):
            raise InvalidArgument(f"update takes as many values as places, not {len(values)} and {len(places)}")
        if len(set(places)) != len(places):
            raise InvalidArgument("update takes each place once")
        for place in places:
            self._check_place(place)
        order = sorted(range(len(places)), key=lambda k: places[k])
        ascending = [places[k] for k in order]
        self._write(ascending, [values[k] for k in order])
        nodes = np.array([self._capacity + place for place in ascending], np.int64)
        if self._binding.form is None:
            self._object_functions["propagate"](self._lists[0], nodes, len(nodes))
        else:
            self._tree_kernel(propagate)(*self._memory, nodes, len(nodes))

    def aggregate(self) -> Any:
        """All places together; no combine is needed."""
        return self._answer(0, 0)

    def prefix(self, last: int) -> Any:
        """The places 0 to ``last``."""
        self._check_place(last)
        return self._answer(1, last)

    def suffix(self, first: int) -> Any:
        """The places ``first`` to the end."""
        self._check_place(first)
        return self._answer(2, first)

    def _check_place(self, place: int) -> None:
        if not 0 <= place < len(self):
            raise InvalidArgument(f"place must be from 0 to {len(self) - 1}, not {place}")

    def _tree_kernel(self, function: Function) -> Kernel:
        assert self._binding.form is not None
        return compiled(generate(function, self._binding.form, masked=True))

    def _write(self, places: Iterable[int], values: Sequence[Any]) -> None:
        """Put values into leaves; inner nodes are left as they are."""
        if self._binding.form is None:
            for place, value in zip(places, values, strict=True):
                self._lists[0][self._capacity + place] = self._binding.objects.lift(value)
            return
        kernel = self._tree_kernel(write)
        for place, value in zip(places, values, strict=True):
            self._binding.fill_row(self._row, value)
            kernel(*self._row, *self._memory, self._capacity + place)

    def _build(self) -> None:
        if self._binding.form is None:
            self._object_functions["build"](self._lists[0], self._capacity)
        else:
            self._tree_kernel(build)(*self._memory, self._capacity)

    @property
    def _object_functions(self) -> dict[str, Function]:
        words = self._object_words()
        return {f.__name__: objects.bind(f, words) for f in (build, propagate, prefix, suffix)}

    def _answer(self, what: int, place: int) -> Any:
        if self._binding.form is None:
            tree = self._lists[0]
            functions = self._object_functions
            part = [
                lambda: tree[ROOT],
                lambda: functions["prefix"](tree, self._capacity, place),
                lambda: functions["suffix"](tree, self._capacity, place),
            ][what]()
            return self._binding.objects.lower(part)
        self._tree_kernel(ask)(*self._memory, self._capacity, what, place, *self._result)
        return self._binding.read_result(self._result)


def common_number_type(values: Sequence[Any]) -> Any:
    """The type of numbers in which all values fit; None if they are no numbers."""
    known = [v for v in values if v is not None]
    kind = np.asarray(known).dtype if known and not isinstance(known[0], tuple) else None
    return kind if kind is not None and kind.kind in "biuf" else None
