"""``sash.Operator`` against ``sash.aggregate`` over the same rows: every window, batching, order of arrival and lateness."""

from __future__ import annotations

import datetime
import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from tests import window_oracle
from tests.own_aggregates import affine
from tests.test_tables import rows_strategy, several, table_of
from tests.window_oracle import Row

COMMUTE = [S.sum("v").alias("sum"), S.count().alias("count"), S.min("v").alias("min"), S.avg("v").where("v > 0").alias("avg")]
ORDERED = [affine("coalesce(v, 0)").alias("affine"), S.first("v").alias("first"), S.median("v").alias("median")]

FLAT = [affine("coalesce(v, 0)").alias("affine"), S.first("v").alias("first"), S.last("v").alias("last"), S.count().alias("count")]


def key_of(r):
    ranks = r.get("rows")
    return (r["query"], r["k"], r["window"]["start"], r["window"]["end"], None if ranks is None else (ranks["start"], ranks["end"]))


def rest_of(r):
    return {n: x for n, x in r.items() if n not in ("query", "k", "window", "rows", "revision", "retracted")}


def whole(rows, specs, aggs):
    return {key_of(r): rest_of(r) for r in sash.aggregate(table_of(rows), windows=specs, aggs=aggs, by="k", time="t").to_pylist()}


@st.composite
def arrivals(draw, rows, lateness):
    """Rows in batches, each with the watermark that follows it; no row comes too late."""
    steps, at = [], 0
    low = -(10**6)
    while at < len(rows):
        size = draw(st.integers(0, 6))
        batch = rows[at : at + size]
        at += size
        ahead = min((r.t for r in rows[at:]), default=80) + lateness
        watermark = draw(st.integers(-60, 100))
        low = max(low, min(watermark, ahead))
        steps.append((batch, low if draw(st.booleans()) else None))
        low = (
            max([low, *(w for _, w in steps if w is not None)])
            if steps[-1][1] is not None
            else max([w for _, w in steps if w is not None], default=-(10**6))
        )
    return steps


def due(spec, at):
    if isinstance(spec, type(W.session(1))):
        return at[3] + 1
    if isinstance(spec, type(W.rows(1))):
        return at[3] + 1 if at[4][1] - at[4][0] == spec.size else None
    return at[3]


def restored(op, specs, aggs):
    return sash.Operator.restore(op.snapshot(), windows=specs, aggs=aggs)


def run_final(steps, specs, aggs, lateness, restarts=(), **options):
    op = sash.Operator(windows=specs, aggs=aggs, by="k", time="t", lateness=lateness, **options)
    op.add(table_of([]))
    got, when = {}, {}
    for number, (batch, watermark) in enumerate([*steps, ([], "close")]):
        op.add(table_of(batch))
        if number in restarts:
            op = restored(op, specs, aggs)
        if watermark is None:
            continue
        result = op.close() if watermark == "close" else op.advance(watermark)
        for r in result.to_pylist():
            assert key_of(r) not in got, "a window was given twice"
            got[key_of(r)] = rest_of(r)
            when[key_of(r)] = watermark
    return got, when


@pytest.mark.parametrize(("aggs", "store"), [(COMMUTE, "lazy"), (COMMUTE, "eager"), (ORDERED, "auto")], ids=["lazy", "eager", "ordered"])
def test_final_results_are_those_of_the_table(aggs, store):
    @given(data=st.data(), cases=several, rows=rows_strategy(), lateness=st.integers(0, 20))
    def run(data, cases, rows, lateness):
        specs = {name: spec for name, (spec, _) in cases.items()}
        steps = data.draw(arrivals(rows, lateness))
        got, when = run_final(steps, specs, aggs, lateness, data.draw(st.sets(st.integers(0, 8))), store=store)
        expected = whole(rows, specs, aggs)
        assert got == expected
        marks = [w for _, w in steps if w is not None]
        for at, watermark in when.items():
            ready = due(specs[at[0]], at)
            first = next((w for w in marks if ready is not None and ready <= w - lateness), "close")
            if specs[at[0]].context == "context free":
                assert watermark == first, (at, watermark, first)
            else:  # a row may come at the watermark itself and be the one that ends a window
                assert watermark == "close" or (ready is not None and ready <= watermark - lateness)

    run()


