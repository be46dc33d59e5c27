"""The slice manager: adds new slices to existing ones, updating or merging them (section 5.2 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algorithms.pipe import kernel, merging
from sash.slicing.bounds.gaps import sessions
from sash.slicing.ingest.row_slicer import RowSlicer
from sash.slicing.ingest.slices import Slices
from sash.slicing.partials.tree import SliceTree
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]


class SliceManager:
    """Adds slices to others, and updates the trees above them, if there are any."""

    def __init__(self, slicer: RowSlicer, trees: list[SliceTree] | None) -> None:
        self._slicer = slicer
        self.trees = trees
        self.is_tree_stale = True
        """Whether slices were added, removed or merged since the trees were built."""
        self.merges = 0

    def merged(self, old: Slices, new: Slices) -> Callable[[], Slices]:
        """A function that returns a chunk's slices with new ones added; nothing changes before it is called."""
        updated = self._updated(old, new) if len(old) else None
        if updated is not None:
            return updated
        combined = self._with_others(old, new)
        return lambda: combined

    def _with_others(self, old: Slices, new: Slices) -> Slices:
        """A chunk's slices with new ones added, in arrays of their own."""
        self.is_tree_stale = True
        if not len(old):
            return new
        # With a single key, the slices before the new ones stay as they are.
        unchanged = 0
        if old.key[0] == old.key[-1] and new.key[0] == new.key[-1] == old.key[0]:
            unchanged = max(0, int(np.searchsorted(old.first, new.first.min())) - 1)
        columns = [np.concatenate([a[unchanged:], b]) for a, b in zip(old.columns(), new.columns(), strict=True)]
        combined = self.coalesced(old.rebuilt(columns), len(old) - unchanged)
        if unchanged:
            combined = old.rebuilt([np.concatenate([a[:unchanged], b]) for a, b in zip(old.columns(), combined.columns(), strict=True)])
        return combined

    def _updated(self, old: Slices, new: Slices) -> Callable[[], Slices] | None:
        """A function that adds to existing slices in place and appends newer ones: the usual case for small batches of a single key."""
        if not old.key[0] == old.key[-1] == new.key[0] == new.key[-1]:
            return None
        slicer = self._slicer
        old = old.with_spare_capacity(len(new))
        buffer, count, places = old.buffer, len(new), np.empty(len(new), np.int64)
        assert buffer is not None
        joined = kernel(merging.find_slices)(
            buffer.cell, buffer.first, buffer.last, len(old), new.cell, new.first, new.last, count, slicer.gap, int(slicer.commute), places,
        )  # fmt: skip
        if joined == merging.ELSEWHERE:
            return None
        for one, states, more in zip(slicer.kernels, buffer.states, new.states, strict=True):
            one.join_slices(*states, *more, joined, places)

        def write() -> Slices:
            kernel(merging.place_slices)(
                buffer.key, buffer.cell, buffer.first, buffer.last, buffer.count,
                new.cell, new.first, new.last, new.count, count, joined, places,
            )  # fmt: skip
            columns = zip(slicer.kernels, buffer.states, buffer.included_counts, new.states, new.included_counts, strict=True)
            for one, states, included, more, more_included in columns:
                one.write_slices(*states, included, *more, more_included, joined, count, places)
            return self.written(old, places, joined, count)

        return write

    def written(self, old: Slices, places: Array, joined: int, count: int) -> Slices:
        """A chunk after ``count`` slices were written to ``places`` in it: the first ``joined`` were added to existing slices, the others
        stand in the spare capacity."""
        if joined < count:
            self.is_tree_stale = True
            assert old.buffer is not None
            return old.buffer.beginning(len(old) + count - joined)
        if self.trees is not None and not self.is_tree_stale:
            for tree, states in zip(self.trees, old.states, strict=True):
                tree.update(states, places)
        return old

    def coalesced(self, slices: Slices, old: int = 0) -> Slices:
        """Slices in order, with those of one key that no edge or gap separates joined to one; the first ``old`` existed before."""
        slices, merges = self._slicer.coalesced(slices, old)
        self.merges += merges
        return slices

    def trees_over(self, slices: Slices) -> list[SliceTree | None]:
        """For each aggregate the tree over all slices, brought up to date; None where there are no trees."""
        if self.trees is None:
            return [None] * len(slices.states)
        if self.is_tree_stale:
            for tree, states in zip(self.trees, slices.states, strict=True):
                tree.rebuild(states)
            self.is_tree_stale = False
        return list(self.trees)


class SessionEnds:
    """For each session gap a time before which no open session has its last row: most steps need not look at sessions at all."""

    def __init__(self) -> None:
        self._earliest: dict[int, int] = {}

    def note_slices(self, oldest: int) -> None:
        """Take note of new slices: a session may now end with the oldest of them."""
        if self._earliest:
            self._earliest = {gap: min(end, oldest) for gap, end in self._earliest.items()}

    def next_due(self, gap: int) -> int:
        """A horizon before which no session becomes final, unless slices are added."""
        return self._earliest.get(gap, FAR_BACK) + gap + 1

    def any_between(self, gap: int, after: int, until: int, all_slices: Callable[[], Slices]) -> bool:
        """Whether a session became final between two horizons."""
        if self.next_due(gap) > until:
            return False
        s = all_slices()
        ends = s.last[sessions(gap, s.key, s.first, s.last)[1] - 1]
        ends = ends[ends + gap >= after]
        self._earliest[gap] = int(ends.min(initial=FAR_AHEAD))
        return self._earliest[gap] + gap < until
