"""Recalculate: keep the rows, aggregate all of them for each query."""

from __future__ import annotations

from sash.algebra import Partial
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.window_algorithm import Card, WindowAlgorithm
from sash.kernels.vocabulary import Index, Memory, combine, load, store


def insert(w: Index, M: Memory, s: Partial) -> None:
    store(M[0], w[BACK] & w[MASK], s)
    w[BACK] += 1


def evict(w: Index, M: Memory) -> None:
    w[FRONT] += 1


def query(w: Index, M: Memory) -> Partial:
    s = load(M[0], w[FRONT] & w[MASK])
    for p in range(w[FRONT] + 1, w[BACK]):
        s = combine(s, load(M[0], p & w[MASK]))
    return s


class Recalculate(WindowAlgorithm):
    """Keeps the rows and aggregates all of them for each query.

    >>> w = Recalculate("max")
    >>> for v in (3, 9, 2): w.insert(v)
    >>> w.evict(); w.query(), len(w)
    (9, 2)
    """

    card = Card(
        name="recalculate",
        title="Recalculate",
        idea="Keep the rows in a ring; aggregate all of them for each query.",
        insert="O(1)",
        evict="O(1)",
        query="O(n)",
        space="n partials",
        paper="the non-incremental baseline of Hammer Slide, section 2.2",
    )
    functions = (insert, evict, query)
    buffers = ("ring",)
