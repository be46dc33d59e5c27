"""The difference between slices of rows and those of the last step: which are the same, which changed, and which have to be computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.view import runs

Array = npt.NDArray[Any]


class Change:
    """How slices differ from the old ones; both are ranges of places among the current rows."""

    def __init__(self, start: Array, stop: Array, old_start: Array, old_stop: Array, fresh: Array) -> None:
        self.start, self.stop, self.fresh = start, stop, fresh
        self.old = np.zeros(len(start), np.int64)
        """For each slice the old one that it is compared with."""
        known = np.zeros(len(start), bool)
        self.low, self.high, self.old_start, self.old_stop = start, start, start, start
        if len(old_start):
            at_start = np.searchsorted(old_start, start, side="right") - 1
            in_middle = np.searchsorted(old_start, (start + stop) // 2, side="right") - 1
            self.old = np.maximum(np.where(old_start[at_start] == start, at_start, in_middle), 0)
            self.old_start, self.old_stop = old_start[self.old], old_stop[self.old]
            known = (self.old_start < stop) & (self.old_stop > start)
            self.low, self.high = np.maximum(start, self.old_start), np.minimum(stop, self.old_stop)
        between = self._fresh_in(self.low, self.high)
        inserted = (self.low - start) + (stop - self.high) + between
        removed = self._old_in(self.old_start, self.low) + self._old_in(self.high, self.old_stop)
        few = known & (2 * (inserted + removed) < stop - start)
        self.same = np.flatnonzero(known & (inserted + removed == 0))
        """The slices whose rows have not changed."""
        grown = known & (removed == 0) & (self.low == start) & (between == 0)
        self.appended = np.flatnonzero(few & grown & (inserted > 0))
        """The slices to which rows were appended, and few of them."""
        self.mixed = np.flatnonzero(few & ~grown)
        """The slices of which few rows were inserted or removed, anywhere."""
        self.new = np.flatnonzero(~few & (~known | (inserted + removed > 0)))
        """The slices to compute from all of their rows."""
        self._read_before = np.where(known & ~grown, np.maximum(0, stop - start - inserted), 0)

    def read_again(self, slices: Array) -> int:
        """How many rows of these slices were in their old ones already, for computing them anew; slices that only grow are left out."""
        return int(self._read_before[slices].sum())

    def _fresh_in(self, start: Array, stop: Array) -> Array:
        counts: Array = np.searchsorted(self.fresh, stop) - np.searchsorted(self.fresh, start)
        return counts

    def _old_in(self, start: Array, stop: Array) -> Array:
        return stop - start - self._fresh_in(start, stop)

    def rows(self, slices: Array) -> tuple[Array, Array]:
        """The places of all rows of these slices, and the slice that each is in."""
        return runs(self.start[slices], self.stop[slices])

    def inserted(self, slices: Array) -> tuple[Array, Array]:
        """The places of the rows that were inserted into these slices, and the slice that each is in."""
        first, last = np.searchsorted(self.fresh, self.low[slices]), np.searchsorted(self.fresh, self.high[slices])
        fresh, owner = runs(first, last)
        parts = [runs(self.start[slices], self.low[slices]), (self.fresh[fresh], owner), runs(self.high[slices], self.stop[slices])]
        return _by_owner(parts)

    def removed(self, slices: Array) -> tuple[Array, Array]:
        """The places of the rows that were removed from these slices, and the slice that each was in."""
        places, owner = _by_owner([runs(self.old_start[slices], self.low[slices]), runs(self.high[slices], self.old_stop[slices])])
        is_fresh = self.fresh[np.minimum(np.searchsorted(self.fresh, places), len(self.fresh) - 1)] == places if len(self.fresh) else None
        return (places, owner) if is_fresh is None else (places[~is_fresh], owner[~is_fresh])


def _by_owner(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    places, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((places, owner))
    return places[order], owner[order]
