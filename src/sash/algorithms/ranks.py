"""Sliding quantiles: exact, by the ranks of the rows.

A chunk of rows is sorted once; from then on a row is its rank, and a window is a set of bits, one per rank. A row that enters
sets its bit, a row that leaves clears it, and a cursor stands on the bit of the requested rank: it moves by about one bit per step,
and finds the next one with one instruction per 64 ranks. The rows of a chunk are a few times those of a window, so the bits that
are set are never far apart. (The same idea as the sorted runs of general stream slicing, section 5.4.1, for windows that slide
by a few rows.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash import threads
from sash.aggregates.count import Count
from sash.algorithms.memory import pooled
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate
from sash.kernels.vocabulary import Index, Reals, leading_zeros, trailing_zeros

Array = npt.NDArray[Any]

FEWEST_WINDOWS, CHUNK_OF_ROWS = 2048, 1 << 16


def next_bit(bits: Index, i: int) -> int:
    """The first bit at or after ``i`` that is set; there is one."""
    word = i >> 6
    rest = bits[word] & (-1 << (i & 63))
    while rest == 0:
        word += 1
        rest = bits[word]
    return (word << 6) + trailing_zeros(rest)


def previous_bit(bits: Index, i: int) -> int:
    """The last bit before ``i`` that is set; there is one."""
    word = (i - 1) >> 6
    rest = bits[word] & ~((-1 << ((i - 1) & 63)) << 1)
    while rest == 0:
        word -= 1
        rest = bits[word]
    return (word << 6) + 63 - leading_zeros(rest)


def quantiles(ranks: Index, ordered: Reals, bits: Index, q: Reals, windows: int, size: int, every: int, out: Reals, known: Index) -> int:
    """The ``q[0]``-quantiles of windows over one chunk; the rank of a null row is -1.

    ``known[j]`` becomes the number of rows in window ``j`` that are not null.
    """
    cursor = below = count = 0  # `below` bits are set before the cursor, `count` in all
    oldest = row = 0
    for j in range(windows):
        start = j * every
        while oldest < start and oldest < row:
            rank = ranks[oldest]
            oldest += 1
            if rank >= 0:
                bits[rank >> 6] &= ~(1 << (rank & 63))
                count -= 1
                below -= rank < cursor
        if row < start:
            oldest = row = start
        while row < start + size:
            rank = ranks[row]
            row += 1
            if rank >= 0:
                bits[rank >> 6] |= 1 << (rank & 63)
                count += 1
                below += rank < cursor
        known[j] = count
        if count == 0:
            continue
        position = (count - 1) * q[0]
        wanted = int(position)  # positions are not negative
        while below > wanted:
            cursor = previous_bit(bits, cursor)
            below -= 1
        cursor = next_bit(bits, cursor)
        while below < wanted:
            cursor = next_bit(bits, cursor + 1)
            below += 1
        value = ordered[cursor]
        if position > wanted:
            above = ordered[next_bit(bits, cursor + 1)]
            if above != value:
                value = value + (above - value) * (position - wanted)
        out[j] = value
    return 0


def roll(
    values: Array, valid: Array | None, q: float, size: int, every: int, windows: int, out: Array | None = None
) -> tuple[Array, Array]:
    """The quantile of every window, and how many rows it is of."""
    kernel = compiled(generate(quantiles, Count().form()))
    values = np.ascontiguousarray(values, np.float64)
    results = pooled(windows, "float64") if out is None else out
    known = np.empty(windows, np.int64)
    share = np.array([q], np.float64)
    chunk = max(FEWEST_WINDOWS // max(1, every), min(4 * size, CHUNK_OF_ROWS) // every, size // every, 1)
    # bit i of a bitmap as a byte
    present = None if valid is None else np.unpackbits(valid, bitorder="little")[: len(values)]

    def work(begin: int, end: int) -> None:
        for first in range(begin, end, chunk):
            count = min(chunk, end - first)
            start = first * every
            rows = values[start : start + (count - 1) * every + size]
            order = np.argsort(rows)
            ranks = np.empty(len(rows), np.int64)
            ranks[order] = np.arange(len(rows))
            if present is not None:
                ranks[present[start : start + len(rows)] == 0] = -1
            bits = np.zeros(len(rows) // 64 + 2, np.int64)
            kernel(ranks, rows[order], bits, share, count, size, every, results[first : first + count], known[first : first + count])

    threads.each(work, threads.shares(0, windows, rows_each=every))
    return results, known
