"""A running result over data that is complete: subtract on evict without a queue, and prefix differences.

Only for aggregates whose inverse is exact: integer sums, counts, and users' own where they say so.
"""

from __future__ import annotations

from sash.kernels.vocabulary import (
    LANES,
    Index,
    Results,
    Rows,
    States,
    address,
    combine,
    emit,
    emit_past_caches,
    identity,
    invert,
    lift,
    load,
    load_lanes,
    prefetch,
    store,
)

TILE = 256


def slide_by_one(X: Rows, begin: int, end: int, size: int, R: Results) -> int:
    """Window ``j`` holds the rows ``j`` to ``j + size - 1``: one row enters, one row leaves."""
    s = lift(X, begin)
    for p in range(begin + 1, begin + size):
        s = combine(s, lift(X, p))
    emit(R, begin, s)
    for j in range(begin + 1, end):
        s = invert(combine(s, lift(X, j + size - 1)), lift(X, j - 1))
        emit(R, j, s)
    return end


def slide_in_tiles(X: Rows, begin: int, end: int, size: int, T: States, R: Results) -> int:
    """:func:`slide_by_one`, a tile of windows at a time: they are lowered in vector lanes and written past the caches.

    Returns where it stopped: the last windows are left to :func:`slide_by_one`.
    """
    first = begin + (LANES - (address(R) + begin) % LANES) % LANES
    if first + TILE >= end:
        return begin
    s = lift(X, begin)
    for k in range(begin + 1, begin + size):
        s = combine(s, lift(X, k))
    for j in range(begin, first):
        emit(R, j, s)
        s = invert(combine(s, lift(X, j + size)), lift(X, j))
    i = first
    while i + TILE < end:
        for j in range(TILE):
            store(T, j, s)
            s = invert(combine(s, lift(X, i + j + size)), lift(X, i + j))
        for j in range(0, TILE, LANES):
            emit_past_caches(R, i + j, load_lanes(T, j))
            prefetch(X, i + j + size + 2 * TILE)
        i += TILE
    return i


def prefixes(X: Rows, count: int, S: States) -> int:
    """``S[i]`` is the aggregate of the first ``i`` rows; ``S`` has ``count + 1`` places."""
    s = identity()
    store(S, 0, s)
    for i in range(count):
        s = combine(s, lift(X, i))
        store(S, i + 1, s)
    return count


def differences(S: States, lo: Index, hi: Index, begin: int, end: int, R: Results) -> int:
    """Ranges of any shape from the prefixes: what comes before a range is subtracted."""
    for j in range(begin, end):
        emit(R, j, invert(load(S, hi[j]), load(S, lo[j])))
    return end