@pytest.mark.parametrize("store", ["lazy", "eager"])
@pytest.mark.parametrize("aggs", [[S.sum("n").alias("sum")], [S.max("v").alias("max")], COMMUTE], ids=["one", "with nulls", "several"])
def test_a_stream_without_keys_gives_what_a_single_key_has(aggs, store):
    sizes = st.integers(1, 30)
    window = st.one_of(st.builds(W.sliding, sizes, every=sizes), st.builds(W.session, sizes))

    @given(
        data=st.data(), windows=st.lists(window, min_size=1, max_size=3), rows=rows_strategy(), lateness=st.integers(0, 20),
        emit=st.sampled_from(["final", "update"]), more=window,
    )  # fmt: skip
    def run(data, windows, rows, lateness, emit, more):
        """Rows without keys go straight into the slices that are there, rows of a key by way of slices of their own."""
        rows = [Row(1, r.t, r.v, r.flag, r.n) for r in (sorted(rows, key=lambda r: r.t) if data.draw(st.booleans()) else rows)]
        specs = {f"q{n}": spec for n, spec in enumerate(windows)}
        request = {"windows": specs, "aggs": aggs, "time": "t", "lateness": lateness, "store": store, "emit": emit}
        ops = [sash.Operator(**request, by="k"), sash.Operator(**request)]
        steps = data.draw(arrivals(rows, lateness))
        comes, restarts = data.draw(st.integers(0, 8)), data.draw(st.sets(st.integers(0, 8)))
        for number, (batch, watermark) in enumerate([*steps, ([], "close")]):
            for op in ops:
                op.add(table_of(batch))
                if number == comes:
                    op.add_query("more", more)
            if number in restarts:
                asked = specs | ({"more": more} if number >= comes else {})
                ops = [restored(op, asked, aggs) for op in ops]
            if watermark is not None:
                keyed, plain = [op.close() if watermark == "close" else op.advance(watermark) for op in ops]
                assert plain.to_pylist() == keyed.drop_columns(["k"]).to_pylist()
            assert ops[0].stats.slices == ops[1].stats.slices

    run()


def test_a_large_batch_without_keys_between_small_ones():
    """More rows than are kept room for, and so far apart that there are many more edges than rows."""
    windows = {"short": W.tumbling(1), "long": W.sliding(5000, every=700), "session": W.session(5)}
    request = {"windows": windows, "aggs": S.sum("v").alias("s"), "time": "t"}
    ops = [sash.Operator(**request, by="k"), sash.Operator(**request)]
    wide, far = np.arange(70_000) // 40, np.append(np.zeros(20_000, np.int64), 790_000)
    for ticks in ([0], [1], wide, [1750], wide + 1751, [5000], far + 5000, [795_001, 795_001, 795_007], [795_007]):
        ticks = np.asarray(ticks, np.int64)
        for op in ops:
            op.add(pa.table({"k": np.ones(len(ticks), np.int64), "t": ticks, "v": ticks % 7 - 3}))
        keyed, plain = [op.advance(int(ticks.max()) - 20) for op in ops]
        assert plain.equals(keyed.drop_columns(["k"]))
    assert ops[0].stats.slices == ops[1].stats.slices
    keyed, plain = [op.close() for op in ops]
    assert plain.equals(keyed.drop_columns(["k"]))


@sash.udaf(state=("int64",))
class nonzero_sum:
    """A sum that refuses zeros."""

    identity = (0,)
    commutative = True
    returns = "int64"

    def lift(v):
        if v == 0:
            raise ValueError("zero")
        return (v,)

    def combine(a, b):
        return (a[0] + b[0],)

    def lower(s):
        return s[0]


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize(
    "aggs", [[nonzero_sum("v").alias("own")], [S.sum("v").alias("sum"), nonzero_sum("v").alias("own"), S.count().alias("n")]]
)
def test_a_batch_that_an_aggregate_refuses_leaves_the_others_alone(aggs, by):
    op = sash.Operator(windows=W.tumbling(10), aggs=aggs, by=by, time="t")
    for t, values in ((1, [1]), (1, [1]), (2, [5, 0]), (4, [1])):  # two before, so that there are slices with room
        op.add(pa.table({"k": [1] * len(values), "t": [t] * len(values), "v": values}))
        if all(values):
            op.advance(t)
        else:
            with pytest.raises(sash.SashError, match="raised an error"):
                op.advance(t)
    (one,) = op.close().to_pylist()
    assert {one[name] for name in ("sum", "own", "n") if name in one} == {3}


