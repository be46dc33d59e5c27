"""Kernels over the rows and slices of many keys at once: sorting, finding slices, scattering rows into them, window bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sash.aggregates.count import Count
from sash.kernels.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.kernels.vocabulary import Index, Rows, States, combine, identity, invert, lift, load, same, store
from sash.types import FAR_AHEAD

DIGIT = 11
"""Bits that one pass of the radix sort looks at."""
ELSEWHERE = -1
"""New slices do not just join those that are there, or follow them."""
WITH_GAPS = -2
"""Within a new slice there may be a gap that separates sessions."""


@lru_cache(maxsize=64)
def plain(function: Callable[..., Any]) -> Kernel:
    """The kernel of a function that uses no aggregate."""
    return compiled(generate(function, Count().form()))


# Order.


def is_ordered(keys: Index, ticks: Index, count: int) -> int:
    """Whether rows are sorted by key, then time: 2; at least by time: 1; neither: 0."""
    by_time, by_both = 1, 1
    for i in range(1, count):
        if ticks[i] < ticks[i - 1]:
            by_time = 0
            if keys[i] == keys[i - 1]:
                by_both = 0
        if keys[i] < keys[i - 1]:
            by_both = 0
        if by_time + by_both == 0:
            break
    return 2 if by_both == 1 else by_time


def radix_pass(
    values: Index, order: Index, count: int, shift: int, counts: Index, sorted_values: Index, sorted_order: Index
) -> int:  # fmt: skip
    """One stable pass over the digit at ``shift``; rows move with their values. ``counts`` has a place per digit and one more."""
    size = 1 << 11
    for d in range(size + 1):
        counts[d] = 0
    for i in range(count):
        counts[((values[i] >> shift) & (size - 1)) + 1] += 1
    for d in range(size):
        counts[d + 1] += counts[d]
    for i in range(count):
        value = values[i]
        d = (value >> shift) & (size - 1)
        place = counts[d]
        sorted_values[place] = value
        sorted_order[place] = order[i]
        counts[d] = place + 1
    return count


def inverse(order: Index, count: int, back: Index) -> int:
    """Where each row went."""
    for i in range(count):
        back[order[i]] = i
    return count


def gather(values: Index, order: Index, begin: int, end: int, sorted_values: Index) -> int:
    """Values in another order."""
    for i in range(begin, end):
        sorted_values[i] = values[order[i]]
    return end


# Slices.


def cells(
    ticks: Index, keys: Index, begin: int, end: int, edges: Index, edge_count: int, lookup: Index, base: int, shift: int,
    places: Index, counts: Index,
) -> int:  # fmt: skip
    """``places[i]`` becomes ``key * edge_count + j``, where ``edges[j]`` is the last edge at or before the row; rows are counted.

    ``lookup`` holds, for every ``2**shift`` ticks from ``base`` on, the edge to start looking at. The slice of the row before is tried
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


def span(values: Index, begin: int, end: int, found: Index) -> int:
    """The smallest and the largest of some values."""
    low, high = values[begin], values[begin]
    for i in range(begin, end):
        low, high = min(low, values[i]), max(high, values[i])
    found[0], found[1] = low, high
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
    """Nothing in every place."""
    for i in range(begin, end):
        store(S, i, identity())
    return end


def add_up(S: States, T: States, begin: int, end: int) -> int:
    """``S[i]`` followed by ``T[i]``."""
    for i in range(begin, end):
        store(S, i, combine(load(S, i), load(T, i)))
    return end


