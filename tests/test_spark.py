"""``sash.aggregate`` and ``sash.over`` on Spark frames: against one process, and against Spark's own windows and aggregates."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
import random
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import IntegerOverflow, InvalidArgument, InvalidExpression, InvalidType, InvalidWindow, UnknownName
from sash.spark.batch import batch_frames
from tests import spark_cases
from tests.own_windows import Faulty
from tests.spark_cases import COMMON, ORDERED, SECONDS, TRAILING, alike, assert_same, compare, compare_over, rows

CASES = spark_cases.cases()


@pytest.fixture(scope="module")
def table():
    return rows()


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table).repartition(3).cache()


# The same as in one process.


@pytest.mark.parametrize("name", CASES)
def test_a_frame_gives_what_a_table_gives(frame, table, name):
    assert compare(frame, table, *CASES[name]) > 0


@pytest.mark.parametrize("aggs", [COMMON, ORDERED], ids=["common", "ordered"])
@pytest.mark.parametrize("name", [*TRAILING, "all"])
def test_over_a_frame_gives_what_over_a_table_gives(frame, table, name, aggs):
    windows = TRAILING if name == "all" else TRAILING[name]
    compare_over(frame, table, windows, aggs, {"order_by": "id"})


@pytest.mark.parametrize("partitions", [1, 2, 7, 50])
def test_partitions_do_not_matter(frame, table, partitions):
    spread = frame.repartition(partitions)
    for name in ("common, sliding", "others, session", "ordered, sliding", "common, rows"):
        compare(spread, table, *CASES[name])
    compare_over(spread, table, TRAILING, COMMON, {"order_by": "id"})


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_and_one_row(spark, count):
    table = rows(5, seed=3).filter(pa.array([k < count for k in range(5)]))
    frame = spark.createDataFrame(table)
    for name in ("common, sliding", "common, tumbling", "others, session", "ordered, sliding", "common, rows"):
        compare(frame, table, *CASES[name])
    compare_over(frame, table, TRAILING, COMMON, {"order_by": "id"})


def test_keys_with_more_rows_than_are_held_at_once(frame, table, monkeypatch):
    """A key then goes through in pieces, and carries its open windows on."""
    monkeypatch.setattr(batch_frames, "ROWS_AT_ONCE", 16)
    for name in (
        "common, sliding",
        "others, session",
        *(n for n in CASES if n.startswith("ordered")),
        "two keys, rows",
        "empty windows, rows",
    ):
        compare(frame, table, *CASES[name])
    for windows in (*TRAILING.values(), TRAILING):
        compare_over(frame, table, windows, ORDERED, {"order_by": "id"})


def test_one_key_with_nearly_all_rows_is_split_by_time(spark):
    table = rows(2000, seed=5, span=2_000_000)
    frame = spark.createDataFrame(table)
    for aggs in (COMMON, ORDERED):
        compare(frame, table, SECONDS["sliding"], aggs, {"by": None, "order_by": "id"})
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        out = sash.aggregate(frame, windows=SECONDS["sliding"], aggs=ORDERED, time="t", order_by="id")
        assert sum(n > 0 for n in out.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()) > 1
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")


@pytest.mark.parametrize("kind", ["date32", "int64", "int32", "int16", "ntz"])
def test_every_measure(spark, kind):
    rng = random.Random(2)
    ticks = [rng.randrange(-300, 300) for _ in range(300)]
    types = {"date32": pa.date32(), "int64": pa.int64(), "int32": pa.int32(), "int16": pa.int16(), "ntz": pa.timestamp("us")}
    times = pa.array(ticks, pa.int32()).cast(types[kind]) if kind != "ntz" else pa.array(ticks, pa.int64()).cast(types[kind])
    table = pa.table({"t": times, "v": pa.array([rng.randrange(100) for _ in ticks]), "id": pa.array(range(300))})
    frame = spark.createDataFrame(table)
    size, every = {"date32": ("7 days", "2 days"), "ntz": ("10 microseconds", "3 microseconds")}.get(kind, (10, 3))
    for aggs in ([S.sum("v"), S.min("t")], [S.product("v")], [S.first("v")]):
        for window in (W.sliding(size, every=every), W.tumbling(size), W.session(every), W.unbounded()):
            compare(frame, table, window, aggs, {"by": None, "order_by": "id"})
    compare_over(frame, table, W.trailing(size), [S.sum("v")], {"by": None, "order_by": "id"})


zones = st.sampled_from(["UTC", "America/New_York", "Asia/Kathmandu"])
periods = st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(0, 20))


@settings(max_examples=12)
@given(specs=st.lists(periods, min_size=1, max_size=4), zone=zones, seed=st.integers(0, 99), partitions=st.integers(1, 5))
def test_any_sliding_windows(spark, specs, zone, seed, partitions):
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = rows(80, seed)
        windows = {
            f"q{k}": W.sliding(f"{size} seconds", every=f"{every} seconds", offset=f"{offset} seconds")
            for k, (size, every, offset) in enumerate(specs)
        }
        frame = spark.createDataFrame(table).repartition(partitions)
        compare(frame, table, windows, COMMON[:6], {})
        compare(frame, table, windows, ORDERED[:4], {"order_by": "id"})
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


# The same as Spark's own.


def spark_windows(frame, window, pairs, by=("k",)):
    """Spark's results by key and window."""
    grouped = frame.where("t is not null").groupBy(*by, window).agg(*[p.alias(f"c{k}") for k, p in enumerate(pairs)])
    found = {}
    for r in grouped.collect():
        window = r[len(by)]
        found[(*(normal_key(r[k]) for k in range(len(by))), window[0], window[1])] = list(r[len(by) + 1 :])
    return found