def small_sum(commutes):
    """A sum that refuses to become large: ``combine`` raises."""

    class small_sum:
        identity = (0,)
        returns = "int64"
        commutative = commutes

        def lift(v):
            return (v,)

        def combine(a, b):
            if a[0] + b[0] > 1_000_000:
                raise ValueError("too large")
            return (a[0] + b[0],)

        def lower(s):
            return s[0]

    return sash.udaf(state=("int64",))(small_sum)


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize("commutes", [True, False])
@pytest.mark.parametrize("several", [False, True], ids=["alone", "among others"])
@pytest.mark.parametrize("kind", ["one", "several", "sessions"])
def test_a_combine_that_raises_changes_nothing(kind, several, commutes, by):
    """Rows that join slices which are there, in several chunks, states and keys: all of a step's rows are taken in, or none."""
    wide = 1 if commutes else 100  # rows in order wait for the horizon, and their windows must still be open then
    windows = {
        "one": {"a": W.tumbling(10 * wide)},
        "several": {"a": W.sliding(20 * wide, 5 * wide), "s": W.session(30 * wide)},
        "sessions": {"s": W.session(3 * wide), "b": W.band(0, 90 * wide)},
    }[kind]
    own = small_sum(commutes)
    aggs = [S.count().alias("n"), own("v").alias("own"), S.sum("v").alias("sum")] if several else [own("v").alias("own")]
    fine = [[(1, 1), (12, 2)], [(2, 3), (13, 4)], [(3, 5), (25, 6)]]
    poisoned = [[(4, 7), (14, 1_000_000)], [(14, 999_999), (4, 7)], [(13, 999_998), (12, 5), (26, 1)]]

    def batch(rows):
        return pa.table({"k": ["x"] * len(rows), "t": [t for t, _ in rows], "v": [v for _, v in rows]})

    def played(with_poison):
        op = sash.Operator(windows=windows, aggs=aggs, by=by, time="t", lateness=100 if commutes else 0)
        for number, rows in enumerate(fine):
            watermark = rows[0][0] if commutes else 40
            op.add(batch(rows))
            op.advance(watermark)
            if with_poison:
                op.add(batch(poisoned[number]))
                with pytest.raises(sash.SashError, match="raised an error"):
                    op.advance(watermark)
        return op.close().to_pylist()

    assert played(True) == played(False)


@pytest.mark.parametrize("aggs", [COMMUTE, ORDERED], ids=["commuting", "ordered"])
@pytest.mark.parametrize("emit", ["update", "running"])
def test_the_last_revision_is_the_final_result(emit, aggs):
    @given(data=st.data(), cases=several, rows=rows_strategy(), lateness=st.integers(0, 20))
    def run(data, cases, rows, lateness):
        specs = {name: spec for name, (spec, _) in cases.items()}
        steps = data.draw(arrivals(rows, lateness))
        op = sash.Operator(windows=specs, aggs=aggs, by="k", time="t", lateness=lateness, emit=emit)
        op.add(table_of([]))
        latest: dict = {}
        restarts = data.draw(st.sets(st.integers(0, 8)))
        for number, (batch, watermark) in enumerate([*steps, ([], "close")]):
            op.add(table_of(batch))
            if number in restarts:
                op = restored(op, specs, aggs)
            if watermark is None:
                continue
            result = op.close() if watermark == "close" else op.advance(watermark)
            for r in result.to_pylist():
                known = latest.get(key_of(r))
                # A row window is known by its ranks alone, the last rows by their edge: their times may move.
                if known is not None:
                    assert r["revision"] > known["revision"]
                latest[key_of(r)] = r
        standing: dict = {}
        for at, r in latest.items():
            identity = at
            if at[4] is not None:
                identity = (*at[:2], at[4][0])
            elif isinstance(specs[at[0]], type(W.last_rows(1, 1))):
                identity = (*at[:2], at[3])
            if identity not in standing or standing[identity][1]["revision"] < r["revision"]:
                standing[identity] = (at, r)
        got = {at: rest_of(r) for at, r in standing.values() if not r["retracted"]}
        assert got == whole(rows, specs, aggs)

    run()


@pytest.mark.parametrize("aggs", [COMMUTE, FLAT, ORDERED], ids=["commuting", "flat", "objects"])
def test_declared_in_order(aggs):
    @given(cases=several, rows=rows_strategy(), cuts=st.lists(st.integers(1, 10), max_size=20), restarts=st.sets(st.integers(0, 8)))
    def run(cases, rows, cuts, restarts):
        rows = sorted(rows, key=lambda r: r.t)
        specs = {name: spec for name, (spec, _) in cases.items()}
        op = sash.Operator(windows=specs, aggs=aggs, by="k", time="t", ordered=True)
        got, at = {}, 0
        for number, size in enumerate([*cuts, len(rows) + 1]):
            for r in op.add(table_of(rows[at : at + size])).to_pylist():
                assert key_of(r) not in got
                got[key_of(r)] = rest_of(r)
            at += size
            if number in restarts:
                op = restored(op, specs, aggs)
        got |= {key_of(r): rest_of(r) for r in op.close().to_pylist()}
        assert got == whole(rows, specs, aggs)

    run()


