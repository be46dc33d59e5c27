"""What a new user tries first: frames of every kind, keys that are expressions, windows as columns, and messages that say what to write."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import InvalidArgument, InvalidExpression, InvalidType, InvalidWindow, UnknownName

FRAME = {"t": [1, 2, 5, 12, 13], "k": ["a", "b", "a", "b", "a"], "v": [3, 4, 5, 6, 7]}


def as_lists(result):
    """Rows of a result of any kind, windows as pairs."""
    if isinstance(result, pl.DataFrame):
        result = result.to_arrow()
    if isinstance(result, pd.DataFrame):
        result = pa.Table.from_pandas(result, preserve_index=False)
    rows = result.to_pylist()
    return [tuple(tuple(x.values()) if isinstance(x, dict) else x for x in r.values()) for r in rows]


# Layouts that others give.


@pytest.mark.parametrize("make", [pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256])
def test_decimals_of_every_width(make):
    values = [Decimal("1.25"), Decimal("-3.50"), None, Decimal("9.99"), Decimal("0.01"), Decimal("2.00")]
    table = pa.table({"t": [0, 1, 10, 11, 20, 21], "d": pa.array(values, make(9, 2))})
    aggs = [S.min("d").alias("min"), S.max("d").alias("max"), S.first("d").alias("first"), S.last("d").alias("last"), S.m4("d").alias("m4")]
    aggs += [S.sum("d").alias("sum"), S.count_distinct("d").alias("n"), S.collect_list("d").alias("all"), S.max_by("d", "t").alias("at")]
    wide = table.set_column(1, "d", pa.array(values, pa.decimal128(9, 2)))
    for windows in (W.tumbling(10), W.sliding(20, every=10), W.session(3)):
        found = sash.aggregate(table, windows=windows, aggs=aggs, time="t")
        assert found.to_pylist() == sash.aggregate(wide, windows=windows, aggs=aggs, time="t").to_pylist()
    op = sash.Operator(windows=W.tumbling(10), aggs=aggs, time="t")
    op.add(table)
    assert [r["max"] for r in op.close().to_pylist()] == [Decimal("1.25"), Decimal("9.99"), Decimal("2.00")]
    over = sash.over(table, windows=W.trailing(5), aggs=[S.max("d").alias("m")], time="t")
    assert over.schema.field("d").type == make(9, 2)  # the rows come back as they were given
    assert over["m"].to_pylist()[:2] == [Decimal("1.25"), Decimal("1.25")]
    rolled = sash.rolling(table["d"].combine_chunks(), 2, agg="max")
    assert rolled.to_pylist() == [Decimal("1.25"), Decimal("-3.50"), Decimal("9.99"), Decimal("9.99"), Decimal("2.00")]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["b", "a", "z"]), pl.String])
def test_categories_in_every_role(kind):
    frame = pl.DataFrame(FRAME).with_columns(pl.col("k").cast(kind))
    plain = pa.table(FRAME)
    aggs = [S.count().alias("n"), S.max("k").alias("max"), S.count_distinct("k").alias("d"), S.first("k").alias("first")]
    call = {"windows": W.tumbling(10), "aggs": aggs, "by": "k", "time": "t", "order_by": ["k"]}
    assert sorted(as_lists(sash.aggregate(frame, **call))) == sorted(as_lists(sash.aggregate(plain, **call)))
    conditions = {"windows": W.tumbling(10), "aggs": [S.count().where("k = 'a'").alias("n")], "time": "t", "by": "upper(k)"}
    assert sorted(as_lists(sash.aggregate(frame, **conditions))) == sorted(as_lists(sash.aggregate(plain, **conditions)))
    over = sash.over(frame, windows=W.trailing(5), aggs=[S.min("k").alias("m")], by="k", time="t")
    assert over["k"].dtype == frame["k"].dtype
    assert over["m"].cast(pl.String).to_list() == ["a", "b", "a", "b", "a"]
    op = sash.Operator(windows=W.tumbling(10), aggs=aggs, by="k", time="t")
    op.add(frame)
    op.add(frame)
    assert sorted((r["k"], r["n"]) for r in op.close().to_pylist()) == [("a", 2), ("a", 4), ("b", 2), ("b", 2)]
    pandas = pd.DataFrame(FRAME).astype({"k": "category"})
    assert sorted(as_lists(sash.aggregate(pandas, **call))) == sorted(as_lists(sash.aggregate(plain, **call)))


# The same kind out.


def test_frames_give_frames_of_their_own_kind():
    call = {"windows": {"ten": W.tumbling(10), "rows": W.rows(2)}, "aggs": [S.sum("v").alias("s")], "by": "k", "time": "t"}
    wanted = as_lists(sash.aggregate(pa.table(FRAME), **call))
    for data, kind in [
        (pl.DataFrame(FRAME), pl.DataFrame),
        (pl.LazyFrame(FRAME), pl.DataFrame),
        (pd.DataFrame(FRAME), pd.DataFrame),
        (pa.table(FRAME), pa.Table),
        (FRAME, pa.Table),
    ]:
        out = sash.aggregate(data, **call)
        assert type(out) is kind
        assert out.shape == (len(wanted), 5)
        if kind is not pd.DataFrame:
            assert as_lists(out) == wanted
        flat = sash.aggregate(data, **call, flatten=True)
        assert type(flat) is kind
        names = flat.column_names if kind is pa.Table else list(flat.columns)
        assert names == ["query", "k", "window_start", "window_end", "rows_start", "rows_end", "s"]
        assert type(sash.over(data, windows=W.trailing(5), aggs=[S.sum("v").alias("s")], time="t")) is kind


def test_duckdb_gives_arrow():
    import duckdb

    relation = duckdb.sql("select range as t, range * 2 as v from range(20)")
    out = sash.aggregate(relation, windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t", flatten=True)
    assert out.to_pylist() == [{"window_start": 0, "window_end": 10, "s": 90}, {"window_start": 10, "window_end": 20, "s": 290}]


def test_pandas_keeps_arrow_types_and_nulls():
    frame = pd.DataFrame(FRAME).convert_dtypes(dtype_backend="pyarrow")
    out = sash.over(frame, windows=W.trailing_rows(2, closed="left"), aggs=[S.sum("v").alias("s")], by="k", time="t")
    assert isinstance(out["s"].dtype, pd.ArrowDtype)
    assert out["s"].isna().tolist() == [True, True, False, False, False]
    assert sash.aggregate(frame, windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t", flatten=True)["s"].tolist() == [12, 13]


def test_over_keeps_the_index_of_pandas():
    frame = pd.DataFrame(FRAME, index=[10, 7, 3, 99, 1])
    frame["n"] = sash.over(frame, windows=W.trailing_rows(9), aggs=[S.count().alias("c")], by="k", time="t")["c"]
    assert frame["n"].tolist() == [1, 1, 2, 2, 3]


def test_flatten_names_that_collide():
    data = pa.table({**FRAME, "window_end": [1] * 5})
    with pytest.raises(InvalidArgument, match="two columns named 'window_end'"):
        sash.aggregate(data, windows=W.tumbling(10), aggs=[S.count()], by="window_end", time="t", flatten=True)
    rows = pa.table({**FRAME, "rows": [1, 1, 2, 2, 2]})  # a key of that name is none of ours
    out = sash.aggregate(rows, windows=W.tumbling(100), aggs=[S.count().alias("n")], by="rows", time="t", flatten=True)
    assert out.column_names == ["rows", "window_start", "window_end", "n"]


# Keys that are expressions.


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("t % 2", ["t % 2"]),
        ("t % 2 as parity", ["parity"]),
        (["k", "t % 2 as `odd one`"], ["k", "odd one"]),
        ({"parity": "t % 2"}, ["parity"]),
        ({"key": "k"}, ["key"]),
        (["cast(t as string)"], ["cast(t as string)"]),
    ],
)
def test_keys_that_are_expressions(by, names):
    call = {"windows": W.tumbling(100), "aggs": [S.count().alias("n")], "time": "t"}
    out = sash.aggregate(pa.table(FRAME), by=by, **call)
    assert out.column_names == [*names, "window", "n"]
    assert sum(out["n"].to_pylist()) == 5
    op = sash.Operator(by=by, **call)
    for row in pa.table(FRAME).to_pylist():
        op.add([row])
    again = sash.Operator.restore(op.snapshot())
    assert sorted(map(str, as_lists(again.close().drop("query")))) == sorted(map(str, as_lists(out)))


def test_keys_of_over_are_not_among_its_columns():
    out = sash.over(pa.table(FRAME), windows=W.trailing_rows(9), aggs=[S.count().alias("n")], by="t % 2 as parity", time="t")
    assert out.column_names == ["t", "k", "v", "n"]
    assert out["n"].to_pylist() == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        ("kk", UnknownName, "unknown column in by 'kk': did you mean 'k'"),
        ("zz % 2", UnknownName, "unknown column 'zz'"),
        ("t % 2 as v", InvalidArgument, "there is a column of that name"),
        (["k", "k"], InvalidArgument, "two columns named 'k'"),
        ("sum(v)", InvalidExpression, "looks at other rows"),
        (5, InvalidArgument, "by must be"),
        ("t %", InvalidExpression, "not an expression"),
    ],
)
def test_bad_keys(by, error, message):
    with pytest.raises(error, match=message):
        sash.aggregate(pa.table(FRAME), windows=W.tumbling(10), aggs=[S.count()], by=by, time="t")


# What to write instead.


def test_pyspark_columns(spark):
    from pyspark.sql import functions as F

    call = {"windows": W.tumbling(10), "aggs": [S.count()], "time": "t"}
    for data in (pa.table(FRAME), spark.createDataFrame(pa.table(FRAME))):
        with pytest.raises(InvalidArgument, match="PySpark Column: write the column's name or SQL text, 'k'"):
            sash.aggregate(data, by=F.col("k"), **call)
        with pytest.raises(InvalidArgument, match="PySpark Column"):
            sash.aggregate(data, by=[F.col("k")], **call)
        with pytest.raises(InvalidArgument, match=r"write W.tumbling\('10 minutes'\), W.sliding"):
            sash.aggregate(data, **{**call, "windows": F.window("t", "10 seconds")})
        with pytest.raises(InvalidType, match=r'write S.sum\("v"\)'):
            sash.aggregate(data, **{**call, "aggs": [F.sum("v")]})
        with pytest.raises(InvalidArgument, match="PySpark Column"):
            sash.aggregate(data, **{**call, "time": F.col("t")})


def test_a_time_in_the_index_of_pandas():
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.DatetimeIndex(["2026-01-01", "2026-01-02"], name="ts"))
    with pytest.raises(UnknownName, match=r"time='ts' is the index of the frame.*reset_index\(\)"):
        sash.aggregate(frame, windows=W.tumbling("1 day"), aggs=[S.sum("v")], time="ts")
    assert len(sash.aggregate(frame.reset_index(), windows=W.tumbling("1 day"), aggs=[S.sum("v")], time="ts")) == 2


# Trailing rows without the current one.


@pytest.mark.parametrize(
    ("closed", "wanted"), [("both", [1, 3, 5, 7]), ("right", [1, 3, 5, 7]), ("left", [None, 1, 3, 5]), ("neither", [None, 1, 3, 5])]
)
def test_trailing_rows_without_the_current_one(closed, wanted):
    table = pa.table({"t": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
    aggs = [S.sum("v").alias("s"), S.count().alias("n"), S.first("v").alias("f"), S.collect_list("v").alias("l")]
    out = sash.over(table, windows=W.trailing_rows(2, closed=closed), aggs=aggs, time="t")
    assert out["s"].to_pylist() == wanted
    assert out["n"].to_pylist() == ([1, 2, 2, 2] if closed in ("both", "right") else [0, 1, 2, 2])


def test_which_ends_are_there():
    with pytest.raises(InvalidWindow, match="both, right, left, neither.*polars' default is 'right'"):
        W.trailing("1 hour", closed="up")
    with pytest.raises(InvalidWindow, match="both, right, left, neither"):
        W.trailing_rows(3, closed=None)


# Times in users' functions.


@sash.udaf(state=("int64",))
class latest:
    identity = (-(2**62),)
    commutative = True
    returns = "int64"

    def lift(t):
        return (t,)

    def combine(a, b):
        return (max(a[0], b[0]),)

    def lower(s):
        return s[0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_reach_users_functions_in_microseconds(unit):
    moment = datetime.datetime(2026, 11, 18, 12, 30)
    micros = int(moment.replace(tzinfo=datetime.UTC).timestamp() * 1_000_000)
    for zone in (None, "UTC", "Europe/Berlin"):
        times = pa.array([moment.replace(tzinfo=None if zone is None else datetime.UTC)], pa.timestamp(unit, zone))
        table = pa.table(
            {"t": [1], "x": times, "d": times.cast(pa.date64()), "p": pa.array([datetime.timedelta(seconds=5)], pa.duration(unit))}
        )
        aggs = [latest("x").alias("x"), latest("d").alias("d"), latest("p").alias("p")]
        op = sash.Operator(windows=W.tumbling(10), aggs=aggs, time="t")
        op.add(table)
        for out in (sash.aggregate(table, windows=W.tumbling(10), aggs=aggs, time="t"), op.close()):
            assert [out[n].to_pylist() for n in "xdp"] == [[micros], [micros // 86_400_000_000], [5_000_000]]
        assert sash.rolling(times, 1, agg=latest).to_pylist() == [micros]
    assert sash.rolling(np.array(["2026-11-18T12:30"], f"datetime64[{unit}]"), 1, agg=latest).to_pylist() == [micros]


# What explain says is so.


def test_explain_counts_keys_and_names_what_runs():
    table = pa.table({"t": [1, 2, 3, 14], "k": [0, 19_000, 0, 19_000], "v": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0]})
    call = {"windows": W.sliding(10, every=2), "aggs": [S.sum("v"), S.sum("x"), S.max("v")], "time": "t", "by": "k"}
    shown = str(sash.explain(table, **call))
    assert "4 rows, 2 keys" in shown
    assert "sum(v) -> int64: prefixes over slices" in shown
    assert "sum(x) -> double: two stacks over slices" in shown
    over = str(sash.explain(table, **{**call, "windows": W.trailing(5)}))
    assert "sum(v) -> int64: prefixes over rows" in over


# Messages that a user understands.


def test_messages():
    from sash.algorithms import TwoStacks

    with pytest.raises(InvalidType, match="sum does not take 'x'"):
        TwoStacks("sum").insert("x")
    times = pa.table({"t": pa.array([0, 9_999_999, 10_000_000], pa.timestamp("us"))})
    counts = sash.aggregate(times, windows=W.tumbling("10 secs"), aggs=[S.count().alias("n")], time="t")["n"]
    assert counts.to_pylist() == [2, 1]
    with pytest.raises(InvalidWindow, match=r"unknown unit 'seconnds' \(did you mean seconds\?\)"):
        W.tumbling("10 seconnds")
    with pytest.raises(InvalidType, match=r"'t' has the type double.*timestamp_seconds\(t\)"):
        sash.aggregate({"t": [1.5], "v": [1]}, windows=W.tumbling(10), aggs=[S.sum("v")], time="t")
    with pytest.raises(InvalidType, match=r"'t' has the type string.*to_timestamp\(t\)"):
        sash.aggregate({"t": ["2026-01-01"], "v": [1]}, windows=W.tumbling(10), aggs=[S.sum("v")], time="t")


def test_a_folder_that_cannot_be_written(tmp_path):
    from typer.testing import CliRunner

    from sash.cli import app

    (tmp_path / "file").write_text("not a folder")
    for command in ("demo", "bench"):
        result = CliRunner().invoke(app, [command, "--folder", str(tmp_path / "file" / "inside")])
        assert result.exit_code == 2
        assert "cannot be written" in result.output
