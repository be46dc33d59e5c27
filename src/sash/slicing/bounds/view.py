"""Slices in order, as windows are located in them: key by key, each slice with its times and its number of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash import threads
from sash.algorithms.memory import pooled
from sash.algorithms.pipe import kernel, window_bounds
from sash.expressions import parse

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class View:
    """The slices of many keys, one key after the other, each key's in the order of time."""

    key_offsets: Array
    """Key ``k`` has the slices ``key_offsets[k]`` to ``key_offsets[k + 1] - 1``."""
    starts: Array
    """A tick of each slice that tells which windows it is in: its edge, or its first row."""
    first: Array
    last: Array
    counts: Array
    """How many rows each slice has."""
    rows: SortedRows | None = None
    gone: Array | None = None
    """Where rows are not retained: for each key how many rows came before its first slice."""
    opens: dict[Any, Array] = field(default_factory=dict)
    """Where rows are not retained: for each shape of punctuation, which slices start with one."""

    @property
    def keys(self) -> int:
        return len(self.key_offsets) - 1

    @property
    def count(self) -> int:
        return len(self.starts)

    @cached_property
    def row_offsets(self) -> Array:
        """Slice ``j`` has the key's rows ``row_offsets[j]`` to ``row_offsets[j + 1] - 1``, counted over all keys."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def key_of_slices(self) -> Array:
        """Each slice's key."""
        return np.repeat(np.arange(self.keys), np.diff(self.key_offsets))


@dataclass(frozen=True)
class SortedRows:
    """Rows by key, then time, for windows that depend on rows."""

    ticks: Array
    key_offsets: Array
    """Key ``k`` has the rows ``key_offsets[k]`` to ``key_offsets[k + 1] - 1``."""
    table: pa.Table
    """The columns that windows read."""
    bases: Array | None = None
    """For each key how many rows came before these."""
    notices: dict[int, Any] = field(default_factory=dict)
    """The contexts of users' own windows, by the window's identity."""
    memo: dict[Any, Any] = field(default_factory=dict)
    """What handlers have computed from the rows, by shape."""

    @property
    def count(self) -> int:
        return len(self.ticks)

    def values(self, text: str, places: Array | None = None) -> Array | list[Any]:
        """An expression's values for the rows, or for those at ``places``; a condition that is null is false."""
        column = parse(text).evaluate(self.table if places is None else some_rows(self.table, places))
        if pa.types.is_boolean(column.type):
            flags: Array = column.fill_null(False).to_numpy(zero_copy_only=False)
            return flags
        values: list[Any] = column.to_pylist()
        return values

    def key_starts(self) -> Array:
        """For each row the place of its key's first row."""
        return np.repeat(self.key_offsets[:-1], np.diff(self.key_offsets))

    def codes(self) -> Array:
        """For each row the number of its key."""
        return np.repeat(np.arange(len(self.key_offsets) - 1), np.diff(self.key_offsets))

    def before(self, tick: int) -> Array:
        """For each key the place of its first row that is not before ``tick``."""
        keys = np.arange(len(self.key_offsets) - 1)
        return places_in_keys(self.key_offsets, self.ticks, keys, np.full(len(keys), tick, np.int64))


@dataclass(frozen=True)
class RetainedRows:
    """The rows that a store retains, with its pending rows, and counts of the rows that were dropped."""

    rows: SortedRows
    bases: Array
    """For each key how many rows were dropped."""
    gone_until: Array
    """For each key the time of the last row that was dropped."""
    pending_between: Callable[[int, int, int], int]
    """How many pending rows of a key lie after one time and before another."""

    def between(self, code: int, after: int, before: int) -> int:
        """How many of a key's rows lie after one time and before another."""
        first, last = self.rows.key_offsets[code], self.rows.key_offsets[code + 1]
        low, high = np.searchsorted(self.rows.ticks[first:last], [after + 1, before])
        return int(high - low) + self.pending_between(code, after, before)


@dataclass(frozen=True)
class Bounds:
    """Windows of one query: their keys, their slices, and how they are reported."""

    keys: Array
    lo: Array
    hi: Array
    start: Array
    end: Array
    start_known: Array | None = None
    end_known: Array | None = None
    rows: tuple[Array, Array] | None = None
    """The first rank of each row window, and the one after its last."""

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, places: Array) -> Bounds:
        """The windows at ``places``."""

        def one(column: Array | None) -> Array | None:
            return None if column is None else column[places]

        return Bounds(
            self.keys[places], self.lo[places], self.hi[places], self.start[places], self.end[places],
            one(self.start_known), one(self.end_known), None if self.rows is None else (self.rows[0][places], self.rows[1][places]),
        )  # fmt: skip


def runs(start: Array, stop: Array | int, step: Array | int = 1) -> tuple[Array, Array]:
    """The numbers of all runs, each from ``start`` to ``stop - 1`` in steps, concatenated, and the run that each number is of."""
    lengths = np.maximum(0, -(-(stop - start) // step))
    owner = np.repeat(np.arange(len(start)), lengths)
    ends = np.cumsum(lengths)
    number = np.arange(len(owner)) - np.repeat(ends - lengths, lengths)
    return start[owner] + number * (step if isinstance(step, int) else step[owner]), owner


def places_in_keys(key_offsets: Array, ticks: Array, keys: Array, wanted: Array) -> Array:
    """For each of ``keys`` the place of its first row, or slice, that is not before the tick in ``wanted``; behind its last if there is
    none."""
    places = np.empty(len(keys), np.int64)
    keys, wanted = np.ascontiguousarray(keys), np.ascontiguousarray(wanted)
    kernel(window_bounds.places_in_keys)(ticks, key_offsets, keys, wanted, len(keys), places)
    return places


def changes(values: Array) -> Array:
    """The places where a value differs from the one before it."""
    places: Array = np.flatnonzero(values[1:] != values[:-1]) + 1
    return places


def some_rows(table: pa.Table, places: Array) -> pa.Table:
    """The rows of a table at ``places``; not copied where these are consecutive."""
    is_consecutive = len(places) > 0 and int(places[-1]) - int(places[0]) + 1 == len(places) and bool(np.all(np.diff(places) == 1))
    return table.slice(int(places[0]), len(places)) if is_consecutive else table.take(pa.array(places))


def counted(view: View, count: Any, fill: Any, settings: tuple[Any, ...]) -> tuple[Array, Array, Array, Array]:
    """The four arrays of a pair of kernels: one counts each key's windows, the other writes them."""
    counts = np.zeros(view.keys, np.int64)
    parts = threads.shares(0, view.keys, rows_each=max(1, view.count // max(1, view.keys)))
    counter, filler = kernel(count), kernel(fill)
    threads.each(lambda a, b: _run(counter, view.key_offsets, view.starts, a, b, *settings, counts), parts)
    places = np.concatenate([[0], np.cumsum(counts)])
    outputs = tuple(pooled(int(places[-1]), "int64") for _ in range(4))
    rows_each = int(places[-1]) // max(1, view.keys)
    threads.each(
        lambda a, b: _run(filler, view.key_offsets, view.starts, a, b, *settings, places, *outputs),
        threads.shares(0, view.keys, rows_each=max(1, rows_each)),
    )
    return outputs  # type: ignore[return-value]


def _run(kernel: Any, *arguments: Any) -> None:
    kernel(*arguments)


def no_bounds() -> Bounds:
    """No windows."""
    nothing = np.empty(0, np.int64)
    return Bounds(nothing, nothing, nothing, nothing, nothing)