@pytest.mark.parametrize("emit", ["final", "update", "running"])
@pytest.mark.parametrize("aggs", [COMMUTE, FLAT, ORDERED], ids=["commuting", "flat", "objects"])
def test_declared_in_order_with_ties_that_come_in_any_order(aggs, emit):
    @given(cases=several, rows=rows_strategy(), cuts=st.lists(st.integers(1, 4), max_size=20), data=st.data())
    def run(cases, rows, cuts, data):
        rows = sorted((Row(r.key, r.t // 4, r.v, r.flag, r.n) for r in rows), key=lambda r: r.t)
        specs = {name: spec for name, (spec, _) in cases.items()}
        op = sash.Operator(windows=specs, aggs=aggs, by="k", time="t", order_by="n", ordered=True, emit=emit)
        arriving = sorted(data.draw(st.permutations(rows)), key=lambda r: r.t)
        results, at = [], 0
        for size in [*cuts, len(rows) + 1]:
            results += op.add(table_of(arriving[at : at + size])).to_pylist()
            at += size
        standing = {}
        for r in [*results, *op.close().to_pylist()]:
            where = key_of(r)
            if where[4] is not None:
                where = (*where[:2], where[4][0])
            elif isinstance(specs[where[0]], type(W.last_rows(1, 1))):
                where = (*where[:2], where[3])
            standing[where] = r
        table = sash.aggregate(table_of(rows), windows=specs, aggs=aggs, by="k", time="t", order_by="n")
        expected = {key_of(r): rest_of(r) for r in table.to_pylist()}
        assert {key_of(r): rest_of(r) for r in standing.values() if not r.get("retracted")} == expected

    run()


def test_an_in_order_stream_keeps_no_rows_and_cuts_at_starts_only():
    specs = {"a": W.sliding(16, 7), "r": W.rows(10, 3), "p": W.punctuation("t % 20 = 0")}
    op = sash.Operator(windows=specs, aggs=[S.sum("v").alias("s"), S.last("v").alias("l")], time="t", ordered=True)
    for t in range(500):
        op.add([{"t": t, "v": t}])
        assert op.stats.kept_rows == 1, "the rows of the newest time"
        time, rest = op._engine.stores
        assert time.stats().slices == len([s for s in range(0, t + 1, 7) if s + 16 > t])
        # Rows before t are settled, and row windows closed that end with them; of punctuation windows the last is open.
        oldest = min(max(0, (t - 10) // 3 + 1) * 3, t // 20 * 20)
        assert rest.stats().slices == len([r for r in range(oldest, t) if r % 3 == 0 or r % 20 == 0])
    assert "rows kept: no" in op.explain()
    assert op.stats.merges > 0
    op.remove_query("p")
    op.remove_query("a")
    assert [r["rows"]["start"] for r in op.close().to_pylist()] == []


def test_late_rows_count_where_windows_are_open_and_are_given_out_otherwise():
    op = sash.Operator(windows={"a": W.tumbling(10), "b": W.tumbling(100)}, aggs=[S.count().alias("n")], time="t", late="output")
    op.add([{"t": 5}, {"t": 15}])
    assert [(r["query"], r["n"]) for r in op.advance(20).to_pylist()] == [("a", 1), ("a", 1)]
    op.add([{"t": 7}])  # too late for a, not for b
    assert op.advance(100).column("n").to_pylist() == [3]
    op.add([{"t": 8}, {"t": 120}])
    assert op.stats.late == 1
    assert op.late_rows().to_pylist() == [{"t": 8}]
    assert op.late_rows().num_rows == 0


def test_slices_are_as_few_as_edges_ask_for():
    op = sash.Operator(windows={"a": W.sliding(10, 5), "b": W.sliding(9, 3, offset=1)}, aggs=[S.sum("v").alias("s")], time="t")
    op.add(pa.table({"t": list(range(100)), "v": [1] * 100}))
    edges = {e for e in range(-10, 100) if e % 5 == 0 or (e - 1) % 3 == 0}
    assert op.stats.slices == len([e for e in edges if 0 < e < 100]) + 1
    op.remove_query("b")
    assert op.stats.slices == 20
    op.advance(50)
    assert op.stats.slices == 11  # the windows from 45 on are open
    sessions = sash.Operator(windows=W.session(3), aggs=[S.count()], time="t")
    sessions.add(pa.table({"t": [1, 2, 10, 11]}))
    assert sessions.stats.slices == 2
    sessions.add(pa.table({"t": [5, 8]}))
    assert sessions.stats.slices == 1
    assert sessions.stats.merges == 1


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize("other", [{}, {"other": W.tumbling(100)}, {"other": W.session(7)}])
def test_rows_on_both_sides_of_a_short_session(by, other):
    op = sash.Operator(windows={"s": W.session(5), **other}, aggs=[S.count().alias("n")], time="t", by=by)
    op.add([{"t": 10, "k": 1}])
    op.advance(0)
    op.add([{"t": 6, "k": 1}, {"t": 14, "k": 1}])  # further apart than the gap, but not from the row that was there
    op.advance(0)
    (one,) = [r for r in op.close().to_pylist() if r["query"] == "s"]
    assert (one["window"], one["n"]) == ({"start": 6, "end": 19}, 3)


@pytest.mark.parametrize("emit", ["final", "update", "running"])
def test_a_late_row_in_a_band_and_rows_on_both_sides_of_it(emit):
    op = sash.Operator(windows={"b": W.band(0, 1), "s": W.session(5)}, aggs=[S.count().alias("n")], time="t", emit=emit)
    op.add([{"t": -1}, {"t": 3}])
    op.advance(-10)
    op.add([{"t": 0}])
    got = {r["query"]: (r["window"]["start"], r["window"]["end"], r["n"]) for r in op.close().to_pylist() if not r.get("retracted")}
    assert got == {"b": (0, 1, 1), "s": (-1, 8, 3)}


def test_a_row_in_a_band_after_one_behind_it():
    op = sash.Operator(windows=W.band(0, 1), aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 3}])
    op.advance(0)
    op.add([{"t": 0}])
    assert [r["n"] for r in op.close().to_pylist()] == [1]


@pytest.mark.parametrize("batches", [[[9, 10, 12, 20]], [[9], [10], [12], [20]], [[20, 12], [10, 9]]])
@pytest.mark.parametrize("window", [W.sliding(1, 9), W.band(9, 10)])
def test_a_row_that_no_window_would_hold_is_not_late(window, batches):
    op = sash.Operator(windows=window, aggs=[S.count().alias("n")], time="t", late="output")
    op.add(pa.table({"t": pa.array([], pa.int64())}))
    op.advance(15)
    for batch in batches:
        op.add(pa.table({"t": batch}))
        op.advance(15)
    assert op.stats.late == 1
    assert op.late_rows().to_pylist() == [{"t": 9}]


@pytest.mark.parametrize("late", [[4], [12], [12, 18], [11, 12, 18]])
def test_a_query_that_comes_does_not_cut_what_was_before_it(late):
    op = sash.Operator(windows={"a": W.tumbling(20)}, aggs=[S.count().alias("n"), S.last("v").alias("last")], time="t", lateness=100)
    op.add([{"t": 3, "v": 3}, {"t": 17, "v": 17}])
    op.advance(118)
    op.add_query("b", W.tumbling(10))
    for t in late:
        op.add([{"t": t, "v": t}])
        op.advance(119)
    (one,) = op.close().to_pylist()
    assert (one["query"], one["n"], one["last"]) == ("a", 2 + len(late), max(17, *late))


@pytest.mark.parametrize("emit", ["final", "running"])
def test_a_session_beside_a_query_that_comes(emit):
    op = sash.Operator(windows={"s": W.session(7)}, aggs=[S.count().alias("n")], time="t", emit=emit)
    op.add([{"t": 3}, {"t": 9}])
    op.advance(0)
    op.add_query("p", W.tumbling(5))
    op.add([{"t": 6}])
    (one,) = [r for r in op.close().to_pylist() if not r.get("retracted")]
    assert (one["window"], one["n"]) == ({"start": 3, "end": 16}, 3)


@pytest.mark.parametrize(("aggs", "store"), [(COMMUTE, "lazy"), (COMMUTE, "eager"), (FLAT, "auto"), (ORDERED, "auto")])
def test_queries_that_come_and_go_leave_others_alone(aggs, store):
    @given(data=st.data(), cases=several, rows=rows_strategy(), more=st.lists(window_oracle.cases(), min_size=1, max_size=3))
    def run(data, cases, rows, more):
        """Rows come in any order within the lateness; a query that comes has the windows that start after the newest row."""
        specs = {name: spec for name, (spec, _) in cases.items()}
        op = sash.Operator(windows=specs, aggs=aggs, by="k", time="t", lateness=10**6, store=store)
        op.add(table_of([]))
        asked, since, at = dict(specs), {}, 0
        for n, (spec, _) in enumerate(more):
            before, at = at, data.draw(st.integers(at, len(rows)))
            op.add(table_of(rows[before:at]))
            op.advance(n)
            asked[f"more {n}"], since[f"more {n}"] = spec, max((r.t + 1 for r in rows[:at]), default=-(10**9))
            op.add_query(f"more {n}", spec)
            if n and data.draw(st.booleans()):
                op.remove_query(f"more {n - 1}")
                del asked[f"more {n - 1}"]
            if data.draw(st.booleans()):
                op = restored(op, asked, aggs)
        op.add(table_of(rows[at:]))
        got = {key_of(r): rest_of(r) for r in op.close().to_pylist()}
        expected = whole(rows, specs, aggs)
        for name in asked.keys() & since.keys():
            spec, begin = asked[name], since[name]
            free = spec.context == "context free" and not isinstance(spec, type(W.unbounded()))
            mine = whole(rows if free else [r for r in rows if r.t >= begin], {name: spec}, aggs)
            expected |= {at: rest for at, rest in mine.items() if not free or at[2] >= begin}
        assert got == expected

    run()


@pytest.mark.parametrize("aggs", [COMMUTE, FLAT], ids=["commuting", "ordered"])
def test_queries_that_come_and_go_leave_windows_with_late_rows_alone(aggs):
    long, short = st.integers(10, 30), st.integers(1, 10)
    steps = st.lists(st.tuples(st.integers(-9, 9), st.lists(st.integers(-15, 15), max_size=4)), min_size=3, max_size=12)
    changes = st.dictionaries(st.integers(0, 5), st.builds(W.sliding, short, short, offset=st.integers(0, 9)), min_size=1, max_size=3)

    @given(
        specs=st.lists(st.builds(W.sliding, long, long), min_size=1, max_size=2),
        steps=steps,
        changes=changes,
        lateness=st.integers(0, 30),
        gone=st.booleans(),
    )
    def run(specs, steps, changes, lateness, gone):
        found = []
        for coming in ({}, changes):
            op = sash.Operator(windows={f"{k}": w for k, w in enumerate(specs)}, aggs=aggs, time="t", lateness=lateness)
            op.add(table_of([]))
            watermark, got, names = 0, [], []
            for n, (ahead, ticks) in enumerate(steps):
                op.add(table_of([Row(None, watermark + t, watermark + t, False, 0) for t in ticks]))
                watermark += max(0, ahead)
                got += op.advance(watermark).to_pylist()
                if n in coming:
                    names.append(f"more {n}")
                    op.add_query(names[-1], coming[n])
                if gone and len(names) == 2:
                    op.remove_query(names.pop(0))
            got += op.close().to_pylist()
            found.append(sorted((r for r in got if r["query"] not in (f"more {n}" for n in coming)), key=repr))
        assert found[0] == found[1]

    run()


def test_queries_come_and_go():
    op = sash.Operator(windows={"a": W.tumbling(10)}, aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 1}, {"t": 12}])
    op.add_query("b", W.tumbling(5))
    op.add_query("s", W.session(2))
    op.add_query("p", W.punctuation("t % 10 = 0"))
    op.add([{"t": 13}, {"t": 14}, {"t": 16}, {"t": 20}, {"t": 33}])
    got = [(r["query"], r["window"]["start"], r["window"]["end"], r["n"]) for r in op.advance(30).to_pylist()]
    assert sorted(got) == sorted(
        [
            ("a", 0, 10, 1),
            ("a", 10, 20, 4),
            ("a", 20, 30, 1),
            ("b", 15, 20, 1),
            ("b", 20, 25, 1),
            ("s", 13, 18, 3),
            ("s", 20, 22, 1),
            ("p", 13, 20, 3),
        ]
    )
    op.remove_query("a")
    op.remove_query("p")
    assert {r["query"] for r in op.close().to_pylist()} == {"b", "s"}


# Snapshots that must be refused.


@pytest.mark.parametrize("store", ["lazy", "eager"])
@pytest.mark.parametrize("late", [[0], [0, 1], [-5, 1], [3, 0], [-5, -5]])
def test_a_snapshot_between_steps_holds_rows_older_than_the_undivided_slice(store, late):
    """Of windows that never end all old slices are joined at a step; a row among them has a slice of its own until the next one."""
    op = sash.Operator(windows=W.unbounded(), aggs=[S.count().alias("n"), S.max("t").alias("m")], time="t", store=store, emit="update")
    op.add(pa.table({"t": [0, 0, 1]}))
    op.advance(0)
    op.add(pa.table({"t": late}))
    other = sash.Operator.restore(op.snapshot())
    for each in (op, other):
        each.add(pa.table({"t": [2]}))
    assert other.advance(2).to_pylist() == op.advance(2).to_pylist()
    assert other.close()["n"].to_pylist() == op.close()["n"].to_pylist()


def test_damaged_and_foreign_snapshots_are_refused():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v")], time="t")
    op.add([{"t": 1, "v": 2}])
    good = op.snapshot()
    for bad, reason in [
        (b"", "no snapshot"),
        (b"something else", "no snapshot"),
        (good[:-1], "damaged"),
        (good[:40] + bytes([good[40] ^ 1]) + good[41:], "damaged"),
        ("text", "bytes"),
    ]:
        with pytest.raises(sash.errors.InvalidSnapshot, match=reason):
            sash.Operator.restore(bad)
    newer = good[:8] + bytes([99]) + good[9:-32]
    with pytest.raises(sash.errors.InvalidSnapshot, match="version 99"):
        sash.Operator.restore(newer + hashlib.sha256(newer).digest())
    with pytest.raises(sash.errors.InvalidSnapshot, match="tumbling"):
        sash.Operator.restore(good, windows=W.tumbling(11))
    with pytest.raises(sash.errors.InvalidSnapshot, match="aggs"):
        sash.Operator.restore(good, aggs=[S.max("v")])
    assert sash.Operator.restore(good).close().to_pylist() == op.close().to_pylist()


def test_own_windows_and_aggregates_are_given_again():
    specs, aggs = {"d": window_oracle.Delta("v", 3)}, [affine("v").alias("a")]
    op = sash.Operator(windows=specs, aggs=aggs, time="t")
    op.add([{"t": 1, "v": 2}])
    with pytest.raises(sash.errors.InvalidSnapshot, match="user's own"):
        sash.Operator.restore(op.snapshot())
    with pytest.raises(sash.errors.InvalidSnapshot, match="affine"):
        sash.Operator.restore(op.snapshot(), windows=specs)
    with pytest.raises(sash.errors.InvalidSnapshot, match="window 'd'"):
        sash.Operator.restore(op.snapshot(), windows={"d": window_oracle.Delta("v", 4)}, aggs=aggs)
    again = sash.Operator.restore(op.snapshot(), windows=specs, aggs=aggs)
    assert again.close().to_pylist() == op.close().to_pylist()


# Bad input: a clear error, and the operator is unharmed.


def test_bad_input_leaves_the_operator_unharmed():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t")
    op.add([{"t": 1, "v": 2}])
    bad = [
        (pa.table({"t": [1]}), LookupError, "'v'"),
        (pa.table({"t": [1], "v": ["x"]}), TypeError, "'v' has the type string"),
        (pa.table({"t": [1], "v": [1], "w": [1]}), ValueError, "'w'"),
        ([{"t": 1, "v": "x"}], TypeError, "do not fit"),
        ([{"t": 1, "z": 1}], ValueError, "'z'"),
        ([1, 2], TypeError, "dictionaries"),
        (object(), TypeError, "Arrow"),
        ([{"t": 2**62, "v": 1}], ValueError, "2\\*\\*61"),
    ]
    for batch, kind, message in bad:
        with pytest.raises(kind, match=message):
            op.add(batch)
    assert op.advance(5).num_rows == 0
    with pytest.raises(ValueError, match="only advances"):
        op.advance(4)
    with pytest.raises(ValueError, match="watermark"):
        op.advance("later")
    with pytest.raises(ValueError, match="already"):
        op.add_query("window", W.tumbling(3))
    with pytest.raises(LookupError, match="query"):
        op.remove_query("windoe")
    with pytest.raises(ValueError, match="last query"):
        op.remove_query("window")
    with pytest.raises(ValueError, match="late"):
        op.late_rows()
    op.add([{"t": 2, "v": 3}])
    assert op.advance(10).to_pylist() == [{"query": "window", "window": {"start": 0, "end": 10}, "s": 5}]
    op.close()
    with pytest.raises(ValueError, match="closed"):
        op.add([{"t": 2, "v": 3}])


def test_in_order_streams_refuse_a_row_out_of_order():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.count().alias("n")], time="t", ordered=True)
    assert op.add([{"t": 1}, {"t": 11}]).column("n").to_pylist() == [1]
    with pytest.raises(sash.errors.LateRow, match="row 1 of the batch has the time 14"):
        op.add([{"t": 15}, {"t": 14}])
    with pytest.raises(sash.errors.LateRow):
        op.add([{"t": 10}])
    with pytest.raises(ValueError, match="in-order"):
        op.advance(3)
    assert op.add([{"t": 20}]).column("n").to_pylist() == [1]


