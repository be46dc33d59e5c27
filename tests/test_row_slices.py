"""Slices of rows that are kept: what stays from step to step is what computing all of it again would give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import InvalidArgument
from sash.slicing.stores.lineage import GrowingColumns, Lineage
from tests import window_oracle
from tests.own_aggregates import affine
from tests.own_windows import Moved


@given(data=st.data())
def test_rows_are_found_again_wherever_they_went(data):
    lineage, rows, numbers = Lineage(), [], GrowingColumns(1)
    looked, offsets, fresh = [], np.zeros(1, np.int64), 1000
    for _ in range(data.draw(st.integers(1, 12))):
        what = data.draw(st.sampled_from(["insert", "drop", "thin", "look"]))
        if what == "insert":
            first = data.draw(st.integers(0, len(rows)))
            new = list(range(fresh, fresh := fresh + data.draw(st.integers(1, 4))))
            tail = rows[first:]
            for row in new:
                tail.insert(data.draw(st.integers(0, len(tail))), row)
            where = dict(zip(rows[first:], lineage.of(first).tolist(), strict=True))
            lineage.put(first, np.array([where.get(r, -1) for r in tail], np.int64))
            numbers.put(first, np.array([tail], np.int64))
            rows = rows[:first] + tail
        elif what == "drop":
            count = data.draw(st.integers(0, len(rows)))
            rows = rows[count:]
            lineage.drop(count)
            numbers.drop(count)
        elif what == "thin":
            kept = [k for k in range(len(rows)) if data.draw(st.booleans())]
            lineage.put(0, lineage.of(0)[kept])
            rows = [rows[k] for k in kept]
            numbers.put(0, np.array([rows], np.int64))
        else:
            lineage.look(len(rows))
            looked = list(rows)
            cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(rows) - 1))))) if rows else []
            offsets = np.array([0, *(c for c in cuts if c < len(rows)), len(rows)] if rows else [0], np.int64)
        assert numbers.column(0).tolist() == rows
        assert lineage.of(0).tolist() == [looked.index(r) if r in looked else -1 for r in rows]
        assert lineage.fresh().tolist() == [k for k, r in enumerate(rows) if r not in looked]
        whole, start, stop = lineage.runs(offsets)
        expected = []
        for k in range(len(offsets) - 1):
            run = looked[offsets[k] : offsets[k + 1]]
            if all(r in rows for r in run):
                expected.append((k, rows.index(run[0]), rows.index(run[-1]) + 1))
        assert list(zip(whole.tolist(), start.tolist(), stop.tolist(), strict=True)) == expected


def test_rows_are_found_again_after_all_that_were_known_have_moved():
    lineage = Lineage()
    lineage.look(4)
    lineage.put(0, np.array([0, 1]))
    lineage.put(0, np.array([-1, -1, -1, 0, 1]))
    lineage.drop(3)
    assert [a.tolist() for a in lineage.runs(np.array([0, 2, 4]))] == [[0], [0], [2]]
    lineage.look(2)
    lineage.put(0, np.array([-1, -1, 0, 1]))
    lineage.drop(2)
    assert [a.tolist() for a in lineage.runs(np.array([0, 1, 2]))] == [[0, 1], [0, 1], [1, 2]]


def test_no_key_has_the_partials_of_another():
    op = sash.Operator(windows=W.last_rows(2, 100), aggs=[S.sum("v").alias("s")], by="k", time="t", idle=50)
    op.add([{"k": k, "t": t, "v": v} for k, t, v in [(0, 190, 1), (0, 195, 2), (1, 10, 1000), (1, 20, 2000)]])
    op.advance(100)
    op.add([{"k": 0, "t": t, "v": 7} for t in (160, 161, 162)])
    op.advance(163)
    op.advance(196)
    assert op.advance(200).select(["k", "s"]).to_pylist() == [{"k": 0, "s": 3}]


AGGS = [
    S.sum("v").alias("sum"), S.min("v").alias("min"), S.avg("f").alias("avg"), S.count("n").alias("count"), S.first("v").alias("first"),
    affine("v").alias("affine"), S.median("v").alias("median"), S.max("text").alias("text"), S.sum("v").where("v > 50").alias("some"),
]  # fmt: skip


def stream(seed, rows, keys, late, delay):
    """Rows by arrival, some of them late, and the time that nothing is older than after each."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.integers(0, rows, rows))
    arrival = np.argsort(t + np.where(rng.random(rows) < late, rng.integers(0, delay, rows), 0), kind="stable")
    v = rng.integers(0, 100, rows)
    n = pa.array(v, mask=rng.random(rows) < 0.3)
    table = pa.table({
        "k": rng.integers(0, keys, rows), "t": t, "v": v, "f": v / 7, "n": n, "text": [f"x{x}" for x in v],
        "flag": rng.random(rows) < 0.02,
    })  # fmt: skip
    t = t[arrival]
    return table.take(pa.array(arrival)), np.append(np.minimum.accumulate(t[::-1])[::-1], rows)


