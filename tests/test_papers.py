"""The worked examples of the papers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sash
from sash import functions as S
from sash import windows as W
from sash.algorithms import FlatFat, HammerSlide
from sash.types import Measure
from tests.own_aggregates import mean


def rows(*pairs):
    return pa.table({"t": pa.array([t for t, _ in pairs], pa.int64()), "v": pa.array([v for _, v in pairs], pa.int64())})


def results(table, name):
    return [((r["window"]["start"], r["window"]["end"]), r[name]) for r in table.to_pylist()]


# General stream slicing.


def test_one_sliding_window_has_ten_overlapping_ones_and_one_slice_a_row():
    """Section 3.3: a length of 20 s that slides by 2 s is ten buckets at any time; a row is aggregated once in slicing."""
    op = sash.Operator(windows={"w": W.sliding(20, 2)}, aggs=[S.sum("v").alias("s")], time="t")
    op.add(rows(*[(t, 1) for t in range(100)]))
    assert op.stats.slices == 50
    given = op.advance(60)
    assert {r["s"] for r in given.to_pylist() if r["window"]["start"] >= 0} == {20}
    assert sum(start <= 39 < end for (start, end), _ in results(given, "s")) == 10


def test_the_last_ten_rows_every_five_seconds():
    """Section 4.4: forward context aware; rows up to a window's end decide where it begins."""
    op = sash.Operator(windows={"w": W.last_rows(10, every=5)}, aggs=[S.count().alias("n"), S.min("v").alias("low")], time="t")
    op.add(rows(*[(t, t) for t in range(20)]))
    given = op.advance(20)
    assert [(r["window"]["end"], r["n"], r["low"]) for r in given.to_pylist()] == [(5, 5, 0), (10, 10, 0), (15, 10, 5), (20, 10, 10)]


def test_a_late_row_changes_the_count_of_all_that_follow():
    """Section 4.3: the aggregates of all count windows that start or end after it change."""
    op = sash.Operator(windows={"w": W.rows(3)}, aggs=[S.sum("v").alias("s")], time="t", emit="update", lateness=100)
    op.add(rows((1, 1), (2, 2), (4, 4), (5, 5), (6, 6), (7, 7)))
    assert [s for _, s in results(op.advance(8), "s")] == [7, 18]
    op.add(rows((3, 3)))
    again = op.advance(9)
    assert [(r["s"], r["revision"]) for r in again.to_pylist()] == [(6, 1), (15, 1)]


def test_the_average_in_parts():
    """Section 5.4.1: lift to (sum, count), combine, lower to sum / count, and invert."""
    a, b = mean.lift(4), mean.lift(8)
    assert (a, mean.combine(a, b), mean.lower(mean.combine(a, b))) == ((4, 1), (12, 2), 6.0)
    assert mean.invert(mean.combine(a, b), a) == b


def test_the_next_edge_of_a_tumbling_window():
    """Section 5.4.2: timestamp + l - (timestamp mod l)."""
    shape = W.tumbling(7).bind(Measure(pa.int64()))
    for t in (0, 1, 6, 7, 50):
        assert shape.edges(t + 1, t + 7)[0] == t + 7 - t % 7


# The Reactive Aggregator.


def test_the_query_over_phone_calls():
    """Figure 1: maximum, arg max and how often the maximum occurs, over 24 hours that slide by a minute."""
    minute = 60
    calls = pa.table({"t": [0, 30, 61, 62, 90_000], "len": [3.0, 9.0, 9.0, 2.0, 1.0], "caller": ["ann", "bob", "cid", "ann", "eve"]})
    out = sash.aggregate(
        calls, windows=W.sliding(24 * 60 * minute, every=minute), time="t",
        aggs=[S.max("len").alias("mxl"), S.max_by("caller", "len").alias("who"), S.max_count("len").alias("num"), S.count().alias("cnt")],
    )  # fmt: skip
    by_start = {r["window"]["start"]: r for r in out.to_pylist()}
    assert (by_start[0]["mxl"], by_start[0]["who"], by_start[0]["num"], by_start[0]["cnt"]) == (9.0, "bob", 2, 4)
    assert (by_start[minute]["who"], by_start[minute]["num"]) == ("cid", 1)
    assert 2 * minute not in by_start  # nobody calls for a day
    assert by_start[3660]["cnt"] == 1


def test_a_tree_over_eight_leaves():
    """Section 4: seven combines make the tree; after eight, evicting and inserting keeps every suffix of the window right."""
    tree = FlatFat("max")
    for v in (5, 3, 9, 1, 7, 2, 8, 4):
        tree.insert(v)
    assert tree.query() == 9
    for expected in (9, 9, 8, 8, 8, 8, 4):
        tree.evict()
        assert tree.query() == expected


# Hammer Slide.


def test_panes_give_what_windows_give():
    """Figure 2: a window of four tuples that slides by two, from panes of two."""
    x = np.arange(1, 13)
    window = HammerSlide("sum", slide=2)
    found = []
    for v in x.tolist():
        window.insert(v)
        if len(window) == 4:
            found.append(window.query())
            window.evict()
    assert found == sash.rolling(x, 4, every=2, agg="sum").tolist() == [10, 18, 26, 34, 42]
