"""``sash.aggregate`` and ``sash.over`` against a naive oracle: every window type, several at once, keys, nulls, ties, disorder."""

from __future__ import annotations

import datetime
import math
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from tests import oracle, window_oracle
from tests.own_aggregates import affine, affine_of
from tests.window_oracle import Row, by_key

times = st.integers(-40, 60)
values = st.one_of(st.none(), st.integers(-50, 50))


def rows_strategy(value=values, most=40):
    """Rows of several keys, or all of one: there are quicker ways for that."""
    lists = [
        st.lists(st.builds(Row, key=st.sampled_from(keys), t=times, v=value, flag=st.booleans()), max_size=most)
        for keys in ([None, 1, 2], [1])
    ]
    return st.one_of(*lists).map(lambda rows: [Row(r.key, r.t, r.v, r.flag, n) for n, r in enumerate(rows)])


def table_of(rows, value_type=None):
    return pa.table(
        {
            "k": pa.array([r.key for r in rows], pa.int64()),
            "t": pa.array([r.t for r in rows], pa.int64()),
            "v": pa.array([r.v for r in rows], value_type or pa.int64()),
            "flag": pa.array([r.flag for r in rows], pa.bool_()),
            "n": pa.array([r.n for r in rows], pa.int64()),
        }
    )


def expected_windows(cases, rows, tie=None):
    """``{(query, key, start, end, ranks): rows}``."""
    found = {}
    for name, (_, windows) in cases.items():
        for key, group in by_key(rows, tie).items():
            for start, end, ranks, part in windows(group):
                found[name, key, start, end, ranks] = part
    return found


def got_windows(result):
    found = {}
    for r in result.to_pylist():
        ranks = r.get("rows")
        at = (r["query"], r["k"], r["window"]["start"], r["window"]["end"], None if ranks is None else (ranks["start"], ranks["end"]))
        assert at not in found, at
        found[at] = r
    return found


def check(cases, rows, names, value_type=None, order_by=None):
    calls = [getattr(S, name)("v").alias(name) for name in names]
    if "affine" in names:
        calls[names.index("affine")] = affine("coalesce(v, 0)").alias("affine")
    specs = {name: spec for name, (spec, _) in cases.items()}
    result = sash.aggregate(table_of(rows, value_type), windows=specs, aggs=calls, by="k", time="t", order_by=order_by)
    expected = expected_windows(cases, rows, (lambda r: (r.n * -1,)) if order_by else None)
    got = got_windows(result)
    assert got.keys() == expected.keys()
    for at, part in expected.items():
        held = [r.v for r in part]
        for name in names:
            theirs = affine_of([0 if v is None else v for v in held]) if name == "affine" else oracle.aggregate(name, held)
            assert oracle.agree(name, got[at][name], theirs, [v for v in held if v is not None]), (at, name, got[at][name], theirs)


several = st.dictionaries(st.sampled_from(["a", "b", "c"]), window_oracle.cases(), min_size=1, max_size=3)


@given(cases=several, rows=rows_strategy())
@example(cases={"a": (W.tumbling(5), window_oracle.periodic(5, 5))}, rows=[])
def test_every_window_with_aggregates_that_commute(cases, rows):
    check(cases, rows, ["sum", "count", "min", "max"])


@given(cases=several, rows=rows_strategy())
def test_every_window_in_order(cases, rows):
    calls = [affine("coalesce(v, 0)").alias("affine"), S.first("v").alias("first"), S.last("v").alias("last"), S.count().alias("n")]
    specs = {name: spec for name, (spec, _) in cases.items()}
    result = sash.aggregate(table_of(rows), windows=specs, aggs=calls, by=["k"], time="t")
    got, expected = got_windows(result), expected_windows(cases, rows)
    assert got.keys() == expected.keys()
    for at, part in expected.items():
        held = [r.v for r in part]
        r = got[at]
        assert (r["affine"], r["first"], r["last"], r["n"]) == (affine_of([v or 0 for v in held]), held[0], held[-1], len(held))


NAMES = [n for n in oracle.AGGREGATES if n != "string_agg"]


@pytest.mark.parametrize("name", NAMES)
def test_every_aggregate(name):
    floats = st.one_of(st.none(), st.floats(-1e3, 1e3, width=32), st.just(math.nan))

    @given(case=window_oracle.cases(), rows=rows_strategy(floats, 25))
    def run(case, rows):
        if isinstance(case[0], window_oracle.Delta):
            return
        check({"w": case}, rows, [name], pa.float64())

    run()