def test_idle_keys_are_closed_and_rows_ahead_set_aside():
    op = sash.Operator(windows={"p": W.punctuation("v = 0"), "u": W.unbounded()}, aggs=[S.sum("v").alias("s")], by="k", time="t", idle=100)
    op.add([{"k": 1, "t": 1, "v": 5}, {"k": 2, "t": 90, "v": 6}])
    assert op.advance(50).num_rows == 0
    assert sorted((r["query"], r["k"], r["s"]) for r in op.advance(150).to_pylist()) == [("p", 1, 5), ("u", 1, 5)]
    op.add([{"k": 1, "t": 160, "v": 1}])
    assert sorted((r["query"], r["k"], r["s"]) for r in op.close().to_pylist()) == [("p", 1, 1), ("p", 2, 6), ("u", 1, 1), ("u", 2, 6)]
    now = datetime.datetime.now(datetime.UTC)
    op = sash.Operator(windows=W.unbounded(), aggs=[S.count().alias("n")], time="t", max_ahead="1 hour")
    op.add(pa.table({"t": pa.array([now, now + datetime.timedelta(hours=2)], pa.timestamp("us", "UTC"))}))
    assert (op.stats.ahead, op.close().column("n").to_pylist()) == (1, [1])


def test_explain_shows_the_decision_trees():
    op = sash.Operator(windows={"t": W.tumbling(10), "r": W.rows(5)}, aggs=[S.sum("v"), S.max("v"), S.avg("v")], time="t")
    op.add([{"t": 1, "v": 2}])
    text = op.explain()
    assert "rows kept: no (edges are known in advance and the aggregates commute" in text
    assert "rows kept: yes (out of order, and rows are counted" in text
    assert "slices of sum(v): invert" in text
    assert "slices of max(v): nothing, unless" in text
    op.remove_query("r")
    assert "rows kept: yes" not in op.explain()