def normal_key(value):
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def our_windows(frame, spec, aggs, by=("k",)):
    calls = [a.alias(f"c{k}") for k, a in enumerate(aggs)]
    result = sash.aggregate(frame, windows=spec, aggs=calls, by=list(by), time="t", order_by="id").collect()
    found = {}
    for r in result:
        window = r[len(by)]
        found[(*(normal_key(r[k]) for k in range(len(by))), window[0], window[1])] = list(r[len(by) + 1 :])
    return found


def spark_pairs():
    """Each of our aggregates beside Spark's own."""
    from pyspark.sql import functions as F

    pairs = [(S.count(), F.count("*"))]
    for name in ("sum", "avg", "min", "max", "count", "var_samp", "var_pop", "stddev_samp", "stddev_pop"):
        for column in ("v", "i", "x", "m", "`a.b`"):
            pairs.append((getattr(S, name)(column), getattr(F, name)(column)))
    for name in ("min", "max"):
        for column in ("s", "when", "t", "flag"):
            pairs.append((getattr(S, name)(column), getattr(F, name)(column)))
    pairs += [(S.median("i"), F.median("i")), (S.percentile("x", 0.25), F.percentile("x", F.lit(0.25)))]
    pairs += [(S.count_distinct("s"), F.count_distinct("s")), (S.product("i"), F.product("i"))]
    pairs += [(S.sum("i * 2 - 1").where("i < 1000"), F.expr("sum(i * 2 - 1) filter (where i < 1000)"))]
    return pairs


@pytest.mark.parametrize("size", [("10 seconds", "3 seconds"), ("7 seconds", "7 seconds"), ("1600 milliseconds", "700 milliseconds")])
def test_sliding_windows_are_sparks(frame, size):
    from pyspark.sql import functions as F

    pairs = spark_pairs()
    window = F.window("t", *size)
    ours = our_windows(frame, W.sliding(size[0], every=size[1]), [a for a, _ in pairs])
    theirs = spark_windows(frame, window, [b for _, b in pairs])
    assert ours.keys() == theirs.keys()
    for at, values in theirs.items():
        different = [(str(pairs[k][0]), a, b) for k, (a, b) in enumerate(zip(ours[at], values, strict=True)) if not alike(a, b)]
        assert not different, (at, different)


