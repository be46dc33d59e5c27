"""A sort key that groups a key's rows and orders them by time, for partitions that do not fit into memory.

The upper bits are a hash of the key (and its block of time), the lower ones are time, as finely as the bits allow.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing.batch.time_blocks import BLOCK
from sash.slicing.rows.keys import encode

Array = npt.NDArray[Any]

ORDER = "@sash:order"
TIME_BITS = 43
HASH_BITS = 20
HALF = 1 << (TIME_BITS - 1)


def ordered(plan: Plan, table: pa.Table, position: str) -> pa.Table:
    """The table with a column ``ORDER``; ``position`` is the column of times, or of ticks."""
    by = (*plan.by, *([BLOCK] if BLOCK in table.column_names else []))
    keys = encode(table, by)
    groups = np.zeros(max(1, keys.count), np.int64)
    used = np.zeros(len(groups), bool)
    used[keys.codes] = True
    where = np.flatnonzero(used)
    groups[where] = _hashes(keys.take(where), len(where))
    time = arrow_column(table.column(position))
    ticks = time.to_numpy() if pa.types.is_int64(time.type) and time.null_count == 0 else plan.measure.column(time)
    number = np.clip((ticks >> shift(plan)) + HALF, 1, (1 << TIME_BITS) - 1)
    if time.null_count:
        number = np.where(time.is_null().to_numpy(zero_copy_only=False), 0, number)
    return table.append_column(ORDER, pa.array((groups[keys.codes] << TIME_BITS) | number))


def _hashes(columns: list[pa.Array], count: int) -> Array:
    """A number for each key, the same for the same key in all of a worker's tables."""
    if not all(pa.types.is_integer(c.type) or (pa.types.is_temporal(c.type) and c.type.bit_width <= 64) for c in columns):
        keys = zip(*[c.to_pylist() for c in columns], strict=True)
        return np.fromiter((zlib.crc32(repr(key).encode()) >> (32 - HASH_BITS) for key in keys), np.int64, count)
    mixed = np.zeros(count, np.uint64)
    for column in columns:
        width = np.dtype(f"u{column.type.bit_width // 8}")
        values = np.frombuffer(column.buffers()[1], width, count, column.offset * width.itemsize)
        known = column.is_valid().to_numpy(zero_copy_only=False)
        mixed = (mixed ^ np.where(known, values, 0).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return (mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - HASH_BITS)).view(np.int64)


def shift(plan: Plan) -> int:
    """How many of a tick's lowest bits are left out: none, except that of microseconds ten are."""
    return 10 if pa.types.is_timestamp(plan.measure.type) else 0


def floor(plan: Plan, number: int) -> int | None:
    """A tick that no row sorting at or behind ``number`` is older than; None if there is none."""
    part = number & ((1 << TIME_BITS) - 1)
    return None if part <= 1 else (part - HALF) << shift(plan)
