"""Row windows: over the numbers of a key's rows, counted from 0 in the order of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.slicing.bounds.handler import Handler
from sash.slicing.bounds.view import Bounds, RetainedRows, SortedRows, View, runs
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.shapes import Ranks

Array = npt.NDArray[Any]

MOST_WINDOWS = 1 << 40
"""No key has had more windows than this."""


class OfRanks(Handler[Ranks], shape=Ranks):
    """Row windows; a key's mark is how many of its windows are closed."""

    first_mark = 0
    counts_on = True
    ends_in_the_past = True
    only_shifts = True

    def cuts(self, shape: Ranks, rows: SortedRows) -> Array:
        starts = self._ranked(rows, shape.every, 0)
        return starts if shape.size % shape.every == 0 else np.concatenate([starts, self._ranked(rows, shape.every, shape.size)])

    @staticmethod
    def _ranked(rows: SortedRows, every: int, offset: int) -> Array:
        """The places of ranks at equal distances, from ``offset`` on."""
        gone = 0 if rows.bases is None else rows.bases
        first = np.maximum(offset, offset + -(-(gone - offset) // every) * every) - gone  # among the retained rows
        places, _ = runs(rows.key_offsets[:-1] + first, rows.key_offsets[1:], every)
        return places

    def bounds(self, shape: Ranks, view: View, empty: bool, after: int = FAR_BACK, until: int = FAR_AHEAD) -> Bounds:
        gone = view.gone if view.rows is None else view.rows.bases
        gone = np.zeros(view.keys, np.int64) if gone is None else gone
        base = view.row_offsets[view.key_offsets[:-1]] - gone
        totals = np.diff(view.row_offsets[view.key_offsets]) + gone
        skipped = np.maximum(0, -(-gone // shape.every))  # windows whose first rows were dropped
        windows = -(-totals // shape.every) if shape.partial else (totals - shape.size) // shape.every + 1
        number, keys = runs(skipped, windows)
        from_rank = number * shape.every
        to_rank = np.minimum(from_rank + shape.size, totals[keys])
        lo = np.searchsorted(view.row_offsets, base[keys] + from_rank)
        hi = np.searchsorted(view.row_offsets, base[keys] + to_rank)
        start, end = (view.first[lo], view.last[hi - 1]) if view.count else (lo, hi)
        return Bounds(keys, lo, hi, start, end, rows=(from_rank, to_rank))

    def due(self, shape: Ranks, bounds: Bounds) -> Array:
        if bounds.rows is None:
            return bounds.end
        complete = bounds.rows[1] - bounds.rows[0] == shape.size
        return np.where(complete, bounds.end + 1, FAR_AHEAD)

    def is_complete(self, shape: Ranks, due: Array) -> Array | None:
        return None if shape.partial else due < FAR_AHEAD

    def identity(self, bounds: Bounds) -> tuple[Array, Array, Array]:
        nothing = np.zeros(len(bounds), np.int64)
        return nothing if bounds.rows is None else bounds.rows[0], nothing, nothing

    def mark(self, shape: Ranks, bounds: Bounds, due: Array) -> Array:
        return due if bounds.rows is None else bounds.rows[0] // shape.every + 1

    def mark_problem(self, shape: Ranks, marks: Array, first: Array, after: Array) -> str | None:
        if (marks < 0).any() or (marks > MOST_WINDOWS).any():
            return "its row windows cannot be so many"
        reached = marks * shape.every
        if (first > reached).any() or (reached > after + shape.every).any():
            return "its row windows are not those of its rows"
        return None

    def may_end(self, shape: Ranks, marks: Array, counts: Array, after: int, until: int) -> bool:
        return bool(np.any(counts >= marks * shape.every + shape.size))

    def late(self, shape: Ranks, retained: RetainedRows, marks: Array, ticks: Array, codes: Array, horizon: int) -> Array:
        late = np.zeros(len(ticks), bool)
        for i in np.flatnonzero(ticks < horizon).tolist():
            code, tick = int(codes[i]), int(ticks[i])
            before = retained.between(code, FAR_BACK, tick + 1) + retained.bases[code]
            late[i] = tick < retained.gone_until[code] or before // shape.every < marks[i]
        return late

    def first_needed(self, shape: Ranks, retained: RetainedRows, marks: Array, horizon: int) -> Array:
        first: Array = retained.rows.key_offsets[:-1] + np.maximum(0, marks * shape.every - retained.bases[: len(marks)])
        return first

    def needs_slice(self, shape: Ranks, rank: Array, count: Array, first: Array, marks: Array) -> Array:
        needed: Array = rank + count > marks * shape.every
        return needed

    def starts_at(self, shape: Ranks, rank: Array, marks: Array) -> Array:
        number, beyond = np.divmod(rank - shape.size, shape.every)
        starts: Array = (rank % shape.every == 0) | ((beyond == 0) & (number >= marks))
        return starts
