"""Arrays as few bytes, for the values of a state store.

Integers are stored as differences from the smallest, or from the one before, in as few bytes as those need; a column that repeats another
is stored once; the bytes of the rest are ordered plane by plane, which compresses well. Every value is sealed: it carries the format's
version and a checksum, so that a damaged one, or one of an unknown version, is an error and never a wrong result.
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.errors import InvalidSnapshot
from sash.slicing import validation

Array = npt.NDArray[Any]

VERSION = 1
MAGIC, INLINED = b"SASH", b"SASP"
_SEAL = struct.Struct("<4sBIQ")
"""Magic, version, checksum, and the length before compression."""
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct("<IQ")
"""The length of the description and how many values each column has."""
CODEC = pa.Codec("zstd", compression_level=1)
BLOCK, SMALLEST_BLOCK = 1 << 17, 4
"""The largest content of a block of zstd, and the smallest size of a block, in bytes."""
WIDTHS = (np.uint8, np.uint16, np.uint32, np.uint64)


def sealed(body: bytes) -> bytes:
    """Bytes with their version and checksum, compressed."""
    packed: bytes = CODEC.compress(body, asbytes=True)
    return _SEAL.pack(MAGIC, VERSION, _checksum(packed, len(body)), len(body)) + packed


def _checksum(packed: bytes, length: int) -> int:
    return zlib.crc32(packed, zlib.crc32(length.to_bytes(8, "little")))


def opened(data: bytes, what: str) -> bytes:
    """The bytes that were sealed; an error says what is wrong with them."""
    if len(data) < _SEAL.size or data[:4] != MAGIC:
        raise InvalidSnapshot(f"{what} is damaged: these bytes are no state of sash")
    _, version, checksum, length = _SEAL.unpack_from(data)
    if version != VERSION:
        raise InvalidSnapshot(f"{what} has the format's version {version}; this sash reads version {VERSION}")
    packed = data[_SEAL.size :]
    if _checksum(packed, length) != checksum:
        raise InvalidSnapshot(f"{what} is damaged: its checksum does not fit")
    if length > BLOCK * (len(packed) // SMALLEST_BLOCK + 1):
        raise InvalidSnapshot(f"{what} is damaged: {len(packed)} bytes cannot hold {length}")
    try:
        body: bytes = CODEC.decompress(packed, decompressed_size=length, asbytes=True)
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise InvalidSnapshot(f"{what} is damaged: it cannot be decompressed") from error
    if len(body) != length:
        raise InvalidSnapshot(f"{what} is damaged: it has {len(body)} bytes, and should have {length}")
    return body


def with_inlined(value: bytes, inlined: dict[str, bytes]) -> bytes:
    """A sealed value with others appended; unchanged if there are none."""
    if not inlined:
        return value
    head = sealed(json.dumps({"value": len(value), "pocket": {name: len(data) for name, data in inlined.items()}}).encode())
    return b"".join([INLINED, _LENGTH.pack(len(head)), head, value, *inlined.values()])


def without_inlined(data: bytes, what: str) -> tuple[bytes, dict[str, bytes]]:
    """The value, and the values that were appended to it, by name."""
    if data[:4] != INLINED:
        return data, {}
    start = 4 + _LENGTH.size
    length = _LENGTH.unpack_from(data, 4)[0] if len(data) >= start else 0
    with validation.reading(what):
        head = json.loads(opened(data[start : start + length], what))
        sizes = [validation.whole(n, what, 0, len(data)) for n in [head["value"], *head["pocket"].values()]]
        ends = list(accumulate(sizes, initial=start + length))
    if ends[-1] != len(data):
        raise InvalidSnapshot(f"{what} is damaged: it has {len(data)} bytes, and should have {ends[-1]}")
    value, *others = [data[a:b] for a, b in pairwise(ends)]
    return value, dict(zip(head["pocket"], others, strict=True))


def of_arrays(columns: list[Array]) -> bytes:
    """Columns of one length as sealed bytes."""
    count = len(columns[0])
    described: list[list[Any]] = []
    parts: list[bytes] = []
    seen: dict[int, int] = {}
    for k, column in enumerate(columns):
        again = seen.setdefault(id(column), k)
        if again == k:
            again = next((j for j in range(k) if columns[j].dtype == column.dtype and np.array_equal(columns[j], column)), k) if k else k
        if again != k and column.dtype.kind != "f":
            described.append(["=", again])
            continue
        description, body = _of_integers(column) if column.dtype.kind in "iu" else (["x", column.dtype.str], column)
        described.append(description)
        if body is not None:
            parts.append(_planes(body))
    head = json.dumps(described, separators=(",", ":")).encode()
    return sealed(b"".join([_HEAD.pack(len(head), count), head, *parts]))


def to_arrays(data: bytes, what: str, count: int | None = None) -> list[Array]:
    """The columns that were encoded; ``count`` is how many values each should have."""
    body = opened(data, what)
    with validation.reading(what):
        return _arrays(body, what, count)


def _arrays(body: bytes, what: str, wanted: int | None) -> list[Array]:
    length, count = _HEAD.unpack_from(body)
    at = _HEAD.size + length
    columns: list[Array] = []
    described = json.loads(body[_HEAD.size : at])
    for kind, *rest in described:
        for name in rest[: {"=": 0, "x": 1, "c": 1}.get(kind, 2)]:
            if np.dtype(name).str not in KNOWN_TYPES:
                raise validation.damaged(what, f"{name!r} is no type of numbers")
    sizes = [np.dtype(rest[0] if kind == "x" else rest[1]).itemsize for kind, *rest in described if kind not in "=c"]
    if at + count * sum(sizes) != len(body) or (wanted is not None and count != wanted):
        raise validation.damaged(what, "it does not have as many values as it should")
    if not sizes and wanted is None and count > MOST_EQUAL:
        raise validation.damaged(what, f"it cannot have {count} values that are all the same")

    def read(dtype: np.dtype[Any]) -> Array:
        nonlocal at
        size = count * dtype.itemsize
        planes = np.frombuffer(body, np.uint8, size, at).reshape(dtype.itemsize, count)
        at += size
        return (planes[0] if dtype.itemsize == 1 else np.ascontiguousarray(planes.T)).view(dtype).reshape(-1)

    for kind, *rest in described:
        if kind == "=":
            columns.append(columns[validation.whole(rest[0], what, 0, len(columns) - 1)].copy())  # columns are changed in place
        elif kind == "x":
            columns.append(read(np.dtype(rest[0])).copy())
        elif kind == "c":
            columns.append(np.full(count, _number(rest[1], rest[0]), np.dtype(rest[0])))
        else:
            dtype, width, base, step = rest
            offsets = read(np.dtype(width)).astype(np.uint64)
            if step != 1:
                offsets = offsets * np.uint64(step)
            if kind == "d":
                offsets = np.cumsum(offsets, dtype=np.uint64)
            columns.append((offsets + np.uint64(base)).astype(np.dtype(dtype)))
    return columns


def _of_integers(column: Array) -> tuple[list[Any], Array | None]:
    """A column of integers as differences in the narrowest type that fits them; arithmetic is unsigned with 64 bits, which wraps around."""
    name = column.dtype.str
    if not len(column):
        return ["c", name, 0], None
    low, high = int(column.min()), int(column.max())
    if low == high:
        return ["c", name, low], None
    bits = column.astype(np.uint64)
    base = int(np.uint64(low & MASK))
    offsets = bits - np.uint64(base)
    kind, widest = "o", high - low
    if widest > 255:
        steps = np.diff(column) if widest < 1 << 62 else np.array([-1])
        if int(steps.min()) >= 0 and int(steps.max()) * 256 <= widest:
            kind, widest = "d", int(steps.max())
            base = int(bits[0])
            offsets = np.append(np.uint64(0), steps.astype(np.uint64))
        elif widest >= 1 << 16:
            step = int(np.gcd.reduce(offsets))  # edges have a common distance
            if step > 1:
                return ["o", name, _width(widest // step).str, base, step], (offsets // np.uint64(step)).astype(_width(widest // step))
    return [kind, name, _width(widest).str, base, 1], offsets.astype(_width(widest))


MASK = (1 << 64) - 1
KNOWN_TYPES = frozenset(np.dtype(t).str for t in "b i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 bool".split())  # noqa: SIM905
MOST_EQUAL = 1 << 20
"""The most values that columns may have which are all constant, so that their bytes do not limit the count."""


def _number(value: int, dtype: str) -> Any:
    return np.array(value, np.dtype(dtype))[()]


def _width(largest: int) -> np.dtype[Any]:
    return next(np.dtype(w) for w in WIDTHS if largest <= np.iinfo(w).max)


def _planes(column: Array) -> bytes:
    """The first bytes of all values, then all second bytes, and so on."""
    size = column.dtype.itemsize
    flat = np.ascontiguousarray(column)
    return flat.tobytes() if size == 1 else np.ascontiguousarray(flat.view(np.uint8).reshape(-1, size).T).tobytes()


def of_table(table: pa.Table) -> bytes:
    """A table as sealed bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sealed(sink.getvalue().to_pybytes())


def to_table(data: bytes, what: str) -> pa.Table:
    """The table that was encoded."""
    return arrow_table(opened(data, what), what)


def arrow_table(body: bytes, what: str) -> pa.Table:
    """A table in Arrow's stream format, with its buffers validated."""
    with validation.reading(what):
        with pa.ipc.open_stream(body) as reader:
            table = validation.table(reader.read_all(), what)
        if table.num_rows > MOST_EQUAL and table.num_rows > 8 * len(body):  # only nulls and repetitions need less than a bit
            raise validation.damaged(what, f"{len(body)} bytes cannot hold {table.num_rows} rows")
        return table


def of_json(value: Any) -> bytes:
    """A JSON value as sealed bytes."""
    return sealed(json.dumps(value, separators=(",", ":")).encode())


def to_json(data: bytes, what: str) -> Any:
    """The JSON value that was encoded."""
    body = opened(data, what)
    with validation.reading(what):
        return json.loads(body)
