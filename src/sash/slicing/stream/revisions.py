"""The emitted windows that may still change: a row for each, in columns, so that many cost little and are stored as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.plan.logical import Query
from sash.slicing import validation
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import Bounds, View

Array = npt.NDArray[Any]

IDENTITY = 4
"""The key, and three numbers that identify a window across steps."""
CONTENT = 3
"""How many rows the window had, and where rows are retained, the numbers of the first and the last."""


@dataclass
class Emitted:
    """The windows of one query that were emitted and are not closed."""

    identity: Array
    content: Array
    revision: Array
    due: Array
    lives: Array
    """Whether the window existed at the last step: a retracted one may appear again."""
    shown: Array
    """How the window was emitted, for its retraction: start and end, each after whether it is known, and ranks."""

    @staticmethod
    def nothing() -> Emitted:
        """No windows."""
        none = np.empty(0, np.int64)
        return Emitted(
            np.empty((0, IDENTITY), np.int64), np.empty((0, CONTENT), np.int64), none, none, np.empty(0, bool), np.empty((0, 6), np.int64)
        )

    @staticmethod
    def of(query: Query, bounds: Bounds, due: Array, view: View, ids: Array | None) -> Emitted:
        """These windows, as if they were emitted for the first time."""
        count = len(bounds)
        counts = view.row_offsets[bounds.hi] - view.row_offsets[bounds.lo]
        content = np.zeros((count, CONTENT), np.int64)
        content[:, 0] = counts
        if ids is not None:
            full = np.flatnonzero(counts)
            content[full, 1] = ids[view.row_offsets[bounds.lo[full]]]
            content[full, 2] = ids[view.row_offsets[bounds.hi[full]] - 1]
        return Emitted(
            _identity(query, bounds), content, np.zeros(count, np.int64), due.astype(np.int64), np.ones(count, bool), _shown(bounds)
        )

    def __len__(self) -> int:
        return len(self.revision)

    def columns(self) -> list[Array]:
        """All arrays, in a fixed order."""
        return [self.identity, self.content, self.revision, self.due, self.lives, self.shown]

    def take(self, places: Array) -> Emitted:
        """The windows at ``places``."""
        return Emitted(*[c[places] for c in self.columns()])

    def updated(self, now: Emitted, *, complete: bool) -> tuple[Emitted, Array, Array, Emitted]:
        """After a step's windows ``now``, which are ``complete`` if they are all open ones: what is stored; the places of those that are
        new or have changed; the revisions of all; and the windows that no longer exist."""
        places = matches(self.identity, now.identity)
        known = np.flatnonzero(places >= 0)
        at = places[known]
        changed = np.ones(len(now), bool)
        changed[known] = ~self.lives[at] | np.any(self.content[at] != now.content[known], axis=1)
        revision = np.zeros(len(now), np.int64)
        revision[known] = self.revision[at] + changed[known]
        present = np.zeros(len(self), bool)
        present[at] = True
        gone = np.flatnonzero(~present & self.lives) if complete else np.empty(0, np.int64)
        rest = self.take(np.flatnonzero(~present))
        if len(gone):
            last = np.isin(np.flatnonzero(~present), gone)
            rest.revision = rest.revision + last
            rest.lives = rest.lives & ~last
        now = Emitted(now.identity, now.content, revision, now.due, now.lives, now.shown)
        retracted = self.take(gone)
        retracted.revision = retracted.revision + 1
        columns = [np.concatenate([a, b]) for a, b in zip(now.columns(), rest.columns(), strict=True)]
        return Emitted(*columns), np.flatnonzero(changed), revision, retracted

    def open_after(self, horizon: int) -> Emitted:
        """The windows that are not closed."""
        return self.take(np.flatnonzero(self.due > horizon))

    def without_keys(self, keys: Array) -> Emitted:
        """The windows of other keys."""
        return self.take(np.flatnonzero(~np.isin(self.identity[:, 0], keys)))

    def renumbered(self, new_id_of: Array) -> Emitted:
        """The windows, with new numbers of their keys."""
        identity = self.identity.copy()
        identity[:, 0] = new_id_of[identity[:, 0]]
        return Emitted(identity, *self.columns()[1:])

    def arrays(self) -> list[Array]:
        """All numbers, as flat columns."""
        return [column for c in self.columns() for column in (c.T if c.ndim == 2 else [c])]

    @staticmethod
    def from_arrays(columns: list[Any], keys: int) -> Emitted:
        """The windows of stored columns, with so many keys; raises if they are not valid."""
        what = "the state's windows"
        if len(columns) != IDENTITY + CONTENT + 9:
            raise validation.damaged(what, "a column is missing")
        flat = [
            c if isinstance(c, np.ndarray) else validation.numbers([int(v) if isinstance(v, bool) else v for v in c], what, most=1 << 40)
            for c in columns
        ]
        if any(c.dtype.kind not in "ib" for c in flat) or len({len(c) for c in flat}) > 1:
            raise validation.damaged(what, "its columns are of other types or lengths")
        arrays = [np.asarray(c, np.int64) for c in flat]
        if len(arrays[0]) and (int(arrays[0].min()) < 0 or int(arrays[0].max()) >= keys):
            raise validation.damaged(what, "there is one of a key that does not exist")
        a, b = IDENTITY, IDENTITY + CONTENT
        identity, content, shown = (np.stack(group, axis=1) for group in (arrays[:a], arrays[a:b], arrays[b + 3 :]))
        return Emitted(identity, content, arrays[b], arrays[b + 1], arrays[b + 2].astype(bool), shown)


def matches(old: Array, new: Array) -> Array:
    """For each new row of numbers the place of the equal row among the old ones, which are distinct; -1 if there is none."""
    if not len(old) or not len(new):
        return np.full(len(new), -1, np.int64)
    both = np.concatenate([old, new])
    order = np.lexsort(both.T[::-1])  # stable, so an old one comes before its equal
    fresh = np.append(True, np.any(both[order[1:]] != both[order[:-1]], axis=1))
    group = np.cumsum(fresh) - 1
    first = order[fresh]
    places = np.empty(len(both), np.int64)
    places[order] = first[group]
    places = places[len(old) :]
    return np.where(places < len(old), places, -1)


def _identity(query: Query, bounds: Bounds) -> Array:
    """The numbers that identify windows across steps."""
    return np.stack([bounds.keys, *handler(query.shape).identity(bounds)], axis=1).astype(np.int64)


def _shown(bounds: Bounds) -> Array:
    """Start and end, each with whether it is known, and the ranks."""
    shown = np.zeros((len(bounds), 6), np.int64)
    for k, (values, known) in enumerate(((bounds.start, bounds.start_known), (bounds.end, bounds.end_known))):
        shown[:, 2 * k] = 1 if known is None else known
        shown[:, 2 * k + 1] = values if known is None else np.where(known, values, 0)
    if bounds.rows is not None:
        shown[:, 4], shown[:, 5] = bounds.rows
    return shown


def as_bounds(gone: Emitted, *, ranked: bool) -> Bounds:
    """Windows that no longer exist, as they were emitted, with empty ranges of slices."""
    nothing = np.zeros(len(gone), np.int64)
    shown = gone.shown
    ranks = (shown[:, 4], shown[:, 5]) if ranked else None
    return Bounds(gone.identity[:, 0], nothing, nothing, shown[:, 1], shown[:, 3], shown[:, 0] > 0, shown[:, 2] > 0, ranks)
