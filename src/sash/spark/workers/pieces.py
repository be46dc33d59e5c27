"""A partition as a stream of tables: whole keys together, and a key too large for one table piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.slicing.batch.time_blocks import numbers
from sash.spark.workers.row_order import ORDER, TIME_BITS
from sash.spark.workers.runs import Runs

MOST_BYTES = 1 << 28
"""A table is cut at this size even if it has fewer rows than allowed."""


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
        """The sort key of the last row: all later rows of the partition have the same or a greater one."""
        return int(numbers(self.table.column(ORDER).slice(self.table.num_rows - 1))[0])


def pieces(
    batches: Iterable[pa.RecordBatch], most_rows: int, order: Callable[[pa.Table], pa.Table], *, split: bool = True
) -> Iterator[Piece]:
    """A partition's rows, key by key; without ``split``, keys are whole whatever their size.

    A partition that fits into memory is one piece, in any order. A larger one is sorted on disk first, by the number that ``order`` adds.
    """
    tables = full_tables(batches, most_rows)
    first = next(tables, None)
    if first is None:
        return
    second = next(tables, None)
    if second is None:
        yield Piece(first)
        return
    with Runs(ORDER) as runs:
        runs.add(order(first))
        runs.add(order(second))
        most_rows = max(1, min(most_rows, first.num_rows))
        del first, second
        for table in tables:
            runs.add(order(table))
        yield from _grouped(runs.merged(most_rows), most_rows, split)


def full_tables(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.Table]:
    """Batches joined into tables of ``most_rows`` rows, or of ``MOST_BYTES`` if that is reached first."""
    buffered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            buffered.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= MOST_BYTES:
            yield pa.Table.from_batches(buffered)
            buffered, rows, size = [], 0, 0
    if buffered:
        yield pa.Table.from_batches(buffered)


def _grouped(tables: Iterable[pa.Table], most_rows: int, split: bool) -> Iterator[Piece]:
    """Sorted tables, cut between keys."""
    rest: pa.Table | None = None
    inside: int | None = None
    for incoming in tables:
        table = incoming if rest is None else pa.concat_tables([rest, incoming])
        rest = None
        groups = numbers(table.column(ORDER)) >> TIME_BITS
        if inside is not None:
            end = int(np.searchsorted(groups, inside, side="right"))
            if end:
                yield Piece(table.slice(0, end), begins=False, ends=False)
            if end == len(groups):
                continue
            yield Piece(table.slice(0, 0), begins=False)
            table, groups, inside = table.slice(end), groups[end:], None
        last = int(np.searchsorted(groups, groups[-1]))
        if last:
            yield Piece(table.slice(0, last))
        if split and table.num_rows - last >= most_rows:
            inside = int(groups[-1])
            yield Piece(table.slice(last), ends=False)
        else:
            rest = table.slice(last)
    if inside is not None:
        yield Piece(pa.table({}), begins=False)
    elif rest is not None:
        yield Piece(rest)
