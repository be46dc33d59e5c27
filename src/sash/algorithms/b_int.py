"""B-Int: base intervals. Aggregates of aligned runs of 1, 2, 4, 8, … rows, from which any window is assembled.

Each length has its own ring of intervals, filled as rows arrive. (Arasu and Widom, VLDB 2004: "AW" in the Reactive
Aggregator's section 6.)
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.window_algorithm import Card, WindowAlgorithm
from sash.kernels.vocabulary import Index, Memory, combine, load, store


def level_start(mask: int, level: int) -> int:
    """Where the ring of intervals of ``2 ** level`` rows begins; the rings get half as long from level to level."""
    capacity = mask + 1
    return 2 * capacity - (2 * capacity >> level)


def insert(w: Index, M: Memory, s: Partial) -> None:
    p, mask, level = w[BACK], w[MASK], 0
    store(M[0], p & mask, s)
    while (p & 1) == 1 and mask >> level > 1:  # the interval of twice the length is complete
        left = level_start(mask, level) + ((p - 1) & (mask >> level))
        s = combine(load(M[0], left), s)
        p >>= 1
        level += 1
        store(M[0], level_start(mask, level) + (p & (mask >> level)), s)
    w[BACK] += 1


def evict(w: Index, M: Memory) -> None:
    w[FRONT] += 1


def longest(p: int, back: int, mask: int) -> int:
    """The level of the longest base interval that starts at row ``p`` and ends by ``back``."""
    level = 0
    while (p >> level) & 1 == 0 and p + (2 << level) <= back and mask >> level > 1:
        level += 1
    return level


def interval(M: Memory, p: int, level: int, mask: int) -> Partial:
    return load(M[0], level_start(mask, level) + ((p >> level) & (mask >> level)))


def query(w: Index, M: Memory) -> Partial:
    """Split the window into base intervals, from its front to its back, and join them."""
    p, back, mask = w[FRONT], w[BACK], w[MASK]
    level = longest(p, back, mask)
    s = interval(M, p, level, mask)
    p += 1 << level
    while p < back:
        level = longest(p, back, mask)
        s = combine(s, interval(M, p, level, mask))
        p += 1 << level
    return s


class BInt(WindowAlgorithm):
    """Base intervals: aggregates of aligned runs whose lengths are powers of two.

    >>> w = BInt("max")
    >>> for v in (3, 9, 2): w.insert(v)
    >>> w.evict(); w.query(), len(w)
    (9, 2)
    """

    card = Card(
        name="b_int",
        title="B-Int",
        idea="Keep the aggregates of all aligned runs of 1, 2, 4, … rows; a window is put together from O(log n) of them.",
        insert="O(1) amortised, O(log n) worst",
        evict="O(1)",
        query="O(log n)",
        space="2n partials",
        paper="Arasu and Widom, VLDB 2004; Reactive Aggregator, section 6 (AW)",
    )
    functions = (insert, evict, query)
    buffers = ("levels",)
