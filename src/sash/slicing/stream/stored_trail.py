"""Trailing windows behind a state store: rows are stored until the watermark has passed them, and longer while later rows need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing import validation
from sash.slicing.persistence.manifests import read_manifest, write_manifest
from sash.slicing.persistence.transactions import Storage, StoredRows, Transaction
from sash.slicing.stream.stored_engine import StepMetrics
from sash.slicing.stream.trail import EMITTED, Trail
from sash.types import FAR_BACK

NUMBER = "@sash:number"


class StoredTrail:
    """Trailing windows whose rows are in a storage: one step, and then :meth:`commit`."""

    def __init__(self, plan: Plan, storage: Storage, described: dict[str, Any]) -> None:
        self.plan = plan
        self._transaction = Transaction(storage)
        self._described = described
        self._manifest = read_manifest(self._transaction, described)
        manifest = self._manifest or {"watermark": FAR_BACK, "next": 0, "rows": (), "notes": {}}
        with validation.reading("the state"):
            self.watermark: int = validation.tick(manifest["watermark"], "the state's manifest")
            self.notes: dict[str, Any] = dict(manifest["notes"])
            self._next: int = validation.whole(manifest["next"], "the state's manifest")
            self._rows = StoredRows(self._transaction, "rows:", NUMBER, manifest["rows"])
        self._counts = [0, 0]

    def step(self, watermark: int, tables: Iterable[pa.Table]) -> pa.Table | None:
        """Add rows, apply a watermark, and return the rows before it with their windows. Rows before the previous watermark are late."""
        plan, previous = self.plan, self.watermark
        carried = self._rows.read()
        if carried is not None:
            validation.column(carried, NUMBER, "the state's rows", low=0, high=self._next)
            rows = validation.like(carried.drop_columns([NUMBER]), plan.schema, "the state's rows")  # perhaps in another order
            carried = rows.append_column(NUMBER, carried.column(NUMBER))
            ticks = plan.measure.column(arrow_column(carried.column(plan.time)))
            carried = carried.append_column(EMITTED, pa.array(ticks < previous))
        new = pa.concat_tables(tables).combine_chunks() if tables else None
        if new is not None:
            time = arrow_column(new.column(plan.time))
            late = time.is_valid().to_numpy(zero_copy_only=False) & (plan.measure.column(time) < previous)
            self._counts = [len(late) - time.null_count, int(late.sum())]
            new = new.filter(pa.array(~late)).append_column(NUMBER, pa.array(self._next + np.arange(int((~late).sum()))))
            self._next += new.num_rows
        self.watermark = max(previous, watermark)
        trail = Trail(plan, carried=carried)
        empty = pa.table({}) if new is None else new
        result = trail.after(empty, self.watermark if self.watermark > FAR_BACK else None)
        self._carried = None if trail.carried is None else trail.carried.drop_columns([EMITTED])
        return result

    def next_end(self, oldest: int) -> int | None:
        """The end of the first window that is open: here rows are emitted, not windows."""
        return None

    def commit(self) -> StepMetrics:
        """Write what has changed."""
        if self._carried is not None:
            self._rows.write(self._carried)
        manifest = {"watermark": self.watermark, "next": self._next, "rows": self._rows.manifest(), "notes": self.notes}
        write_manifest(self._transaction, self._described, manifest, new=self._manifest is None)
        carried = 0 if self._carried is None else self._carried.num_rows
        reached = self.watermark if self.watermark > FAR_BACK else None
        rows, late = self._counts
        return StepMetrics(
            rows, late, 0, carried, self._keys(), self._transaction.bytes_read, self._transaction.bytes_written, reached=reached
        )

    def _keys(self) -> int:
        """How many keys have stored rows."""
        if self._carried is None or not self._carried.num_rows:
            return 0
        return int(self._carried.group_by(list(self.plan.by)).aggregate([]).num_rows) if self.plan.by else 1