def locate(
    X: Rows, ticks: Index, keys: Index, key_count: int, count: int, edges: Index, skip: int, edge_count: int, lookup: Index, base: int,
    shift: int, many: int, places: Index, first: Index, last: Index, counts: Index, filled: Index, S: States,
) -> int:  # fmt: skip
    """:func:`cells` and :func:`scatter_any` for rows in any order; and each place's first and last tick and its rows. Then the places that
    have rows move to the front; returns how many they are, and ``filled`` says which they were.

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
        counts[p] += 1
        s = combine(load(S, p), lift(X, i))
        store(S, p, s)
    q = 0
    for p in range(key_count * edge_count):
        if counts[p] > 0:
            first[q], last[q], counts[q], filled[q] = first[p], last[p], counts[p], p
            store(S, q, load(S, p))
            q += 1
    return q


def add_at(S: States, places: Index, T: States, count: int) -> int:
    """``S[places[i]]`` followed by ``T[i]``."""
    for i in range(count):
        store(S, places[i], combine(load(S, places[i]), load(T, i)))
    return count


def find_slices(
    cell: Index, first: Index, last: Index, count: int,
    new_cell: Index, new_first: Index, new_last: Index, new_count: int, gap: int, commutes: int, places: Index,
) -> int:  # fmt: skip
    """Where newer slices of a key go among its older ones: each to the one of its cell, or behind them all.

    ``places`` gets where each goes. Returns how many join older ones, or ``ELSEWHERE`` if one belongs there, would bridge a gap or, where
    order matters, has rows between older ones. Both are in the order of time.
    """
    joined, place = new_count, -1
    for i in range(new_count):
        c = new_cell[i]
        if i > 0 and (new_cell[i - 1] == c or new_first[i] <= new_first[i - 1]):
            return ELSEWHERE
        following = place + 1
        place = following
        if place < count and cell[place] != c:  # most often it is the next one
            place = place_of(first, place, count, new_first[i] + 1)
            if place > following and cell[place - 1] == c:
                place -= 1
        if (0 < place <= count and cell[place - 1] == c) or (place + 1 < count and cell[place + 1] == c):
            return ELSEWHERE
        if place >= count:
            if new_first[i] <= last[count - 1]:
                return ELSEWHERE
            joined = min(joined, i)
        else:
            spans = max(last[place], new_last[i]) - min(first[place], new_first[i])
            if cell[place] != c or spans > gap or (commutes == 0 and last[place] > new_first[i]):
                return ELSEWHERE
        places[i] = place
    return joined


def place_slices(
    key: Index, cell: Index, first: Index, last: Index, counts: Index,
    new_cell: Index, new_first: Index, new_last: Index, new_counts: Index, new_count: int, joined: int, places: Index,
) -> int:  # fmt: skip
    """Write newer slices among older ones, of which there is room for more, at the places that :func:`find_slices` found."""
    for i in range(joined):
        p = places[i]
        first[p], last[p] = min(first[p], new_first[i]), max(last[p], new_last[i])
        counts[p] += new_counts[i]
    for i in range(joined, new_count):
        p = places[i]
        key[p], cell[p], first[p], last[p], counts[p] = key[0], new_cell[i], new_first[i], new_last[i], new_counts[i]
    return joined


def join_slices(S: States, T: States, joined: int, places: Index) -> int:
    """Join older slices to the newer ones that go there. Those are written to, so that a ``combine`` that raises changes nothing."""
    for i in range(joined):
        store(T, i, combine(load(S, places[i]), load(T, i)))
    return joined


def write_slices(S: States, held: Index, T: States, new_held: Index, joined: int, count: int, places: Index) -> int:
    """An aggregate's part of :func:`place_slices`, after :func:`join_slices`."""
    for i in range(count):
        store(S, places[i], load(T, i))
    for i in range(joined):
        held[places[i]] += new_held[i]
    for i in range(joined, count):
        held[places[i]] = new_held[i]
    return count


def put_in_place(
    X: Rows, ticks: Index, keys: Index, count: int, edges: Index, skip: int, edge_count: int, lookup: Index, base: int, shift: int,
    many: int, row_places: Index, new_first: Index, new_last: Index, new_counts: Index, filled: Index, T: States, new_cell: Index,
    places: Index, key: Index, cell: Index, first: Index, last: Index, counts: Index, held: Index, S: States, there: int, gap: int,
    found: Index,
) -> int:  # fmt: skip
    """Rows of a single key, which commute, into slices that are ``there``: :func:`locate`, :func:`find_slices`, :func:`join_slices`, and
    only then :func:`place_slices` and :func:`write_slices`, so that a function that raises changes nothing.

    ``found`` gets how many slices the rows make. Returns how many of them joined older ones. ``ELSEWHERE`` if they cannot all be
    placed, or ``WITH_GAPS``: then nothing was changed, and they are on their own.
    """
    made = locate(
        X, ticks, keys, 1, count, edges, skip, edge_count, lookup, base, shift, many, row_places, new_first, new_last, new_counts, filled, T
    )
    found[0] = made
    for i in range(made):
        new_cell[i] = edges[skip + filled[i]]
        if new_last[i] - new_first[i] > gap:
            return WITH_GAPS
    joined = find_slices(cell, first, last, there, new_cell, new_first, new_last, made, gap, 1, places)
    if joined != ELSEWHERE:
        join_slices(S, T, joined, places)
        place_slices(key, cell, first, last, counts, new_cell, new_first, new_last, new_counts, made, joined, places)
        write_slices(S, held, T, new_counts, joined, made, places)
    return joined