def same(got, expected):
    assert got.keys() == expected.keys()
    for at, row in expected.items():
        for name, value in row.items():
            assert got[at][name] == (pytest.approx(value) if isinstance(value, float) else value), (at, name)


def key_of(r):
    ranks = r.get("rows")
    window = (r["window"]["end"],) if r["query"] == "l" else tuple(r["window"].values())  # what makes it the same one later
    return (r["query"], r["k"], window if ranks is None else ranks["start"])


def rest_of(r):
    return {n: x for n, x in r.items() if n not in ("query", "k", "rows", "revision", "retracted")}


LONG = [
    {"r": W.rows(60, 20)},
    {"r": W.rows(50, 30, partial=True), "s": W.rows(100)},
    {"p": W.punctuation("flag")},
    {"l": W.last_rows(40, 25)},
    {"m": Moved("v", 60), "t": window_oracle.Threshold("v", 30)},
    {"p": W.punctuation("flag"), "r": W.rows(64, 16), "m": window_oracle.Alarm("v", 90, 30)},
    {"h": W.sliding(120, 40)},
]


@pytest.mark.parametrize("windows", LONG, ids="+".join)
@pytest.mark.parametrize("emit", ["final", "update"])
@pytest.mark.parametrize("keys", [1, 3])
def test_slices_that_stay_are_those_of_the_rows(windows, emit, keys):
    for seed in range(3):
        table, oldest = stream(seed, 600, keys, 0.3, 80)
        delay = 100 if emit == "update" else 0
        op = sash.Operator(windows=windows, aggs=AGGS, by="k", time="t", emit=emit, lateness=delay)
        got, at = {}, 0
        rng = np.random.default_rng(seed)
        op.add(table.slice(0, 0))
        while at < len(table):
            size = int(rng.integers(1, 60))
            op.add(table.slice(at, size))
            at = min(at + size, len(table))
            results = [op.advance(int(oldest[at]) + delay)]
            if rng.random() < 0.1:
                op = sash.Operator.restore(op.snapshot(), windows=windows, aggs=AGGS)
            if at == len(table):
                results.append(op.close())
            for r in pa.concat_tables(results).to_pylist():
                if r.get("retracted"):
                    got.pop(key_of(r))
                else:
                    assert emit == "update" or key_of(r) not in got
                    got[key_of(r)] = rest_of(r)
        expected = sash.aggregate(table, windows=windows, aggs=AGGS, by="k", time="t").to_pylist()
        if len(windows) == 1:
            expected = [{"query": next(iter(windows)), **r} for r in expected]
        same(got, {key_of(r): rest_of(r) for r in expected})


