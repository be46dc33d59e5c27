"""The slice store: slices in chunks, each many keys × a run of slices, behind get, put and remove of a named chunk.

Chunk ``(0, n)`` has the slices of the ``n``-th stretch of time. Node ``(1, n)`` has one slice for each of its keys, ``(2, m)`` one for each
key of ``fan`` neighbouring stretches, and so on: partials over chunks, joined when they are first needed after a change, without
subtraction. A window is then the slices of the stretch that it starts in, a few nodes, and the slices of the stretch that it ends in,
however long it is; a batch reads and writes the chunks that its rows fall into, and no step joins more than the nodes above them. The nodes
in the middle of a window are stored joined, as a span, while its ends move within the nodes beside it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sash.slicing.ingest.slices import Slices, by_key

Array = npt.NDArray[Any]
Name = tuple[int, int]
"""Level and number; a span of ``n`` stretches has the level ``-n`` and the number of its first stretch."""
Node = tuple[int, int, int]
"""Level, first stretch, and the one after the last."""

FEWEST_IN_SPAN = 3
"""Fewer nodes in the middle of a window are not joined to a span."""


class ChunkStore(Protocol):
    """Stores chunks by name, and states what size of chunks suits it."""

    slices_in_chunk: int
    """A chunk has about so many slices, of all keys together."""
    fewest_edges: int
    """A chunk is a run of at least so many edges."""
    fan: int
    """How many nodes are joined to one."""
    trims: bool
    """Whether slices that no window needs are dropped from a chunk before all of it can go."""

    def get(self, name: Name) -> Slices | None:
        """The chunk of this name; None if there is none."""
        ...

    def put(self, name: Name, chunk: Slices) -> None:
        """Store a chunk under a name."""
        ...

    def remove(self, name: Name) -> None:
        """Remove a chunk, if there is one of this name."""
        ...

    def names(self) -> Iterable[Name]:
        """The names of all chunks."""
        ...

    def count(self, name: Name) -> int:
        """How many slices a stored chunk has."""
        ...

    def clear(self) -> None:
        """Remove all chunks."""
        ...


class InMemory:
    """Chunks in a dictionary."""

    slices_in_chunk = 1 << 14
    fewest_edges = 16
    fan = 8
    trims = True

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

    def count(self, name: Name) -> int:
        return len(self._chunks[name])

    def clear(self) -> None:
        self._chunks.clear()


class Chunks:
    """Slices in a chunk for each stretch of ``length`` ticks, from ``origin`` on; without a length, all in one chunk."""

    def __init__(self, store: ChunkStore, length: int | None, origin: int, whole: Callable[[Slices], Slices]) -> None:
        self.store, self.length, self.origin = store, length, origin
        self._whole = whole
        """The function that joins each key's slices to one."""
        names = list(store.names())
        self._numbers = sorted(number for level, number in names if level == 0)
        self._built = max((level for level, _ in names), default=0)
        """The highest level that has ever had a node."""
        self._spans = {name for name in names if name[0] < 0}

    @property
    def numbers(self) -> list[int]:
        """The stretches that have slices, in the order of time."""
        return self._numbers

    @property
    def begin(self) -> int:
        """Where the oldest stretch begins."""
        return self._start(self._numbers[0])

    @property
    def end(self) -> int:
        """Where the newest stretch ends."""
        return self._start(self._numbers[-1] + 1)

    def _start(self, number: int) -> int:
        assert self.length is not None
        return self.origin + number * self.length

    def number(self, tick: int) -> int:
        """Which stretch a tick lies in."""
        return 0 if self.length is None else (tick - self.origin) // self.length

    def get(self, number: int) -> Slices | None:
        """A stretch's slices."""
        return self.store.get((0, number))

    def put(self, number: int, slices: Slices) -> None:
        """Replace the slices of a stretch; nodes and spans above it are dropped."""
        at = bisect_left(self._numbers, number)
        known = at < len(self._numbers) and self._numbers[at] == number
        if len(slices):
            self.store.put((0, number), slices)
            if not known:
                self._numbers = [*self._numbers[:at], number, *self._numbers[at:]]
        elif known:
            self.store.remove((0, number))
            self._numbers = [*self._numbers[:at], *self._numbers[at + 1 :]]
        if self.length is not None:
            self._drop_above(number)

    def drop_before(self, tick: int) -> int:
        """Drop the stretches that end at or before ``tick``; returns the number of the one that it lies in."""
        border = self.number(tick)
        if not self._numbers or self._numbers[0] >= border:
            return border
        for number in [n for n in self._numbers if n < border]:
            self.store.remove((0, number))
            self._drop_above(number)
        self._numbers = [n for n in self._numbers if n >= border]
        return border

    def _drop_above(self, number: int) -> None:
        for span in [(length, first) for length, first in self._spans if first <= number < first - length]:
            self.store.remove(span)
            self._spans.discard(span)
        for level in range(1, self._built + 1):
            self.store.remove((level, number))
            number //= self.store.fan

    def _highest(self) -> int:
        """The level above which nodes would span more stretches than there are."""
        spread = self._numbers[-1] - self._numbers[0] + 1 if self._numbers else 1
        return 2 + max(0, (spread - 1).bit_length() // (self.store.fan.bit_length() - 1))

    def split(self, slices: Slices) -> list[tuple[int, Slices]]:
        """Slices apart by the stretches that they lie in, with the stretches' numbers."""
        if self.length is None:
            return [(0, slices)]
        if not len(slices):
            return []
        number = self.number(slices.first_begin)
        if number == self.number(slices.last_begin):
            return [(number, slices)]
        numbers = (slices.first - self.origin) // self.length
        places = np.argsort(numbers, kind="stable")
        at = np.flatnonzero(np.diff(numbers[places])) + 1
        return [(int(numbers[part[0]]), slices.take(part)) for part in np.split(places, at) if len(part)]

    def all(self) -> list[Slices]:
        """All slices, stretch by stretch."""
        return [chunk for chunk in (self.get(n) for n in self._numbers) if chunk is not None]

    def cover(self, points: Array) -> list[Slices] | None:
        """A minimal cover of the time from the first of ``points`` to the last, by slices and nodes that do not straddle any of them; None
        if that would be most stretches."""
        if not len(points):
            return []
        assert self.length is not None
        cut = np.unique((points - self.origin) // self.length).tolist()  # a point at a stretch's first tick cuts nothing, and costs little
        numbers = self._numbers[bisect_left(self._numbers, cut[0]) : bisect_left(self._numbers, cut[-1] + 1)]
        if sum(self._has_between(n, n + 1, cut) for n in numbers) * 2 > len(self._numbers):
            return None
        pieces: list[Slices] = []
        used: set[Name] = set()
        at = 0
        while at < len(numbers):
            if self._has_between(numbers[at], numbers[at] + 1, cut):
                chunk = self.get(numbers[at])
                assert chunk is not None
                pieces.append(chunk)
                at += 1
                continue
            run, at = self._run(numbers, at, cut)
            pieces += self._joined(run, cut, used)
        for span in self._spans - used:
            self.store.remove(span)
        self._spans = used
        return pieces

    def _run(self, numbers: list[int], at: int, cut: list[int]) -> tuple[list[Node], int]:
        """The nodes from one stretch up to the next that a point lies in, and the index of the stretch behind them."""
        run: list[Node] = []
        while at < len(numbers) and not self._has_between(run[-1][2] if run else numbers[at], numbers[at] + 1, cut):
            node = self._largest(numbers[at], cut)
            run.append(node)
            at = bisect_left(numbers, node[2], at)
        return run, at

    def _joined(self, run: list[Node], cut: list[int], used: set[Name]) -> list[Slices]:
        """The slices of a run of nodes, the middle ones joined to a span: it stays the same while a window's ends move within a node."""
        inner = [k for k, (level, _, _) in enumerate(run) if level > 1]
        if len(inner) < FEWEST_IN_SPAN or inner != list(range(inner[0], inner[-1] + 1)):
            return [self._node_of(node) for node in run]
        first, end = run[inner[0]][1], run[inner[-1]][2]
        name = (first - end, first)
        used.add(name)
        middle = self.store.get(name)
        if middle is None:
            # Begin with the longest known span that starts at the same place and ends before this one's end.
            begun = max((f - n for n, f in self._spans if f == first and f - n < end), default=first)
            rest = self._numbers[bisect_left(self._numbers, begun) : bisect_left(self._numbers, end)]
            known = self.store.get((first - begun, first)) if begun > first else None
            parts = [*([] if known is None else [known]), *(self._node_of(node) for node in self._run(rest, 0, cut)[0])]
            middle = self._whole(by_key(parts))
            self.store.put(name, middle)
        before, after = run[: inner[0]], run[inner[-1] + 1 :]
        return [*(self._node_of(node) for node in before), middle, *(self._node_of(node) for node in after)]

    def _largest(self, number: int, cut: list[int]) -> Node:
        """The highest node that starts at a stretch, with its stretches, such that no point lies in it and it is complete."""
        level, low, high = 1, number, number + 1
        while level < self._highest():
            size = self.store.fan**level
            start = number // size * size
            # The newest node is not joined before all of its stretches have passed.
            if start + size > self._numbers[-1] or (start < number and self._has_between(start, number, self._numbers)):
                break
            if self._has_between(start, start + size, cut):
                break
            level, low, high = level + 1, start, start + size
        return level, low, high

    @staticmethod
    def _has_between(start: int, end: int, numbers: list[int]) -> bool:
        return bisect_left(numbers, end) > bisect_left(numbers, start)

    def _node_of(self, node: Node) -> Slices:
        level, low, _ = node
        return self._node(level, low // self.store.fan ** (level - 1))

    def _node(self, level: int, number: int) -> Slices:
        """One slice for each key of a node's stretches."""
        known = self.store.get((level, number))
        if known is not None:
            return known
        fan = self.store.fan
        if level == 1:
            chunk = self.get(number)
            assert chunk is not None
            if np.all(chunk.key[1:] != chunk.key[:-1]):
                return chunk
            parts = [chunk]
        else:
            below = fan ** (level - 2)
            children = range(number * fan, (number + 1) * fan)
            parts = [self._node(level - 1, c) for c in children if self._has_between(c * below, (c + 1) * below, self._numbers)]
        joined = self._whole(by_key(parts))
        self.store.put((level, number), joined)
        self._built = max(self._built, level)
        return joined

    @property
    def count(self) -> int:
        """How many slices there are, not counting joined ones."""
        return sum(self.store.count((0, n)) for n in self._numbers)

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in (self.store.get(name) for name in self.store.names()) if chunk is not None)
