"""What all window algorithms have in common: one call that inserts, evicts or answers, and the bulk form over an array.

``insert``, ``evict`` and ``query`` are declared here and bound to an algorithm's own functions.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.kernels.vocabulary import Index, Memory, Results, Rows, emit, lift, load

FRONT, BACK, MASK = 0, 1, 2
INSERT, EVICT, QUERY = 0, 1, 2


def insert(w: Index, M: Memory, s: Partial) -> None:
    """Bound to the algorithm's own."""


def evict(w: Index, M: Memory) -> None:
    """Bound to the algorithm's own."""


def query(w: Index, M: Memory) -> Partial:
    """Bound to the algorithm's own."""


def step(what: int, X: Rows, w: Index, M: Memory, R: Results) -> int:
    """One operation."""
    if what == INSERT:
        insert(w, M, lift(X, 0))
    elif what == EVICT:
        evict(w, M)
    else:
        emit(R, 0, query(w, M))
    return 0


def replay(w: Index, M: Memory, first: int, back: int) -> int:
    """Insert again the rows that lie in a ring from place ``first`` on, up to position ``back``."""
    while w[BACK] < back:
        insert(w, M, load(M[0], first + (w[BACK] & w[MASK])))
    return 0


def roll(X: Rows, begin: int, end: int, size: int, every: int, w: Index, M: Memory, R: Results) -> int:
    """The windows ``begin`` to ``end - 1``; window ``j`` holds ``size`` rows from row ``j * every`` on."""
    oldest = row = begin * every
    for j in range(begin, end):
        start = j * every
        while oldest < start and oldest < row:
            evict(w, M)
            oldest += 1
        if row < start:  # rows between windows belong to none
            oldest = row = start
        while row < start + size:
            insert(w, M, lift(X, row))
            row += 1
        emit(R, j, query(w, M))
    return end
