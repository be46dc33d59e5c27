"""Sorted rows, cut into slices at the edges of all queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.plan.logical import Plan
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import SortedRows, View
from sash.slicing.ingest.slices import Slices
from sash.slicing.partials.column_partials import Partials
from sash.slicing.partials.kinds_of_partials import partials_of
from sash.slicing.partials.stored import Kernels
from sash.slicing.rows import order
from sash.slicing.rows.inputs import Fields
from sash.slicing.rows.timed import TimedRows

Array = npt.NDArray[Any]


def sort_and_cut(plan: Plan, rows: TimedRows) -> tuple[View, list[Partials]]:
    """Sort rows and cut them: the slices, and each aggregate's partials over them."""
    table, ordered = in_order(plan, rows)
    view = cut(plan, ordered)
    return view, gather(plan, table, view.row_offsets)


def cut(plan: Plan, rows: SortedRows, more: Array | None = None) -> View:
    """Slices of sorted rows: one starts at each key's first row, wherever a query's handler cuts, and at the places in ``more``."""
    starts = np.zeros(rows.count + 1, bool)
    starts[rows.key_offsets] = True
    for query in plan.queries:
        starts[handler(query.shape).cuts(query.shape, rows)] = True
    if more is not None:
        starts[more] = True
    row_offsets = np.append(np.flatnonzero(starts[:-1]), rows.count).astype(np.int64)
    first, last = rows.ticks[row_offsets[:-1]], rows.ticks[row_offsets[1:] - 1]
    key_offsets = np.searchsorted(row_offsets[:-1], rows.key_offsets).astype(np.int64)
    return View(key_offsets, first, first, last, np.diff(row_offsets), rows)


def gather(plan: Plan, table: pa.Table, row_offsets: Array) -> list[Partials]:
    """Each aggregate's partials over slices of sorted rows."""
    partials = [partials_of(c, table, plan.device) for c in plan.columns]
    for p in partials:
        p.gather(row_offsets)
    return partials


def in_order(plan: Plan, rows: TimedRows) -> tuple[pa.Table, SortedRows]:
    """The rows by key, then time, then ``order_by``, then arrival."""
    table, ticks, codes = rows.table, rows.ticks, rows.keys.codes
    if len(ticks):
        ties = [arrow_column(table.column(name)) for name in plan.order_by]
        places = order.sorted_order(codes, rows.keys.count, ticks, ties)
        if places is not None:
            ticks, codes = ticks[places], codes[places]
            table = table.take(pa.array(places))
    key_offsets = np.searchsorted(codes, np.arange(rows.keys.count + 1)).astype(np.int64)
    return table, SortedRows(np.ascontiguousarray(ticks), key_offsets, table)


def gather_runs(kernels: list[Kernels], inputs: list[Fields], offsets: Array) -> tuple[list[Array], list[list[Array]]]:
    """Runs of neighbouring rows as one slice each: for each aggregate how many rows of each it includes, and its partials."""
    included_counts, states = [], []
    for one, f in zip(kernels, inputs, strict=True):
        group = one.empty(len(offsets) - 1)
        one.gather(*f.rows, offsets, 0, len(offsets) - 1, *group)
        states.append(group)
        counts = np.diff(offsets) if f.included is None else np.add.reduceat(f.included.astype(np.int64), offsets[:-1])
        included_counts.append(counts)
    return included_counts, states


def join_runs(kernels: list[Kernels], slices: Slices, offsets: Array) -> Slices:
    """Each run of neighbouring slices of one key joined to one slice."""
    groups, at = len(offsets) - 1, offsets[:-1]
    states = []
    for one, parts in zip(kernels, slices.states, strict=True):
        joined = one.empty(groups)
        one.join(*parts, offsets, 0, groups, *joined)
        states.append(joined)
    last = np.maximum.reduceat(slices.last, at)
    included_counts = [np.add.reduceat(c, at) for c in slices.included_counts]
    return Slices(slices.key[at], slices.cell[at], slices.first[at], last, np.add.reduceat(slices.count, at), included_counts, states)