@given(case=window_oracle.cases(), rows=rows_strategy())
def test_ties_are_broken_by_order_by(case, rows):
    if isinstance(case[0], window_oracle.Delta):
        return
    specs = {"w": case[0]}
    table = table_of(rows).append_column("back", pa.array([-r.n for r in rows], pa.int64()))
    result = sash.aggregate(table, windows=specs, aggs=[S.collect_list("n").alias("ns")], by="k", time="t", order_by="back")
    expected = expected_windows({"w": case}, rows, lambda r: (-r.n,))
    assert {at: r["ns"] for at, r in got_windows(result).items()} == {at: [r.n for r in part] for at, part in expected.items()}


@given(rows=rows_strategy(), size=st.integers(1, 12), every=st.integers(1, 12))
def test_empty_windows_between_rows(rows, size, every):
    result = sash.aggregate(
        table_of(rows),
        windows={"w": W.sliding(size, every)},
        aggs=[S.sum("v").alias("s"), S.count().alias("n")],
        by="k",
        time="t",
        empty=True,
    )
    got = got_windows(result)
    for key, group in by_key(rows).items():
        first, last = (group[0].t - size) // every + 1, group[-1].t // every
        assert [at[2] for at in got if at[1] == key] == [k * every for k in range(first, last + 1)]
        for at, r in got.items():
            if at[1] == key:
                held = [x for x in group if at[2] <= x.t < at[3]]
                assert r["n"] == len(held)
                assert r["s"] == oracle.aggregate("sum", [x.v for x in held])


def test_conditions_and_expressions():
    table = pa.table({"t": [1, 2, 3, 11], "v": [1, 5, None, 7], "s": ["x", "y", "x", "x"]})
    out = sash.aggregate(
        table,
        windows=W.tumbling(10),
        aggs=[S.sum("v * 2").where("v > 1").alias("a"), S.count().where("s = 'x'").alias("b"), S.max("upper(s)").alias("c"), S.avg("v")],
        time="t",
    )
    assert out.drop_columns("window").to_pylist() == [
        {"a": 10, "b": 2, "c": "Y", "avg(v)": 3.0},
        {"a": 14, "b": 1, "c": "X", "avg(v)": 7.0},
    ]
    assert out.schema.names == ["window", "a", "b", "c", "avg(v)"]


STRINGS = st.lists(st.tuples(st.integers(0, 30), st.one_of(st.none(), st.text("abc", max_size=3))), max_size=25)


@given(rows=STRINGS, size=st.integers(1, 12), every=st.integers(1, 12))
def test_strings(rows, size, every):
    names = ["min", "max", "first", "last", "count_distinct", "collect_list", "string_agg", "m4", "count"]
    table = pa.table({"t": pa.array([t for t, _ in rows], pa.int64()), "v": pa.array([v for _, v in rows], pa.string())})
    out = sash.aggregate(table, windows=W.sliding(size, every), aggs=[getattr(S, n)("v").alias(n) for n in names], time="t")
    group = sorted([Row(None, t, v, n=n) for n, (t, v) in enumerate(rows)], key=lambda r: r.t)
    expected = {w[0]: [r.v for r in w[3]] for w in window_oracle.periodic(size, every)(group)}
    assert [r["window"]["start"] for r in out.to_pylist()] == sorted(expected)
    for r in out.to_pylist():
        for name in names:
            assert oracle.agree(name, r[name], oracle.aggregate(name, expected[r["window"]["start"]])), (name, r)


@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, 0.0, -0.0, math.nan, 1.5]), st.integers(0, 9)), max_size=30),
)
def test_keys_of_several_columns(rows):
    table = pa.table(
        {
            "a": pa.array([a for a, _, _ in rows], pa.string()),
            "b": pa.array([b for _, b, _ in rows], pa.float64()),
            "t": pa.array([t for _, _, t in rows], pa.int64()),
        }
    )
    out = sash.aggregate(table, windows=W.tumbling(100), aggs=[S.count().alias("n")], by=["a", "b"], time="t")

    def key(b):
        return "nan" if b is not None and b != b else b if b is None else b + 0.0

    expected: dict = {}
    for a, b, _ in rows:
        expected[a, key(b)] = expected.get((a, key(b)), 0) + 1
    assert {(r["a"], key(r["b"])): r["n"] for r in out.to_pylist()} == expected