@given(rows=rows_strategy(), sizes=st.lists(st.integers(1, 7), max_size=30), case=window_oracle.cases())
def test_batches_of_any_size_mean_the_same(rows, sizes, case):
    """Rows one by one as dictionaries, and in batches."""
    spec = {"w": case[0]}
    one = sash.Operator(windows=spec, aggs=COMMUTE, by="k", time="t")
    many = sash.Operator(windows=spec, aggs=COMMUTE, by="k", time="t")
    one.add(table_of([]))
    many.add(table_of([]))
    at = 0
    for size in [*sizes, len(rows) + 1]:
        part = rows[at : at + size]
        for r in part:
            one.add([{"k": r.key, "t": r.t, "v": r.v, "flag": r.flag, "n": r.n}])
        many.add(table_of(part))
        at += size
    assert one.close().to_pylist() == many.close().to_pylist()


def test_an_expression_that_fails_takes_nothing_in():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("100 / v").alias("s")], time="t")
    op.add([{"t": 1, "v": 2}])
    with pytest.raises(ValueError, match="division by zero"):
        op.add([{"t": 2, "v": 4}, {"t": 3, "v": 0}])
    assert op.stats.rows == 1
    assert op.advance(10).column("s").to_pylist() == [50.0]


def test_a_sum_that_does_not_fit_is_an_error_of_its_window_alone():
    for spec in (W.tumbling(10), W.rows(2)):
        op = sash.Operator(windows=spec, aggs=[S.sum("v").alias("s")], time="t")
        op.add([{"t": 1, "v": 2**60}, {"t": 2, "v": 2**60}, {"t": 11, "v": 1}, {"t": 12, "v": 1}])
        for _ in range(7):
            op.add([{"t": 2, "v": 2**60}] if isinstance(spec, type(W.tumbling(1))) else [])
        if isinstance(spec, type(W.tumbling(1))):
            with pytest.raises(OverflowError):
                op.advance(20)
            with pytest.raises(OverflowError):  # still there: nothing was lost
                op.advance(20)
        else:
            assert op.advance(20).column("s").to_pylist() == [2**61, 2]


