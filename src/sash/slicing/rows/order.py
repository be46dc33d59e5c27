"""The order of rows: by key, then time, then ``order_by``, then arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.algorithms.pipe import kernel, sorting
from sash.columns import in_kernel_layout

Array = npt.NDArray[Any]


def sorted_order(codes: Array, key_count: int, ticks: Array, ties: list[pa.Array]) -> Array | None:
    """The permutation that sorts the rows; None if they are in order already."""
    count = len(ticks)
    state = kernel(sorting.is_ordered)(codes, ticks, count)
    order: Array | None = None
    if state != 2:
        order = _sorted(codes, key_count, ticks if state == 0 else None)
    return _untied(order, codes, ticks, ties) if ties and count else order


def _untied(order: Array | None, codes: Array, ticks: Array, ties: list[pa.Array]) -> Array | None:
    """The order, with rows of one key and time sorted by the columns ``ties``."""
    if order is not None:
        codes, ticks = codes[order], ticks[order]
    same = (codes[1:] == codes[:-1]) & (ticks[1:] == ticks[:-1])
    if not same.any():
        return order
    order = np.arange(len(codes), dtype=np.int64) if order is None else order
    tied = np.append(same, False)
    tied[1:] |= same
    places = np.flatnonzero(tied)
    rows = order[places]
    columns: dict[str, pa.Array] = {"run": pa.array(np.cumsum(np.append(True, ~same))[places])}
    for k, column in enumerate(ties):
        tie = in_kernel_layout(column).take(pa.array(rows))
        if pa.types.is_floating(tie.type):  # NaN is larger than any number
            columns[f"{k} is NaN"] = pc.is_nan(tie)
        columns[str(k)] = tie
    keys = [(name, "ascending", "at_start") for name in columns]
    order[places] = rows[pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy()]
    return order


def of_keys(keys: Array, key_count: int) -> Array:
    """The permutation that sorts by key, which are numbers below ``key_count``, then place."""
    return _sorted(keys, key_count, None)


FEW = 1 << 12
"""Fewer rows than this are sorted without a kernel."""


def of_keys_and_times(keys: Array, times: Array) -> Array:
    """The permutation that sorts by key, then time, then place."""
    if len(keys) and keys[0] == keys[-1] and (keys == keys[0]).all():
        return np.argsort(times, kind="stable")
    if len(keys) < FEW:
        return np.lexsort((times, keys))
    places = sorted_order(keys, int(keys.max()) + 1, times, [])
    return np.arange(len(keys)) if places is None else places


def _sorted(codes: Array, key_count: int, ticks: Array | None) -> Array:
    """The permutation that sorts rows by key, then time (None: they are in its order already), then arrival."""
    order = np.arange(len(codes), dtype=np.int64)
    if ticks is None:
        return _radix(codes.copy(), order)
    later = ticks - ticks.min()
    bits = int(later.max()).bit_length()
    if key_count <= 1:
        return _radix(later, order)
    if bits + key_count.bit_length() < 64:  # both in one number
        return _radix(codes << bits | later, order)
    order = _radix(later, order)
    return _radix(codes[order], order)


def _radix(values: Array, order: Array) -> Array:
    """``order`` sorted stably by ``values``, which belong to it place by place and are not negative; both arrays are overwritten."""
    top = int(values.max(initial=0)).bit_length()
    radix_pass = kernel(sorting.radix_pass)
    counts = np.empty((1 << sorting.DIGIT) + 1, np.int64)
    spare_values, spare = np.empty_like(values), np.empty_like(order)
    for shift in range(0, top, sorting.DIGIT):
        radix_pass(values, order, len(order), shift, counts, spare_values, spare)
        values, spare_values = spare_values, values
        order, spare = spare, order
    return order
