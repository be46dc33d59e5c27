"""The rows of a stream that windows still to end can have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.queries.relations import Windowed
from sash.slicing import validation
from sash.slicing.persistence.transactions import StoredRows, Transaction
from sash.types import FAR_BACK, Measure

Array = npt.NDArray[Any]
NUMBER = "@sash:number"


@dataclass(frozen=True)
class Reach:
    """Up to which edge a row is needed: the last edge of a window that has it, or the one after, at which it leaves."""

    reach: int
    slide: int = 0
    phase: int = 0
    leaves: bool = False

    @staticmethod
    def of(source: Windowed, *, leaves: bool) -> Reach:
        """The reach of a source's rows; ``leaves`` if the edge at which a row is gone matters, too."""
        windowing = source.windowing
        if windowing.kind == "instants":
            assert windowing.reach is not None
            return Reach(windowing.reach, leaves=leaves)
        assert windowing.window is not None
        periodic = windowing.window.bind(Measure(source.origin.measure_type)).as_periodic
        assert periodic is not None
        return Reach(periodic.size, periodic.every, (periodic.offset + periodic.size) % periodic.every, leaves)

    def last_edges(self, ticks: Array) -> Array:
        """For rows at these times the last edge at which they matter."""
        if not self.slide:
            # The next instant is not known: a row leaves at some edge after its reach, and is retained until that has come.
            return ticks + self.reach
        last: Array = (ticks + self.reach - self.phase) // self.slide * self.slide + self.phase
        return last + self.slide if self.leaves else last

    def next_edge(self, after: int) -> int:
        """The first edge after a time, at which a window with a row of that time may end."""
        return after + 1 if not self.slide else after + self.slide - (after - self.phase) % self.slide


class RetainedRows:
    """A stream's rows in a transaction: those of the last step, and those that this one adds."""

    def __init__(
        self, transaction: Transaction, name: str, schema: pa.Schema, time: str, reaches: Iterable[Reach], manifest: dict[str, Any] | None
    ) -> None:
        """``manifest`` is what :meth:`commit` returned, None before the first step."""
        self.schema, self.time = schema, time
        self._reaches = tuple(reaches)
        self._measure = Measure(schema.field(time).type)
        manifest = manifest or {"next": 0, "rows": ()}
        self._next = validation.whole(manifest["next"], "the state's manifest")
        self._stored = StoredRows(transaction, f"{name}:", NUMBER, manifest["rows"])
        self._rows: pa.Table | None = None
        self.late = 0

    def add(self, new: pa.Table, after: int) -> None:
        """Add rows; those that only windows up to the edge ``after`` could have are late, and dropped."""
        if self._rows is None:
            self._rows = self._read()
        new = new.select(self.schema.names)
        ticks = self._ticks(new)
        is_late = ~self._needed(ticks, after)
        if is_late.any():
            self.late += int(is_late.sum())
            new = new.filter(pa.array(~is_late))
        numbers = pa.array(self._next + np.arange(new.num_rows))
        self._next += new.num_rows
        self._rows = pa.concat_tables([self._rows, new.append_column(NUMBER, numbers)])

    def rows(self) -> pa.Table:
        """All rows, in the order in which they came."""
        if self._rows is None:
            self._rows = self._read()
        return self._rows.drop_columns([NUMBER])

    def commit(self, upto: int) -> dict[str, Any]:
        """Forget the rows that no window ending after ``upto`` can have, and write what has changed; returns the manifest's entry."""
        rows = self._rows
        if rows is not None:
            self._rows = rows = rows.filter(pa.array(self._needed(self._ticks(rows), upto)))
            self._stored.write(rows)
        return {"next": self._next, "rows": self._stored.manifest()}

    @property
    def count(self) -> int:
        """How many rows are retained."""
        return 0 if self._rows is None else self._rows.num_rows

    def _read(self) -> pa.Table:
        stored = self._stored.read()
        if stored is None:
            return pa.schema([*self.schema, pa.field(NUMBER, pa.int64())]).empty_table()
        what = "the state's rows"
        validation.column(stored, NUMBER, what, low=0, high=self._next)
        rows = validation.like(stored.drop_columns([NUMBER]), self.schema, what)
        rows = rows.append_column(NUMBER, stored.column(NUMBER))
        return rows.take(pa.array(np.argsort(rows.column(NUMBER).to_numpy(), kind="stable")))

    def _ticks(self, rows: pa.Table) -> Array:
        return np.asarray(self._measure.column(arrow_column(rows.column(self.time))))

    def _needed(self, ticks: Array, after: int) -> Array:
        """For each row whether a window that ends after ``after`` can have it."""
        if after <= FAR_BACK:
            return np.ones(len(ticks), bool)
        needed = np.zeros(len(ticks), bool)
        for reach in self._reaches:
            needed |= reach.last_edges(ticks) > after
        return needed
