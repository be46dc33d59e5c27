"""Joins: pairs of rows whose spans overlap, found through equal keys and the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.expressions import parse
from sash.plan.queries.axes import Axis, axis_of
from sash.plan.queries.relations import Joined
from sash.relational.edges import CountedEdges, Edges, ListedEdges
from sash.relational.members import Members, Results
from sash.slicing.rows.keys import encode

Array = npt.NDArray[Any]

MOST_PAIRS = 1 << 21
"""Candidates are compared in blocks of about so many pairs."""


def joined(relation: Joined, left: Members, right: Members) -> Members:
    """The pairs of rows that are in one window together and fulfil the condition."""
    axis = axis_of(relation, left.measure)
    left, right, edges = _on_common_edges(axis, left, right, axis_of(relation.left, left.measure), axis_of(relation.right, left.measure))
    left, right, codes, other_codes = _keyed(relation, left, right)
    parts = []
    for one, other in _candidates(left, right, codes, other_codes):
        since, until = np.maximum(left.since[one], right.since[other]), np.minimum(left.until[one], right.until[other])
        together = edges.numbers(since) < edges.numbers(until)
        one, other, since, until = one[together], other[together], since[together], until[together]
        table = _pairs(left.table, right.table, one, other)
        if relation.condition is not None:
            flags = parse(relation.condition).evaluate(table).fill_null(False).to_numpy(zero_copy_only=False)
            table, since, until = table.filter(pa.array(flags)), since[flags], until[flags]
        parts.append((table, since, until))
    if not parts:
        none = np.empty(0, np.int64)
        parts.append((_pairs(left.table, right.table, none, none), none, none))
    table = pa.concat_tables([p[0] for p in parts])
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


def _candidates(left: Members, right: Members, codes: Array, others: Array) -> Iterator[tuple[Array, Array]]:
    """Pairs of places with equal keys and overlapping spans, block by block, in the order of the left side."""
    if not len(codes) or not len(others):
        return
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
    counts = np.maximum(end - begin, 0)
    total = np.cumsum(counts)
    first = 0
    while first < len(codes):
        done = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, done + MOST_PAIRS, side="right")))
        some = counts[first:last]
        one = np.repeat(np.arange(first, last), some)
        other = np.arange(len(one)) - np.repeat(np.cumsum(some) - some, some) + np.repeat(begin[first:last], some)
        overlap = until[other] > left.since[one]
        if not overlap.all():
            one, other = one[overlap], other[overlap]
        if len(one):
            yield one, order[other]
        first = last


def _pairs(left: pa.Table, right: pa.Table, one: Array, other: Array) -> pa.Table:
    table, pair = left.take(pa.array(one)), right.take(pa.array(other))
    return pa.table([*table.columns, *pair.columns], schema=pa.schema([*table.schema, *pair.schema]))
