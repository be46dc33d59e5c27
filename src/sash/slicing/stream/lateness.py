"""Late rows: which rows come too late for which queries, how many, and, if that is wanted, the rows themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.logical import Plan
from sash.slicing.bounds.handler import some_window_holds
from sash.slicing.stores.slice_store import SliceStore

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Verdicts:
    """For each store which of some rows come too late for all of its windows."""

    by_store: list[Array]
    dropped: Array
    """Which rows come too late for all windows of all queries."""
    missed: Array
    """The places of dropped rows that a window would have held: what lies between windows is never late."""


def judge(plan: Plan, stores: Sequence[SliceStore], ticks: Array, codes: Array, horizon: int) -> Verdicts:
    """Which rows, given by times and keys, come too late when windows before ``horizon`` are closed."""
    by_store = [store.late(ticks, codes, horizon) for store in stores]
    dropped = np.logical_and.reduce(by_store)
    places = np.flatnonzero(dropped)
    missed = places[some_window_holds((q.shape for q in plan.queries), ticks[places])] if len(places) else places
    return Verdicts(by_store, dropped, missed)


class LateRows:
    """Rows that came too late, retained until they are fetched."""

    def __init__(self, *, retained: bool) -> None:
        self.are_retained = retained
        self._tables: list[pa.Table] = []

    def add(self, rows: pa.Table, places: Array) -> None:
        """The rows at ``places`` came too late."""
        if self.are_retained and len(places):
            self._tables.append(rows.take(pa.array(places)))

    def peek(self, schema: pa.Schema) -> pa.Table:
        """All that are retained."""
        return pa.concat_tables(self._tables) if self._tables else schema.empty_table()

    def fetch(self, schema: pa.Schema) -> pa.Table:
        """All that came since this was last called."""
        rows = self.peek(schema)
        self._tables = []
        return rows

    def restore(self, rows: pa.Table) -> None:
        """Go on from exported rows."""
        self._tables = [rows] if rows.num_rows else []