context_free = window_oracle.cases().filter(lambda case: case[0].context == "context free" and case[1] is not window_oracle.unbounded)


@pytest.mark.parametrize("aggs", [COMMUTE, ORDERED], ids=["commuting", "ordered"])
def test_late_rows_count_only_in_windows_that_are_open(aggs):
    @given(
        cases=st.dictionaries(st.sampled_from(["a", "b"]), context_free, min_size=1),
        steps=st.lists(st.tuples(rows_strategy(most=6), st.integers(0, 25)), max_size=6),
        lateness=st.integers(0, 20),
    )
    def run(cases, steps, lateness):
        specs = {name: spec for name, (spec, _) in cases.items()}
        op = sash.Operator(windows=specs, aggs=aggs, by="k", time="t", lateness=lateness)
        op.add(table_of([]))
        watermark, arrived, got = -60, [], {}
        for batch, ahead in [*steps, ([], 10**6)]:
            # In what was closed when it came, a row does not count.
            arrived += [(r, watermark - lateness) for r in batch]
            op.add(table_of(batch))
            watermark += ahead
            for r in op.advance(watermark).to_pylist():
                assert key_of(r) not in got
                got[key_of(r)] = rest_of(r)
        expected = {}
        for name, (_, windows) in cases.items():
            for key in {r.key for r, _ in arrived}:
                group = sorted((r for r, _ in arrived if r.key == key), key=lambda r: r.t)
                closed = {id(r): horizon for r, horizon in arrived}
                for start, end, _, part in windows(group):
                    held = [r for r in part if end > closed[id(r)]]
                    if held:
                        table = table_of(held)
                        one = sash.aggregate(table, windows=W.band(start, end), aggs=aggs, by="k", time="t").to_pylist()
                        expected[name, key, start, end, None] = {n: x for n, x in one[0].items() if n not in ("k", "window")}
        assert got == expected

    run()
