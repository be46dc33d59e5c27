"""DABA: two stacks whose flip is spread over all operations, so that none of them is ever slow.

The queue lies in one ring, cut by five pointers into runs: ``[F, L)`` and ``[A, B)`` hold aggregates up to B, ``[L, R)``
aggregates up to R, ``[R, A)`` and ``[B, E)`` bare rows. Every insert and every evict moves the pointers by one step, and at
most three combines are spent on it. (Tangwongsan, Hirzel and Schneider, "Low-latency sliding-window aggregation in worst-case
constant time", DEBS 2017; the layout in one ring is their DABA Lite.)
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.algorithms.driver import BACK, FRONT, MASK
from sash.algorithms.window_algorithm import Card, WindowAlgorithm
from sash.kernels.vocabulary import Index, Memory, combine, load, store

L, R, A, B = 3, 4, 5, 6  # FRONT is the paper's F, BACK its E
SUM_BACK, SUM_MIDDLE = 0, 1  # of [B, E) and of [R, B)


def insert(w: Index, M: Memory, s: Partial) -> None:
    store(M[1], SUM_BACK, s if w[B] == w[BACK] else combine(load(M[1], SUM_BACK), s))
    store(M[0], w[BACK] & w[MASK], s)
    w[BACK] += 1
    step_on(w, M)


def evict(w: Index, M: Memory) -> None:
    w[FRONT] += 1
    step_on(w, M)


def step_on(w: Index, M: Memory) -> None:
    if w[FRONT] == w[B]:  # nothing in front: all that is left becomes the front
        w[L] = w[R] = w[A] = w[B] = w[BACK]
        return
    if w[L] == w[B]:  # flip: the front is done, the back becomes the middle
        w[L] = w[FRONT]
        w[R] = w[B]
        w[A] = w[B] = w[BACK]
        store(M[1], SUM_MIDDLE, load(M[1], SUM_BACK))
    if w[L] == w[R]:  # shift
        w[L] += 1
        w[R] += 1
        w[A] += 1
        return
    store(M[0], w[L] & w[MASK], combine(load(M[0], w[L] & w[MASK]), load(M[1], SUM_MIDDLE)))  # shrink
    w[L] += 1
    if w[A] != w[B]:
        last = (w[A] - 1) & w[MASK]
        store(M[0], last, combine(load(M[0], last), load(M[0], w[A] & w[MASK])))
    w[A] -= 1


def query(w: Index, M: Memory) -> Partial:
    if w[B] == w[BACK]:
        return load(M[0], w[FRONT] & w[MASK])
    return combine(load(M[0], w[FRONT] & w[MASK]), load(M[1], SUM_BACK))


class Daba(WindowAlgorithm):
    """Two stacks without the slow moment: every operation takes constant time.

    >>> w = Daba("max")
    >>> for v in (3, 9, 2): w.insert(v)
    >>> w.evict(); w.query(), len(w)
    (9, 2)
    """

    card = Card(
        name="daba",
        title="DABA",
        idea="Two stacks in one ring whose flip is spread: every insert and evict moves it on by one step.",
        insert="O(1) worst case, at most three combines",
        evict="O(1) worst case, at most two combines",
        query="O(1), one combine",
        space="n + 2 partials",
        paper="Tangwongsan, Hirzel and Schneider, DEBS 2017 (Hammer Slide's reference 25)",
    )
    functions = (insert, evict, query)
    buffers = ("ring", "two")
