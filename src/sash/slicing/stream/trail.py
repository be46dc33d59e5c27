"""Trailing windows of rows that arrive in batches: a row is emitted once a horizon has passed it, and retained while later rows need it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing.batch.over import over_table
from sash.slicing.batch.time_blocks import BLOCK, numbers, over_blocks
from sash.slicing.rows.keys import encode
from sash.slicing.rows.order import sorted_order

Array = npt.NDArray[Any]

EMITTED, DUE = "@sash:given", "@sash:due"


def over_rows(plan: Plan, table: pa.Table, block: int | None) -> pa.Table:
    """The rows with their trailing windows."""
    return over_table(plan, table) if block is None else over_blocks(plan, table, block)


class Trail:
    """Rows that are carried on, with whether they were emitted."""

    def __init__(self, plan: Plan, block: int | None = None, carried: pa.Table | None = None) -> None:
        self.plan, self.block = plan, block
        self.carried = carried

    def after(self, table: pa.Table, reached: int | None, *, ends: bool = False) -> pa.Table | None:
        """Add rows, and return those that can be emitted when no more rows before ``reached`` are expected; None if there are none."""
        plan = self.plan
        if table.num_rows:
            table = table.append_column(EMITTED, pa.array(np.zeros(table.num_rows, bool)))
        if self.carried is not None:
            table = pa.concat_tables([self.carried, table]) if table.num_rows else self.carried
        if EMITTED not in table.column_names:
            return None
        time = arrow_column(table.column(plan.time))
        known = time.is_valid().to_numpy(zero_copy_only=False)
        ticks = plan.measure.column(time)
        final = np.ones(table.num_rows, bool) if ends else ~known | (ticks < reached if reached is not None else False)
        due = final & ~numbers(table.column(EMITTED))
        emitted = None
        if due.any():
            marked = table.append_column(DUE, pa.array(due))
            result = over_rows(replace(plan, schema=marked.schema), marked, self.block)
            emitted = result.filter(result.column(DUE))
        if not ends:
            needed = known & (~final | self._needed_later(table, ticks, final & known, reached))
            rows = table.filter(pa.array(needed))
            flags = pa.array((final | numbers(table.column(EMITTED)))[needed])
            self.carried = rows.set_column(rows.column_names.index(EMITTED), EMITTED, flags)
        return emitted

    def _needed_later(self, table: pa.Table, ticks: Array, final: Array, reached: int | None) -> Array:
        """For each row whether it is final and may be in a later row's windows."""
        needed = np.zeros(len(ticks), bool)
        if reached is None:
            return final
        longest = max((back for q in self.plan.queries if (back := q.shape.time_carried) is not None), default=None)
        if longest is not None:
            needed |= ticks >= reached - longest
        count = max((q.shape.rows_carried for q in self.plan.queries), default=0)
        if count:
            at = np.flatnonzero(final)
            by = (*self.plan.by, *([BLOCK] if self.block is not None else []))
            old = table.take(pa.array(at))
            keys = encode(old, by)
            places = sorted_order(keys.codes, keys.count, ticks[at], [arrow_column(old.column(n)) for n in self.plan.order_by])
            places = np.arange(len(at)) if places is None else places
            ends = np.cumsum(np.bincount(keys.codes, minlength=keys.count))[keys.codes[places]]
            needed[at[places[ends - np.arange(len(at)) <= count]]] = True
        return needed & final
