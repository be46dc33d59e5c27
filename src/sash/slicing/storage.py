"""State that lives elsewhere: named values behind get, put and remove, and a book of what there is.

A step opens the book, reads the values that it touches, and writes those that have changed; the rest stays where it is.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sash.errors import InvalidSnapshot
from sash.slicing import encoding, validation
from sash.slicing.chunks import Name
from sash.slicing.slices import Slices
from sash.types import FAR_AHEAD


class Storage(Protocol):
    """Where values live."""

    def get(self, name: str) -> bytes | None:
        """A value, if there is one of this name."""
        ...

    def put(self, name: str, value: bytes) -> None:
        """Keep a value."""
        ...

    def remove(self, name: str) -> None:
        """Drop a value."""
        ...


class InDictionary:
    """Values in a dictionary, for tests and for looking inside."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = {} if values is None else values

    def get(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.values[name] = value

    def remove(self, name: str) -> None:
        self.values.pop(name, None)


BOOK = "book"


class Shelf:
    """A storage for one step: counts what goes in and out, and holds writes back until the step is over.

    Small values are kept in a pocket of the book, which every step reads and writes anyway: a call to the storage costs more than they do.
    """

    small, pocket = 1 << 10, 1 << 12
    """The largest value that the pocket takes, and how much it holds."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._changed: dict[str, Callable[[], bytes] | None] = {}
        self._new: set[str] = set()
        self._pocket: dict[str, bytes] = {}
        self.bytes_read = 0
        self.bytes_written = 0

    def book(self) -> bytes | None:
        """The book, if there is one; what is in its pocket is at hand from now on."""
        data = self._fetched(BOOK)
        if data is None:
            return None
        book, self._pocket = encoding.out_of_pocket(data, "the state's book")
        return book

    def has(self, name: str) -> bool:
        """Whether the storage has a value of this name."""
        return self._fetched(name) is not None

    def put_book(self, book: bytes) -> None:
        """Write the book, and all else: the step is over."""
        for name, value in self._changed.items():
            if value is None:
                if self._pocket.pop(name, None) is None:
                    self._storage.remove(name)
                continue
            data = value()
            pocketed = self._pocket.pop(name, None) is not None or name in self._new
            if pocketed and len(data) <= self.small and len(data) + sum(map(len, self._pocket.values())) <= self.pocket:
                self._pocket[name] = data
            else:
                self._store(name, data)
        self._store(BOOK, encoding.with_pocket(book, self._pocket))
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
        """A value that must be there."""
        data = self._pocket[name] if name in self._pocket else self._fetched(name)
        if data is None:
            raise InvalidSnapshot(f"the state is damaged: its value {name!r} is missing")
        return data

    def put(self, name: str, value: Callable[[], bytes], *, new: bool = False) -> None:
        """Write a value when the step is over; ``new`` if the storage has none of this name, so that it may go into the pocket."""
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
    """Chunks of slices on a shelf, each read when it is first asked for."""

    slices_in_chunk = 1 << 10
    fewest_edges = 1
    fan = 4
    trims = False

    def __init__(
        self, shelf: Shelf, prefix: str, like: Slices, keys: Callable[[], int], known: Iterable[tuple[int, list[int], list[int]]] = ()
    ) -> None:
        self._shelf, self._prefix, self._like = shelf, prefix, like
        self.keys = keys
        """How many keys there are."""
        self._stored: dict[Name, int] = {}
        """What the storage has, with the number of slices."""
        for level, steps, counts in known:
            for number in (level, *steps, *counts):
                validation.whole(number, "the state's book", -FAR_AHEAD, FAR_AHEAD)
            self._stored.update(zip(((level, n) for n in accumulate(steps)), counts, strict=True))
        self._counts = dict(self._stored)
        self._read: dict[Name, Slices] = {}

    def _name(self, name: Name) -> str:
        return f"{self._prefix}{name[0]}:{name[1]}"

    def get(self, name: Name) -> Slices | None:
        if name not in self._counts:
            return None
        found = self._read.get(name)
        if found is None:
            what = f"the state's chunk {self._name(name)!r}"
            columns = encoding.to_arrays(self._shelf.get(self._name(name)), what, self._counts[name])
            found = self._read[name] = validation.slices(columns, self._like, self.keys(), what)
        return found

    def put(self, name: Name, chunk: Slices) -> None:
        self._read[name], self._counts[name] = chunk, len(chunk)
        self._shelf.put(self._name(name), lambda: encoding.of_arrays(chunk.columns()), new=name not in self._stored)

    def remove(self, name: Name) -> None:
        if self._counts.pop(name, None) is not None:
            self._read.pop(name, None)
            self._shelf.remove(self._name(name), stored=name in self._stored)

    def names(self) -> Iterable[Name]:
        return list(self._counts)

    def clear(self) -> None:
        for name in list(self._counts):
            self.remove(name)

    def count(self, name: Name) -> int:
        return self._counts[name]

    def book(self) -> list[tuple[int, list[int], list[int]]]:
        """What there is, for the next step: for each level the chunks' distances, which are mostly the same, and their sizes."""
        levels: dict[int, list[int]] = {}
        for level, number in sorted(self._counts):
            levels.setdefault(level, []).append(number)
        return [
            (level, [b - a for a, b in pairwise([0, *found])], [self._counts[level, n] for n in found]) for level, found in levels.items()
        ]


class StoredKeys:
    """Key columns on a shelf: new keys are put behind the others, so what is written grows with them."""

    def __init__(self, shelf: Shelf, segments: Iterable[int] = ()) -> None:
        self._shelf = shelf
        self.segments = list(segments)
        """How many keys each segment has."""

    def read(self) -> list[pa.Array] | None:
        """All keys' columns."""
        if not self.segments:
            return None
        tables = [encoding.to_table(self._shelf.get(f"k{n}"), f"the state's keys {n}") for n in range(len(self.segments))]
        if [table.num_rows for table in tables] != self.segments:
            raise InvalidSnapshot("the state is damaged: its keys are not those that its book tells of")
        return [column.combine_chunks() for column in pa.concat_tables(tables).columns]

    def write(self, values: list[pa.Array], *, again: bool) -> None:
        """Keep keys of which the first are there already, unless they are to be written ``again``."""
        total = len(values[0]) if values else 0
        kept = [] if again else list(self.segments)
        known = sum(kept)
        if total == known and not again:
            return
        # As in a log of sorted runs: a segment is joined with the one before it unless that is much larger.
        while kept and kept[-1] <= 2 * (total - known):
            known -= kept.pop()
        sizes = [*kept, *([total - known] if total > known else [])]
        for n in range(len(sizes), len(self.segments)):
            self._shelf.remove(f"k{n}")
        if len(sizes) > len(kept):
            table = pa.table([v.slice(known) for v in values], names=[f"c{k}" for k in range(len(values))])
            self._shelf.put(f"k{len(kept)}", lambda: encoding.of_table(table), new=len(kept) >= len(self.segments))
        self.segments = sizes


class StoredRows:
    """Numbered rows on a shelf, in segments: a step writes the rows that came, and a segment again once most of its rows have gone."""

    def __init__(self, shelf: Shelf, prefix: str, number: str, segments: Iterable[list[Any]] = ()) -> None:
        self._shelf, self._prefix, self._number = shelf, prefix, number
        self._segments: dict[int, tuple[int, str | None]] = {
            validation.whole(n, "the state's book"): (validation.whole(count, "the state's book"), gone) for n, count, gone in segments
        }
        """For each segment how many rows it was written with, and which of them have gone."""
        self._read: dict[int, pa.Table] = {}

    def read(self) -> pa.Table | None:
        """All rows."""
        found = []
        for n, (count, gone) in self._segments.items():
            table = encoding.to_table(self._shelf.get(f"{self._prefix}{n}"), f"the state's rows {n}")
            if table.num_rows != count:
                raise InvalidSnapshot(f"the state is damaged: its rows {n} are {table.num_rows}, and should be {count}")
            self._read[n] = table
            found.append(table if gone is None else table.filter(_flags(gone, count)))
            found[-1] = found[-1].select(found[0].column_names)
        return pa.concat_tables(found).combine_chunks() if found else None

    def write(self, table: pa.Table, *, again: bool = False) -> None:
        """Keep these rows and no others; ``again`` if those that were there have changed."""
        numbers = table.column(self._number).to_numpy()
        known = np.zeros(len(numbers), bool)
        for n, old in self._read.items():
            was = old.column(self._number).to_numpy()
            alive = np.isin(was, numbers)
            if again or not alive.any() or 2 * int(alive.sum()) < len(was):
                self._shelf.remove(f"{self._prefix}{n}")
                del self._segments[n]
            else:
                known |= np.isin(numbers, was)
                self._segments[n] = (len(was), None if alive.all() else _text(alive))
        # As in a log of sorted runs: a segment is joined with the new rows unless it is much larger.
        for n in sorted(self._segments, reverse=True):
            if known.all() or self._segments[n][0] > 2 * int((~known).sum()):
                break
            known &= ~np.isin(numbers, self._read[n].column(self._number).to_numpy())
            self._shelf.remove(f"{self._prefix}{n}")
            del self._segments[n]
        self._read = {}
        if not known.all():
            name = max(self._segments, default=-1) + 1
            while f"{self._prefix}{name}" in self._shelf.changed:  # what is removed in this step is not written in it
                name += 1
            fresh = table.filter(pa.array(~known)).combine_chunks()
            self._segments[name] = (fresh.num_rows, None)
            self._shelf.put(f"{self._prefix}{name}", lambda: encoding.of_table(fresh), new=True)

    def book(self) -> list[list[Any]]:
        """What there is, for the next step."""
        return [[n, count, gone] for n, (count, gone) in self._segments.items()]


def _text(flags: Any) -> str:
    return base64.b64encode(np.packbits(flags).tobytes()).decode()


def _flags(text: str, count: int) -> pa.Array:
    return pa.array(np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool))
