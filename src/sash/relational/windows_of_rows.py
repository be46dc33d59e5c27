"""From a stream's rows and its window to members: which edges each row lives between."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.columns import arrow_column
from sash.expressions import parse
from sash.plan.queries.relations import Windowed, Windowing
from sash.relational.edges import CountedEdges, Edges, ListedEdges, PeriodicEdges
from sash.relational.members import Members, Pipe
from sash.slicing.rows.keys import encode
from sash.slicing.rows.order import sorted_order
from sash.slicing.rows.timed import check_span
from sash.types import FAR_AHEAD, FAR_BACK, Measure
from sash.windows import ContextFreeWindow, sliding, tumbling
from sash.windows.shapes import Periodic

Array = npt.NDArray[Any]


def in_time_order(table: pa.Table, time: str, order_by: tuple[str, ...]) -> tuple[pa.Table, Array]:
    """The rows that have a time, sorted by it, then by ``order_by``, then by arrival; and their ticks."""
    column = arrow_column(table.column(time))
    if column.null_count:
        table, column = table.filter(column.is_valid()), column.drop_null()
    ticks = Measure(column.type).column(column)
    if not len(ticks):
        return table, ticks
    check_span(int(ticks.min()), int(ticks.max()), time)
    ties = [arrow_column(table.column(n)) for n in order_by if n in table.column_names]
    places = sorted_order(np.zeros(len(ticks), np.int64), 1, ticks, ties)
    return (table, np.array(ticks)) if places is None else (table.take(pa.array(places)), ticks[places])


def members_of(relation: Windowed, table: pa.Table, ticks: Array, origin: pa.Table) -> Members:
    """The rows of a windowed stream, in the order of time; ``origin`` has them with the stream's own names."""
    windowing, measure = relation.windowing, Measure(relation.origin.measure_type)
    edges, since, until, pipe = _SPANS[windowing.kind](windowing, measure, ticks, origin)
    return Members(table, edges, since, until, measure, ticks, pipe)


Spans = tuple[Edges, Array, Array, Pipe | None]


class At(ContextFreeWindow):
    """Windows with these ends; they start ``reach`` ticks before, or all with the first row."""

    def __init__(self, closes: Array, reach: int | None, first: int) -> None:
        self.closes = closes
        self.opens = np.full(len(closes), first) if reach is None else closes - reach
        self._edges = np.unique(np.concatenate([self.opens, closes]))

    @property
    def longest(self) -> int:
        return int((self.closes - self.opens).max(initial=1))

    def next_edge(self, t: int) -> int:
        place = int(np.searchsorted(self._edges, t, side="right"))
        return int(self._edges[place]) if place < len(self._edges) else FAR_AHEAD

    def ended(self, after: int, until: int) -> Iterable[tuple[int, int]]:
        first, last = np.searchsorted(self.closes, [after, until], side="right")
        return zip(self.opens[first:last].tolist(), self.closes[first:last].tolist(), strict=True)

    def edges(self, first: int, last: int) -> Array:
        begin, end = np.searchsorted(self._edges, first), np.searchsorted(self._edges, last, side="right")
        return self._edges[begin:end]

    def previous_edges(self, ticks: Array) -> Array:
        places = np.searchsorted(self._edges, ticks, side="right")
        return np.append(FAR_BACK, self._edges)[places]

    def density(self) -> float:
        return len(self._edges) / max(1, int(self._edges[-1] - self._edges[0])) if len(self._edges) else 0.0

    def listed(self, first: int, last: int) -> tuple[Array, Array]:
        within = (self.closes > first) & (self.opens <= last)
        return self.opens[within], self.closes[within]


