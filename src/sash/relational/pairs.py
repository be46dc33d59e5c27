"""Joins: pairs of rows whose spans overlap, found through equal keys and the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash import threads
from sash.expressions import parse
from sash.expressions.evaluate import evaluate
from sash.plan.queries.axes import Axis, axis_of
from sash.plan.queries.relations import Joined
from sash.relational.edges import CountedEdges, Edges, ListedEdges
from sash.relational.members import Members, Results
from sash.relational.sides import over_sides
from sash.relational.value_ranges import comparisons_of, value_ranges
from sash.slicing.rows.keys import encode

Array = npt.NDArray[Any]

MOST_PAIRS = 1 << 18
"""Candidates are compared in blocks of about so many pairs, which stay in the caches."""
MOST_UNCONDITIONAL = 1 << 22
FEW_PAIRS = 1 << 16
"""So many candidates are compared at once, whatever the condition."""


def joined(relation: Joined, left: Members, right: Members) -> Members | Results:
    """The pairs of rows that are in one window together and fulfil the condition."""
    axis = axis_of(relation, left.measure)
    left, right, edges = _on_common_edges(axis, left, right, axis_of(relation.left, left.measure), axis_of(relation.right, left.measure))
    left, right, codes, other_codes = _keyed(relation, left, right)
    condition = None if relation.condition is None else Condition(relation.condition, left.table, right.table)
    candidates = _candidates(condition, left, right, codes, other_codes)
    if candidates.is_exact:
        condition = None
    blocks = list(_blocks(candidates, MOST_PAIRS if condition is not None else MOST_UNCONDITIONAL))
    spans = Spans(left, right, edges)
    found: list[tuple[pa.Table, Array, Array] | None] = [None] * len(blocks)

    def look(number: int) -> None:
        block = blocks[number]
        one, other = block.pairs() if condition is None else condition.fulfilled(block)
        one, other, since, until = spans.of(one, other)
        found[number] = _pairs(left.table, right.table, one, other), since, until

    threads.in_turn(look, len(blocks))
    parts = [part for part in found if part is not None and part[0].num_rows]
    if not parts:
        none = np.empty(0, np.int64)
        parts.append((_pairs(left.table, right.table, none, none), none, none))
    table = pa.concat_tables([p[0] for p in parts])
    window = spans.only_window
    if window is not None:
        return Results(table, edges, np.full(table.num_rows, window), left.measure)
    return Members(table, edges, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts]), left.measure)


def as_members(rows: Members | Results, *, by_number: bool) -> Members:
    """Results as rows that live in one window each."""
    if isinstance(rows, Members):
        return rows
    since = rows.numbers if by_number else rows.edges.ends(rows.numbers)[0]
    return Members(rows.table, rows.edges, since, since + 1, rows.measure)


def _on_common_edges(axis: Axis, left: Members, right: Members, own: Axis, others: Axis) -> tuple[Members, Members, Edges]:
    """Both sides among the windows of the join."""
    if axis.kind in ("rows", "sessions", "marks"):
        edges = _later(left.edges, right.edges)
        return left, right, edges
    if axis.kind == "instants":
        assert isinstance(left.edges, ListedEdges)
        assert isinstance(right.edges, ListedEdges)
        edges = ListedEdges(np.union1d(left.edges.closes, right.edges.closes), None)
    else:
        timed = [side for side, kind in ((left, own.kind), (right, others.kind)) if kind == "time"]
        edges = max((side.edges for side in timed), key=lambda e: getattr(e, "size", 0))
        if isinstance(edges, ListedEdges):  # of a calendar: windows of both
            edges = ListedEdges(np.unique(np.concatenate([side.edges.closes for side in timed])), None)  # type: ignore[attr-defined]
    return left, right, edges


def _later(one: Edges, other: Edges) -> Edges:
    """The i-th windows of two sequences that count rows, at the later of their times."""
    assert isinstance(one, CountedEdges)
    assert isinstance(other, CountedEdges)
    count = min(len(one.real), len(other.real))
    closes, latest = (np.maximum(a[:count], b[:count]) for a, b in ((one.closes, other.closes), (one.latest, other.latest)))
    opens = np.minimum(one.opens[:count], other.opens[:count])
    return CountedEdges(opens, closes, one.closed[:count] & other.closed[:count], latest, one.real[:count] & other.real[:count])


def _keyed(relation: Joined, left: Members, right: Members) -> tuple[Members, Members, Array, Array]:
    """Both sides without rows whose key is null, and the numbers of their keys."""
    if not relation.equal:
        return left, right, np.zeros(left.table.num_rows, np.int64), np.zeros(right.table.num_rows, np.int64)
    keys = [
        [parse(text).evaluate(side.table) for text in texts]
        for side, texts in zip((left, right), zip(*relation.equal, strict=True), strict=True)
    ]
    known = [np.logical_and.reduce([k.is_valid().to_numpy(zero_copy_only=False) for k in of_side]) for of_side in keys]
    columns = [pa.concat_arrays([a.filter(pa.array(known[0])), b.filter(pa.array(known[1]))]) for a, b in zip(*keys, strict=True)]
    names = [f"k{n}" for n in range(len(columns))]
    codes = np.asarray(encode(pa.table(columns, names=names), tuple(names)).codes, np.int64)
    left, right = left.where(known[0]), right.where(known[1])
    count = left.table.num_rows
    return left, right, codes[:count], codes[count:]


@dataclass(frozen=True)
class Block:
    """Candidates: the left rows ``first`` to ``last - 1``, each with the right rows at the places ``begin`` to ``end - 1`` of an order."""

    first: int
    last: int
    begin: Array
    end: Array
    order: Array

    @property
    def is_whole(self) -> bool:
        """Whether all left rows have the same candidates."""
        return bool((self.begin == self.begin[0]).all() and (self.end == self.end[0]).all())

    def pairs(self) -> tuple[Array, Array]:
        """The rows of all pairs, in the order of the left side."""
        counts = self.end - self.begin
        one = np.repeat(np.arange(self.first, self.last), counts)
        places = np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts - self.begin, counts)
        return one, self.order[places]


class Condition:
    """A condition over pairs; only the columns that it reads are brought together."""

    def __init__(self, text: str, left: pa.Table, right: pa.Table) -> None:
        self.text = text
        self.node, tables = over_sides(parse(text).typed(pa.schema([*left.schema, *right.schema])), left, right, text)
        self.left, self.right = (t.combine_chunks() for t in tables)
        self.is_quick = all(_is_plain(c) for t in (self.left, self.right) for c in t.columns)

    def fulfilled(self, block: Block) -> tuple[Array, Array]:
        """The pairs of a block for which the condition is true."""
        if self.is_quick and block.is_whole and self.left.num_columns and self.right.num_columns:
            partners = block.order[block.begin[0] : block.end[0]]
            count = block.last - block.first
            columns = [np.repeat(_numbers(c)[block.first : block.last], len(partners)) for c in self.left.columns]
            columns += [np.tile(_numbers(c)[partners], count) for c in self.right.columns]
            schema = pa.schema([*self.left.schema, *self.right.schema])
            table = pa.Table.from_arrays([pa.array(c).cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
            places = pc.indices_nonzero(self._flags(table)).to_numpy().astype(np.int64)
            return block.first + places // len(partners), partners[places % len(partners)]
        one, other = block.pairs()
        places = pc.indices_nonzero(self._flags(_pairs(self.left, self.right, one, other))).to_numpy()
        return one[places], other[places]

    def _flags(self, table: pa.Table) -> pa.Array:
        """Whether each pair fulfils the condition; null is as good as false."""
        return evaluate(self.node, table, self.text)


def _is_plain(column: pa.ChunkedArray) -> bool:
    return column.null_count == 0 and bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _numbers(column: pa.ChunkedArray) -> Array:
    result: Array = column.to_numpy()
    return result


class Spans:
    """The windows that pairs are in."""

    def __init__(self, left: Members, right: Members, edges: Edges) -> None:
        self.left, self.right, self.edges = left, right, edges
        sides = (left.since, left.until, right.since, right.until)
        self.only_window: int | None = None
        """The window that all rows of both sides are in, if it is one."""
        if all(len(a) and (a == a[0]).all() for a in sides):
            since, until = max(left.since[0], right.since[0]), min(left.until[0], right.until[0])
            first, last = edges.numbers(np.array([since, until]))
            exist = edges.exist(np.array([first]))
            if since < until and last == first + 1 and (exist is None or exist[0]):
                self.only_window = int(first)

    def of(self, one: Array, other: Array) -> tuple[Array, Array, Array, Array]:
        """The pairs that are in one window together, and their spans, unless all are in one."""
        left, right = self.left, self.right
        if self.only_window is not None:
            none = np.empty(0, np.int64)
            return one, other, none, none
        since, until = np.maximum(left.since[one], right.since[other]), np.minimum(left.until[one], right.until[other])
        together = since < until
        together &= self.edges.numbers(since) < self.edges.numbers(until)
        return (one, other, since, until) if together.all() else (one[together], other[together], since[together], until[together])


@dataclass(frozen=True)
class Candidates:
    """For each row of the left side the range of places in an order of the right side that its partners are among."""

    order: Array
    begin: Array
    end: Array
    is_exact: bool = False
    """Whether all candidates fulfil the condition."""


def _candidates(condition: Condition | None, left: Members, right: Members, codes: Array, others: Array) -> Candidates:
    """Pairs of rows with equal keys, through the order of time or through a range of values, whichever are fewer."""
    if not len(codes) or not len(others):
        none = np.empty(0, np.int64)
        return Candidates(none, none, none)
    order, begin, end = _by_time(left, right, codes, others)
    pairs = int(np.maximum(end - begin, 0).sum())
    if condition is not None and pairs > FEW_PAIRS:
        comparisons, is_all = comparisons_of(condition.text, left.table, right.table)
        ranges = value_ranges(comparisons, codes, others)
        if ranges is not None and ranges.pairs < pairs:
            return Candidates(ranges.order, ranges.begin, ranges.end, is_all and ranges.is_exact)
    return Candidates(order, begin, np.maximum(begin, end))


def _blocks(candidates: Candidates, most: int) -> Iterator[Block]:
    """The candidates, about so many pairs at a time."""
    begin, end = candidates.begin, candidates.end
    total = np.cumsum(end - begin)
    first = 0
    while first < len(begin):
        done = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, done + most, side="right")))
        if total[last - 1] > done:
            yield Block(first, last, begin[first:last], end[first:last], candidates.order)
        first = last


def _by_time(left: Members, right: Members, codes: Array, others: Array) -> tuple[Array, Array, Array]:
    """For each row of the left side the range of places, in an order by key and time, that rows with overlapping spans are among."""
    order = np.lexsort((right.since, others))
    key, since, until = others[order], right.since[order], right.until[order]
    ticks = np.unique(np.concatenate([since, until, left.since, left.until]))
    step = len(ticks) + 1

    def place(code: Array, values: Array) -> Array:
        result: Array = code * step + np.searchsorted(ticks, values)
        return result

    reach = np.maximum.accumulate(place(key, until))  # keys ascend, so it starts anew with each
    begin = np.searchsorted(reach, place(codes, left.since), side="right")
    end = np.searchsorted(place(key, since), place(codes, left.until), side="left")
    return order, begin, end


def _pairs(left: pa.Table, right: pa.Table, one: Array, other: Array) -> pa.Table:
    table, pair = left.take(pa.array(one)), right.take(pa.array(other))
    return pa.table([*table.columns, *pair.columns], schema=pa.schema([*table.schema, *pair.schema]))
