"""Slices as arrays: many keys, each with its run of slices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing import validation
from sash.slicing.bounds.view import View

Array = npt.NDArray[Any]

FEWEST = 64
"""There is room for so many slices at least where more will come."""


@dataclass(frozen=True)
class Slices:
    """Slices of many keys, sorted by key, then first row."""

    key: Array
    cell: Array
    """The latest edge at or before the slice."""
    first: Array
    last: Array
    count: Array
    held: list[Array]
    """For each aggregate how many rows of the slice it took in."""
    states: list[list[Array]]
    room: Slices | None = field(default=None, init=False)
    """Longer arrays, of which these are the beginnings."""

    def __len__(self) -> int:
        return len(self.key)

    @property
    def first_begin(self) -> int:
        """Where the earliest slice begins, if there are any; those of one key are in order."""
        return int(self.first[0] if self.key[0] == self.key[-1] else self.first.min())

    @property
    def last_begin(self) -> int:
        """Where the latest slice begins."""
        return int(self.first[-1] if self.key[0] == self.key[-1] else self.first.max())

    def columns(self) -> list[Array]:
        """All arrays, in a fixed order."""
        return [self.key, self.cell, self.first, self.last, self.count, *self.held, *(a for group in self.states for a in group)]

    def rebuilt(self, columns: list[Array]) -> Slices:
        """The same shape over other arrays."""
        key, cell, first, last, count, *rest = columns
        held, rest, groups = rest[: len(self.held)], rest[len(self.held) :], []
        for group in self.states:
            groups.append(rest[: len(group)])
            rest = rest[len(group) :]
        return Slices(key, cell, first, last, count, held, groups)

    def with_room(self, more: int) -> Slices:
        """The same, with room behind them for so many more; they are copied only where there is none yet."""
        total = len(self) + more
        if self.room is not None and total <= len(self.room):
            return self
        room = self.rebuilt([np.empty(max(FEWEST, 2 * total), c.dtype) for c in self.columns()])
        for whole, part in zip(room.columns(), self.columns(), strict=True):
            whole[: len(self)] = part
        return room.beginning(len(self))

    def beginning(self, count: int) -> Slices:
        """The first few, of which the rest are the room."""
        made = self.rebuilt([whole[:count] for whole in self.columns()])
        object.__setattr__(made, "room", self)
        return made

    def copy(self) -> Slices:
        """The same in memory of its own."""
        return self.rebuilt([c.copy() for c in self.columns()])

    def take(self, places: Array) -> Slices:
        """The slices at ``places``."""
        return self.rebuilt([c[places] for c in self.columns()])

    def with_cells(self, cell: Array) -> Slices:
        """The same with other cells."""
        return replace(self, cell=cell)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns())


def joined(parts: list[Slices]) -> Slices:
    """Slices one after the other."""
    if len(parts) == 1:
        return parts[0]
    return parts[0].rebuilt([np.concatenate(columns) for columns in zip(*(p.columns() for p in parts), strict=True)])


def by_key(parts: list[Slices]) -> Slices:
    """Slices of stretches of time that follow each other, as one sorted run."""
    if len(parts) == 1:
        return parts[0]
    together = joined(parts)
    if together.key[0] == together.key[-1] and (together.key == together.key[0]).all():
        return together
    return together.take(np.argsort(together.key, kind="stable"))


def view_of(slices: Slices, keys: int) -> View:
    """Slices as window bounds see them."""
    offsets = np.searchsorted(slices.key, np.arange(keys + 1)).astype(np.int64) if keys > 1 else np.array([0, len(slices)])
    return View(offsets, slices.first, slices.first, slices.last, slices.count)


def validated(found: list[Array], like: Slices, key_count: int, what: str) -> Slices:
    """Stored arrays as slices that kernels can work on: of the right types, in order, of keys that there are; raises otherwise."""
    wanted = like.columns()
    if len(found) != len(wanted):
        raise validation.damaged(what, f"it has {len(found)} columns, and should have {len(wanted)}")
    if any(a.dtype != b.dtype for a, b in zip(found, wanted, strict=True)) or len({len(a) for a in found}) > 1:
        raise validation.damaged(what, "its columns are of other types or lengths")
    made = like.rebuilt(found)
    if not len(made):
        return made
    if int(made.key.min()) < 0 or int(made.key.max()) >= key_count:
        raise validation.damaged(what, f"it has a slice of a key that does not exist (there are {key_count})")
    if int(made.first.min()) <= -validation.FARTHEST or int(made.last.max()) >= validation.FARTHEST or (made.last < made.first).any():
        raise validation.damaged(what, "it has a slice that ends before it begins, or lies too far away")
    if int(made.count.min()) < 1 or int(made.count.max()) > validation.LARGEST_COUNT:
        raise validation.damaged(what, "it has a slice of no rows")
    for taken in made.held:
        if (taken < 0).any() or (taken > made.count).any():
            raise validation.damaged(what, "it has a slice of which an aggregate has seen more rows than there are")
    in_order = (made.key[1:] > made.key[:-1]) | ((made.key[1:] == made.key[:-1]) & (made.first[1:] >= made.last[:-1]))
    if not in_order.all():
        raise validation.damaged(what, "its slices are not in order")
    return made
