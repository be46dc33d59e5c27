"""Blocks of time: a key's windows grouped by where they start, so that one key can be computed in many tasks.

A block's rows (or slices) are those that a window that starts in it may contain: its own, and a halo of those that follow. A column has
the block's number; a row that several blocks need occurs once for each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing.batch.over import over_table
from sash.slicing.batch.whole_table import windows_of
from sash.slicing.bounds.view import Bounds
from sash.slicing.rows.keys import Keys, encode
from sash.slicing.rows.timed import read

Array = npt.NDArray[Any]

BLOCK = "@sash:block"


def block_of(ticks: Array, length: int) -> Array:
    """The number of the block that each tick lies in.

    Blocks begin half-way between multiples of their length: rows tend to begin at round times, and where a block begins, a halo is sent
    to two. :func:`sash.spark.language.sql.block_of` is the same for Spark.
    """
    blocks: Array = (ticks + length // 2) // length
    return blocks


def aggregate_blocks(plan: Plan, table: pa.Table, length: int) -> pa.Table:
    """The windows that start in each block of time, from a table of blocks' rows; all rows have a time."""
    keys, blocks = keys_and_blocks(table, plan.by)
    return windows_of(plan, replace(read(plan, table), keys=keys), lambda bounds: own_windows(bounds, blocks, length))


def over_blocks(plan: Plan, table: pa.Table, length: int) -> pa.Table:
    """The rows of each block with their trailing windows; the halo's rows, which are older, are only in windows."""
    schema = plan.schema if BLOCK in plan.schema.names else plan.schema.append(pa.field(BLOCK, pa.int64()))
    numbered = replace(plan, by=(*plan.by, BLOCK), schema=schema)
    result = over_table(numbered, table)
    time = arrow_column(table.column(plan.time))
    own = block_of(plan.measure.column(time), length) == numbers(table.column(BLOCK))
    if time.null_count:
        own |= time.is_null().to_numpy(zero_copy_only=False)
    return result if own.all() else result.filter(pa.array(own))


def keys_and_blocks(table: pa.Table, by: tuple[str, ...]) -> tuple[Keys, Array]:
    """The keys, and each key's block: the same key in another block counts as another."""
    blocks = numbers(table.column(BLOCK))
    if not len(blocks) or (blocks == blocks[0]).all():
        keys = encode(table, by)
        return keys, np.full(keys.count, blocks[0] if len(blocks) else 0)
    apart = encode(table, (*by, BLOCK))
    *values, distinct = apart.values
    return Keys(apart.codes, apart.count, tuple(values)), distinct.to_numpy()


def own_windows(bounds: Bounds, blocks: Array, length: int) -> Bounds:
    """The windows that start in their key's block."""
    one = len(blocks) and (blocks == blocks[0]).all()
    own = block_of(bounds.start, length) == (blocks[0] if one else blocks[bounds.keys])
    return bounds if own.all() else bounds.take(np.flatnonzero(own))


def numbers(column: pa.ChunkedArray, nothing: Any = 0) -> Array:
    """A column's numbers, with ``nothing`` in place of nulls."""
    values = arrow_column(column)
    if values.null_count:
        values = values.fill_null(pa.scalar(nothing, values.type))
    array: Array = values.to_numpy(zero_copy_only=False)
    return array
