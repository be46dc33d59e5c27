"""Conversion of columns between Arrow and NumPy, all in one place.

A :class:`Column` is what kernels read: contiguous arrays of machine types, and a bitmap of the rows that are not null. Types
without a machine type are converted as an aggregate reads them: by their rank, by limbs of their digits, or as doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidType
from sash.types import Reading, dtype, is_orderable, is_ranked, machine_type

Array = npt.NDArray[Any]

WORD = 64
"""Bitmaps are padded by this many bits, because vector kernels read them a word at a time."""


@dataclass(frozen=True)
class Column:
    """Rows as kernels read them."""

    parts: tuple[Array, ...]
    valid: Array | None
    type: pa.DataType
    ranked: pa.Array | None = None
    """The distinct values in order, where ``parts`` holds their ranks."""

    def __len__(self) -> int:
        return len(self.parts[0])


def from_anything(values: Any, argument: str = "values") -> pa.Array | Array:
    """A user's column: a NumPy array where ``values`` is one, otherwise an Arrow array."""
    if isinstance(values, np.ma.MaskedArray):
        whole = _from_numpy(np.asarray(values.data), argument)
        return pa.array(whole, mask=np.ma.getmaskarray(values)) if isinstance(whole, np.ndarray) else whole
    if isinstance(values, np.ndarray):
        return _from_numpy(values, argument)
    if isinstance(values, pa.ChunkedArray):
        return _flat(values)
    if isinstance(values, pa.Array):
        return _decoded(values)
    if type(values).__module__.partition(".")[0] == "pandas":
        if getattr(values, "ndim", 1) != 1:
            raise InvalidType(f"{argument} must be one column, not a {type(values).__name__}; pick one of its columns")
        if values.dtype == object and not all(isinstance(v, str) or v is None or v != v for v in values.head(100)):
            raise InvalidType(f"{argument} holds Python objects; give it a type first, e.g. .astype('float64')")
        return _flat(pa.array(values, from_pandas=True))
    if hasattr(values, "columns") or isinstance(values, pa.RecordBatch):
        raise InvalidType(f"{argument} must be one column, not a {type(values).__name__}; pick one of its columns")
    if hasattr(values, "__arrow_c_stream__"):
        return _flat(pa.chunked_array(values))
    if hasattr(values, "__arrow_c_array__"):
        return _decoded(pa.array(values))
    if isinstance(values, list | tuple):
        try:
            return _decoded(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise InvalidType(f"{argument} must hold values of one type: {error}") from error
    raise InvalidType(f"{argument} must be a NumPy or Arrow array, a pandas or polars series or a list, not {type(values).__name__}")


def arrow_column(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A table's column as one array, without dictionaries."""
    return _flat(values)


def _from_numpy(values: Array, argument: str) -> pa.Array | Array:
    if values.ndim != 1:
        raise InvalidType(f"{argument} must have one dimension, not {values.ndim}")
    if values.dtype.kind in "biuf" and values.dtype.itemsize <= 8:
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind in "mMUS":
        try:
            return _decoded(pa.array(values))
        except pa.ArrowNotImplementedError as error:
            raise InvalidType(f"{argument} has the NumPy type {values.dtype}; times have the units D, s, ms, us or ns") from error
    hint = "give it a type first, e.g. .astype(float)" if values.dtype == object else "numbers, booleans, times and strings are supported"
    raise InvalidType(f"{argument} has the NumPy type {values.dtype}; {hint}")


def _flat(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # combine_chunks keeps chunks that are too long for one array
            raise InvalidType("the column is too long for one Arrow array")
    return _decoded(values)


def _decoded(values: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = _relaid(values, known_layout(values.type)).dictionary_decode()
    if pa.types.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    return values.cast(pa.float64()) if pa.types.is_null(values.type) else values


def in_kernel_layout(values: pa.Array | Array) -> pa.Array | Array:
    """A column in the layout that kernels read: decimals in 128 bits, strings that are no views."""
    if isinstance(values, np.ndarray):
        return values
    t = values.type
    if pa.types.is_decimal(t) and t.bit_width != 128 and t.precision <= 38:
        return values.cast(pa.decimal128(t.precision, t.scale))
    if pa.types.is_string_view(t) or pa.types.is_large_string(t):
        return values.cast(pa.string() if values.nbytes < 1 << 31 else pa.large_string())
    return values.cast(pa.binary()) if pa.types.is_binary_view(t) else values


Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def in_known_layouts(rows: Rows) -> Rows:
    """Columns in layouts that all of Sash works on: no views (polars exports them, and Arrow cannot reorder them), decimals in 128 bits."""
    for k, f in enumerate(rows.schema):
        wanted = known_layout(f.type)
        if wanted != f.type:
            rows = rows.set_column(k, f.with_type(wanted), _relaid(rows.column(k), wanted))
    return rows


def known_layout(t: pa.DataType) -> pa.DataType:
    """The type with the same values in a layout that all of Sash works on."""
    if pa.types.is_string_view(t):
        return pa.large_string()
    if pa.types.is_binary_view(t):
        return pa.large_binary()
    if pa.types.is_decimal(t) and t.bit_width != 128 and t.precision <= 38:
        return pa.decimal128(t.precision, t.scale)
    if pa.types.is_dictionary(t):
        return pa.dictionary(t.index_type, known_layout(t.value_type), t.ordered)
    return t


def _relaid(column: Any, wanted: pa.DataType) -> Any:
    if not pa.types.is_dictionary(wanted):
        return column.cast(wanted)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    converted = [
        pa.DictionaryArray.from_arrays(c.indices, _relaid(c.dictionary, wanted.value_type), ordered=wanted.ordered) for c in chunks
    ]
    return pa.chunked_array(converted, wanted) if isinstance(column, pa.ChunkedArray) else converted[0]


def in_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Times in another unit, rounded down where it is coarser."""
    t = values.type
    if t == wanted or pa.types.is_date(wanted) is not pa.types.is_date(t):
        return values if t == wanted else values.cast(wanted)
    if pa.types.is_date(t):
        return values.cast(wanted)
    finer = {"s": 0, "ms": 1, "us": 2, "ns": 3}
    if finer[t.unit] <= finer[wanted.unit]:
        return values.cast(wanted)
    step = 1000 ** (finer[t.unit] - finer[wanted.unit])
    ticks = values.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(np.floor_divide(ticks, step), pa.int64(), mask=mask).view(wanted)


def restored(result: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A result over a column :func:`in_kernel_layout`, in the type that the result has for the user's own column."""
    if result.type == wanted:
        return result
    if pa.types.is_struct(wanted):
        children = [result.field(k).cast(f.type) for k, f in enumerate(wanted)]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=result.is_null())
    if pa.types.is_list(wanted):
        return pa.ListArray.from_arrays(result.offsets, result.values.cast(wanted.value_type))
    return result.cast(wanted)


def type_of(values: pa.Array | Array) -> pa.DataType:
    """The logical type of a column."""
    return pa.from_numpy_dtype(values.dtype) if isinstance(values, np.ndarray) else values.type


def to_column(values: pa.Array | Array, reading: Reading) -> Column:
    """Values as kernels read them."""
    if isinstance(values, np.ndarray):
        t = pa.from_numpy_dtype(values.dtype)
        machine = machine_type(t)
        assert machine is not None
        if values.dtype.kind == "b":
            return Column((np.ascontiguousarray(values).view(np.uint8),), None, t)
        return Column((np.ascontiguousarray(values, dtype=dtype(machine)),), None, t)
    t = values.type
    if not is_orderable(t):
        raise InvalidType(f"a column of type {t} cannot be aggregated here")
    valid = bitmap(values)
    if pa.types.is_decimal(t) and reading == "double":
        return Column((_numbers(values.cast(pa.float64())),), valid, t)
    if pa.types.is_decimal(t) and reading == "limbs" and machine_type(t) is None:
        return Column(tuple(_limbs(values)), valid, t)
    if is_ranked(t):
        ranks, ordered = _ranks(values)
        return Column((ranks,), valid, t, ordered)
    return Column((_numbers(values),), valid, t)


def bitmap(values: pa.Array) -> Array | None:
    """The rows that are not null, from bit 0 on, padded to whole words and one more; None if all are."""
    return None if values.null_count == 0 else _bits(values.buffers()[0], values.offset, len(values))


def true_bits(flags: pa.Array) -> Array:
    """The bitmap of the rows at which a column of flags is true, padded in the same way; null is not true."""
    bits = _bits(flags.buffers()[1], flags.offset, len(flags))
    known = bitmap(flags)
    return bits if known is None else bits & known


def _bits(buffer: pa.Buffer, offset: int, count: int) -> Array:
    """``count`` bits of a buffer, from bit 0 on, padded to whole words and one more."""
    padded = np.zeros((count + 63) // 64 * 8 + WORD // 8, np.uint8)
    if offset % 8 == 0:
        start = offset // 8
        used = np.frombuffer(buffer, np.uint8)[start : start + (count + 7) // 8]
        padded[: len(used)] = used
        if count % 8:
            padded[count // 8] &= (1 << count % 8) - 1
        return padded
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")[offset : offset + count]
    packed = np.packbits(bits, bitorder="little")
    padded[: len(packed)] = packed
    return padded


def _numbers(values: pa.Array) -> Array:
    """The values of a type that has a machine type; those of nulls are arbitrary."""
    t = values.type
    if pa.types.is_boolean(t):
        bits = np.frombuffer(values.buffers()[1], np.uint8)
        return np.unpackbits(bits, bitorder="little")[values.offset : values.offset + len(values)].copy()
    if pa.types.is_float16(t):
        values, t = values.cast(pa.float32()), pa.float32()
    if pa.types.is_decimal(t):
        return np.ascontiguousarray(_halves(values)[:, 0])
    if len(values) == 0:
        return np.empty(0, dtype(machine_type(t) or "int64"))
    numbers = np.frombuffer(values.buffers()[1], dtype(machine_type(t) or "int64"))
    return numbers[values.offset : values.offset + len(values)]


def _halves(values: pa.Array) -> Array:
    """128-bit decimals as rows of a low and a high half."""
    if len(values) == 0:
        return np.empty((0, 2), np.int64)
    return np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]


def _limbs(values: pa.Array) -> list[Array]:
    """128-bit decimals as three limbs of 62 bits, the highest first and signed."""
    halves = _halves(values)
    low, high = halves[:, 0].view(np.uint64), halves[:, 1]
    mask = np.uint64((1 << 62) - 1)
    middle = ((low >> np.uint64(62)) | (high.view(np.uint64) << np.uint64(2))) & mask
    return [np.ascontiguousarray(limb) for limb in (high >> 60, middle.view(np.int64), (low & mask).view(np.int64))]


def _ranks(values: pa.Array) -> tuple[Array, pa.Array]:
    """Values of an ordered type as their ranks among the distinct ones."""
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank_of_code = np.empty(len(order), np.int64)
    rank_of_code[order.to_numpy()] = np.arange(len(order))
    codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    ranks = rank_of_code[codes] if len(order) else np.zeros(len(values), np.int64)
    return np.ascontiguousarray(ranks), encoded.dictionary.take(order)


def to_arrow(values: Array, machine: str, known: Array | None) -> pa.Array:
    """A kernel's output column as Arrow; rows where ``known`` is 0 are null."""
    mask = None if known is None else known == 0
    if machine == "bool":
        return pa.array(values.astype(bool), mask=mask)
    return pa.array(values, mask=mask)
