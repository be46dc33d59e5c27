"""Sliding sets of distinct values: how many there are, and which.

Values become dense codes once. A window then counts how often each code is in it; a code whose count leaves or reaches zero
changes the number of distinct ones. Counts are exact integers, so rows that leave can be subtracted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.aggregates.count import Count
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate
from sash.kernels.vocabulary import Index

Array = npt.NDArray[Any]


def count_windows(codes: Index, windows: int, size: int, every: int, counts: Index, out: Index) -> int:
    """How many different codes each window holds; the code of a null row is -1."""
    distinct = 0
    oldest = row = 0
    for j in range(windows):
        start = j * every
        while oldest < start and oldest < row:
            code = codes[oldest]
            oldest += 1
            if code >= 0:
                counts[code] -= 1
                distinct -= counts[code] == 0
        if row < start:
            oldest = row = start
        while row < start + size:
            code = codes[row]
            row += 1
            if code >= 0:
                distinct += counts[code] == 0
                counts[code] += 1
        out[j] = distinct
    return 0


def list_windows(codes: Index, windows: int, size: int, every: int, seen: Index, out: Index) -> int:
    """The places of the first row of each code in each window, one window after the other."""
    filled = 0
    for j in range(windows):
        for row in range(j * every, j * every + size):
            code = codes[row]
            if code >= 0 and seen[code] != j + 1:
                seen[code] = j + 1
                out[filled] = row
                filled += 1
    return filled


def codes_of(values: pa.Array) -> tuple[Array, int]:
    """Dense codes of equal values, -1 for nulls, and how many there are; NaN equals NaN, and -0.0 equals 0.0."""
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
        values = pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))
    encoded = values.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, len(encoded.dictionary)


def roll_counts(values: pa.Array, size: int, every: int, windows: int) -> Array:
    """The number of distinct values in every window."""
    codes, distinct = codes_of(values)
    out = np.empty(windows, np.int64)
    kernel = compiled(generate(count_windows, Count().form()))
    kernel(codes, windows, size, every, np.zeros(max(1, distinct), np.int64), out)
    return out


def roll_places(values: pa.Array, size: int, every: int, windows: int) -> tuple[Array, Array]:
    """For every window the rows that hold its distinct values: offsets, and places one window after the other."""
    codes, distinct = codes_of(values)
    counts = roll_counts(values, size, every, windows)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    places = np.empty(max(1, int(offsets[-1])), np.int64)
    kernel = compiled(generate(list_windows, Count().form()))
    filled = kernel(codes, windows, size, every, np.zeros(max(1, distinct), np.int64), places)
    return offsets, places[:filled]
