"""Rows folded into slices that are there: one call of a kernel for a batch of a stream without keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algorithms.pipe import merging
from sash.kernels.addresses import flat
from sash.slicing.ingest.row_slicer import RowSlicer
from sash.slicing.ingest.slices import Slices
from sash.slicing.partials.stored import Kernels
from sash.slicing.rows.inputs import Fields

Array = npt.NDArray[Any]

LARGEST_WORKSPACE = 1 << 16
"""A workspace for more rows or edges than this is not kept."""


class Workspace:
    """Arrays that :func:`~sash.algorithms.pipe.merging.put_in_place` works with."""

    def __init__(self, kernels: Kernels, rows: int, edges: int) -> None:
        self.rows, self.edges = rows, edges
        self.first, self.last, self.count, self.cell, self.places, kept = (np.empty(edges, np.int64) for _ in range(6))
        """Of each slice that rows make: its first and last time, its rows, its cell, and its place among the others."""
        self.states = kernels.empty(edges)
        self.slice_count = np.empty(1, np.int64)
        arrays = [np.empty(rows, np.int64), self.first, self.last, self.count, kept, *self.states, self.cell, self.places]
        self._arrays = arrays
        self.addresses = flat(arrays)
        """All arrays but ``slice_count``, as the kernel takes them."""

    def slices(self, codes: Array, count: int) -> Slices:
        """The slices that rows have made here, in memory of their own."""
        key, cell, first, last, rows = (a[:count].copy() for a in (codes, self.cell, self.first, self.last, self.count))
        return Slices(key, cell, first, last, rows, [rows.copy()], [[a[:count].copy() for a in self.states]])


@dataclass(frozen=True)
class Folded:
    """What became of a batch."""

    slices: Slices
    """The slices that were there, with spare capacity; those that rows joined have changed."""
    places: Array
    """Where the batch's slices went: the first few joined one that was there, the others stand in the spare capacity."""
    joined: int
    elsewhere: Slices | None = None
    """The batch's slices, if they cannot simply be added; nothing has changed then."""


class Fold:
    """Folds batches of a single key, and one aggregate that commutes."""

    def __init__(self, slicer: RowSlicer) -> None:
        self._slicer = slicer
        self._workspace = Workspace(slicer.kernels[0], 0, 0)

    def takes(self, inputs: list[Fields]) -> bool:
        """Whether a batch may be folded in: streams without keys and with one aggregate. With several, one that fails would leave the
        others changed."""
        slicer = self._slicer
        return not slicer.plan.by and len(inputs) == 1 and slicer.commute and inputs[0].held is None and not slicer.found_gaps

    def fold(self, old: Slices, ticks: Array, codes: Array, inputs: list[Fields], span: tuple[int, int]) -> Folded | None:
        """Fold rows into ``old``; None if that is not for these rows, and nothing has changed."""
        slicer = self._slicer
        locator = slicer.locator(span, len(ticks), 1)
        if locator is None:
            return None
        old, space = old.with_room(min(len(ticks), locator.edge_count)), self._space(len(ticks), locator.edge_count)
        room = old.room
        assert room is not None
        joined = slicer.kernels[0].put_in_place(
            *inputs[0].rows, ticks, codes, len(ticks), *locator, *space.addresses,
            room.key, room.cell, room.first, room.last, room.count, room.held[0], *room.states[0], len(old), slicer.gap, space.slice_count,
        )  # fmt: skip
        if joined == merging.WITH_GAPS:
            return None
        count = int(space.slice_count[0])
        if joined == merging.ELSEWHERE:
            return Folded(old, space.places[:0], 0, space.slices(codes, count))
        return Folded(old, space.places[:count], joined)

    def _space(self, rows: int, edges: int) -> Workspace:
        """Space to work in; a small one is kept."""
        kept = self._workspace
        if rows <= kept.rows and edges <= kept.edges:
            return kept
        kernels = self._slicer.kernels[0]
        if rows > LARGEST_WORKSPACE or edges > LARGEST_WORKSPACE:
            return Workspace(kernels, rows, edges)
        self._workspace = Workspace(kernels, max(kept.rows, 2 * rows), max(kept.edges, 2 * edges))
        return self._workspace