def take_away(S: States, places: Index, T: States, count: int) -> int:
    """``S[places[i]]`` without ``T[i]``."""
    for i in range(count):
        store(S, places[i], invert(load(S, places[i]), load(T, i)))
    return count


def are_same(S: States, places: Index, T: States, count: int, found: Index) -> int:
    """Whether ``S[places[i]]`` and ``T[i]`` are equal."""
    for i in range(count):
        found[i] = 1 if same(load(S, places[i]), load(T, i)) else 0
    return count


def group_slices(
    keys: Index, cells: Index, first: Index, last: Index, count: int, gap: int, settled: int, offsets: Index
) -> int:  # fmt: skip
    """Slices that belong together, sorted by key and first row: one key, one cell, no gap (which does not matter in a settled cell).

    ``offsets`` gets where each group starts, and the end; the number of groups is returned.
    """
    groups, reach = 0, 0
    for j in range(count):
        together = j > 0 and keys[j] == keys[j - 1] and cells[j] == cells[j - 1]
        if together and (cells[j] == settled or first[j] - reach <= gap):
            reach = max(reach, last[j])
        else:
            offsets[groups] = j
            groups += 1
            reach = last[j]
    offsets[groups] = count
    return groups


# Bounds: ranges over the slices of each key; slices lie key by key, ``offsets`` says from where to where.


