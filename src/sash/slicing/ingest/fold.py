"""Folds a batch's rows into existing slices: one call of a kernel for a batch of a stream without keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algorithms.pipe import merging
from sash.kernels.cpu.addresses import flat
from sash.slicing.ingest.row_slicer import RowSlicer
from sash.slicing.ingest.slices import Slices
from sash.slicing.partials.stored import Kernels
from sash.slicing.rows.inputs import Fields

Array = npt.NDArray[Any]

LARGEST_WORKSPACE = 1 << 16
"""A workspace for more rows or edges than this is not reused."""


class Workspace:
    """Scratch arrays of :func:`~sash.algorithms.pipe.merging.put_in_place`."""

    def __init__(self, kernels: Kernels, rows: int, edges: int) -> None:
        self.rows, self.edges = rows, edges
        self.first, self.last, self.count, self.cell, self.places, self.included, occupied = (np.empty(edges, np.int64) for _ in range(7))
        """For each slice of the batch: its first and last time, its row count, its cell, its place among the existing slices, and how many
        of its rows the aggregate includes."""
        self.states = kernels.empty(edges)
        self.slice_count = np.empty(1, np.int64)
        arrays = [
            np.empty(rows, np.int64),
            self.first,
            self.last,
            self.count,
            self.included,
            occupied,
            *self.states,
            self.cell,
            self.places,
        ]
        self._arrays = arrays
        self.addresses = flat(arrays)
        """The addresses of all arrays but ``slice_count``, as the kernel takes them."""

    def slices(self, codes: Array, count: int) -> Slices:
        """A copy of the first ``count`` slices in the workspace."""
        columns = (codes, self.cell, self.first, self.last, self.count, self.included)
        key, cell, first, last, rows, included = (a[:count].copy() for a in columns)
        return Slices(key, cell, first, last, rows, [included], [[a[:count].copy() for a in self.states]])


@dataclass(frozen=True)
class Folded:
    """The outcome of folding a batch."""

    slices: Slices
    """The existing slices, with spare capacity; those that rows were added to have changed."""
    places: Array
    """Each of the batch's slices' place: the first ``joined`` were added to existing slices, the others stand in the spare capacity."""
    joined: int
    elsewhere: Slices | None = None
    """The batch's slices, if they can neither be added to existing ones nor appended; nothing has changed then."""


class Fold:
    """Folds batches of a single key, and one aggregate that commutes."""

    def __init__(self, slicer: RowSlicer) -> None:
        self._slicer = slicer
        self._workspace = Workspace(slicer.kernels[0], 0, 0)

    def takes(self, inputs: list[Fields]) -> bool:
        """Whether a batch may be folded in: streams without keys and with one aggregate. With several, one that fails would leave the
        others changed."""
        slicer = self._slicer
        return not slicer.plan.by and len(inputs) == 1 and slicer.commute and not slicer.has_gaps

    def fold(self, old: Slices, ticks: Array, codes: Array, inputs: list[Fields], span: tuple[int, int]) -> Folded | None:
        """Fold rows into the slices ``old``; None if these rows cannot be folded, and nothing has changed."""
        slicer = self._slicer
        locator = slicer.locator(span, len(ticks), 1)
        if locator is None:
            return None
        old, space = old.with_spare_capacity(min(len(ticks), locator.edge_count)), self._workspace_for(len(ticks), locator.edge_count)
        buffer = old.buffer
        assert buffer is not None
        joined = slicer.kernels[0].put_in_place(
            *inputs[0].rows, ticks, codes, len(ticks), *locator, *space.addresses,
            buffer.key, buffer.cell, buffer.first, buffer.last, buffer.count, buffer.included_counts[0], *buffer.states[0],
            len(old), slicer.gap, space.slice_count,
        )  # fmt: skip
        if joined == merging.WITH_GAPS:
            return None
        count = int(space.slice_count[0])
        if joined == merging.ELSEWHERE:
            return Folded(old, space.places[:0], 0, space.slices(codes, count))
        return Folded(old, space.places[:count], joined)

    def _workspace_for(self, rows: int, edges: int) -> Workspace:
        """A workspace that is large enough; a small one is reused for the next batch."""
        current = self._workspace
        if rows <= current.rows and edges <= current.edges:
            return current
        kernels = self._slicer.kernels[0]
        if rows > LARGEST_WORKSPACE or edges > LARGEST_WORKSPACE:
            return Workspace(kernels, rows, edges)
        self._workspace = Workspace(kernels, max(current.rows, 2 * rows), max(current.edges, 2 * edges))
        return self._workspace
