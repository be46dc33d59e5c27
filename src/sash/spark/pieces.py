"""A sorted partition as it streams by: tables of whole keys, and a key too large for one table piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.slicing.blocks import numbers
from sash.spark.sql import ORDER, TIME_BITS


@dataclass(frozen=True)
class Piece:
    """Rows of whole keys, or a part of the rows of one."""

    table: pa.Table
    begins: bool = True
    ends: bool = True

    @property
    def is_whole(self) -> bool:
        return self.begins and self.ends

    @property
    def last_order(self) -> int:
        """What the last row was sorted by: all later rows of the partition sort there or behind it."""
        return int(numbers(self.table.column(ORDER).slice(self.table.num_rows - 1))[0])


def pieces(batches: Iterable[pa.RecordBatch], most_rows: int, *, split: bool = True) -> Iterator[Piece]:
    """Tables of about ``most_rows`` rows; without ``split``, keys are whole whatever their size."""
    held: list[pa.RecordBatch] = []
    rows, inside = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows += batch.num_rows
        if rows < most_rows:
            continue
        table = pa.Table.from_batches(held)
        held, rows = [], 0
        groups = numbers(table.column(ORDER)) >> TIME_BITS
        if inside is not None:
            end = int(np.searchsorted(groups, inside, side="right"))
            yield Piece(table.slice(0, end), begins=False, ends=end < len(groups))
            if end == len(groups):
                continue
            table, groups, inside = table.slice(end), groups[end:], None
        last = int(np.searchsorted(groups, groups[-1]))
        if last:
            yield Piece(table.slice(0, last))
            table = table.slice(last)
        if split and table.num_rows >= most_rows:
            inside = int(groups[-1])
            yield Piece(table, ends=False)
        else:
            held, rows = table.to_batches(), table.num_rows
            if not split and rows >= most_rows:
                most_rows = 2 * rows
    if inside is not None:
        yield from _rest_of(inside, held)
    elif held:
        yield Piece(pa.Table.from_batches(held))


def _rest_of(inside: int, held: list[pa.RecordBatch]) -> Iterator[Piece]:
    """The end of a large key, and what comes behind it."""
    if not held:
        yield Piece(pa.table({}), begins=False)
        return
    table = pa.Table.from_batches(held)
    end = int(np.searchsorted(numbers(table.column(ORDER)) >> TIME_BITS, inside, side="right"))
    yield Piece(table.slice(0, end), begins=False)
    if end < table.num_rows:
        yield Piece(table.slice(end))
