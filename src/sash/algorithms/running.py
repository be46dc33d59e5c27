"""A running result over data that is all there: subtract on evict without a queue, and prefix differences.

Only for aggregates whose inverse is exact: integer sums, counts, and users' own where they say so.
"""

from __future__ import annotations

from sash.kernels.vocabulary import Index, Results, Rows, States, combine, emit, identity, invert, lift, load, store


def slide_by_one(X: Rows, begin: int, end: int, size: int, R: Results) -> int:
    """Window ``j`` holds the rows ``j`` to ``j + size - 1``: one row comes, one row goes."""
    s = lift(X, begin)
    for p in range(begin + 1, begin + size):
        s = combine(s, lift(X, p))
    emit(R, begin, s)
    for j in range(begin + 1, end):
        s = invert(combine(s, lift(X, j + size - 1)), lift(X, j - 1))
        emit(R, j, s)
    return end


def prefixes(X: Rows, count: int, S: States) -> int:
    """``S[i]`` is the aggregate of the first ``i`` rows; ``S`` has ``count + 1`` places."""
    s = identity()
    store(S, 0, s)
    for i in range(count):
        s = combine(s, lift(X, i))
        store(S, i + 1, s)
    return count


def differences(S: States, lo: Index, hi: Index, begin: int, end: int, R: Results) -> int:
    """Ranges of any shape from the prefixes: what comes before a range is taken away."""
    for j in range(begin, end):
        emit(R, j, invert(load(S, hi[j]), load(S, lo[j])))
    return end