def test_a_late_row_moves_the_last_row_of_each_slice_on():
    aggs = [S.sum("v").alias("sum"), S.min("v").alias("min")]
    op = sash.Operator(windows=W.rows(10), aggs=aggs, time="t", emit="update", lateness=1000)
    op.add(pa.table({"t": np.arange(1, 101), "v": np.arange(1, 101)}))
    first = op.advance(90).to_pylist()
    assert [r["sum"] for r in first] == [sum(range(10 * k + 1, 10 * k + 11)) for k in range(8)]
    op.add([{"t": 0, "v": 1000}])
    changed = op.advance(91).to_pylist()
    assert [r["sum"] for r in changed[:2]] == [1000 + sum(range(1, 10)), sum(range(10, 20))]
    assert [r["min"] for r in changed[:2]] == [1, 10]
    assert all(r["revision"] == 1 for r in changed[:8])
    assert (op.stats.splits, op.stats.merges, op.stats.shifts) == (0, 0, 10)


def test_a_late_punctuation_cuts_a_slice_in_two():
    op = sash.Operator(windows=W.punctuation("p"), aggs=[S.count().alias("n")], time="t", emit="update", lateness=1000)
    op.add([{"t": t, "p": t in (40, 80)} for t in range(100) if t != 20])
    assert op.advance(90).column("n").to_pylist() == [39, 40]
    slices = op.stats.slices
    op.add([{"t": 20, "p": True}])
    now = op.advance(91).to_pylist()
    assert [(r["window"]["start"], r["n"], r["retracted"]) for r in now if not r["retracted"]] == [(0, 20, False), (20, 20, False)]
    assert (op.stats.splits, op.stats.slices) == (1, slices + 1)


def test_there_are_as_many_slices_as_edges_ask_for():
    op = sash.Operator(windows={"a": W.rows(30, 10), "b": W.rows(20, 15)}, aggs=[S.sum("v").alias("s")], time="t")
    steps = 0
    for start in range(0, 600, 7):
        op.add(pa.table({"t": np.arange(start, start + 7), "v": np.arange(7)}))
        given = op.advance(start + 7)
        open_until = start  # what the step before had seen; at its end it let go of what no open window needed
        first = min(k for k in range(0, 602, 5) if (k % 10 == 0 and k + 30 > open_until) or (k % 15 == 0 and k + 20 > open_until))
        edges = [r for r in range(first + 1, start + 7) if r % 10 == 0 or r % 15 == 0 or (r >= 20 and (r - 20) % 15 == 0)]
        if len(given):
            assert op.stats.slices == len(edges) + 1
            steps += 1
    assert steps > 50


def test_slices_are_kept_short_while_they_are_read_again_and_again():
    aggs = [S.stddev_samp("v").alias("d"), affine("v").alias("a")]
    op = sash.Operator(windows={"p": W.punctuation("p")}, aggs=aggs, time="t", emit="update", lateness=10**6)
    rng = np.random.default_rng(1)
    values, marks = rng.integers(0, 100, 6000), np.zeros(6000, bool)
    late = rng.permutation(np.arange(100, 5900))[:60]
    in_time = np.setdiff1d(np.arange(6000), late)
    marks[late[::3]] = True
    whole = pa.table({"t": np.arange(6000), "v": values, "p": marks})
    op.add(whole.take(in_time))
    op.advance(6000)
    (state,) = op._engine.stores
    assert state.slices.largest is None
    got = {}
    for row in late.tolist():
        op.add(whole.slice(row, 1))
        for r in op.advance(6001).to_pylist():
            got[tuple(r["window"].values())] = None if r["retracted"] else (r["d"], r["a"])
    assert state.slices.largest is not None
    assert op.stats.slices > 21
    expected = sash.aggregate(whole, windows=W.punctuation("p"), aggs=aggs, time="t").to_pylist()
    assert {tuple(r["window"].values()): (pytest.approx(r["d"]), r["a"]) for r in expected[:-1]} == {w: x for w, x in got.items() if x}
    for start in range(6000, 6000 + 40 * 10, 10):  # and when they are not, they are long again
        op.add(pa.table({"t": np.arange(start, start + 10), "v": np.arange(10), "p": np.zeros(10, bool)}))
        op.advance(6001)
    assert state.slices.largest is None
    assert op.stats.slices == 21


