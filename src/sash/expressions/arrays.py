"""Arrow arrays as NumPy arrays and back, for functions that Arrow lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array = npt.NDArray[Any]
Datum = Any


def length_of(*values: Datum) -> int:
    """How many rows there are."""
    return next(len(v) for v in values if not isinstance(v, pa.Scalar))


def spread(*values: Datum) -> list[pa.Array]:
    """The values as arrays of equal length: scalars are repeated."""
    count = length_of(*values)
    return [pa.repeat(v, count) if isinstance(v, pa.Scalar) else v for v in values]


def valid(values: pa.Array) -> Array:
    """Which rows are not null."""
    if values.null_count == 0:
        return np.ones(len(values), bool)
    flags: Array = values.is_valid().to_numpy(zero_copy_only=False)
    return flags


def all_valid(*values: Datum) -> Array:
    """Which rows are null in none."""
    known = np.ones(length_of(*values), bool)
    for v in values:
        if isinstance(v, pa.Scalar):
            if not v.is_valid:
                known[:] = False
        elif v.null_count:
            known &= valid(v)
    return known


_STORAGE = {pa.date32(): pa.int32(), pa.duration("us"): pa.int64()}


def numbers(values: pa.Array) -> Array:
    """Values of a type of fixed width as NumPy numbers; times as their ticks, nulls as zero."""
    t = values.type
    if pa.types.is_timestamp(t):
        values = values.view(pa.int64())
    elif t in _STORAGE:
        values = values.view(_STORAGE[t])
    if values.null_count:
        values = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
    result: Array = values.to_numpy(zero_copy_only=False)
    return result


def from_numbers(values: Array, known: Array | None, t: pa.DataType) -> pa.Array:
    """NumPy numbers as a type of fixed width; null where ``known`` is False."""
    mask = None if known is None or known.all() else ~known
    if pa.types.is_timestamp(t) or t == pa.duration("us"):
        return pa.array(values.astype(np.int64, copy=False), pa.int64(), mask=mask).view(t)
    if t == pa.date32():
        return pa.array(values.astype(np.int32, copy=False), pa.int32(), mask=mask).view(t)
    return pa.array(values, t, mask=mask)


def by_value(compute: Callable[..., Any], result: pa.DataType, *values: Datum) -> pa.Array:
    """A Python function's results, computed once per distinct combination of values; null where an argument is null or it returns None."""
    if len(values) == 1:
        encoded = values[0].dictionary_encode()
        results = pa.array([None if v is None else compute(v) for v in encoded.dictionary.to_pylist()], result)
        return results.take(encoded.indices)
    lists = [v.to_pylist() for v in spread(*values)]
    remembered: dict[Any, Any] = {}
    out: list[Any] = []
    for row in zip(*lists, strict=True):
        if None in row:
            out.append(None)
            continue
        if row not in remembered:
            remembered[row] = compute(*row)
        out.append(remembered[row])
    return pa.array(out, result)


def only(values: pa.Array, wanted: Array) -> pa.Array:
    """Values, null where ``wanted`` is False."""
    return values if wanted.all() else pc.if_else(pa.array(wanted), values, pa.scalar(None, values.type))


def is_ascii(values: pa.Array) -> bool:
    """Whether text has no character beyond ASCII."""
    buffer = values.buffers()[2]
    if buffer is None or len(values) == 0:
        return True
    offsets = np.frombuffer(values.buffers()[1], np.int32)
    data = np.frombuffer(buffer, np.uint8)[offsets[values.offset] : offsets[values.offset + len(values)]]
    return not len(data) or int(data.max()) < 128
