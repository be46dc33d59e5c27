"""Rows to slices: each segment of neighbouring rows becomes one partial.

Long segments are read in vector lanes. Segments of equal length are folded many at a time, so that no lane idles.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.kernels.vocabulary import (
    LANES,
    Index,
    Results,
    Rows,
    States,
    combine,
    combine_lanes,
    emit,
    emit_lanes,
    fold_lanes,
    fold_segments,
    identity,
    lift,
    lift_lanes,
    prefetch,
    store,
    store_lanes,
)

AHEAD = 2048


def segments(X: Rows, offsets: Index, begin: int, end: int, S: States) -> int:
    """``S[j]`` becomes the partial of the rows ``offsets[j]`` to ``offsets[j + 1] - 1``; that of an empty segment, the identity."""
    for j in range(begin, end):
        if offsets[j] == offsets[j + 1]:
            store(S, j, identity())
            continue
        s = lift(X, offsets[j])
        for p in range(offsets[j] + 1, offsets[j + 1]):
            s = combine(s, lift(X, p))
        store(S, j, s)
    return end


def in_lanes(X: Rows, first: int, last: int) -> Partial:
    """The rows ``first`` to ``last - 1`` of an aggregate that commutes."""
    p = first
    if last - first < LANES:
        s = lift(X, p)
        p += 1
    else:
        a = lift_lanes(X, p)
        p += LANES
        while p + LANES <= last:
            a = combine_lanes(a, lift_lanes(X, p))
            p += LANES
        s = fold_lanes(a)
    while p < last:
        s = combine(s, lift(X, p))
        p += 1
    return s


def segments_in_lanes(X: Rows, offsets: Index, begin: int, end: int, S: States) -> int:
    """:func:`segments` for aggregates that commute, many rows at a time."""
    for j in range(begin, end):
        if offsets[j] == offsets[j + 1]:
            store(S, j, identity())
        else:
            store(S, j, in_lanes(X, offsets[j], offsets[j + 1]))
    return end


def windows(X: Rows, begin: int, end: int, size: int, every: int, R: Results) -> int:
    """Windows that do not overlap (or are few): each aggregated on its own."""
    for j in range(begin, end):
        first = j * every
        s = lift(X, first)
        for p in range(first + 1, first + size):
            s = combine(s, lift(X, p))
        emit(R, j, s)
    return end


def windows_in_lanes(X: Rows, begin: int, end: int, size: int, every: int, R: Results) -> int:
    """:func:`windows` for aggregates that commute."""
    j = begin
    if size % LANES == 0:
        while j + LANES <= end:
            if size < 8 * LANES:
                prefetch(X, j * every + AHEAD)
                prefetch(X, (j + LANES // 2) * every + AHEAD)
            emit_lanes(R, j, fold_segments(X, j * every, size, every))
            j += LANES
    while j < end:
        emit(R, j, in_lanes(X, j * every, j * every + size))
        j += 1
    return end


def slices_in_lanes(X: Rows, begin: int, end: int, size: int, S: States) -> int:
    """Partials of equal slices: ``S[j - begin]`` holds the rows ``j * size`` to ``(j + 1) * size - 1``; for aggregates that commute."""
    j = begin
    if size % LANES == 0:
        while j + LANES <= end:
            store_lanes(S, j - begin, fold_segments(X, j * size, size, size))
            j += LANES
    while j < end:
        store(S, j - begin, in_lanes(X, j * size, (j + 1) * size))
        j += 1
    return end


def ranges(X: Rows, lo: Index, hi: Index, begin: int, end: int, R: Results) -> int:
    """Every range from scratch, in order; none is empty. For few ranges, which a tree would not pay for."""
    for j in range(begin, end):
        s = lift(X, lo[j])
        for p in range(lo[j] + 1, hi[j]):
            s = combine(s, lift(X, p))
        emit(R, j, s)
    return end


def ranges_in_lanes(X: Rows, lo: Index, hi: Index, begin: int, end: int, R: Results) -> int:
    """Every range from scratch, for aggregates that commute; that of an empty one is the identity's."""
    for j in range(begin, end):
        emit(R, j, in_lanes(X, lo[j], hi[j]) if lo[j] < hi[j] else identity())
    return end
