"""Rows of a sequence of relations, each with the span of windows that it is in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.queries.relations import END, START, TIME
from sash.relational.edges import Edges, Known
from sash.types import Measure
from sash.windows.base import Window
from sash.windows.shapes import Shape

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Pipe:
    """How :mod:`sash.slicing` aggregates rows window by window: what they are measured in, and the windows in its ticks."""

    ticks: Array
    window: Window
    shape: Shape
    every: int | None = None
    """Windows are numbered by their starts, which are this far apart; None: by their ends, which are edges."""

    def numbers(self, edges: Edges, starts: Array, ends: Array) -> Array:
        """The numbers of windows among the edges of the relations."""
        return edges.numbers(ends) if self.every is None else starts // self.every


@dataclass(frozen=True)
class Members:
    """Rows, and for each the ticks between which an edge must lie for its relation to have the row.

    A row is in the relations of the edges ``e`` with ``since <= e < until``.
    """

    table: pa.Table
    edges: Edges
    since: Array
    until: Array
    measure: Measure
    ticks: Array | None = None
    """The rows' own times, if they are rows of a stream."""
    pipe: Pipe | None = None
    """None: rows have to be repeated per window."""

    @cached_property
    def span(self) -> tuple[Array, Array]:
        """For each row the first of its windows, and the one after the last."""
        return self.edges.numbers(self.since), self.edges.numbers(self.until)

    def take(self, places: Array) -> Members:
        """The rows at these places."""
        return self._with(self.table.take(pa.array(places)), places)

    def where(self, flags: Array) -> Members:
        """The rows whose flag is set."""
        if flags.all():
            return self
        return self._with(self.table.filter(pa.array(flags)), flags)

    def _with(self, table: pa.Table, chosen: Array) -> Members:
        ticks = None if self.ticks is None else self.ticks[chosen]
        pipe = None if self.pipe is None else replace(self.pipe, ticks=self.pipe.ticks[chosen])
        return replace(self, table=table, since=self.since[chosen], until=self.until[chosen], ticks=ticks, pipe=pipe)


@dataclass(frozen=True)
class Results:
    """Rows of which each is in one window."""

    table: pa.Table
    edges: Edges
    numbers: Array
    measure: Measure

    def take(self, places: Array) -> Results:
        """The rows at these places."""
        return replace(self, table=self.table.take(pa.array(places)), numbers=self.numbers[places])

    def where(self, flags: Array) -> Results:
        """The rows whose flag is set."""
        return self if flags.all() else replace(self, table=self.table.filter(pa.array(flags)), numbers=self.numbers[flags])

    def with_window(self, wanted: set[str]) -> pa.Table:
        """The rows with those columns of their window that are wanted."""
        table = self.table
        for name, column in self.window_columns(wanted).items():
            table = table.append_column(name, column)
        return table

    def window_columns(self, wanted: set[str]) -> dict[str, pa.Array]:
        """The columns of the rows' windows that are wanted."""
        sources = {TIME: self.edges.times, START: self.edges.starts, END: self.edges.ends}
        return {name: values_of(self.measure, sources[name](self.numbers)) for name in sources if name in wanted}


def values_of(measure: Measure, known: Known) -> pa.Array:
    """Ticks as a column of the time's type."""
    ticks, flags = known
    return measure.values(np.ascontiguousarray(ticks), flags)


def expanded(lo: Array, hi: Array) -> tuple[Array, Array]:
    """For each row and each of its windows the row's place, and the window; rows stay in their order."""
    if np.array_equal(hi, lo + 1):  # each is in one window, as pairs of tumbling windows are
        return np.arange(len(lo)), lo
    counts = np.maximum(hi - lo, 0)
    places = np.repeat(np.arange(len(lo)), counts)
    firsts = np.repeat(lo - (np.cumsum(counts) - counts), counts)
    return places, firsts + np.arange(len(places))
