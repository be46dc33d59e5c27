"""Rows that are not in slices or in sorted order yet: in runs, each in the order of time, until a horizon passes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.types import FAR_AHEAD

Array = npt.NDArray[Any]
Run = tuple[pa.Table, Array, Array, Array]
"""Rows, their ticks, their keys' numbers, and their row numbers."""


class PendingRows:
    """Runs of rows, one for each batch, in the order of their arrival."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def add(self, table: pa.Table, ticks: Array, codes: Array, ids: Array) -> None:
        """Add a batch as one more run."""
        if np.any(ticks[1:] < ticks[:-1]):
            places = np.argsort(ticks, kind="stable")
            table, ticks, codes, ids = table.take(pa.array(places)), ticks[places], codes[places], ids[places]
        self.runs.append((table, ticks, codes, ids))

    @property
    def first(self) -> int:
        """The earliest tick; ``FAR_AHEAD`` if there are no rows."""
        return min((int(ticks[0]) for _, ticks, _, _ in self.runs), default=FAR_AHEAD)

    def before(self, horizon: int) -> Run | None:
        """Remove and return the rows before ``horizon``, by arrival; rows that arrive later are later in time, unless they are late."""
        ready: list[Run] = []
        rest: list[Run] = []
        for run in self.runs:
            table, ticks, codes, ids = run
            at = len(ticks) if ticks[-1] < horizon else int(np.searchsorted(ticks, horizon))
            if at:
                ready.append((table.slice(0, at), ticks[:at], codes[:at], ids[:at]))
            if at < len(ticks):
                rest.append((table.slice(at), ticks[at:], codes[at:], ids[at:]) if at else run)
        self.runs = rest
        return _together(ready)

    def between(self, code: int, after: int, before: int) -> int:
        """How many of a key's rows lie after one time and before another."""
        return sum(int(((c == code) & (t > after) & (t < before)).sum()) for _, t, c, _ in self.runs)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(len(ticks) for _, ticks, _, _ in self.runs)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for run in self.runs for part in run)

    def codes(self) -> list[Array]:
        """The numbers of the rows' keys, run by run."""
        return [codes for _, _, codes, _ in self.runs]

    def all(self) -> Run | None:
        """All rows, without removing them; None if there are none."""
        return _together(self.runs)

    def select(self, names: list[str]) -> None:
        """Drop all columns except ``names``."""
        self.runs = [(table.select(names), ticks, codes, ids) for table, ticks, codes, ids in self.runs]

    def renumber(self, new_id_of: Array) -> None:
        """Replace key numbers by their new ones."""
        self.runs = [(table, ticks, new_id_of[codes], ids) for table, ticks, codes, ids in self.runs]


def _together(runs: list[Run]) -> Run | None:
    if not runs:
        return None
    ticks, codes, ids = (np.concatenate([run[k] for run in runs]) for k in (1, 2, 3))
    return pa.concat_tables([run[0] for run in runs]), ticks, codes, ids