def _time(windowing: Windowing, measure: Measure, ticks: Array, rows: pa.Table) -> Spans:
    assert windowing.window is not None
    shape = windowing.window.bind(measure)
    periodic = shape.as_periodic
    if periodic is not None:
        phase = (periodic.offset + periodic.size) % periodic.every
        edges = PeriodicEdges(periodic.size, periodic.every, phase)
        return edges, ticks + 1, ticks + 1 + periodic.size, Pipe(ticks, windowing.window, shape)
    if not len(ticks):
        return ListedEdges(ticks, ticks), ticks, ticks, None
    opens, closes = shape.listed(int(ticks[0]), int(ticks[-1]))  # type: ignore[attr-defined]
    after = np.searchsorted(opens, ticks, side="right")
    until = np.append(closes, FAR_AHEAD)[after]
    return ListedEdges(closes, opens), ticks + 1, until, Pipe(ticks, windowing.window, shape)


def _instants(windowing: Windowing, measure: Measure, ticks: Array, rows: pa.Table) -> Spans:
    closes = _distinct(ticks) + 1
    opens = None if windowing.reach is None else closes - windowing.reach
    until = np.full(len(ticks), FAR_AHEAD) if windowing.reach is None else ticks + 1 + windowing.reach
    if not len(ticks):
        return ListedEdges(closes, opens), ticks, ticks, None
    window = At(closes, windowing.reach, int(ticks[0]))
    return ListedEdges(closes, opens), ticks + 1, until, Pipe(ticks, window, window)


def _last_rows(windowing: Windowing, measure: Measure, ticks: Array, rows: pa.Table) -> Spans:
    codes = partition_codes(windowing, rows)
    places = np.argsort(codes, kind="stable")
    code, time = codes[places], ticks[places]
    until = np.full(len(ticks), FAR_AHEAD)
    n = windowing.count
    same = code[n:] == code[:-n] if n < len(code) else np.zeros(0, bool)
    until[places[: len(same)][same]] = time[n:][same] + 1
    return ListedEdges(_distinct(ticks) + 1, None), ticks + 1, until, None


def _distinct(ticks: Array) -> Array:
    """The distinct values of sorted ticks."""
    return ticks[np.append(True, ticks[1:] != ticks[:-1])] if len(ticks) else ticks


def partition_codes(windowing: Windowing, rows: pa.Table) -> Array:
    """Each row's partition as a number."""
    if not windowing.partition:
        return np.zeros(rows.num_rows, np.int64)
    names = [f"p{k}" for k in range(len(windowing.partition))]
    keys = encode(pa.table([parse(text).evaluate(rows) for text in windowing.partition], names=names), tuple(names))
    return np.asarray(keys.codes, np.int64)


class _Partitions:
    """A stream's rows partition by partition, each in the order of time."""

    def __init__(self, windowing: Windowing, ticks: Array, rows: pa.Table) -> None:
        codes = partition_codes(windowing, rows)
        self.places = np.argsort(codes, kind="stable")
        self.codes, self.ticks = codes[self.places], ticks[self.places]
        self.starts = np.append(True, self.codes[1:] != self.codes[:-1]) if len(codes) else np.zeros(0, bool)
        self.begin = np.flatnonzero(self.starts)
        self.counts = np.diff(np.append(self.begin, len(codes)))
        self.number = np.cumsum(self.starts) - 1
        """Each row's partition, counted in this order."""

    def back(self, values: Array) -> Array:
        """Values of rows in this order, in the order of the stream."""
        result = np.empty(len(values), np.int64)
        result[self.places] = values
        return result


