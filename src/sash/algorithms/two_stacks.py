"""Two stacks: what is new is pushed on one, what is old is popped off the other, and now and then one is flipped over.

The basic form: each entry of either stack is a value and the aggregate of everything below it, as in Hammer Slide's figure 3.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.algorithms.driver import BACK, FRONT
from sash.algorithms.window_algorithm import Card, WindowAlgorithm
from sash.kernels.vocabulary import Index, Memory, combine, load, store

NEW, OLD = 3, 4  # how many entries are on each stack
NEW_VALUES, NEW_SUMS, OLD_VALUES, OLD_SUMS = 0, 1, 2, 3


def insert(w: Index, M: Memory, s: Partial) -> None:
    store(M[NEW_VALUES], w[NEW], s)
    store(M[NEW_SUMS], w[NEW], s if w[NEW] == 0 else combine(load(M[NEW_SUMS], w[NEW] - 1), s))
    w[NEW] += 1
    w[BACK] += 1


def evict(w: Index, M: Memory) -> None:
    if w[OLD] == 0:
        flip(w, M)
    w[OLD] -= 1
    w[FRONT] += 1


def flip(w: Index, M: Memory) -> None:
    """Move the new stack onto the old one, youngest first, so that the oldest row ends on top."""
    while w[NEW] > 0:
        w[NEW] -= 1
        s = load(M[NEW_VALUES], w[NEW])
        store(M[OLD_VALUES], w[OLD], s)
        store(M[OLD_SUMS], w[OLD], s if w[OLD] == 0 else combine(s, load(M[OLD_SUMS], w[OLD] - 1)))
        w[OLD] += 1


def query(w: Index, M: Memory) -> Partial:
    if w[OLD] == 0:
        return load(M[NEW_SUMS], w[NEW] - 1)
    if w[NEW] == 0:
        return load(M[OLD_SUMS], w[OLD] - 1)
    return combine(load(M[OLD_SUMS], w[OLD] - 1), load(M[NEW_SUMS], w[NEW] - 1))


class TwoStacks(WindowAlgorithm):
    """A queue made of two stacks, each entry with the aggregate of everything below it.

    >>> w = TwoStacks("max")
    >>> for v in (3, 9, 2): w.insert(v)
    >>> w.evict(); w.evict(); w.query(), len(w)
    (2, 1)
    """

    card = Card(
        name="two_stacks",
        title="Two stacks",
        idea="Push new rows on one stack, pop old ones off another; every entry carries the aggregate of what lies below it. "
        "When the old stack is empty, the new one is flipped onto it.",
        insert="O(1)",
        evict="O(1) amortised, O(n) worst",
        query="O(1), one combine",
        space="4n partials",
        paper="Hammer Slide, section 2.2 and figure 3",
    )
    functions = (insert, evict, query)
    buffers = ("stack", "stack", "stack", "stack")