def periodic_count(
    offsets: Index, starts: Index, begin: int, end: int, size: int, every: int, offset: int, gaps: int, lowest: int, highest: int,
    counts: Index,
) -> int:  # fmt: skip
    """How many windows the keys ``begin`` to ``end - 1`` have; with ``gaps`` the empty ones between two rows count too.

    Only windows with numbers from ``lowest`` to ``highest`` are asked for.
    """
    for key in range(begin, end):
        total, following = 0, 0
        for j in range(offsets[key], offsets[key + 1]):
            first = max((starts[j] - offset - size) // every + 1, lowest)
            last = min((starts[j] - offset) // every, highest)
            if j > offsets[key]:
                first = following if gaps else max(first, following)
            if last >= first:
                total += last - first + 1
                following = last + 1
            elif j == offsets[key]:
                following = first
        counts[key] = total
    return end


def periodic_fill(
    offsets: Index, starts: Index, begin: int, end: int, size: int, every: int, offset: int, gaps: int, lowest: int, highest: int,
    places: Index, lo: Index, hi: Index, window: Index, keys: Index,
) -> int:  # fmt: skip
    """The windows that :func:`periodic_count` counted, from ``places[key]`` on: their slices, start and key."""
    for key in range(begin, end):
        w, following = places[key], 0
        low, high = offsets[key], offsets[key]
        stop = offsets[key + 1]
        for j in range(offsets[key], stop):
            first = max((starts[j] - offset - size) // every + 1, lowest)
            last = min((starts[j] - offset) // every, highest)
            if j > offsets[key]:
                first = following if gaps else max(first, following)
            for k in range(first, last + 1):
                start = offset + k * every
                while low < stop and starts[low] < start:
                    low += 1
                high = max(high, low)
                while high < stop and starts[high] < start + size:
                    high += 1
                lo[w], hi[w], window[w], keys[w] = low, high, start, key
                w += 1
            if last >= first:
                following = last + 1
            elif j == offsets[key]:
                following = first
    return end


def listed_count(
    offsets: Index, starts: Index, begin: int, end: int, opens: Index, closes: Index, count: int, gaps: int, counts: Index
) -> int:
    """How many of the ``count`` listed windows each key has; their starts and ends both only advance.

    With ``gaps`` the empty ones between its first and its last row count too.
    """
    for key in range(begin, end):
        total, low, high, stop = 0, offsets[key], offsets[key], offsets[key + 1]
        for w in range(count):
            while low < stop and starts[low] < opens[w]:
                low += 1
            high = max(high, low)
            while high < stop and starts[high] < closes[w]:
                high += 1
            if high > low or (gaps and offsets[key] < high and low < stop):
                total += 1
        counts[key] = total
    return end


def listed_fill(
    offsets: Index, starts: Index, begin: int, end: int, opens: Index, closes: Index, count: int, gaps: int,
    places: Index, lo: Index, hi: Index, window: Index, keys: Index,
) -> int:  # fmt: skip
    """The windows that :func:`listed_count` counted; ``window`` gets their numbers in the list."""
    for key in range(begin, end):
        place, low, high, stop = places[key], offsets[key], offsets[key], offsets[key + 1]
        for w in range(count):
            while low < stop and starts[low] < opens[w]:
                low += 1
            high = max(high, low)
            while high < stop and starts[high] < closes[w]:
                high += 1
            if high > low or (gaps and offsets[key] < high and low < stop):
                lo[place], hi[place], window[place], keys[place] = low, high, w, key
                place += 1
    return end


def due_queries(ends: Index, phases: Index, steps: Index, count: int, until: int, due: Index) -> int:
    """Which periodic queries' next window ends by a tick; ``ends`` becomes each one's first end after it.

    Returns how many they are; behind the places of all of them, ``due`` gets the earliest of the ends.
    """
    found, earliest = 0, FAR_AHEAD
    for q in range(count):
        if ends[q] <= until:
            due[found] = q
            found += 1
            ends[q] = phases[q] + ((until - phases[q]) // steps[q] + 1) * steps[q]
        earliest = min(earliest, ends[q])
    due[count] = earliest
    return found


def ending_windows(
    which: Index, queries: int, sizes: Index, steps: Index, offsets: Index, since: Index, after: int, until: int,
    first: Index, last: Index, key_offsets: Index, keys: int, limit: int, most: int, found: Index,
) -> int:  # fmt: skip
    """The windows of periodic queries that end after one tick and not after another, and hold a slice: key by key, query by query.

    ``found`` has room for ``most`` of each of query, key, first slice, slice behind, start and end; returns how many there are, or -1 if
    more than ``limit`` had to be looked at.
    """
    oldest, newest = first[0], last[0]
    for j in range(key_offsets[keys]):
        oldest, newest = min(oldest, first[j]), max(newest, last[j])
    count, looked = 0, 0
    for k in range(keys):
        low, high = key_offsets[k], key_offsets[k + 1]
        for w in range(queries):
            q = which[w]
            size, every, offset = sizes[q], steps[q], offsets[q]
            number = (max(after, oldest) - offset - size) // every + 1
            end = min((until - offset - size) // every, (newest - offset) // every)
            looked += max(0, end - number + 1)
            if looked > limit:
                return -1
            for n in range(number, end + 1):
                start = offset + n * every
                lo = place_of(first, low, high, start)
                hi = place_of(first, lo, high, start + size)
                if start >= since[q] and hi > lo:
                    if count < most:
                        found[count], found[most + count], found[2 * most + count] = q, k, lo
                        found[3 * most + count], found[4 * most + count], found[5 * most + count] = hi, start, start + size
                    count += 1
    return count


def place_of(starts: Index, low: int, high: int, tick: int) -> int:
    """The first slice from ``low`` on, and before ``high``, that does not start before a tick."""
    while low < high:
        middle = (low + high) // 2
        if starts[middle] < tick:
            low = middle + 1
        else:
            high = middle
    return low


def places_in_keys(ticks: Index, offsets: Index, keys: Index, wanted: Index, count: int, found: Index) -> int:
    """For each of some keys its first place whose tick is not before a wanted one; a key's ticks lie in order."""
    for j in range(count):
        found[j] = place_of(ticks, offsets[keys[j]], offsets[keys[j] + 1], wanted[j])
    return count


def look_at_ranges(lo: Index, hi: Index, count: int, found: Index) -> int:
    """Whether both ends only advance, how long the longest range is, and how many are empty."""
    advances, longest, empty = 1, 1, 0
    for j in range(count):
        length = hi[j] - lo[j]
        longest = max(longest, length)
        empty += 1 if length <= 0 else 0
        if j > 0 and (lo[j] < lo[j - 1] or hi[j] < hi[j - 1]):
            advances = 0
    found[0], found[1], found[2] = advances, longest, empty
    return count


def trailing(ticks: Index, offsets: Index, begin: int, end: int, size: int, with_start: int, with_end: int, lo: Index, hi: Index) -> int:
    """For each row of the keys ``begin`` to ``end - 1`` the rows of its trailing window; rows lie key by key, in order of time."""
    for key in range(begin, end):
        low, high = offsets[key], offsets[key]
        stop = offsets[key + 1]
        for i in range(offsets[key], stop):
            oldest = ticks[i] - size
            while ticks[low] < oldest or (with_start == 0 and ticks[low] == oldest and low < i):
                low += 1
            if with_end:
                while high < stop and ticks[high] <= ticks[i]:
                    high += 1
            else:
                while high < stop and ticks[high] < ticks[i]:
                    high += 1
            lo[i], hi[i] = low, max(high, low)
            if with_start == 0 and size == 0:
                lo[i], hi[i] = i, i
    return end
