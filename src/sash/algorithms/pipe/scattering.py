"""Kernels that find the slices of rows, and add rows in any order to them."""

from __future__ import annotations

from sash.kernels.vocabulary import Bytes, Index, Rows, States, combine, identity, included, invert, lift, load, same, store
from sash.types import FAR_AHEAD


def cells(
    ticks: Index, keys: Index, begin: int, end: int, edges: Index, edge_count: int, lookup: Index, base: int, shift: int,
    places: Index, counts: Index,
) -> int:  # fmt: skip
    """``places[i]`` becomes ``key * edge_count + j``, where ``edges[j]`` is the last edge at or before the row; rows are counted.

    ``lookup`` has, for every ``2**shift`` ticks from ``base`` on, the edge at which the search starts. The slice of the row before is tried
    first, so that rows in order need two comparisons.
    """
    j = 0
    low, high = edges[0], edges[0]
    for i in range(begin, end):
        t = ticks[i]
        if t < low or t >= high:
            j = lookup[(t - base) >> shift]
            while j + 1 < edge_count and edges[j + 1] <= t:
                j += 1
            low = edges[j]
            high = edges[j + 1] if j + 1 < edge_count else t + 1
        p = keys[i] * edge_count + j
        places[i] = p
        counts[p] += 1
    return end


def scatter(X: Rows, places: Index, begin: int, end: int, S: States) -> int:
    """Add each row to its place, for aggregates that commute; a run of rows of one place stays in registers."""
    s = identity()
    if begin == end:
        return end
    p = places[begin]
    s = load(S, p)
    for i in range(begin, end):
        q = places[i]
        if q != p:
            store(S, p, s)
            p = q
            s = load(S, p)
        s = combine(s, lift(X, i))
    store(S, p, s)
    return end


def scatter_any(X: Rows, places: Index, begin: int, end: int, S: States) -> int:
    """:func:`scatter` for rows whose places change without a pattern: no branch on them."""
    s = identity()
    for i in range(begin, end):
        s = combine(load(S, places[i]), lift(X, i))
        store(S, places[i], s)
    return end


def clear(S: States, begin: int, end: int) -> int:
    """Put the identity into every place."""
    for i in range(begin, end):
        store(S, i, identity())
    return end


def add_up(S: States, T: States, begin: int, end: int) -> int:
    """``S[i]`` becomes ``S[i]`` combined with ``T[i]``."""
    for i in range(begin, end):
        store(S, i, combine(load(S, i), load(T, i)))
    return end


def locate(
    X: Rows, ticks: Index, keys: Index, key_count: int, count: int, edges: Index, skip: int, edge_count: int, lookup: Index, base: int,
    shift: int, many: int, places: Index, first: Index, last: Index, counts: Index, rows: Index, filled: Index, S: States,
) -> int:  # fmt: skip
    """:func:`cells` and :func:`scatter_any` for rows in any order; and each place's first and last tick, its rows (``counts``), and how
    many of them are not null (``rows``). Then the places that have rows move to the front; returns how many they are, and ``filled`` gets
    their numbers.

    Places count the ``edge_count`` edges from ``skip`` on. ``edges`` has one more at the end that no row reaches. Unless ``many``, no
    stretch of ``2**shift`` ticks has two edges.
    """
    for p in range(key_count * edge_count):
        first[p], last[p], counts[p] = FAR_AHEAD, -FAR_AHEAD, 0
        store(S, p, identity())
    several = key_count > 1
    for i in range(count):  # on its own, since a search need not wait for the sum before it
        t = ticks[i]
        j = lookup[(t - base) >> shift]
        j += 1 if edges[j + 1] <= t else 0
        if many:
            while edges[j + 1] <= t:
                j += 1
        places[i] = keys[i] * edge_count + j - skip if several else j - skip
    s = identity()
    for i in range(count):
        p, t = places[i], ticks[i]
        # The lesser and the greater in bits: a branch on times in no order would be wrong half of the time.
        low, high = first[p], last[p]
        first[p] = t ^ ((t ^ low) & -(1 if low < t else 0))
        last[p] = t ^ ((t ^ high) & -(1 if high > t else 0))
        counts[p] += 1 | included(X, i) << 32  # two counts in one number: a second one would be waited for as long again
        s = combine(load(S, p), lift(X, i))
        store(S, p, s)
    q = 0
    for p in range(key_count * edge_count):
        if counts[p] > 0:
            first[q], last[q], counts[q], rows[q], filled[q] = first[p], last[p], counts[p] & 0xFFFFFFFF, counts[p] >> 32, p
            store(S, q, load(S, p))
            q += 1
    return q


def count_included(bits: Bytes, places: Index, count: int, place_count: int, rows: Index) -> int:
    """``rows[p]`` becomes how many of the rows at place ``p`` are set in a bitmap."""
    for p in range(place_count):
        rows[p] = 0
    for i in range(count):
        rows[places[i]] += (bits[i >> 3] >> (i & 7)) & 1
    return count


def add_at(S: States, places: Index, T: States, count: int) -> int:
    """``S[places[i]]`` becomes itself combined with ``T[i]``."""
    for i in range(count):
        store(S, places[i], combine(load(S, places[i]), load(T, i)))
    return count


def take_away(S: States, places: Index, T: States, count: int) -> int:
    """``S[places[i]]`` becomes itself without ``T[i]``."""
    for i in range(count):
        store(S, places[i], invert(load(S, places[i]), load(T, i)))
    return count


def are_same(S: States, places: Index, T: States, count: int, found: Index) -> int:
    """``found[i]`` becomes 1 if ``S[places[i]]`` and ``T[i]`` are equal, else 0."""
    for i in range(count):
        found[i] = 1 if same(load(S, places[i]), load(T, i)) else 0
    return count
