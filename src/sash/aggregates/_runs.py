"""Sorted runs: the values of some rows in order, each once with how often it occurs.

The partial of median, percentile, count distinct and collect_set (general stream slicing, section 5.4.1). Two of them merge in
linear time: NumPy's stable sort merges two sorted runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algebra import Objects

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Runs:
    """Distinct values in ascending order, NaN last, and their counts."""

    values: Array
    counts: Array

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.counts.nbytes)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Runs)
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.values, other.values, equal_nan=self.values.dtype.kind == "f")
        )


EMPTY = Runs(np.empty(0), np.empty(0, np.int64))


def from_rows(values: Array) -> Runs:
    """The runs of rows in any order."""
    return _collapsed(np.sort(values), np.ones(len(values), np.int64))


def of_one(value: Any) -> Runs:
    """The runs of a single row."""
    if value is None:
        return EMPTY
    array = np.array([value]) if isinstance(value, bool | int | float | np.generic) else np.array([value], object)
    return Runs(array, np.ones(1, np.int64))


def merge(a: Runs, b: Runs) -> Runs:
    """The runs of both, in time linear in their lengths."""
    if len(a.values) == 0 or len(b.values) == 0:
        return b if len(a.values) == 0 else a
    values = np.concatenate([a.values, b.values])
    order = np.argsort(values, kind="stable")
    return _collapsed(values[order], np.concatenate([a.counts, b.counts])[order])


def _collapsed(values: Array, counts: Array) -> Runs:
    """Join neighbours that are equal; NaN equals NaN."""
    if len(values) == 0:
        return Runs(values, counts)
    differs = values[1:] != values[:-1]
    if values.dtype.kind == "f":
        differs &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    starts = np.concatenate([[0], np.nonzero(differs)[0] + 1])
    return Runs(values[starts], np.add.reduceat(counts, starts))


def at(runs: Runs, rank: int) -> Any:
    """The value at a rank, counted from 0, among all rows in order."""
    return runs.values[int(np.searchsorted(np.cumsum(runs.counts), rank, side="right"))].item()


def objects(lower: Callable[[Runs], Any]) -> Objects:
    """An aggregate over runs, from its last step alone."""
    return Objects(lift=of_one, combine=merge, lower=lower, identity=lambda: EMPTY)