def test_measures():
    for unit in ("s", "ms", "us", "ns"):
        for tz in (None, "Europe/Berlin"):
            t = pa.array([datetime.datetime(1969, 12, 31, 23, 59, 58), datetime.datetime(1970, 1, 1, 0, 0, 1), None], pa.timestamp("us"))
            t = t.cast(pa.timestamp(unit)).cast(pa.timestamp(unit, tz)) if tz else t.cast(pa.timestamp(unit))
            out = sash.aggregate(pa.table({"t": t}), windows=W.tumbling("5 seconds"), aggs=S.count(), time="t")
            assert out.column("window").type == pa.struct([("start", t.type), ("end", t.type)])
            starts = [w["start"].as_py().replace(tzinfo=None) for w in out.column("window")]
            first = t[0].as_py().replace(tzinfo=None)
            assert starts == [first - datetime.timedelta(seconds=3), first + datetime.timedelta(seconds=2)]
    dates = pa.array([datetime.date(2024, 2, 28), datetime.date(2024, 3, 1)])
    out = sash.aggregate(pa.table({"t": dates}), windows=W.tumbling("1 month"), aggs=S.count(), time="t")
    assert [w["start"].as_py() for w in out.column("window")] == [datetime.date(2024, 2, 1), datetime.date(2024, 3, 1)]
    out = sash.aggregate(pa.table({"t": pa.array([1, 200], pa.uint8())}), windows=W.tumbling(100), aggs=S.count(), time="t")
    assert [w.as_py() for w in out.column("window")] == [{"start": 0, "end": 100}, {"start": 200, "end": 255}]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"])
@given(hours=st.lists(st.integers(-24 * 400, 24 * 400), max_size=20), days=st.integers(1, 3), size=st.integers(1, 4))
def test_days_in_a_time_zone(zone, hours, days, size):
    base = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    stamps = sorted(base + datetime.timedelta(hours=h) for h in hours)
    table = pa.table({"t": pa.array(stamps, pa.timestamp("us", "UTC"))})
    out = sash.aggregate(table, windows=W.sliding(f"{size} days", f"{days} days", tz=zone), aggs=[S.count().alias("n")], time="t")
    info = ZoneInfo(zone)
    expected: dict = {}
    for stamp in stamps:
        local = stamp.astimezone(info).date()
        for back in range(size):
            day = local - datetime.timedelta(days=back)
            if (day - datetime.date(1970, 1, 1)).days % days == 0:
                expected[day] = expected.get(day, 0) + 1
    got = {r["window"]["start"].astimezone(info).date(): r["n"] for r in out.to_pylist()}
    assert got == expected
    for r in out.to_pylist():
        assert r["window"]["start"].astimezone(info).time() == datetime.time(0)


def test_weeks_start_on_monday_in_a_time_zone_and_on_thursday_without():
    t = pa.array([datetime.datetime(2024, 5, 15, 12)], pa.timestamp("us", "UTC"))  # a Wednesday
    monday = sash.aggregate(pa.table({"t": t}), windows=W.tumbling("1 week", tz="UTC"), aggs=S.count(), time="t")
    thursday = sash.aggregate(pa.table({"t": t}), windows=W.tumbling("1 week"), aggs=S.count(), time="t")
    assert [x.column("window")[0]["start"].as_py().weekday() for x in (monday, thursday)] == [0, 3]


def test_other_carriers():
    import pandas as pd
    import polars as pl

    frame = {"t": [1, 2, 11], "v": [1.0, 2.0, 3.0]}
    for data in (pa.table(frame), pd.DataFrame(frame), pl.DataFrame(frame), pa.RecordBatch.from_pydict(frame)):
        out = sash.aggregate(data, windows=W.tumbling(10), aggs=S.sum("v"), time="t")
        assert type(out) is (pa.Table if isinstance(data, pa.RecordBatch) else type(data))
        assert list(out["sum(v)"].to_pylist() if isinstance(out, pa.Table) else out["sum(v)"]) == [3.0, 3.0]


def test_sparse_times_do_not_make_slices():
    t = pa.array([0, 10**15, 5 * 10**17], pa.int64())
    out = sash.aggregate(pa.table({"t": t}), windows={"a": W.sliding(10, 1), "b": W.sliding(7, 3)}, aggs=S.count(), time="t")
    assert out.num_rows == 3 * 10 + 7


# Trailing windows.


