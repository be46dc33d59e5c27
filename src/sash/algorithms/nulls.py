"""Which windows hold a row that is not null, from the bitmap alone.

A window has only nulls just where a run of nulls is as long as the window. Finding the longest run takes a few instructions per 64
rows, and usually shows that there is no such window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.aggregates.count import Count
from sash.algorithms.memory import pooled
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate
from sash.kernels.vocabulary import Index, leading_zeros, ones, trailing_zeros

Array = npt.NDArray[Any]


def count_before(words: Index, count: int, before: Index) -> int:
    """How many bits are set before each of ``count`` words."""
    passed = 0
    for k in range(count):
        before[k] = passed
        passed += ones(words[k])
    return passed


def longest_gap(words: Index, rows: int, enough: int) -> int:
    """The length of the longest run of zero bits among the first ``rows``; stops looking once it is ``enough``."""
    longest = run = 0
    last = (rows - 1) >> 6
    for k in range(last + 1):
        word = words[k]
        if k == last and rows & 63 != 0:
            word |= -1 << (rows & 63)  # what lies behind the rows counts as present
        if word == 0:
            run += 64
            continue
        run += trailing_zeros(word)
        longest = max(longest, run)
        if longest >= enough:
            return longest
        if enough < 64:  # runs inside of the word
            gaps, inner = ~word, 0
            while gaps != 0:
                gaps &= gaps << 1
                inner += 1
            longest = max(longest, inner)
        run = leading_zeros(word)
    return max(longest, run)


def bits_before(valid: Array) -> Array:
    """How many bits are set before each word of a bitmap."""
    words = valid.view(np.int64)
    before = pooled(len(words), "int64")
    compiled(generate(count_before, Count().form()))(words, len(words), before)
    return before


def windows_with_rows(valid: Array, rows: int, size: int, every: int, windows: int) -> Array | None:
    """A byte for each window that says whether it holds a row that is not null; None if all do."""
    if windows == 0:
        return None
    words = valid.view(np.int64)
    if size > 2 * 63 and words[: (rows + 63) // 64].all():
        return None  # a run of nulls reaches through the ends of two words at most
    if compiled(generate(longest_gap, Count().form()))(words, rows, size) < size:
        return None
    present = np.unpackbits(valid, bitorder="little")[:rows]
    totals = np.concatenate([[0], np.cumsum(present, dtype=np.int64)])
    starts = np.arange(windows) * every
    return (totals[starts + size] > totals[starts]).astype(np.uint8)
