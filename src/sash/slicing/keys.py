"""Keys as dense numbers: null is a key, NaN equals NaN, -0.0 equals 0.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.columns import from_anything

Array = npt.NDArray[Any]

SPARSE = 4
"""Integers that span no more than this many times the rows are their own numbers."""


@dataclass(frozen=True)
class Keys:
    """Each row's key number, and the keys by number."""

    codes: Array
    count: int
    values: tuple[pa.Array, ...]

    def take(self, numbers: Array) -> list[pa.Array]:
        """The key columns of these key numbers."""
        return [v.take(pa.array(numbers)) for v in self.values]


def encode(table: pa.Table, by: tuple[str, ...]) -> Keys:
    """Number the keys of a table's rows."""
    if not by:
        return Keys(np.zeros(table.num_rows, np.int64), 1, ())
    columns = [normal(from_anything(table.column(name))) for name in by]
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
    places = np.unique(distinct.indices.to_numpy(), return_index=True)[1] if len(combined) else np.empty(0, np.int64)
    keys = [column.take(pa.array(places)) for column in columns]
    return Keys(distinct.indices.to_numpy().astype(np.int64), len(places), tuple(keys))


def normal(column: pa.Array) -> pa.Array:
    """The same with one zero and one NaN."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) and column.type.bit_width > 16 else column


def _dense(codes: Array) -> tuple[Array, int]:
    values, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64), len(values)


def _one(column: pa.Array) -> tuple[Array, pa.Array]:
    """Codes in the order of first appearance, or by value for integers that lie close together."""
    if pa.types.is_integer(column.type) and column.null_count == 0 and len(column):
        numbers = column.to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < SPARSE * len(column) + 1024 and high < 1 << 62:
            shifted = numbers.astype(np.int64) if low == 0 else numbers.astype(np.int64) - low
            return shifted, pa.array(np.arange(low, high + 1), column.type)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
