"""From relations to streams: what is new in a window's result, and what is gone, compared as multisets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.slicing.rows.keys import encode

Array = npt.NDArray[Any]


def identities(table: pa.Table) -> Array:
    """A number for each row; rows with equal values have the same."""
    if not table.num_columns:
        return np.zeros(table.num_rows, np.int64)
    plain = pa.table([_comparable(c) for c in table.columns], names=[f"c{k}" for k in range(table.num_columns)])
    return np.asarray(encode(plain, tuple(plain.column_names)).codes, np.int64)


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nested values are compared by their text."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([pa.array([repr(v) for v in column.to_pylist()], pa.string())])


def differences(ids: Array, lo: Array, hi: Array, *, gone: bool) -> tuple[Array, Array]:
    """Where there are more (or with ``gone`` fewer) rows of one identity than one window earlier: rows' places, and the windows.

    Rows of one identity are interchangeable: the place is that of one which is new, or of one that was there.
    """
    full = np.flatnonzero(hi > lo)
    ids, lo, hi = ids[full], lo[full], hi[full]
    identity = np.concatenate([ids, ids])
    number = np.concatenate([lo, hi])
    change = np.repeat([1, -1], len(full))
    place = np.concatenate([full, full])
    order = np.lexsort((place, number, identity))
    identity, number, change, place = identity[order], number[order], change[order], place[order]
    if not len(order):
        return place, number
    first = np.flatnonzero(np.append(True, (identity[1:] != identity[:-1]) | (number[1:] != number[:-1])))
    net = np.add.reduceat(change, first)
    count = np.maximum(-net if gone else net, 0)
    wanted = change == (-1 if gone else 1)
    sizes = np.diff(np.append(first, len(order)))
    earlier = np.cumsum(wanted) - wanted  # wanted ones before each
    rank = earlier - np.repeat(earlier[first], sizes)
    chosen = wanted & (rank < np.repeat(count, sizes))
    return place[chosen], number[chosen]


def islands(ids: Array, lo: Array, hi: Array) -> tuple[Array, Array, Array]:
    """For each identity the spans in which some row has it, joined: places of rows with it, and the spans."""
    full = np.flatnonzero(hi > lo)
    order = full[np.lexsort((lo[full], ids[full]))]
    if not len(order):
        return order, lo[order], hi[order]
    ids, lo, hi = ids[order], lo[order], hi[order]
    opened = np.append(True, ids[1:] != ids[:-1])
    opened[1:] |= lo[1:] > _reach(np.cumsum(opened) - 1, hi)[:-1]
    begin = np.flatnonzero(opened)
    return order[begin], lo[begin], np.maximum.reduceat(hi, begin)


def _reach(group: Array, hi: Array) -> Array:
    """The running maximum of ``hi`` within each group; groups are numbered in order."""
    base = int(hi.min())
    step = int(hi.max()) - base + 1
    if (int(group[-1]) + 1) * step < 1 << 62:  # a later group's values are greater than all of an earlier one's
        result: Array = np.maximum.accumulate(group * step + (hi - base)) - group * step + base
        return result
    result = hi.copy()
    begin = np.flatnonzero(np.append(True, group[1:] != group[:-1])).tolist()
    for first, last in zip(begin, [*begin[1:], len(group)], strict=True):
        np.maximum.accumulate(result[first:last], out=result[first:last])
    return result