def _rows(windowing: Windowing, measure: Measure, ticks: Array, rows: pa.Table) -> Spans:
    shape: Any = windowing.window.bind(measure) if windowing.window is not None else None
    size, every = shape.size, shape.every
    parts = _Partitions(windowing, ticks, rows)
    windows = np.maximum((parts.counts - size) // every + 1, 0)  # complete ones
    left_out = -(-size // every)  # numbers behind each partition, so that no window reaches into the next one
    first = np.cumsum(windows + left_out) - (windows + left_out)
    rank = np.arange(len(ticks)) - parts.begin[parts.number] if len(ticks) else ticks
    lo = np.maximum(-((size - 1 - rank) // every), 0)
    hi = np.minimum(rank // every + 1, windows[parts.number])
    partition, number = _numbered(windows)
    at = parts.begin[partition] + number * every
    total = int((windows + left_out).sum())
    opens, closes, real = np.zeros(total, np.int64), np.zeros(total, np.int64), np.zeros(total, bool)
    where = first[partition] + number
    opens[where], closes[where], real[where] = parts.ticks[at], parts.ticks[at + size - 1], True
    edges = CountedEdges(opens, closes, np.ones(total, bool), closes, real)
    base = first[parts.number] if len(ticks) else ticks
    pipe = Pipe(parts.back(base * every + rank), sliding(size, every), Periodic(size, every), every)
    return edges, parts.back(base + np.minimum(lo, hi)), parts.back(base + hi), pipe


def _numbered(counts: Array) -> tuple[Array, Array]:
    """For each of so many things of each partition its partition and its number within."""
    partition = np.repeat(np.arange(len(counts)), counts)
    return partition, np.arange(len(partition)) - np.repeat(np.cumsum(counts) - counts, counts)


def _sessions(windowing: Windowing, measure: Measure, ticks: Array, rows: pa.Table) -> Spans:
    shape: Any = windowing.window.bind(measure) if windowing.window is not None else None
    parts = _Partitions(windowing, ticks, rows)
    opened = parts.starts.copy()
    if len(ticks):
        opened[1:] |= np.diff(parts.ticks) > shape.gap
    begin = np.flatnonzero(opened)
    last = parts.ticks[np.append(begin[1:], len(ticks)) - 1] if len(begin) else ticks
    return _consecutive(parts, opened, parts.ticks[begin], last + shape.gap, np.ones(len(begin), bool))


def _marks(windowing: Windowing, measure: Measure, ticks: Array, rows: pa.Table) -> Spans:
    shape: Any = windowing.window.bind(measure) if windowing.window is not None else None
    parts = _Partitions(windowing, ticks, rows)
    marked = arrow_column(parse(shape.when).evaluate(rows)).fill_null(False).to_numpy(zero_copy_only=False)[parts.places]
    # Rows of the mark's time belong to the window that it opens: it opens with the first of them.
    group = parts.starts.copy()
    if len(ticks):
        group[1:] |= parts.ticks[1:] != parts.ticks[:-1]
    groups = np.flatnonzero(group)
    has_mark = np.logical_or.reduceat(marked, groups) if len(groups) else np.zeros(0, bool)
    opened = parts.starts.copy()
    opened[groups] |= has_mark
    begin = np.flatnonzero(opened)
    following = np.append(begin[1:], 0)
    closed = np.append(~parts.starts[begin[1:]], False) if len(begin) else np.zeros(0, bool)
    closes = np.where(closed, parts.ticks[following], parts.ticks[begin]) if len(begin) else ticks
    return _consecutive(parts, opened, parts.ticks[begin], closes, closed)


def _consecutive(parts: _Partitions, opened: Array, opens: Array, closes: Array, closed: Array) -> Spans:
    """Windows side by side: each row is in the one that was opened last. Behind each partition a number is left out."""
    number = np.cumsum(opened) - 1 + parts.number
    begin = np.flatnonzero(opened)
    where = number[begin]
    total = int(number[-1]) + 2 if len(number) else 0
    wide = [np.zeros(total, np.int64) for _ in range(3)]
    flags, real = np.zeros(total, bool), np.zeros(total, bool)
    for column, values in zip(wide, (opens, closes, closes - 1), strict=True):
        column[where] = values
    flags[where], real[where] = closed, True
    edges = CountedEdges(wide[0], wide[1], flags, wide[2], real)
    since = parts.back(number)
    return edges, since, since + 1, Pipe(since, tumbling(1), Periodic(1, 1), 1)


_SPANS = {"time": _time, "instants": _instants, "last rows": _last_rows, "rows": _rows, "sessions": _sessions, "marks": _marks}