@given(
    rows=rows_strategy(),
    size=st.integers(0, 20),
    count=st.integers(1, 8),
    closed=st.sampled_from(["both", "left", "right", "neither"]),
)
def test_over(rows, size, count, closed):
    windows = {"time": W.trailing(size, closed=closed), "rows": W.trailing_rows(count)}
    calls = [
        S.sum("v").alias("sum"),
        S.count().alias("count"),
        S.max("v").alias("max"),
        affine("coalesce(v, 0)").alias("affine"),
        S.first("v").alias("first"),
    ]
    out = sash.over(table_of(rows), windows=windows, aggs=calls, by="k", time="t", order_by="n")
    assert out.column("n").to_pylist() == [r.n for r in rows]
    for r, got in zip(rows, out.to_pylist(), strict=True):
        group = by_key(rows, lambda x: (x.n,))[r.key]
        low, high = r.t - size, r.t
        within = [
            x
            for x in group
            if (low < x.t or (low == x.t and closed in ("both", "left"))) and (x.t < high or (x.t == high and closed in ("both", "right")))
        ]
        at = group.index(r)
        for name, part in (("time", within), ("rows", group[max(0, at - count + 1) : at + 1])):
            held = [x.v for x in part]
            assert got[f"sum_{name}"] == oracle.aggregate("sum", held), (name, r)
            assert got[f"count_{name}"] == len(held)
            assert got[f"max_{name}"] == oracle.aggregate("max", held)
            assert got[f"first_{name}"] == oracle.aggregate("first", held)
            assert got[f"affine_{name}"] == (affine_of([v or 0 for v in held]) if held else None)


def test_over_gives_rows_without_a_time_back():
    table = pa.table({"t": pa.array([3, None, 1], pa.int64()), "v": [1, 2, 3]})
    out = sash.over(
        table, windows=W.trailing(5), aggs=[S.sum("v").alias("s"), S.count().alias("n"), S.collect_list("v").alias("l")], time="t"
    )
    assert out.to_pylist() == [
        {"t": 3, "v": 1, "s": 4, "n": 2, "l": [3, 1]},
        {"t": None, "v": 2, "s": None, "n": 0, "l": []},
        {"t": 1, "v": 3, "s": 3, "n": 1, "l": [3]},
    ]


def test_threads_make_no_difference(monkeypatch):
    rng = np.random.default_rng(7)
    n = 1_200_000
    table = pa.table({"k": rng.integers(0, 5, n), "t": rng.integers(0, 3000, n), "v": rng.integers(-100, 100, n)})

    def run():
        out = sash.aggregate(
            table, windows=W.sliding(60, 7), aggs=[S.sum("v").alias("s"), S.count().alias("n"), S.min("v").alias("m")], by="k", time="t"
        )
        over = sash.over(table, windows=W.trailing(50), aggs=[S.sum("v").alias("s"), S.max("v").alias("m")], by="k", time="t")
        return out, over.select(["s", "m"])

    monkeypatch.setenv("SASH_THREADS", "1")
    one = run()
    monkeypatch.setenv("SASH_THREADS", "2")
    two = run()
    assert one[0].equals(two[0])
    assert one[1].equals(two[1])
    rows = one[0].filter(np.asarray(one[0].column("k")) == 3).to_pylist()
    t, v, k = (table.column(c).to_numpy() for c in ("t", "v", "k"))
    for r in rows[:: len(rows) // 5]:
        held = v[(k == 3) & (t >= r["window"]["start"]) & (t < r["window"]["end"])]
        assert (r["s"], r["n"], r["m"]) == (held.sum(), len(held), held.min())


def test_a_condition_guards_its_input():
    table = pa.table({"t": [1, 2, 3], "a": [6, 1, 8], "b": [2, 0, 4]})
    result = sash.aggregate(table, windows=W.tumbling(10), aggs=[S.sum("a / b").where("b <> 0").alias("s")], time="t")
    assert result.column("s").to_pylist() == [5.0]


@pytest.mark.parametrize("by", ["k", ["k", "j"]])
@pytest.mark.parametrize(("column", "expected"), [
    (pa.nulls(4), [(None, 4)]),
    (pa.array(np.array([1, np.nan, -0.0, 0.0], np.float16)), [(0.0, 2), (1.0, 1), ("nan", 1)]),
])  # fmt: skip
def test_keys_of_unusual_types(by, column, expected):
    table = pa.table({"t": [1, 2, 3, 4], "k": column, "j": [1, 1, 1, 1]})
    asked = {"windows": W.tumbling(10), "aggs": [S.count().alias("n")], "by": by, "time": "t"}
    op = sash.Operator(**asked)
    op.add(table.slice(0, 2))
    op = sash.Operator.restore(op.snapshot())
    op.add(table.slice(2))
    for result in (sash.aggregate(table, **asked), op.close()):
        assert result.schema.field("k").type == column.type
        rows = result.select(["k", "n"]).to_pylist()
        found = {("nan" if r["k"] is not None and r["k"] != r["k"] else r["k"], r["n"]) for r in rows}
        assert (found, len(rows)) == (set(expected), len(expected))
