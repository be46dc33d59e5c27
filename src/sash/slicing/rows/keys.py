"""Keys as dense numbers, starting from 0: null is a key, NaN equals NaN, -0.0 equals 0.0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash import threads
from sash.algorithms.pipe import kernel, sorting
from sash.columns import arrow_column, in_kernel_layout

Array = npt.NDArray[Any]

SPARSE = 4
"""Integer keys whose range is at most so many times the number of rows are used as key numbers, minus the smallest."""
SAME_KEY = np.zeros(1 << 16, np.int64)
"""The key numbers of a batch without key columns; read-only."""
SAME_KEY.flags.writeable = False


@dataclass(frozen=True)
class Keys:
    """Each row's key number, and the keys by number."""

    codes: Array
    count: int
    values: tuple[pa.Array, ...]

    def take(self, numbers: Array) -> list[pa.Array]:
        """The key columns of these key numbers."""
        return [v.take(pa.array(numbers)) for v in self.values]


class KeyIndex:
    """The numbers of keys that arrive batch by batch; a key keeps its number from batch to batch."""

    def __init__(self, schema: pa.Schema, by: tuple[str, ...]) -> None:
        self.by = by
        self.values: list[pa.Array] = [pa.array([], key_type(schema.field(name).type)) for name in by]
        self.count = 0 if by else 1
        self.renumbered = False
        """Whether keys were dropped, so that others have new numbers."""

    def encode(self, table: pa.Table) -> Array:
        """Each row's key number; new keys get new ones."""
        if not self.by:
            return SAME_KEY[: table.num_rows] if table.num_rows <= len(SAME_KEY) else np.zeros(table.num_rows, np.int64)
        keys = encode(table, self.by)
        if len(self.by) == 1:
            known = pc.index_in(keys.values[0], value_set=self.values[0]).to_numpy(zero_copy_only=False)
            used = np.zeros(keys.count, bool)
            used[keys.codes] = True
            fresh = np.isnan(known) & used if known.dtype.kind == "f" else np.zeros(keys.count, bool)
            numbers = np.where(np.isnan(known), 0, known).astype(np.int64) if known.dtype.kind == "f" else known.astype(np.int64)
            numbers[fresh] = self.count + np.arange(int(fresh.sum()))
            self._append([keys.values[0].filter(pa.array(fresh))], int(fresh.sum()))
            return numbers[keys.codes]
        # The known keys and those of this batch are numbered together; the known ones keep their numbers.
        both = pa.table(
            [pa.concat_arrays([old, new.cast(old.type)]) for old, new in zip(self.values, keys.values, strict=True)], list(self.by)
        )
        together = encode(both, self.by).codes
        numbers_of = np.full(int(together.max(initial=-1)) + 1, -1, np.int64)
        numbers_of[together[: self.count]] = np.arange(self.count)
        places = np.flatnonzero(numbers_of[together[self.count :]] < 0)
        numbers_of[together[self.count + places]] = self.count + np.arange(len(places))
        numbers = numbers_of[together[self.count :]]
        self._append([v.take(pa.array(places)) for v in keys.values], len(places))
        return numbers[keys.codes]

    def _append(self, columns: list[pa.Array], count: int) -> None:
        if count:
            self.values = [pa.concat_arrays([old, new.cast(old.type)]) for old, new in zip(self.values, columns, strict=True)]
            self.count += count

    def take(self, numbers: Array) -> list[pa.Array]:
        """The key columns of these key numbers."""
        return [v.take(pa.array(numbers)) for v in self.values]

    def retain(self, numbers: Array) -> Array:
        """Drop all keys but these, whose numbers are in ascending order; returns the new number of each old one."""
        new_id_of = np.zeros(self.count, np.int64)
        new_id_of[numbers] = np.arange(len(numbers))
        self.restore(self.take(numbers))
        self.renumbered = True
        return new_id_of

    def restore(self, columns: list[pa.Array]) -> None:
        """Take over the keys of a snapshot."""
        self.values = columns
        if columns:
            self.count = len(columns[0])


def key_type(t: pa.DataType) -> pa.DataType:
    """The type that keys of a column are stored as: not dictionary-encoded, and one that Arrow can look up."""
    if pa.types.is_dictionary(t):
        return key_type(t.value_type)
    return pa.int8() if pa.types.is_null(t) else pa.float32() if t == pa.float16() else t


def encode(table: pa.Table, by: tuple[str, ...]) -> Keys:
    """The keys of a table's rows as numbers."""
    if not by:
        return Keys(np.zeros(table.num_rows, np.int64), 1, ())
    columns = [normal(arrow_column(table.column(name))) for name in by]
    if len(columns) == 1:
        codes, values = _one(columns[0])
        return Keys(codes, len(values), (values,))
    coded = [_one(column) for column in columns]
    combined, dictionaries = coded[0][0], [coded[0][1]]
    total = len(coded[0][1])
    for codes, values in coded[1:]:
        if total * max(1, len(values)) > 1 << 62:
            combined, total = _dense(combined)
        combined = combined * len(values) + codes
        total *= max(1, len(values))
        dictionaries.append(values)
    distinct = pa.array(combined).dictionary_encode()
    codes = distinct.indices.to_numpy().astype(np.int64)
    places = np.empty(len(distinct.dictionary), np.int64)
    places[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last write is each key's first row
    return Keys(codes, len(places), tuple(column.take(pa.array(places)) for column in columns))


def span_of(values: Array) -> tuple[int, int]:
    """The smallest and the largest value; 0 and 0 if there are none."""
    if len(values) == 1:
        return int(values[0]), int(values[0])
    if len(values) < threads.SMALLEST_SHARE:
        return (int(values.min()), int(values.max())) if len(values) else (0, 0)
    parts = threads.shares(0, len(values))
    spans = np.empty((len(parts), 2), np.int64)
    span = kernel(sorting.span)

    def work(begin: int, end: int) -> None:
        span(values, begin, end, spans[begin // max(1, parts[0][1])])

    threads.each(work, parts)
    return int(spans[:, 0].min()), int(spans[:, 1].max())


def normal(column: pa.Array) -> pa.Array:
    """The column with one kind of zero and of NaN, and of a type that Arrow can look up."""
    if pa.types.is_null(column.type) or column.type == pa.float16():
        column = column.cast(key_type(column.type))
    if not pa.types.is_floating(column.type):
        return in_kernel_layout(column)
    one_zero = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(math.nan, column.type), one_zero)


def _dense(codes: Array) -> tuple[Array, int]:
    values, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64), len(values)


def _one(column: pa.Array) -> tuple[Array, pa.Array]:
    """Codes in the order of first appearance, or by value for integers that lie close together."""
    if pa.types.is_integer(column.type) and column.null_count == 0 and len(column):
        numbers = column.to_numpy()
        low, high = (int(numbers.min()), int(numbers.max())) if column.type != pa.int64() else span_of(numbers)
        if high - low < SPARSE * len(column) + 1024 and high < 1 << 62:
            shifted = numbers.astype(np.int64, copy=False) if low == 0 else numbers.astype(np.int64, copy=False) - low
            return shifted, pa.array(np.arange(low, high + 1), column.type)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
