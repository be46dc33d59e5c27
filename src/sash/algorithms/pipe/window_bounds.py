"""Kernels that turn windows into ranges of slices or rows, for many keys at once."""

from __future__ import annotations

from sash.kernels.vocabulary import Index
from sash.types import FAR_AHEAD


def periodic_count(
    offsets: Index, starts: Index, begin: int, end: int, size: int, every: int, offset: int, gaps: int, lowest: int, highest: int,
    counts: Index,
) -> int:  # fmt: skip
    """How many windows the keys ``begin`` to ``end - 1`` have; with ``gaps`` the empty ones between two rows count too.

    Only windows with numbers from ``lowest`` to ``highest`` count.
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
    """The periodic queries whose next window ends by the tick ``until``; ``ends`` becomes each one's first end after it.

    ``due`` gets their numbers, and in place ``count`` the earliest of the ends; returns how many they are.
    """
    due_count, earliest = 0, FAR_AHEAD
    for q in range(count):
        if ends[q] <= until:
            due[due_count] = q
            due_count += 1
            ends[q] = phases[q] + ((until - phases[q]) // steps[q] + 1) * steps[q]
        earliest = min(earliest, ends[q])
    due[count] = earliest
    return due_count


def ending_windows(
    which: Index, queries: int, sizes: Index, steps: Index, offsets: Index, since: Index, after: int, until: int,
    first: Index, last: Index, key_offsets: Index, keys: int, limit: int, most: int, found: Index,
) -> int:  # fmt: skip
    """The windows of periodic queries that end after ``after`` and by ``until``, and have a slice: key by key, query by query.

    ``found`` has the capacity for ``most`` of each of query, key, first slice, slice behind, start and end; returns how many there are,
    or -1 if more than ``limit`` candidates had to be checked.
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
    """``found[j]`` becomes the first place of the key ``keys[j]`` whose tick is not before ``wanted[j]``; a key's ticks are in order."""
    for j in range(count):
        found[j] = place_of(ticks, offsets[keys[j]], offsets[keys[j] + 1], wanted[j])
    return count


def look_at_ranges(lo: Index, hi: Index, count: int, found: Index) -> int:
    """``found`` becomes: whether both ends only advance, how long the longest range is, and how many ranges are empty."""
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
