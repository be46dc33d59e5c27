"""Promises that were once broken, each with the smallest case that showed it."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from tests.own_aggregates import counts_true

COUNT = [S.count().alias("n")]


def given(table):
    return [(r["window"]["start"], r["window"]["end"], r["n"]) for r in table.to_pylist()]


def test_idle_is_for_windows_that_never_end():
    op = sash.Operator(windows=W.tumbling(100), aggs=COUNT, by="k", time="t", idle=10)
    op.add([{"t": 5, "k": "a"}])
    assert op.advance(20).num_rows == 0
    op.add([{"t": 50, "k": "a"}])
    assert given(op.advance(100)) == [(0, 100, 2)]
    op = sash.Operator(windows={"s": W.session(30), "l": W.tumbling(100)}, aggs=[S.collect_list("t").alias("n")], by="k", time="t", idle=10)
    op.add([{"t": 5, "k": "a"}])
    assert op.advance(20).num_rows == 0
    op.add([{"t": 25, "k": "a"}])
    assert given(op.advance(200)) == [(5, 55, [5, 25]), (0, 100, [5, 25])]


def test_ranks_of_an_idle_key_start_again_whatever_the_steps():
    for steps in ([10, 100], [100]):
        op = sash.Operator(windows=W.rows(2), aggs=COUNT, by="k", time="t", idle=20)
        op.add([{"t": 0, "k": 1}, {"t": 1, "k": 1}])
        for step in steps:
            op.advance(step)
        op.add([{"t": 200, "k": 1}, {"t": 201, "k": 1}])
        assert [r["rows"] for r in op.close().to_pylist()] == [{"start": 0, "end": 2}]


def test_booleans_cross_as_values():
    table = pa.table({"t": [1, 2, 3, 4, 5], "f": [True, False, True, False, True]})
    aggs = [counts_true("f").alias("a"), S.max_count("f").alias("b")]
    op = sash.Operator(windows=W.tumbling(10), aggs=aggs, time="t")
    op.add(table)
    assert op.close().select(["a", "b"]).to_pylist() == [{"a": 3, "b": 3}]
    assert sash.aggregate(table, windows=W.tumbling(10), aggs=aggs, time="t").select(["a", "b"]).to_pylist() == [{"a": 3, "b": 3}]


def test_what_was_added_may_change_afterwards():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t")
    row = {"t": 1, "v": 1}
    for i in range(5):
        row["v"] = i
        op.add([row])
    assert op.close().column("s").to_pylist() == [10]
    import pandas as pd

    frame = pd.DataFrame({"t": [1, 2], "v": [1, 2]})
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t")
    op.add(frame)
    frame.loc[:, "v"] = 100
    frame["v"].to_numpy(copy=False)[:] = 100
    assert op.close().column("s").to_pylist() == [3]


@pytest.mark.parametrize("row", [{"t": 2, "v": 1.75}, {"t": 2.9, "v": 2}, {"t": 2, "v": Decimal("2.5")}])
def test_numbers_are_not_cut_off(row):
    op = sash.Operator(windows=W.tumbling(5), aggs=[S.sum("v").alias("s")], time="t")
    op.add([{"t": 1, "v": 1}])
    with pytest.raises(sash.errors.InvalidType):
        op.add([row])
    assert op.close().column("s").to_pylist() == [1]


@pytest.mark.parametrize("call", [S.collect_list("v"), S.sum("v")])
def test_closed_windows_stay_closed(call):
    op = sash.Operator(windows={"big": W.tumbling(100), "small": W.tumbling(10)}, aggs=[call.alias("n")], time="t")
    op.add(pa.schema([("t", pa.int64()), ("v", pa.int64())]).empty_table())
    op.advance(50)
    op.add([{"t": 5, "v": 1}])
    assert op.advance(60).num_rows == 0
    assert [w[:2] for w in given(op.close())] == [(0, 100)]


def test_late_rows_of_row_windows():
    op = sash.Operator(windows=W.rows(2), aggs=[S.collect_list("t").alias("n")], time="t")
    op.add([{"t": 1}, {"t": 5}])
    assert given(op.advance(20)) == [(1, 5, [1, 5])]
    op.add([{"t": 2}, {"t": 3}])
    assert op.close().num_rows == 0
    assert op.stats.late == 2


@pytest.mark.parametrize("restart", [False, True])
def test_restarts_do_not_decide_what_is_late(restart):
    op = sash.Operator(windows=W.last_rows(2, every=5), aggs=[S.collect_list("t").alias("n")], time="t")
    op.add([{"t": 1}, {"t": 7}, {"t": 25}, {"t": 21}])
    if restart:
        op = sash.Operator.restore(op.snapshot())
    op.advance(8)
    op.add([{"t": 3}, {"t": 3}])
    assert (3, 10, [3, 7]) in given(op.close())


def test_calendar_offsets():
    days = pa.table({"t": pa.array([datetime.datetime(2024, 5, i) for i in range(1, 29)], pa.timestamp("us"))})
    month, day, year = {"size": "1 month"}, {"size": "1 day", "tz": "Europe/Berlin"}, {"size": "1 year"}
    for settings in ({**month, "offset": "200 days"}, {**day, "offset": "10 days"}, {**year, "offset": "2000 days"}):
        out = sash.aggregate(days, windows=W.tumbling(**settings), aggs=COUNT, time="t")
        assert sum(out.column("n").to_pylist()) == 28, settings
        for r in out.to_pylist():
            assert r["window"]["start"] < r["window"]["end"]


def test_a_row_set_aside_moves_nothing():
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, second=0, microsecond=0)

    def rows(*times):
        return pa.table({"t": pa.array(times, pa.timestamp("us"))})

    op = sash.Operator(windows=W.tumbling("1 minute"), aggs=COUNT, time="t", ordered=True, max_ahead="1 hour")
    assert op.add(rows(now, now + datetime.timedelta(days=300), now + datetime.timedelta(seconds=1))).num_rows == 0
    op.add(rows(now + datetime.timedelta(seconds=2)))
    assert (op.stats.ahead, op.stats.late, op.close().column("n").to_pylist()) == (1, 0, [3])


@pytest.mark.parametrize("restart", [False, True])
def test_removing_a_query_that_read_a_column(restart):
    def rows(*times):
        return pa.table({"t": list(times), "f": [True] * len(times)})

    op = sash.Operator(windows={"p": W.punctuation("f"), "r": W.rows(2)}, aggs=COUNT, time="t")
    op.add(rows(1, 2, 3))
    op.remove_query("p")
    if restart:
        op = sash.Operator.restore(op.snapshot())
    else:
        op.add_query("x", W.tumbling(2))
    op.add(rows(4, 5))
    assert sum(r["n"] for r in op.close().to_pylist() if r["query"] == "r") == 4


def test_counts_of_ranked_values_are_counts():
    for values in (["10", "20", "20"], [Decimal(10) ** 30, Decimal(10) ** 31, Decimal(10) ** 31]):
        table = pa.table({"t": [1, 2, 3], "s": pa.array(values) if isinstance(values[0], str) else pa.array(values, pa.decimal128(38, 2))})
        out = sash.aggregate(table, windows=W.tumbling(10), aggs=[S.max_count("s").alias("a"), S.min_count("s").alias("b")], time="t")
        assert out.select(["a", "b"]).to_pylist() == [{"a": 2, "b": 1}]


def test_times_beyond_64_bits_are_refused():
    with pytest.raises(ValueError, match="2\\*\\*63"):
        sash.aggregate(pa.table({"t": pa.array([2**64 - 5, 3], pa.uint64())}), windows=W.tumbling(10), aggs=COUNT, time="t")


def test_every_nan_is_one_key_and_the_largest():
    other = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    table = pa.table({"t": [1, 2, 3], "k": pa.array(np.concatenate([other, [math.nan]])), "o": [math.nan, 1.0, 2.0]})
    assert sash.aggregate(table, windows=W.tumbling(10), aggs=COUNT, by="k", time="t").column("n").to_pylist() == [3]
    tied = table.set_column(0, "t", pa.array([1, 1, 1]))
    out = sash.aggregate(tied, windows=W.tumbling(10), aggs=[S.collect_list("o").alias("l")], time="t", order_by="o")
    assert repr(out.column("l").to_pylist()) == "[[1.0, 2.0, nan]]"


def test_quantiles_of_large_integers_and_views_of_strings():
    table = pa.table({"t": [1, 2], "v": [2**53 + 1, 2**53 + 3], "k": pa.array(["a", "a"], pa.string_view())})
    out = sash.aggregate(table, windows=W.tumbling(10), aggs=[S.median("v").alias("m"), S.max("k").alias("x")], by="k", time="t")
    assert out.column("m").to_pylist() == [float(2**53 + 2)]
    assert out.column("k").to_pylist() == ["a"]


def test_operators_refuse_early():
    for windows, aggs in (({}, COUNT), (W.trailing(5), COUNT), (W.tumbling(5), []), (None, COUNT)):
        with pytest.raises(sash.SashError):
            sash.Operator(windows=windows, aggs=aggs, time="t")
    op = sash.Operator(windows=W.tumbling(5), aggs=COUNT, time="t")
    op.add([{"t": 1}])
    with pytest.raises(ValueError, match="watermark is missing"):
        op.advance(None)
    with pytest.raises(sash.errors.InvalidSnapshot, match="'z'"):
        sash.Operator.restore(op.snapshot(), windows={"z": W.tumbling(5)})
    with pytest.raises(sash.errors.InvalidSnapshot):
        sash.Operator.restore(op.snapshot(), windows={"window": 5})


@pytest.mark.parametrize("emit", ["final", "update"])
@pytest.mark.parametrize("call", [S.count(), S.collect_list("t")])
@pytest.mark.parametrize("by", [["k"], ["k", "j"]])
def test_keys_go_with_their_last_window(monkeypatch, by, call, emit):
    monkeypatch.setattr("sash.slicing.stream.engine.FEWEST_KEYS", 4)
    specs, aggs = {"w": W.tumbling(10), "s": W.session(3)}, [call.alias("n")]
    op = sash.Operator(windows=specs, aggs=aggs, by=by, time="t", emit=emit, lateness=5)
    rows, got = [], []
    for step in range(40):
        fresh = [{"k": f"key {step * 3 + i}", "j": i, "t": step * 5 + i} for i in range(3)] + [{"k": "always", "j": 0, "t": step * 5}]
        rows += fresh
        op.add(fresh)
        got += op.advance(step * 5).to_pylist()
        if step % 7 == 0:
            op = sash.Operator.restore(op.snapshot())
    assert op._engine.keys.count < 40
    got += op.close().to_pylist()
    last = {}
    for r in got:
        last[r["query"], *(r[b] for b in by), r["window"]["start"], r["window"]["end"]] = r
    expected = sash.aggregate(
        pa.Table.from_pylist(rows), windows={"w": W.tumbling(10), "s": W.session(3)}, aggs=[call.alias("n")], by=by, time="t"
    )
    wanted = {(r["query"], *(r[b] for b in by), r["window"]["start"], r["window"]["end"]): r["n"] for r in expected.to_pylist()}
    assert {at: r["n"] for at, r in last.items() if not r.get("retracted")} == wanted


def test_rows_beyond_the_calendar_are_refused_with_their_batch():
    at = datetime.datetime
    op = sash.Operator(windows={"d": W.tumbling("1 day"), "m": W.tumbling("1 month")}, aggs=COUNT, time="t")
    with pytest.raises(ValueError, match="year"):
        op.add([{"t": at(9999, 12, 31)}])
    op.add([{"t": at(2024, 1, 5)}, {"t": at(2024, 1, 6)}])
    with pytest.raises(ValueError, match="year"):
        op.add([{"t": at(2024, 1, 7)}, {"t": at(9999, 12, 31)}])
    assert sorted(n for *_, n in given(op.close())) == [1, 1, 2]
    op = sash.Operator(windows=W.tumbling("1 month"), aggs=COUNT, time="t", ordered=True)
    op.add([{"t": at(2024, 1, 5)}])
    with pytest.raises(ValueError, match="year"):
        op.add([{"t": at(9999, 12, 31)}])
    op.add([{"t": at(2024, 1, 6)}])
    assert [n for *_, n in given(op.close())] == [2]
    op = sash.Operator(windows=W.tumbling("1 month"), aggs=COUNT, time="t", max_ahead="1 day")
    op.add([{"t": at(2024, 1, 5)}, {"t": at(9999, 12, 31)}])  # set aside before windows are looked at
    assert [n for *_, n in given(op.close())] == [1]
    assert op.stats.ahead == 1


@pytest.mark.parametrize(
    ("window", "rows", "watermark", "late", "expected"),
    [
        (W.rows(2), [0], 20, [5], [(0, 5, 2)]),
        (W.last_rows(2, every=10), [0], 20, [5], [(0, 10, 2)]),
        (W.punctuation("t = 5"), [0], 20, [5], [(0, 5, 1), (5, None, 1)]),
    ],
)
def test_a_key_is_not_idle_while_its_rows_may_come(window, rows, watermark, late, expected):
    for steps in ([(rows, watermark), (late, 90)], [([*rows, *late], watermark), ([], 90)]):
        op = sash.Operator(windows=window, aggs=COUNT, by="k", time="t", idle=10, lateness=50)
        got = []
        for ticks, mark in steps:
            op.add(pa.table({"t": pa.array(ticks, pa.int64()), "k": pa.array([1] * len(ticks), pa.int64())}))
            got += given(op.advance(mark))
        assert got == expected


def test_a_key_is_not_idle_before_the_edge_after_its_last_row():
    op = sash.Operator(windows=W.last_rows(2, every=10), aggs=COUNT, by="k", time="t", idle=5)
    op.add([{"t": 0, "k": 1}])
    assert given(op.advance(8)) == []
    op.add([{"t": 9, "k": 1}])
    assert given(op.advance(30)) == [(0, 10, 2)]
    assert op.stats.kept_rows == 0


def test_days_in_milliseconds_are_days():
    days = [datetime.date(2024, 3, 31), datetime.date(2024, 4, 1)]
    for window in (W.tumbling("1 day", tz="Europe/Berlin"), W.tumbling("1 month", tz="America/New_York"), W.tumbling("2 days")):
        a, b = (
            sash.aggregate(pa.table({"t": pa.array(days, t)}), windows=window, aggs=COUNT, time="t") for t in (pa.date32(), pa.date64())
        )
        assert given(a) == given(b)
        for start, end, n in given(a):
            assert sum(start <= day < end for day in days) == n
    with pytest.raises(ValueError, match="finer"):
        sash.aggregate(pa.table({"t": pa.array(days, pa.date64())}), windows=W.tumbling("12 hours"), aggs=COUNT, time="t")


def test_empty_windows_between_rows_that_lie_between_windows():
    times = [datetime.datetime(2024, 1, 15), datetime.datetime(2024, 3, 15)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})

    def empty(window):
        return given(sash.aggregate(table, windows=window, aggs=COUNT, time="t", empty=True))

    assert empty(W.sliding("1 day", every="30 days", tz="UTC")) == empty(W.sliding("1 day", every="30 days"))
    assert [(start.month, start.day, end.day, n) for start, end, n in empty(W.sliding("10 days", every="1 month"))] == [
        (2, 1, 11, 0), (3, 1, 11, 0),
    ]  # fmt: skip
    times[:] = [datetime.datetime(2011, 12, 28), datetime.datetime(2012, 1, 2)]  # Samoa had no 30 December
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    assert all(start < end for start, end, _ in empty(W.tumbling("1 day", tz="Pacific/Apia")))


def test_nothing_is_cut_off_and_a_refused_first_batch_is_none():
    table = pa.table({"t": [-1, 0, 1, 2]})
    with pytest.raises(sash.SashError, match="2.5"):
        sash.aggregate(table, windows=W.band(-1, 2.5), aggs=COUNT, time="t")
    op = sash.Operator(windows=W.tumbling(2), aggs=COUNT, time="t")
    with pytest.raises(sash.SashError):
        op.add(pa.table({"t": [2**62], "v": [1.5]}))
    op.add(pa.table({"t": [1], "v": [1]}))
    with pytest.raises(sash.SashError, match="-1.5"):
        op.advance(-1.5)
    assert given(op.close()) == [(0, 2, 1)]
    for call in (lambda: op.advance(5), op.close, lambda: op.add_query("q", W.tumbling(3)), lambda: op.remove_query("window")):
        with pytest.raises(sash.SashError, match="closed"):
            call()
    with pytest.raises(sash.SashError, match="time is missing"):
        sash.Operator(windows=W.tumbling(2), aggs=COUNT, time=None)
    with pytest.raises(sash.SashError, match="order_by"):
        sash.aggregate(table, windows=W.tumbling(2), aggs=COUNT, time="t", order_by=3)
    with pytest.raises(sash.SashError, match="ignorenulls"):
        S.first("v", "x")
    with pytest.raises(sash.SashError):
        sash.aggregate(table, windows=W.tumbling((1 << 61) + 1), aggs=COUNT, time="t")


def test_equal_punctuation_in_order_and_one_of_them_goes():
    op = sash.Operator(windows={"a": W.punctuation("p"), "b": W.punctuation("p")}, aggs=COUNT, time="t", ordered=True)
    op.add([{"t": 1, "p": True}, {"t": 2, "p": False}, {"t": 3, "p": True}])
    op.remove_query("a")
    assert given(op.add([{"t": 5, "p": True}, {"t": 6, "p": False}])) == [(3, 5, 1)]


@pytest.mark.parametrize("window", [W.rows(2), W.punctuation("v = 4")])
def test_rows_that_wait_in_order_keep_their_types_over_a_restart(window):
    def rows(ticks):
        return pa.table({"k": pa.array(["a"] * len(ticks)).dictionary_encode(), "t": ticks, "v": ticks})

    op = sash.Operator(windows=window, aggs=COUNT, by="k", time="t", ordered=True)
    got = given(op.add(rows([1, 2, 2])))
    op = sash.Operator.restore(op.snapshot())
    got += given(op.add(rows([2, 4]))) + given(op.close())
    table = sash.aggregate(rows([1, 2, 2, 2, 4]), windows=window, aggs=COUNT, by="k", time="t")
    assert sorted(got, key=repr) == sorted(given(table), key=repr)


def test_a_result_that_does_not_fit_in_the_first_batch_loses_no_row():
    op = sash.Operator(windows=W.tumbling(2), aggs=[S.sum("v").alias("n")], by="k", time="t", ordered=True)
    with pytest.raises(sash.errors.IntegerOverflow):
        op.add([{"k": "a", "t": 0, "v": 2**62}, {"k": "a", "t": 1, "v": 2**62}, {"k": "b", "t": 4, "v": 5}])
    assert op.stats.rows == 3
    with pytest.raises(sash.errors.IntegerOverflow):  # the window stands, and so do all rows
        op.add([{"k": "b", "t": 5, "v": 1}, {"k": "b", "t": 6, "v": 1}])
    assert op.stats.rows == 5
