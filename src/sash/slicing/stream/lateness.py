"""Late rows: which rows are too late for which queries, and, if they are wanted, the rows themselves."""

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
    """Which rows are too late, by store and for all windows."""

    by_store: list[Array]
    """For each store and row whether the row is too late for all of the store's windows."""
    dropped: Array
    """For each row whether it is too late for all windows of all queries."""
    missed: Array
    """The places of dropped rows that a window would have contained: rows between windows are never late."""


def judge(plan: Plan, stores: Sequence[SliceStore], ticks: Array, codes: Array, horizon: int) -> Verdicts:
    """The verdicts on rows, by time and key, when windows before ``horizon`` are closed."""
    by_store = [store.late(ticks, codes, horizon) for store in stores]
    dropped = np.logical_and.reduce(by_store)
    places = np.flatnonzero(dropped)
    missed = places[some_window_holds((q.shape for q in plan.queries), ticks[places])] if len(places) else places
    return Verdicts(by_store, dropped, missed)


class LateRows:
    """Late rows, retained until they are fetched."""

    def __init__(self, *, retained: bool) -> None:
        self.are_retained = retained
        self._tables: list[pa.Table] = []

    def add(self, rows: pa.Table, places: Array) -> None:
        """Retain the rows at ``places``, which are too late."""
        if self.are_retained and len(places):
            self._tables.append(rows.take(pa.array(places)))

    def peek(self, schema: pa.Schema) -> pa.Table:
        """All retained rows."""
        return pa.concat_tables(self._tables) if self._tables else schema.empty_table()

    def fetch(self, schema: pa.Schema) -> pa.Table:
        """All retained rows, which are then dropped."""
        rows = self.peek(schema)
        self._tables = []
        return rows

    def restore(self, rows: pa.Table) -> None:
        """Continue with exported rows."""
        self._tables = [rows] if rows.num_rows else []
