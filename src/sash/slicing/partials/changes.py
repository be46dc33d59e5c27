"""How slices of rows come from those that were there: which stay, to which rows came, and which have to be computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.view import runs

Array = npt.NDArray[Any]


class Change:
    """How slices come from those that were there; both as places among the rows of now."""

    def __init__(self, start: Array, stop: Array, old_start: Array, old_stop: Array, fresh: Array) -> None:
        self.start, self.stop, self.fresh = start, stop, fresh
        self.old = np.zeros(len(start), np.int64)
        """For each slice the one that it is compared with."""
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
        came = (self.low - start) + (stop - self.high) + between
        went = self._old_in(self.old_start, self.low) + self._old_in(self.high, self.old_stop)
        few = known & (2 * (came + went) < stop - start)
        self.same = np.flatnonzero(known & (came + went == 0))
        """The slices that have the rows they had."""
        grown = known & (went == 0) & (self.low == start) & (between == 0)
        self.appended = np.flatnonzero(few & grown & (came > 0))
        """Those to which rows came, all after the ones that they had."""
        self.mixed = np.flatnonzero(few & ~grown)
        """Those to and from which rows came and went, anywhere."""
        self.new = np.flatnonzero(~few & (~known | (came + went > 0)))
        """Those to compute."""
        self._read_before = np.where(known & ~grown, np.maximum(0, stop - start - came), 0)

    def read_again(self, slices: Array) -> int:
        """How many rows of slices that are computed were computed with before, besides those of slices that only grow."""
        return int(self._read_before[slices].sum())

    def _fresh_in(self, start: Array, stop: Array) -> Array:
        found: Array = np.searchsorted(self.fresh, stop) - np.searchsorted(self.fresh, start)
        return found

    def _old_in(self, start: Array, stop: Array) -> Array:
        return stop - start - self._fresh_in(start, stop)

    def rows(self, slices: Array) -> tuple[Array, Array]:
        """All rows of some slices."""
        return runs(self.start[slices], self.stop[slices])

    def came(self, slices: Array) -> tuple[Array, Array]:
        """The rows that came to some slices."""
        first, last = np.searchsorted(self.fresh, self.low[slices]), np.searchsorted(self.fresh, self.high[slices])
        fresh, owner = runs(first, last)
        parts = [runs(self.start[slices], self.low[slices]), (self.fresh[fresh], owner), runs(self.high[slices], self.stop[slices])]
        return _by_owner(parts)

    def went(self, slices: Array) -> tuple[Array, Array]:
        """The rows that went from some slices."""
        places, owner = _by_owner([runs(self.old_start[slices], self.low[slices]), runs(self.high[slices], self.old_stop[slices])])
        is_fresh = self.fresh[np.minimum(np.searchsorted(self.fresh, places), len(self.fresh) - 1)] == places if len(self.fresh) else None
        return (places, owner) if is_fresh is None else (places[~is_fresh], owner[~is_fresh])


def _by_owner(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    places, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((places, owner))
    return places[order], owner[order]
