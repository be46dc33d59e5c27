"""Kernels that order rows by key and time."""

from __future__ import annotations

from sash.kernels.vocabulary import Index

DIGIT = 11
"""Bits that one pass of the radix sort looks at."""


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
    """``back`` becomes the inverse of ``order``: each row's place in the new order."""
    for i in range(count):
        back[order[i]] = i
    return count


def gather(values: Index, order: Index, begin: int, end: int, sorted_values: Index) -> int:
    """``sorted_values`` becomes the values in ``order``."""
    for i in range(begin, end):
        sorted_values[i] = values[order[i]]
    return end


def span(values: Index, begin: int, end: int, found: Index) -> int:
    """``found`` becomes the smallest and the largest of the values ``begin`` to ``end - 1``."""
    low, high = values[begin], values[begin]
    for i in range(begin, end):
        low, high = min(low, values[i]), max(high, values[i])
    found[0], found[1] = low, high
    return end