def test_result_types_are_sparks(frame):
    from pyspark.sql import functions as F

    pairs = spark_pairs()
    mine = sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs=[a.alias(f"c{k}") for k, (a, _) in enumerate(pairs)], by="k", time="t")
    spark = frame.groupBy("k", F.window("t", "1 hour")).agg(*[b.alias(f"c{k}") for k, (_, b) in enumerate(pairs)])
    assert [(f.name, f.dataType) for f in mine.schema] == [(f.name, f.dataType) for f in spark.schema]


def test_names_are_sparks(frame):
    from pyspark.sql import functions as F

    mine = sash.aggregate(frame, windows=W.tumbling("1 hour"), aggs=[S.sum("v"), S.count(), S.avg("x"), S.max("i")], by="k", time="t")
    spark = frame.groupBy("k", F.window("t", "1 hour")).agg(F.sum("v"), F.count(F.lit(1)), F.avg("x"), F.max("i"))
    assert mine.columns == spark.columns


def test_sessions_are_sparks(frame):
    from pyspark.sql import functions as F

    pairs = [(S.sum("v"), F.sum("v")), (S.count(), F.count("*")), (S.max("s"), F.max("s"))]
    for given_pairs in (pairs[:2], pairs):
        ours = our_windows(frame, W.session("2 seconds"), [a for a, _ in given_pairs])
        assert ours == spark_windows(frame, F.session_window("t", "2 seconds"), [b for _, b in given_pairs])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_days_around_a_change_of_the_clock(spark, zone):
    """Calendar days follow the zone that is asked for, whatever the session's; epoch days follow none, as Spark's."""
    from pyspark.sql import functions as F

    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        hours = [datetime.datetime(2024, 3, 8, tzinfo=datetime.UTC) + datetime.timedelta(hours=h) for h in range(24 * 25)]
        table = pa.table({"id": list(range(len(hours))), "t": pa.array(hours, pa.timestamp("us", "UTC"))})
        frame = spark.createDataFrame(table)
        days = sash.aggregate(frame, windows=W.tumbling("1 day", tz=zone), aggs=[S.count().alias("n")], time="t")
        spark_days = frame.groupBy(F.date_trunc("day", "t").alias("d")).count()
        assert sorted((r.window.start, r.n) for r in days.collect()) == sorted((r.d, r["count"]) for r in spark_days.collect())
        assert our_windows(frame, W.tumbling("1 day"), [S.count()], ()) == spark_windows(frame, F.window("t", "1 day"), [F.count("*")], ())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_extreme_integers(spark):
    far = 2**63 - 1
    table = pa.table({"t": pa.array([1, 2, 3, 11, 12], pa.int64()), "v": pa.array([far, far, -far, -far - 1, 5], pa.int64())})
    frame = spark.createDataFrame(table)
    for aggs in ([S.sum("v")], [S.sum("v"), S.product("v")], [S.sum("v"), S.first("v")]):
        for window in (W.tumbling(10), W.sliding(10, every=5)):
            compare(frame.where("t <> 2"), table.filter(pa.array([True, False, True, True, True])), window, aggs, {"by": None})
    with pytest.raises(Exception, match="does not fit in 64 bits"):
        sash.aggregate(frame.where("t < 3"), windows=W.tumbling(10), aggs=[S.sum("v")], time="t").collect()
    with pytest.raises(Exception, match="64"):
        sash.aggregate(frame.where("t < 3"), windows=W.sliding(10, every=5), aggs=[S.sum("v")], time="t").collect()


def test_sums_do_not_depend_on_ansi(spark):
    far = 2**63 - 1
    table = pa.table({"t": pa.array([1, 2, 3], pa.int64()), "v": pa.array([far, far, -far], pa.int64())})
    frame = spark.createDataFrame(table)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        for window in (W.tumbling(10), W.sliding(10, every=5)):
            (first, *_) = sash.aggregate(frame, windows=window, aggs=[S.sum("v").alias("s")], time="t").collect()
            assert first.s == far
        with pytest.raises(Exception, match="64 bits"):
            sash.aggregate(frame.where("t < 3"), windows=W.tumbling(10), aggs=[S.sum("v")], time="t").collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin"])
