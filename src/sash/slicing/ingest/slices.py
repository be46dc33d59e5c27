"""Slices as arrays: for many keys, each with its run of slices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing import validation
from sash.slicing.bounds.view import View
from sash.types import FAR_BACK

Array = npt.NDArray[Any]

FEWEST = 64
"""The smallest capacity of arrays that slices are appended to."""


UNDIVIDED = FAR_BACK
"""The cell of slices that are older than every edge still needed: those of one key are joined."""


@dataclass(eq=False)
class Slices:
    """Slices of many keys, sorted by key, then first row.

    The fields are not replaced, but kernels write into the arrays: partials are added to slices in place, and new slices into ``buffer``.
    """

    key: Array
    cell: Array
    """The latest edge at or before the slice."""
    first: Array
    last: Array
    count: Array
    included_counts: list[Array]
    """For each aggregate how many rows of each slice it includes: those that meet its condition and have no null input."""
    states: list[list[Array]]
    buffer: Slices | None = field(default=None, init=False)
    """The longer arrays whose first part these are, if there is spare capacity behind them."""

    def __len__(self) -> int:
        return len(self.key)

    @property
    def first_begin(self) -> int:
        """The first time of the earliest slice; there must be one."""
        return int(self.first[0] if self.key[0] == self.key[-1] else self.first.min())

    @property
    def last_begin(self) -> int:
        """The first time of the latest slice; there must be one."""
        return int(self.first[-1] if self.key[0] == self.key[-1] else self.first.max())

    def columns(self) -> list[Array]:
        """All arrays, in a fixed order."""
        return [self.key, self.cell, self.first, self.last, self.count, *self.included_counts, *(a for group in self.states for a in group)]

    def rebuilt(self, columns: list[Array]) -> Slices:
        """Slices of the same aggregates over other arrays, in the order of :meth:`columns`."""
        key, cell, first, last, count, *rest = columns
        included, rest, groups = rest[: len(self.included_counts)], rest[len(self.included_counts) :], []
        for group in self.states:
            groups.append(rest[: len(group)])
            rest = rest[len(group) :]
        return Slices(key, cell, first, last, count, included, groups)

    def with_spare_capacity(self, more: int) -> Slices:
        """The slices, with spare capacity behind them for ``more``; copied only if there is not enough yet."""
        total = len(self) + more
        if self.buffer is not None and total <= len(self.buffer):
            return self
        buffer = self.rebuilt([np.empty(max(FEWEST, 2 * total), c.dtype) for c in self.columns()])
        for whole, part in zip(buffer.columns(), self.columns(), strict=True):
            whole[: len(self)] = part
        return buffer.beginning(len(self))

    def beginning(self, count: int) -> Slices:
        """The first ``count`` slices as views; the arrays behind them are their spare capacity."""
        slices = self.rebuilt([whole[:count] for whole in self.columns()])
        slices.buffer = self
        return slices

    def copy(self) -> Slices:
        """A copy of the slices in arrays of their own."""
        return self.rebuilt([c.copy() for c in self.columns()])

    def take(self, places: Array) -> Slices:
        """The slices at ``places``."""
        return self.rebuilt([c[places] for c in self.columns()])

    def with_cells(self, cell: Array) -> Slices:
        """The slices with other cells."""
        return replace(self, cell=cell)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns())


def joined(parts: list[Slices]) -> Slices:
    """All slices of the parts, concatenated."""
    if len(parts) == 1:
        return parts[0]
    return parts[0].rebuilt([np.concatenate(columns) for columns in zip(*(p.columns() for p in parts), strict=True)])


def by_key(parts: list[Slices]) -> Slices:
    """Slices of successive stretches of time, merged by key."""
    if len(parts) == 1:
        return parts[0]
    together = joined(parts)
    if together.key[0] == together.key[-1] and (together.key == together.key[0]).all():
        return together
    return together.take(np.argsort(together.key, kind="stable"))


def view_of(slices: Slices, keys: int) -> View:
    """The view of slices that windows are located in."""
    offsets = np.searchsorted(slices.key, np.arange(keys + 1)).astype(np.int64) if keys > 1 else np.array([0, len(slices)])
    return View(offsets, slices.first, slices.first, slices.last, slices.count)


def validated(columns: list[Array], like: Slices, key_count: int, what: str) -> Slices:
    """Stored arrays as slices for kernels; raises unless they have the right types, are in order, and have known keys."""
    wanted = like.columns()
    if len(columns) != len(wanted):
        raise validation.damaged(what, f"it has {len(columns)} columns, and should have {len(wanted)}")
    if any(a.dtype != b.dtype for a, b in zip(columns, wanted, strict=True)) or len({len(a) for a in columns}) > 1:
        raise validation.damaged(what, "its columns are of other types or lengths")
    slices = like.rebuilt(columns)
    if not len(slices):
        return slices
    if int(slices.key.min()) < 0 or int(slices.key.max()) >= key_count:
        raise validation.damaged(what, f"it has a slice of a key that does not exist (there are {key_count})")
    if (
        int(slices.first.min()) <= -validation.FARTHEST
        or int(slices.last.max()) >= validation.FARTHEST
        or (slices.last < slices.first).any()
    ):
        raise validation.damaged(what, "it has a slice that ends before it begins, or lies too far away")
    if int(slices.count.min()) < 1 or int(slices.count.max()) > validation.LARGEST_COUNT:
        raise validation.damaged(what, "it has a slice of no rows")
    for included in slices.included_counts:
        if (included < 0).any() or (included > slices.count).any():
            raise validation.damaged(what, "it has a slice of which an aggregate has seen more rows than there are")
    # A row that is older than every edge still needed has a slice of its own until the next step joins it to the undivided one.
    undivided = slices.cell == UNDIVIDED
    apart = (slices.first[1:] >= slices.last[:-1]) | ((undivided[1:] | undivided[:-1]) & (slices.first[1:] >= slices.first[:-1]))
    in_order = (slices.key[1:] > slices.key[:-1]) | ((slices.key[1:] == slices.key[:-1]) & apart)
    if not in_order.all():
        raise validation.damaged(what, "its slices are not in order")
    return slices
