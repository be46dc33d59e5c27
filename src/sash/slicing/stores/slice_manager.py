"""The slice manager: new slices among those that are there, updated or merged (section 5.2 of the paper)."""

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
    """Puts slices among others; with trees above the slices, these follow."""

    def __init__(self, slicer: RowSlicer, trees: list[SliceTree] | None) -> None:
        self._slicer = slicer
        self.trees = trees
        self.is_tree_stale = True
        """Whether slices came, went or merged since the trees were made."""
        self.merges = 0

    def merged(self, old: Slices, new: Slices) -> Callable[[], Slices]:
        """The call that returns a chunk's slices with new ones; nothing changes before it."""
        updated = self._updated(old, new) if len(old) else None
        if updated is not None:
            return updated
        together = self._with_others(old, new)
        return lambda: together

    def _with_others(self, old: Slices, new: Slices) -> Slices:
        """A chunk's slices with new ones, in memory of their own."""
        self.is_tree_stale = True
        if not len(old):
            return new
        # Of a single key, what comes before the new slices stays as it is.
        unchanged = 0
        if old.key[0] == old.key[-1] and new.key[0] == new.key[-1] == old.key[0]:
            unchanged = max(0, int(np.searchsorted(old.first, new.first.min())) - 1)
        columns = [np.concatenate([a[unchanged:], b]) for a, b in zip(old.columns(), new.columns(), strict=True)]
        together = self.coalesced(old.rebuilt(columns), len(old) - unchanged)
        if unchanged:
            together = old.rebuilt([np.concatenate([a[:unchanged], b]) for a, b in zip(old.columns(), together.columns(), strict=True)])
        return together

    def _updated(self, old: Slices, new: Slices) -> Callable[[], Slices] | None:
        """Add to slices that are there, and put newer ones behind them: the rule for small batches of a single key."""
        if not old.key[0] == old.key[-1] == new.key[0] == new.key[-1]:
            return None
        slicer = self._slicer
        old = old.with_room(len(new))
        room, count, places = old.room, len(new), np.empty(len(new), np.int64)
        assert room is not None
        joined = kernel(merging.find_slices)(
            room.cell, room.first, room.last, len(old), new.cell, new.first, new.last, count, slicer.gap, int(slicer.commute), places,
        )  # fmt: skip
        if joined == merging.ELSEWHERE:
            return None
        for one, states, more in zip(slicer.kernels, room.states, new.states, strict=True):
            one.join_slices(*states, *more, joined, places)

        def write() -> Slices:
            kernel(merging.place_slices)(
                room.key, room.cell, room.first, room.last, room.count, new.cell, new.first, new.last, new.count, count, joined, places,
            )  # fmt: skip
            for one, states, held, more, more_held in zip(slicer.kernels, room.states, room.held, new.states, new.held, strict=True):
                one.write_slices(*states, held, *more, more_held, joined, count, places)
            return self.written(old, places, joined, count)

        return write

    def written(self, old: Slices, places: Array, joined: int, count: int) -> Slices:
        """A chunk into whose spare capacity ``count`` slices have just been written at ``places``: the first ``joined`` ones to slices that
        were there."""
        if joined < count:
            self.is_tree_stale = True
            assert old.room is not None
            return old.room.beginning(len(old) + count - joined)
        if self.trees is not None and not self.is_tree_stale:
            for tree, states in zip(self.trees, old.states, strict=True):
                tree.update(states, places)
        return old

    def coalesced(self, slices: Slices, old: int = 0) -> Slices:
        """Slices in order, those of one key with nothing between them as one; the first ``old`` were there before."""
        made, merges = self._slicer.coalesced(slices, old)
        self.merges += merges
        return made

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

    def slices_came(self, oldest: int) -> None:
        """A session may now end with the oldest new slice, but none ends earlier than it did."""
        if self._earliest:
            self._earliest = {gap: min(end, oldest) for gap, end in self._earliest.items()}

    def next_due(self, gap: int) -> int:
        """A horizon before which no session becomes final, unless slices come."""
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
