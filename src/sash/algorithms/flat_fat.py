"""FlatFAT: a complete binary tree over a fixed number of places, flat in one array (Reactive Aggregator, section 4).

The root is at 1, the children of ``v`` at ``2v`` and ``2v + 1``, the leaves at ``n`` to ``2n - 1``.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.algorithms.base import BACK, CAPACITY, FRONT, MASK, Card, WindowAlgorithm
from sash.kernels.vocabulary import Index, Memory, Results, Rows, States, combine, emit, identity, lift, load, store

ROOT = 1


def build(T: States, n: int) -> int:
    """Algorithm 1: compute every inner node, bottom up; ``n - 1`` combines."""
    for v in range(n - 1, 0, -1):
        store(T, v, combine(load(T, 2 * v), load(T, 2 * v + 1)))
    return 0


def propagate(T: States, nodes: Index, count: int) -> int:
    """Algorithm 2: recompute what depends on ``count`` changed nodes, given in ascending order, level by level."""
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


def update(X: Rows, T: States, n: int, places: Index, nodes: Index, count: int) -> int:
    """Write row ``k`` of ``X`` to place ``places[k]``, for ``count`` distinct places in ascending order."""
    for k in range(count):
        nodes[k] = n + places[k]
        store(T, nodes[k], lift(X, k))
    return propagate(T, nodes, count)


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


def ask(T: States, n: int, what: int, place: int, R: Results) -> int:
    """One of the tree's questions: everything (0), a prefix (1), a suffix (2)."""
    if what == 0:
        emit(R, 0, load(T, ROOT))
    elif what == 1:
        emit(R, 0, prefix(T, n, place))
    else:
        emit(R, 0, suffix(T, n, place))
    return 0


# As a window: places are used in a circle, and what is not used holds the identity.


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