class Counted(Moved):
    """Counts its notices."""

    notices = 0

    def notify(self, context, time, value, *, edges):
        type(self).notices += 1
        return super().notify(context, time, value, edges=edges)


def test_a_users_window_is_shown_each_row_a_few_times_and_keeps_what_it_needs():
    Counted.notices, most = 0, 0
    op = sash.Operator(windows={"m": Counted("v", 60), "t": window_oracle.Threshold("v", 200)}, aggs=[S.count().alias("n")], time="t")
    rng = np.random.default_rng(2)
    given = 0
    for start in range(0, 20_000, 100):
        op.add(pa.table({"t": np.arange(start, start + 100), "v": rng.integers(0, 100, 100)}))
        given += sum(op.advance(start + 100).column("n").to_pylist())
        most = max(most, op.stats.kept_rows)
    assert given > 19_000
    assert most < 400
    assert Counted.notices < 3 * 20_000


class Forgetful(Moved):
    """Its context is no plain value."""

    def notify(self, context, time, value, *, edges):
        last = None if context is None else context[0]
        return (super().notify(last, time, value, edges=edges),)


def test_a_context_that_state_cannot_carry_is_refused():
    op = sash.Operator(windows=Forgetful("v", 5), aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 1, "v": 1}, {"t": 2, "v": 9}, {"t": 3, "v": 30}])
    assert op.advance(3).num_rows == 2
    with pytest.raises(InvalidArgument, match=r"context of .*Forgetful.* JSON"):
        op.snapshot()
    assert op.close().num_rows == 1


def test_a_notice_that_fails_is_given_again():
    class Touchy(Moved):
        patient = False

        def notify(self, context, time, value, *, edges):
            if value == 13 and not Touchy.patient:
                raise ValueError("thirteen")
            return super().notify(context, time, value, edges=edges)

    op = sash.Operator(windows=Touchy("v", 5), aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 1, "v": 1}, {"t": 2, "v": 9}, {"t": 3, "v": 13}, {"t": 4, "v": 40}])
    with pytest.raises(ValueError, match="thirteen"):
        op.advance(10)
    Touchy.patient = True
    assert op.advance(10).column("n").to_pylist() == [1, 2]


def test_an_idle_key_of_a_users_window_is_given_and_begins_again():
    windows = {"m": Moved("v", 50)}
    op = sash.Operator(windows=windows, aggs=[S.count().alias("n")], by="k", time="t", idle=10)
    op.add([{"k": "a", "t": 1, "v": 1}, {"k": "a", "t": 2, "v": 2}, {"k": "b", "t": 30, "v": 1}])
    assert op.advance(30).select(["k", "n"]).to_pylist() == [{"k": "a", "n": 2}]
    op = sash.Operator.restore(op.snapshot(), windows=windows)
    op.add([{"k": "a", "t": 31, "v": 3}])
    assert op.close().select(["k", "n"]).to_pylist() == [{"k": "a", "n": 1}, {"k": "b", "n": 1}]


class Logged(Moved):
    """Remembers when it was shown what."""

    def __init__(self, column, d):
        super().__init__(column, d)
        self.seen = []

    def notify(self, context, time, value, *, edges):
        self.seen.append(time)
        return super().notify(context, time, value, edges=edges)


