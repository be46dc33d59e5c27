"""Distinct counts over ranges of slices whose ends only advance, in time that does not depend on how many ranges hold a row.

A value counts in a range at its first occurrence there. An occurrence in slice ``p``, the one before it in slice ``q``, is the first in
exactly the ranges with ``q < lo <= p < hi``. As ends only advance, these ranges are neighbours: the occurrence adds one where they
begin and takes it away where they end, and counts are running sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algorithms.distinct import codes_of
from sash.plan.choices.range_choice import BY_CHANGES, choose_distinct
from sash.plan.logical import Column
from sash.slicing.partials.column_partials import ObjectPartials, Partials
from sash.slicing.partials.ranges import Ranges
from sash.slicing.rows import order
from sash.slicing.rows.inputs import evaluated, unpacked

Array = npt.NDArray[Any]


class DistinctCounts(Partials):
    """How many different values each range has."""

    def __init__(self, column: Column, table: pa.Table) -> None:
        self.column, self.row_count = column, table.num_rows
        self._table = table
        (values,), bits = evaluated(column, table)
        codes, count = codes_of(values)
        if bits is not None:
            codes = np.where(unpacked(bits, table.num_rows), codes, -1)
        rows = np.flatnonzero(codes >= 0)
        self._rows = rows[order.of_keys(codes[rows], count)]
        """The rows that have a value: equal values together, each in the order of rows."""
        self._same = codes[self._rows[1:]] == codes[self._rows[:-1]] if len(rows) else np.empty(0, bool)
        self._offsets = np.empty(0, np.int64)

    def gather(self, offsets: Array) -> None:
        self._offsets = offsets

    def results(self, ranges: Ranges) -> pa.Array:
        if choose_distinct(ranges).choice != BY_CHANGES:
            partials = ObjectPartials(self.column, self._table)
            partials.gather(self._offsets)
            return partials.results(ranges)
        slice_count = len(self._offsets) - 1
        slices = np.repeat(np.arange(slice_count), np.diff(self._offsets))[self._rows]
        before = np.full(len(slices), -1)
        before[1:][self._same] = slices[:-1][self._same]
        first = before < slices  # in one slice a value counts once
        slices, before = slices[first], before[first]
        every = np.arange(-1, slice_count)
        until, since = (np.searchsorted(ends, every, side="right") for ends in (ranges.lo, ranges.hi))
        begin, end = np.maximum(since[slices + 1], until[before + 1]), until[slices + 1]
        some = begin < end
        count = len(ranges) + 1
        changes = np.bincount(begin[some], minlength=count) - np.bincount(end[some], minlength=count)
        return pa.array(np.cumsum(changes[:-1]))
