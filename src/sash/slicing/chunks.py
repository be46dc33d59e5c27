"""The slice store: slices in chunks, each many keys × a run of slices, behind get, put and remove of a named chunk.

Chunk ``(0, n)`` has the slices of the ``n``-th stretch of time. Node ``(1, n)`` has one slice for each of its keys, ``(2, m)`` one for each
key of ``FAN`` neighbouring stretches, and so on: partials over chunks, joined when they are first asked for after a change, nothing
subtracted. A window is then the slices of the stretch that it starts in, a few nodes, and the slices of the stretch that it ends in,
however long it is; a batch reads and writes the chunks that its rows fall into, and no step joins more than the nodes above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sash.slicing.slices import Slices, by_key

Array = npt.NDArray[Any]
Name = tuple[int, int]
"""Level and number."""

FAN = 8


class ChunkStore(Protocol):
    """Where chunks live."""

    def get(self, name: Name) -> Slices | None:
        """A chunk, if there is one of this name."""
        ...

    def put(self, name: Name, chunk: Slices) -> None:
        """Keep a chunk."""
        ...

    def remove(self, name: Name) -> None:
        """Drop a chunk, if it is there."""
        ...

    def names(self) -> Iterable[Name]:
        """All that are there."""
        ...


class InMemory:
    """Chunks in a dictionary."""

    def __init__(self) -> None:
        self._chunks: dict[Name, Slices] = {}

    def get(self, name: Name) -> Slices | None:
        return self._chunks.get(name)

    def put(self, name: Name, chunk: Slices) -> None:
        self._chunks[name] = chunk

    def remove(self, name: Name) -> None:
        self._chunks.pop(name, None)

    def names(self) -> Iterable[Name]:
        return list(self._chunks)


class Chunks:
    """Slices by stretches of ``length`` ticks from ``origin`` on; without a length, all in one."""

    def __init__(self, store: ChunkStore, length: int | None, origin: int, whole: Callable[[Slices], Slices]) -> None:
        self.store, self.length, self.origin = store, length, origin
        self._whole = whole
        """Joins each key's slices to one."""
        self._numbers = sorted(number for level, number in store.names() if level == 0)
        self._built = max((level for level, _ in store.names()), default=0)
        """The highest level that has ever had a node."""

    @property
    def numbers(self) -> list[int]:
        """The stretches that have slices, in the order of time."""
        return self._numbers

    @property
    def begin(self) -> int:
        """Where the oldest stretch begins."""
        assert self.length is not None
        return self.origin + self._numbers[0] * self.length

    @property
    def end(self) -> int:
        """Where the newest stretch ends."""
        assert self.length is not None
        return self.origin + (self._numbers[-1] + 1) * self.length

    def number(self, tick: int) -> int:
        """Which stretch a tick lies in."""
        return 0 if self.length is None else (tick - self.origin) // self.length

    def get(self, number: int) -> Slices | None:
        """A stretch's slices."""
        return self.store.get((0, number))

    def put(self, number: int, slices: Slices) -> None:
        """A stretch has other slices now, or none; what was joined above them goes."""
        name = (0, number)
        known = self.store.get(name) is not None
        if len(slices):
            self.store.put(name, slices)
            if not known:
                self._numbers = sorted([*self._numbers, number])
        elif known:
            self.store.remove(name)
            self._numbers.remove(number)
        if self.length is not None:
            self._forget_above(number)

    def _forget_above(self, number: int) -> None:
        for level in range(1, self._built + 1):
            self.store.remove((level, number))
            number //= FAN

    def _highest(self) -> int:
        """The level above which nodes would hold more stretches than there are."""
        spread = self._numbers[-1] - self._numbers[0] + 1 if self._numbers else 1
        return 2 + max(0, (spread - 1).bit_length() // (FAN.bit_length() - 1))

    def split(self, slices: Slices) -> list[tuple[int, Slices]]:
        """Slices by the stretches that they lie in."""
        if self.length is None:
            return [(0, slices)]
        numbers = (slices.first - self.origin) // self.length
        if len(numbers) and numbers.min() == numbers.max():
            return [(int(numbers[0]), slices)]
        return [(int(n), slices.take(np.flatnonzero(numbers == n))) for n in np.unique(numbers)]

    def all(self) -> list[Slices]:
        """All slices, stretch by stretch."""
        return [chunk for chunk in (self.get(n) for n in self._numbers) if chunk is not None]

    def cover(self, points: Array) -> list[Slices] | None:
        """As few slices as may be such that none reaches across one of these ticks; None if that is nearly all of them."""
        assert self.length is not None
        cut = set(((points - self.origin) // self.length).tolist())  # a point at a stretch's first tick cuts nothing, and costs little
        inside = [n for n in self._numbers if n in cut]
        if len(inside) * 2 > len(self._numbers):
            return None
        found: list[Slices] = []
        at = 0
        numbers = self._numbers
        while at < len(numbers):
            if numbers[at] in cut:
                chunk = self.get(numbers[at])
                assert chunk is not None
                found.append(chunk)
                at += 1
                continue
            level, low, high = self._largest(numbers[at], numbers, cut)
            found.append(self._node(level, low // FAN ** (level - 1)))
            while at < len(numbers) and numbers[at] < high:
                at += 1
        return found

    def _largest(self, number: int, numbers: list[int], cut: set[int]) -> tuple[int, int, int]:
        """The highest node that starts the uncovered rest, with its stretches: no point in it, and nothing newer than it missing."""
        level, low, high = 1, number, number + 1
        while level < self._highest():
            size = FAN**level
            start = number // size * size
            # The newest node is not worth joining before all of it is there.
            if start + size > numbers[-1] or (start < number and self._has_between(start, number, numbers)):
                break
            if any(start <= c < start + size for c in cut):
                break
            level, low, high = level + 1, start, start + size
        return level, low, high

    @staticmethod
    def _has_between(start: int, end: int, numbers: list[int]) -> bool:
        return bool(np.searchsorted(numbers, end) > np.searchsorted(numbers, start))

    def _node(self, level: int, number: int) -> Slices:
        """One slice for each key of a node's stretches."""
        known = self.store.get((level, number))
        if known is not None:
            return known
        if level == 1:
            chunk = self.get(number)
            assert chunk is not None
            parts = [chunk]
        else:
            below = FAN ** (level - 2)
            children = range(number * FAN, (number + 1) * FAN)
            parts = [self._node(level - 1, c) for c in children if self._has_between(c * below, (c + 1) * below, self._numbers)]
        made = self._whole(by_key(parts))
        self.store.put((level, number), made)
        self._built = max(self._built, level)
        return made

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in (self.store.get(name) for name in self.store.names()) if chunk is not None)