def test_a_row_that_is_late_here_and_not_elsewhere_is_not_shown():
    window = Logged("v", 10)
    op = sash.Operator(windows={"big": W.tumbling(1000), "m": window}, aggs=[S.count().alias("n")], time="t")
    op.add([{"t": t, "v": t // 10 * 10} for t in range(60)])
    op.advance(60)
    window.seen.clear()
    op.add([{"t": 13, "v": 50}, {"t": 60, "v": 60}])
    assert [(r["window"], r["n"]) for r in op.advance(61).to_pylist()] == [({"start": 50, "end": 60}, 10)]
    assert 13 not in window.seen
    assert {r["query"]: r["n"] for r in op.close().to_pylist()} == {"big": 62, "m": 1}


class Ahead(W.ContextAwareWindow):
    """Ten ticks from every row on: ends are known ahead."""

    def notify(self, context, time, *, edges):
        edges.start(time)
        edges.end(time + 10)


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_closed_does_not_come_back(restarts):
    windows, aggs = {"a": Ahead(), "s": W.tumbling(20, offset=4)}, [S.count().alias("n"), S.median("t").alias("m")]
    op = sash.Operator(windows=windows, aggs=aggs, time="t")
    op.add([{"t": t} for t in (0, 5, 6)])
    given = op.advance(11).to_pylist()
    if restarts:
        op = sash.Operator.restore(op.snapshot(), windows=windows, aggs=aggs)
    op.add([{"t": 17}])
    given += op.advance(40).to_pylist()
    assert [(r["window"]["start"], r["window"]["end"]) for r in given if r["query"] == "a"] == [(0, 10), (5, 10), (6, 10), (17, 27)]


@pytest.mark.parametrize("window", [Moved("v", 5), W.punctuation("v >= 100")], ids=["moved", "punctuation"])
def test_a_late_row_ends_the_window_that_holds_it(window):
    op = sash.Operator(windows=window, aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 1, "v": 0}, {"t": 2, "v": 1}])
    assert op.advance(100).num_rows == 0
    op.add([{"t": 50, "v": 100}])
    assert [(r["window"], r["n"]) for r in op.advance(120).to_pylist()] == [({"start": 1, "end": 50}, 2)]
    assert [(r["window"], r["n"]) for r in op.close().to_pylist()] == [({"start": 50, "end": None}, 1)]


@pytest.mark.parametrize("others", [10, 3000])
def test_what_is_late_does_not_depend_on_how_many_keys_there_are(others):
    op = sash.Operator(windows=window_oracle.Threshold("v", 50), aggs=[S.count().alias("n")], by="k", time="t")
    op.add([{"k": -1, "t": 84, "v": 99}, {"k": -1, "t": 310, "v": 0}, *({"k": i, "t": 300, "v": 0} for i in range(others))])
    assert [(r["window"], r["n"]) for r in op.advance(400).to_pylist()] == [({"start": 84, "end": 310}, 1)]
    op.add([{"k": -1, "t": 137, "v": 99}, {"k": -1, "t": 500, "v": 0}])
    assert op.advance(600).num_rows == 0
    assert op.stats.late == 1


class Above(W.ContextAwareWindow):
    """While a condition holds."""

    reads = ("v > 5",)

    def notify(self, context, time, above, *, edges):
        if above and not context:
            edges.start(time)
        if context and not above:
            edges.end(time)
        return above


def test_a_condition_is_a_context():
    op = sash.Operator(windows=Above(), aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 1, "v": 9}, {"t": 2, "v": 1}, {"t": 3, "v": 9}, {"t": 4, "v": None}])
    assert op.advance(3).num_rows == 1
    op = sash.Operator.restore(op.snapshot(), windows=Above())
    assert [r["window"] for r in op.close().to_pylist()] == [{"start": 3, "end": 4}]


def test_bytes_count_rows_and_what_is_kept_of_slices():
    held = {}
    for name in ("sum", "median"):
        op = sash.Operator(windows=W.rows(2000, 1000), aggs=[getattr(S, name)("v").alias("x")], time="t")
        op.add(pa.table({"t": np.arange(3500), "v": np.arange(3500)}))
        assert op.advance(3500).num_rows == 2
        assert op.stats.kept_rows == 1500
        held[name] = op.stats.bytes
    assert held["sum"] >= 1500 * (2 * 8 + 3 * 8)  # time and value; tick, key and number
    assert held["median"] >= held["sum"] + 3000 * (8 + 8)  # each distinct value with its count
