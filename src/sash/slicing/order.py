"""The order of rows: by key, then time, then ``order_by``, then arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.algorithms import tables
from sash.columns import plain

Array = npt.NDArray[Any]


def sorted_order(codes: Array, key_count: int, ticks: Array, ties: list[pa.Array]) -> Array | None:
    """The rows' places in order; None if they are in order already."""
    count = len(ticks)
    state = tables.plain(tables.is_ordered)(codes, ticks, count)
    if ties:
        if state == 2 and not _has_ties(codes, ticks):
            return None
        columns = {"key": pa.array(codes), "time": pa.array(ticks)}
        for k, tie in enumerate(ties):
            if pa.types.is_floating(tie.type):  # NaN is larger than any number
                columns[f"{k} is NaN"] = pc.is_nan(tie)
            columns[str(k)] = plain(tie)
        keys = [(name, "ascending", "at_start") for name in columns]
        order: Array = pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy().astype(np.int64)
        return order
    if state == 2:
        return None
    order = np.arange(count, dtype=np.int64)
    if state == 0:
        order = _radix(ticks - ticks.min(), order)
    return _radix(codes, order) if key_count > 1 else order


FEW = 1 << 12
"""So few are sorted without a kernel."""


def of_keys_and_times(keys: Array, times: Array) -> Array:
    """Places by key, then time, then place."""
    if len(keys) and keys[0] == keys[-1] and (keys == keys[0]).all():
        return np.argsort(times, kind="stable")
    if len(keys) < FEW:
        return np.lexsort((times, keys))
    places = sorted_order(keys, int(keys.max()) + 1, times, [])
    return np.arange(len(keys)) if places is None else places


def _has_ties(codes: Array, ticks: Array) -> bool:
    return bool(np.any((codes[1:] == codes[:-1]) & (ticks[1:] == ticks[:-1])))


def _radix(values: Array, order: Array) -> Array:
    """A stable sort of ``order`` by values that are not negative."""
    top = int(values.max(initial=0)).bit_length()
    kernel = tables.plain(tables.radix_pass)
    counts = np.empty((1 << tables.DIGIT) + 1, np.int64)
    spare = np.empty_like(order)
    for shift in range(0, top, tables.DIGIT):
        kernel(values, order, len(order), shift, counts, spare)
        order, spare = spare, order
    return order
