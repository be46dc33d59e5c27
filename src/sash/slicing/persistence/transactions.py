"""State in a storage: named values behind get, put and remove, and a manifest that lists them.

A step reads the manifest and the values that it needs, and writes those that have changed; the others are not touched.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sash.errors import InvalidSnapshot
from sash.slicing import validation
from sash.slicing.ingest.slices import Slices, validated
from sash.slicing.persistence import encoding
from sash.slicing.stores.chunks import Name
from sash.types import FAR_AHEAD


class Storage(Protocol):
    """Stores named values."""

    def get(self, name: str) -> bytes | None:
        """The value of this name; None if there is none."""
        ...

    def put(self, name: str, value: bytes) -> None:
        """Store a value under a name."""
        ...

    def remove(self, name: str) -> None:
        """Remove the value of this name."""
        ...


class InDictionary:
    """A storage in a dictionary, for tests and inspection."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = {} if values is None else values

    def get(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.values[name] = value

    def remove(self, name: str) -> None:
        self.values.pop(name, None)


MANIFEST = "book"
"""The name that the manifest is stored by, since the first version."""


class Transaction:
    """A storage for one step: counts what is read and written, and buffers writes until the step is over.

    Small values are inlined into the manifest, which every step reads and writes anyway: a call to the storage costs more than they do.
    """

    largest_inlined, most_inlined = 1 << 10, 1 << 12
    """The largest value that is inlined, and the most that all of them may take."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._changed: dict[str, Callable[[], bytes] | None] = {}
        self._new: set[str] = set()
        self._inlined: dict[str, bytes] = {}
        self.bytes_read = 0
        self.bytes_written = 0

    def manifest(self) -> bytes | None:
        """The manifest, None if there is none; from now on, the values that are inlined into it can be read."""
        data = self._fetched(MANIFEST)
        if data is None:
            return None
        manifest, self._inlined = encoding.without_inlined(data, "the state's manifest")
        return manifest

    def has(self, name: str) -> bool:
        """Whether the storage has a value of this name."""
        return self._fetched(name) is not None

    def commit(self, manifest: bytes) -> None:
        """Write the manifest and all values that have changed, at the end of a step."""
        for name, value in self._changed.items():
            if value is None:
                if self._inlined.pop(name, None) is None:
                    self._storage.remove(name)
                continue
            data = value()
            is_inlined = self._inlined.pop(name, None) is not None or name in self._new
            if is_inlined and len(data) <= self.largest_inlined and len(data) + sum(map(len, self._inlined.values())) <= self.most_inlined:
                self._inlined[name] = data
            else:
                self._store(name, data)
        self._store(MANIFEST, encoding.with_inlined(manifest, self._inlined))
        self._changed, self._new = {}, set()

    def _store(self, name: str, data: bytes) -> None:
        self._storage.put(name, data)
        self.bytes_written += len(data)

    def _fetched(self, name: str) -> bytes | None:
        data = self._storage.get(name)
        if data is not None:
            self.bytes_read += len(data)
        return data

    @property
    def changed(self) -> Iterable[str]:
        """The names of values that will be written or removed."""
        return self._changed

    def get(self, name: str) -> bytes:
        """The value of this name, which must exist."""
        data = self._inlined[name] if name in self._inlined else self._fetched(name)
        if data is None:
            raise InvalidSnapshot(f"the state is damaged: its value {name!r} is missing")
        return data

    def put(self, name: str, value: Callable[[], bytes], *, new: bool = False) -> None:
        """Write a value when the step is over; ``new`` if the storage has none of this name, so that it may be inlined."""
        self._changed[name] = value
        if new:
            self._new.add(name)

    def remove(self, name: str, *, stored: bool = True) -> None:
        """Drop a value when the step is over; ``stored`` says whether the storage has it."""
        if stored:
            self._changed[name] = None
        else:
            self._changed.pop(name, None)


class StoredChunks:
    """Chunks of slices in a transaction, each read when it is first used."""

    slices_in_chunk = 1 << 10
    fewest_edges = 1
    fan = 4
    trims = False

    def __init__(
        self,
        transaction: Transaction,
        prefix: str,
        like: Slices,
        keys: Callable[[], int],
        known: Iterable[tuple[int, list[int], list[int]]] = (),
    ) -> None:
        self._transaction, self._prefix, self._like = transaction, prefix, like
        self.keys = keys
        """How many keys there are."""
        self._stored: dict[Name, int] = {}
        """The chunks in the storage, with their numbers of slices."""
        for level, steps, counts in known:
            for number in (level, *steps, *counts):
                validation.whole(number, "the state's manifest", -FAR_AHEAD, FAR_AHEAD)
            self._stored.update(zip(((level, n) for n in accumulate(steps)), counts, strict=True))
        self._counts = dict(self._stored)
        self._read: dict[Name, Slices] = {}

    def _name(self, name: Name) -> str:
        return f"{self._prefix}{name[0]}:{name[1]}"

    def get(self, name: Name) -> Slices | None:
        if name not in self._counts:
            return None
        chunk = self._read.get(name)
        if chunk is None:
            what = f"the state's chunk {self._name(name)!r}"
            columns = encoding.to_arrays(self._transaction.get(self._name(name)), what, self._counts[name])
            chunk = self._read[name] = validated(columns, self._like, self.keys(), what)
        return chunk

    def put(self, name: Name, chunk: Slices) -> None:
        self._read[name], self._counts[name] = chunk, len(chunk)
        self._transaction.put(self._name(name), lambda: encoding.of_arrays(chunk.columns()), new=name not in self._stored)

    def remove(self, name: Name) -> None:
        if self._counts.pop(name, None) is not None:
            self._read.pop(name, None)
            self._transaction.remove(self._name(name), stored=name in self._stored)

    def names(self) -> Iterable[Name]:
        return list(self._counts)

    def clear(self) -> None:
        for name in list(self._counts):
            self.remove(name)

    def count(self, name: Name) -> int:
        return self._counts[name]

    def manifest(self) -> list[tuple[int, list[int], list[int]]]:
        """The list of chunks for the manifest: for each level their distances, which are mostly the same, and their numbers of slices."""
        levels: dict[int, list[int]] = {}
        for level, number in sorted(self._counts):
            levels.setdefault(level, []).append(number)
        return [
            (level, [b - a for a, b in pairwise([0, *numbers])], [self._counts[level, n] for n in numbers])
            for level, numbers in levels.items()
        ]


class StoredKeys:
    """Key columns in a transaction, in segments: new keys are appended, so that a step mostly writes only those."""

    def __init__(self, transaction: Transaction, segments: Iterable[int] = ()) -> None:
        self._transaction = transaction
        self.segments = list(segments)
        """How many keys each segment has."""

    def read(self) -> list[pa.Array] | None:
        """All keys' columns."""
        if not self.segments:
            return None
        tables = [encoding.to_table(self._transaction.get(f"k{n}"), f"the state's keys {n}") for n in range(len(self.segments))]
        if [table.num_rows for table in tables] != self.segments:
            raise InvalidSnapshot("the state is damaged: its keys are not those that its manifest lists")
        return [column.combine_chunks() for column in pa.concat_tables(tables).columns]

    def write(self, values: list[pa.Array], *, again: bool) -> None:
        """Write the keys that are not stored yet, or all of them ``again``."""
        total = len(values[0]) if values else 0
        unchanged = [] if again else list(self.segments)
        known = sum(unchanged)
        if total == known and not again:
            return
        # As in a log of sorted runs: a segment is joined with the one before it unless that is much larger.
        while unchanged and unchanged[-1] <= 2 * (total - known):
            known -= unchanged.pop()
        sizes = [*unchanged, *([total - known] if total > known else [])]
        for n in range(len(sizes), len(self.segments)):
            self._transaction.remove(f"k{n}")
        if len(sizes) > len(unchanged):
            table = pa.table([v.slice(known) for v in values], names=[f"c{k}" for k in range(len(values))])
            self._transaction.put(f"k{len(unchanged)}", lambda: encoding.of_table(table), new=len(unchanged) >= len(self.segments))
        self.segments = sizes


class StoredRows:
    """Numbered rows in a transaction, in segments: a step writes new rows, and a segment again once most of its rows are removed."""

    def __init__(self, transaction: Transaction, prefix: str, number: str, segments: Iterable[list[Any]] = ()) -> None:
        self._transaction, self._prefix, self._number = transaction, prefix, number
        self._segments: dict[int, tuple[int, str | None]] = {
            validation.whole(n, "the state's manifest"): (validation.whole(count, "the state's manifest"), left)
            for n, count, left in segments
        }
        """For each segment how many rows it was written with, and as text which of them are left (None: all)."""
        self._read: dict[int, pa.Table] = {}

    def read(self) -> pa.Table | None:
        """All rows."""
        tables = []
        for n, (count, left) in self._segments.items():
            table = encoding.to_table(self._transaction.get(f"{self._prefix}{n}"), f"the state's rows {n}")
            if table.num_rows != count:
                raise InvalidSnapshot(f"the state is damaged: its rows {n} are {table.num_rows}, and should be {count}")
            self._read[n] = table
            tables.append(table if left is None else table.filter(_flags(left, count)))
            tables[-1] = tables[-1].select(tables[0].column_names)
        return pa.concat_tables(tables).combine_chunks() if tables else None

    def write(self, table: pa.Table, *, again: bool = False) -> None:
        """Store these rows and no others; ``again`` if the values of stored rows have changed."""
        numbers = table.column(self._number).to_numpy()
        known = np.zeros(len(numbers), bool)
        for n, old in self._read.items():
            was = old.column(self._number).to_numpy()
            alive = np.isin(was, numbers)
            if again or not alive.any() or 2 * int(alive.sum()) < len(was):
                self._transaction.remove(f"{self._prefix}{n}")
                del self._segments[n]
            else:
                known |= np.isin(numbers, was)
                self._segments[n] = (len(was), None if alive.all() else _text(alive))
        # As in a log of sorted runs: a segment is joined with the new rows unless it is much larger.
        for n in sorted(self._segments, reverse=True):
            if known.all() or self._segments[n][0] > 2 * int((~known).sum()):
                break
            known &= ~np.isin(numbers, self._read[n].column(self._number).to_numpy())
            self._transaction.remove(f"{self._prefix}{n}")
            del self._segments[n]
        self._read = {}
        if not known.all():
            name = max(self._segments, default=-1) + 1
            while f"{self._prefix}{name}" in self._transaction.changed:  # a name that this step removes is not written by it
                name += 1
            fresh = table.filter(pa.array(~known)).combine_chunks()
            self._segments[name] = (fresh.num_rows, None)
            self._transaction.put(f"{self._prefix}{name}", lambda: encoding.of_table(fresh), new=True)

    def manifest(self) -> list[list[Any]]:
        """The list of segments for the manifest."""
        return [[n, count, left] for n, (count, left) in self._segments.items()]


def _text(flags: Any) -> str:
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def _flags(text: str, count: int) -> pa.Array:
    return pa.array(np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool))