def test_times_without_a_zone_do_not_follow_the_sessions(spark, zone):
    """Around a change of the clock, where local times are missing or twice in the session's zone."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        starts = [datetime.datetime(2024, 3, 10), datetime.datetime(2024, 3, 31), datetime.datetime(2024, 11, 3)]
        times = [start + datetime.timedelta(minutes=20 * m) for start in starts for m in range(24)]
        table = pa.table({"id": list(range(len(times))), "t": pa.array(times, pa.timestamp("us")), "k": [1] * len(times)})
        minutes = table.set_column(1, "m", pa.array([int((t - datetime.datetime(2024, 1, 1)).total_seconds()) // 60 for t in times]))
        made = "timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(0, 0, cast(m as int)) as t"
        frame = spark.createDataFrame(minutes).selectExpr("id", made, "k")
        assert frame.schema["t"].dataType.simpleString() == "timestamp_ntz"
        for window in (W.tumbling("1 hour"), W.sliding("1 hour", every="10 minutes"), W.session("5 minutes")):
            for aggs in ([S.count(), S.max("t"), S.min("t")], [S.first("t")]):
                compare(frame, table, window, aggs, {})
        compare_over(frame, table, W.trailing("1 hour"), [S.count()], {})
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_expressions_are_sparks_in_value_and_type(frame):
    from pyspark.sql import functions as F

    texts = ["m / 3", "round(m, 1)", "m * m", "i / 2", "i + v", "cast(x as int)", "V + 1", "`a.b` % 4", "coalesce(i, 0.5)", "length(s)"]
    for window in (W.tumbling("7 seconds"), W.sliding("10 seconds", every="5 seconds")):
        size = ("7 seconds", "7 seconds") if window == W.tumbling("7 seconds") else ("10 seconds", "5 seconds")
        usable = frame.where("x between -1 and 1")
        mine = sash.aggregate(usable, windows=window, aggs=[S.max(e).alias(f"c{k}") for k, e in enumerate(texts)], by="k", time="t")
        spark = usable.groupBy("k", F.window("t", *size)).agg(*[F.expr(f"max({e})").alias(f"c{k}") for k, e in enumerate(texts)])
        assert [(f.name, f.dataType) for f in mine.schema] == [(f.name, f.dataType) for f in spark.schema]
        ours, theirs = ({(r[0], r[1][0]): list(r[2:]) for r in f.collect()} for f in (mine, spark))
        assert ours.keys() == theirs.keys()
        assert all(alike(ours[at], theirs[at]) for at in theirs)


# A frame among frames.


def test_nothing_runs_before_an_action(spark, frame):
    jobs = spark.sparkContext.statusTracker()
    before = len(jobs.getJobIdsForGroup())
    lazy = [sash.aggregate(frame, **spark_cases.arguments(*case)) for case in CASES.values()]
    lazy.append(sash.over(frame, windows=TRAILING, aggs=COMMON, by="k", time="t"))
    for f in lazy:
        assert f.schema.fields
    assert len(jobs.getJobIdsForGroup()) == before


def plan_text(frame, capsys):
    frame.explain("formatted")
    return capsys.readouterr().out


@pytest.mark.parametrize("way", ["plain", "catalyst", "fragments", "rows"])
def test_filters_and_columns_reach_the_scan(spark, table, tmp_path, capsys, way):
    spark.createDataFrame(table).write.parquet(str(tmp_path / "rows"))
    stored = spark.read.parquet(str(tmp_path / "rows")).where("i > 3")
    windows = {"plain": W.tumbling("1 second")}.get(way, W.sliding("10 seconds", every="1 second"))
    aggs = {"fragments": [S.product("x")], "rows": [S.first("x")]}.get(way, [S.sum("x")])
    request = {"windows": windows, "aggs": aggs, "by": "k", "time": "t"}
    assert f"plan: {way}" in str(sash.explain(stored, **request))
    text = plan_text(sash.aggregate(stored, **request), capsys)
    (scanned,) = {line for line in text.splitlines() if "ReadSchema" in line}
    assert not any(f"{name}:" in scanned for name in ("v", "s", "when", "m", "flag")), scanned
    assert "GreaterThan(i,3)" in text


def test_it_composes(spark, frame, table, tmp_path):
    out = sash.aggregate(frame, windows=SECONDS["sliding"], aggs=[S.sum("v").alias("total")], by="k", time="t")
    wanted = sash.aggregate(table, windows=SECONDS["sliding"], aggs=[S.sum("v").alias("total")], by="k", time="t")
    out.createOrReplaceTempView("windows_of_v")
    assert (
        spark.sql("select count(*) n from windows_of_v where total is not null").collect()[0].n
        == wanted.column("total").drop_null().length()
    )
    assert out.join(frame.select("k").distinct(), "k").count() == sum(k is not None for k in wanted.column("k").to_pylist())
    out.cache()
    assert out.count() == out.count() == wanted.num_rows
    out.unpersist()
    out.write.parquet(str(tmp_path / "out"))
    assert_same(spark.read.parquet(str(tmp_path / "out")).toArrow().cast(wanted.schema), wanted, ["k", "window"])
    again = sash.aggregate(
        out.selectExpr("k", "window.start as t", "total"), windows=W.tumbling("1 minute"), aggs=[S.max("total")], by="k", time="t"
    )
    assert again.count() > 0


def test_what_a_hostile_user_tried(spark):
    """Names, cases, types and texts that once went wrong."""
    df = spark.sql("select timestamp_seconds(id) t, id, id % 2 k, named_struct('a', id, 'm', map('x', 1)) s, array() e from range(4)")
    for aggs in ([S.last("T")], [S.max("T"), S.sum("s.a"), S.count().where("isnan(id / 2)"), S.sum("id / 3.0")]):
        assert sash.aggregate(df, windows=W.sliding("3 seconds", every="1 second"), aggs=aggs, by="k", time="t").count() == 10
    with pytest.raises(InvalidType, match="column 'e' has the type array<void>"):
        sash.over(df, windows=W.trailing("1 second"), aggs=[S.max("T").alias("m")], by="k", time="t")
    assert sash.over(df.drop("e"), windows=W.trailing("1 second"), aggs=[S.max("T").alias("m")], by="k", time="t").count() == 4
    twice = df.selectExpr("t", "k as a", "k as A", "id")
    assert sash.over(twice, windows=W.trailing("1 second"), aggs=[S.count().alias("n")], time="t").count() == 4
    named = {"cost ${x}": W.tumbling("1 day")}
    for plan in ("plain", "rows"):
        (row,) = sash.aggregate(df, windows=named, aggs=[S.count()], time="t", plan=plan).collect()
        assert row.query == "cost ${x}"
    internal = df.withColumnRenamed("k", "@first")
    for plan in ("catalyst", "fragments", "rows"):
        got = sash.aggregate(internal, windows=W.tumbling("1 hour"), aggs=[S.count()], by="@first", time="t", plan=plan)
        assert sorted(r[0] for r in got.collect()) == [0, 1]


def test_calendars_far_ahead(spark):
    table = pa.table(
        {"t": pa.array([datetime.datetime(y, 1, 5, tzinfo=datetime.UTC) for y in (31, 2024, 2116, 2200, 9825)], pa.timestamp("us", "UTC"))}
    )
    frame = spark.createDataFrame(table)
    for window in (W.tumbling("1 month"), W.tumbling("1 year")):
        for aggs in ([S.count()], [S.first("t")]):
            assert compare(frame, table, window, aggs, {"by": None}) == 5
    recent = table.slice(1, 3)
    assert compare(spark.createDataFrame(recent), recent, W.tumbling("1 day", tz="Europe/Berlin"), [S.count()], {"by": None}) == 3
    (month,) = sash.aggregate(table.slice(2, 1), windows=W.tumbling("1 month"), aggs=[S.count()], time="t").column("window").to_pylist()
    assert month["end"] == datetime.datetime(2116, 2, 1, tzinfo=datetime.UTC)


def test_explain_gives_a_hint_where_the_session_checks_every_row(spark, frame):
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    request = {"aggs": [S.sum("v")], "by": "k", "time": "t"}
    assert name not in str(sash.explain(frame, windows=SECONDS["sliding"], **request))
    before = spark.conf.get(name)
    spark.conf.set(name, "64MB")
    try:
        assert f"{name} is 64MB" in str(sash.explain(frame, windows=SECONDS["sliding"], **request))
        assert name not in str(sash.explain(frame, windows=SECONDS["tumbling"], **request))  # plain Spark: no row goes to Python
    finally:
        spark.conf.set(name, before)


def test_explain_names_the_plan(frame):
    text = str(sash.explain(frame, windows=SECONDS["sliding"], aggs=[S.sum("v")], by="k", time="t"))
    assert "plan: catalyst" in text
    assert "blocks of 2 minutes 40 seconds" in text
    text = str(sash.explain(frame, windows=W.trailing_rows(3), aggs=[S.sum("v")], by="k", time="t"))
    assert "plan: rows" in text


def test_every_plan_gives_the_same(frame, table):
    wanted = sash.aggregate(table, windows=W.tumbling("5 seconds"), aggs=COMMON, by="k", time="t")
    for plan in ("plain", "catalyst", "fragments", "rows"):
        got = sash.aggregate(frame, windows=W.tumbling("5 seconds"), aggs=COMMON, by="k", time="t", plan=plan)
        assert_same(got.toArrow().cast(wanted.schema), wanted, ["k", "window"])
    with pytest.raises(InvalidArgument, match="plan='catalyst' is not possible here: first"):
        sash.aggregate(frame, windows=W.tumbling("5 seconds"), aggs=[S.first("v")], by="k", time="t", plan="catalyst")
    with pytest.raises(InvalidArgument, match="plan must be one of auto"):
        sash.aggregate(frame, windows=W.tumbling("5 seconds"), aggs=[S.first("v")], by="k", time="t", plan="fast")
    with pytest.raises(InvalidArgument, match="for Spark frames"):
        sash.aggregate(table, windows=W.tumbling("5 seconds"), aggs=[S.first("v")], by="k", time="t", plan="rows")


# Bad input.


def test_bad_input_is_refused_before_a_job(spark, frame):
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup())

    def refused(error, match, **changes):
        request = {"windows": W.tumbling("1 second"), "aggs": [S.sum("v")], "by": "k", "time": "t", **changes}
        with pytest.raises(error, match=match):
            sash.aggregate(frame, **request)

    refused(UnknownName, "did you mean 't'", time="tt")
    refused(UnknownName, "column", aggs=[S.sum("w")])
    refused(InvalidType, "time column 's'", time="s")
    refused(InvalidArgument, "windows must be made with sash.windows", windows=None)
    refused(InvalidType, "sum does not take", aggs=[S.sum("s")])
    refused(InvalidArgument, "two columns named 'k'", aggs=[S.sum("v").alias("k")])
    refused(InvalidWindow, "integer in the column's own unit", time="v")
    refused(InvalidArgument, "emit", emit="update")
    refused(InvalidArgument, r"processing_time\(\) is for streams", time=sash.processing_time())
    refused(InvalidExpression, "over the row", aggs=[S.sum("explode(array(1, 2))"), S.count()])
    refused(InvalidExpression, "over the row", aggs=[S.count().where("row_number() over (order by v) > 2")])
    refused(InvalidExpression, "over the row", windows=W.punctuation("explode(array(true, false))"))
    with pytest.raises(InvalidArgument, match="several columns named 'v'"):
        sash.aggregate(frame.selectExpr("t", "v", "v"), windows=W.tumbling("1 second"), aggs=[S.sum("v")], time="t")
    refused(InvalidWindow, "it is for sash.over", windows=W.trailing("1 second"))
    with pytest.raises(InvalidWindow, match="over takes trailing windows"):
        sash.over(frame, windows=W.tumbling("1 second"), aggs=[S.count()], time="t")
    strange = frame.selectExpr("t", "make_ym_interval(1, 2) as months", "map('a', 1) as lookup")
    with pytest.raises(InvalidType, match="column 'months' has the type interval year to month"):
        sash.aggregate(strange, windows=W.tumbling("1 second"), aggs=[S.max("months")], time="t")
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup()) == jobs
    with pytest.raises(InvalidArgument, match="names that start with '@sash:' are sash's own"):
        sash.aggregate(frame.withColumnRenamed("v", "@sash:block"), windows=W.tumbling("1 second"), aggs=[S.count()], time="t")
    folded = frame.selectExpr("t", "s collate UTF8_LCASE as s", "v")
    with pytest.raises(InvalidType, match="column 's' has the type string collate UTF8_LCASE"):
        sash.aggregate(folded, windows=W.tumbling("1 second"), aggs=[S.count()], by="s", time="t")
    refused(InvalidArgument, "where 'v . 1' must be true or false for each row; it is int64", aggs=[S.count().where("v + 1")])
    refused(InvalidArgument, "which Spark treats as equal", aggs=[S.sum("v").alias("K")])
    with pytest.raises(InvalidType, match="'z' has the type void"):
        sash.aggregate(frame.selectExpr("t", "null as z"), windows=W.tumbling("1 second"), aggs=[S.count()], by="z", time="t")
    with pytest.raises(InvalidExpression, match="Spark does not take an expression"):
        sash.aggregate(frame, windows=W.tumbling("1 second"), aggs=[S.sum("frobnicate(v)")], by="k", time="t")
    with pytest.raises(InvalidType, match="which Spark cannot send"):
        sash.over(strange, windows=W.trailing("1 second"), aggs=[S.count()], time="t")
    assert sash.over(strange.drop("months"), windows=W.trailing("1 second"), aggs=[S.count()], time="t").count() == frame.count()


@pytest.mark.parametrize("windows", [W.tumbling("1 second"), W.sliding("4 seconds", "1 second"), W.session("1 second")])
def test_sparks_own_windows_stand_on_ours(frame, windows):
    from pyspark.sql import functions as F

    ours = sash.aggregate(frame, windows=windows, aggs=[S.count().alias("n")], time="t")
    wider = ours.groupBy(F.window("window", "1 hour")).agg(F.sum("n").alias("n"))
    assert wider.agg(F.sum("n")).collect() == ours.agg(F.sum("n")).collect()


def test_a_users_function_that_raises_is_named(frame):
    with pytest.raises(Exception, match=r"notify \(own_windows.py, line \d+\) raised ValueError: cannot stand") as raised:
        sash.aggregate(frame, windows=Faulty("i", 3), aggs=[S.count()], by="k", time="t").collect()
    assert "notices.py" not in str(raised.value)


def test_decimals_at_the_end_of_their_type(spark):
    big = decimal.Decimal("9" * 37)
    table = pa.table({"t": pa.array([1, 2, 12], pa.int64()), "m": pa.array([big, big.copy_negate(), big], pa.decimal128(38, 0))})
    table = table.append_column("id", pa.array([0, 1, 2]))
    compare(spark.createDataFrame(table), table, W.sliding(10, every=5), [S.sum("m"), S.max("m")], {"by": None})
    with pytest.raises(IntegerOverflow, match="38 digits"):
        sash.aggregate(table, windows=W.tumbling(10), aggs=[S.avg("m").where("t = 1")], time="t")


def test_a_worker_that_lacks_something_says_what(frame):
    """The function that is sent looks before it leaps; here its modules are taken away one by one."""
    from sash.plan.request import Request
    from sash.spark.workers.batch_tasks import MakeFragments, worker_function

    task = MakeFragments(Request.of(W.tumbling("1 second"), [S.count()], None, "t"), pa.schema([("t", pa.timestamp("us", "UTC"))]), 10)
    run = worker_function(task, ["t"])
    script = (
        "import sys, base64; from pyspark import cloudpickle\n"
        "run = cloudpickle.loads(base64.b64decode(sys.argv[1]))\n"
        "if sys.argv[2] == 'old': import sash; sash.__version__ = '0.0.9'\n"
        "else: sys.modules[sys.argv[2]] = None\n"
        "try: list(run(iter([])))\n"
        "except ImportError as error: print(error)"
    )
    sent = base64.b64encode(cloudpickle.dumps(run)).decode()
    for missing, words in {"numba": "needs numba on the executors", "sash": "sash.spark.ship", "old": "have sash 0.0.9"}.items():
        done = subprocess.run([sys.executable, "-c", script, sent, missing], capture_output=True, text=True, check=True)
        assert words in done.stdout, done.stdout + done.stderr


GUARDED = [
    "case when z <> 0 then i / z end", "case when z = 0 then -1 when 10 / z > 3 then 10 / z else i end", "if(z = 0, 0, i div z)",
    "z <> 0 and i / z > 1", "z = 0 or i % z = 0", "coalesce(case when z = 0 then 0 end, i / z)", "case z when 0 then 0 else i / z end",
    "case when s like 'x%' then 0 else cast(s as int) end", "case when false then i / 0 else 2 end", "if(true, 1, 1 / 0)",
    "true or 1 / 0 > 1", "case when z > 100 then i div 0 else i end", "coalesce(1, 1 / 0)",
]  # fmt: skip
DECIMALS = [
    "m / 2", "m * 2", "m + 1", "m - 1000000", "2 * m", "m * n", "m + n", "m - n", "m / n", "m % n", "m % 3", "m * w", "w * w",
    "w + m", "m * i", "i + m", "m / z2", "round(m)", "round(m, 1)", "round(m, 5)", "round(m, -1)", "round(w, 3)", "m * -2", "m div 2",
    "w div z2", "u div 1", "u div u", "m * (2)", "m / (-3)", "round(m, -2)", "round(m, -5)", "round(w, -3)", "round(y, 1)",
    "abs(m)", "-m", "m * 1.5", "m > n", "greatest(m, n)", "coalesce(m, i)", "m * f",
]  # fmt: skip


def test_expressions_mean_what_they_mean_to_spark(spark):
    from sash.expressions import parse

    d = decimal.Decimal
    numbers = [d("12.34"), d("-0.05"), None, d("999.99"), d("0.00")]
    table = pa.table({
        "i": pa.array([5, -7, 0, None, 12], pa.int32()), "z": pa.array([0, 2, -3, 0, 5], pa.int32()),
        "z2": pa.array([1, 2, -3, 7, 5], pa.int32()), "s": ["x1", "12", None, "-3", "x"], "f": [1.5, None, -2.25, 0.0, 3.0],
        "m": pa.array(numbers, pa.decimal128(5, 2)), "n": pa.array([d("1.5"), d("-2.25"), d(3), d("0.125"), None], pa.decimal128(8, 3)),
        "w": pa.array([d("1234567890123456.123456789"), d("-0.000000001"), None, d(7), d("0.5")], pa.decimal128(30, 9)),
        "u": pa.array([d("0.999999999"), d("-0.999999999"), None, d(7), d("2.5")], pa.decimal128(30, 9)),
        "y": pa.array([d("9" * 35 + ".94"), d("-1.25"), None, d("0.05"), d(3)], pa.decimal128(38, 2)),
    })  # fmt: skip
    frame = spark.createDataFrame(table).coalesce(1)
    for text in [*GUARDED, *DECIMALS]:
        theirs = frame.selectExpr(f"{text} as x").toArrow().column("x").combine_chunks()
        ours = parse(text).evaluate(table)
        assert ours.type == theirs.type or (pa.types.is_integer(ours.type) and pa.types.is_integer(theirs.type)), (
            text,
            ours.type,
            theirs.type,
        )
        assert ours.to_pylist() == theirs.to_pylist(), text


def test_what_is_not_guarded_is_refused():
    from sash.expressions import parse

    table = pa.table({"i": [1, 2], "z": [0, 1]})
    for text in ("i / z", "case when z = 0 then i / z end", "z = 1 or i / z > 0", "z = 0 and i / z > 0"):
        with pytest.raises(InvalidExpression, match="division by zero"):
            parse(text).evaluate(table)
