"""``sash.aggregate`` on streaming frames, against the operator in one process over the same rows."""

from __future__ import annotations

import datetime
import os
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import InvalidArgument, InvalidExpression, InvalidSnapshot, InvalidType, InvalidWindow
from tests.spark_cases import COMMON, FREE, ORDERED, SECONDS, assert_same, rows

ENDING = {name: spec for name, spec in SECONDS.items() if name != "unbounded"}
MOVED = 400 * 86_400_000_000
"""Spark's watermark starts in 1970, so the rows are moved on."""


def stream_rows(count=600, seed=1):
    table = rows(count, seed)
    moved = pa.array([None if v is None else v + MOVED for v in table["t"].cast(pa.int64()).to_pylist()], pa.int64())
    return table.set_column(table.column_names.index("t"), "t", moved.cast(pa.timestamp("us", "UTC"))).sort_by("t")


PLAIN = {
    "sum": S.sum("v"),
    "count": S.count(),
    "max_by": S.max_by("id", "v"),
    "first": S.first("v", ignorenulls=True),
    "list": S.collect_list("v"),
    "median": S.median("v"),
}


class Folder:
    """Files that arrive one after the other, a stream over them, and where it keeps its state."""

    def __init__(self, spark, home, schema=None):
        self.spark, self.home, self.count, self.schema = spark, home, 0, schema
        (home / "in").mkdir()

    def add(self, *tables):
        for table in tables:
            path = self.home / "in" / f"{self.count:04d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (self.count + 1, self.count + 1))
            self.count += 1
        if self.schema is None:
            self.schema = self.spark.read.parquet(str(self.home / "in")).schema

    def source(self):
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).parquet(str(self.home / "in"))

    def run(self, frame, mode="append", name="results"):
        """All that has arrived; what came out so far."""
        writer = frame.writeStream.format("parquet") if mode == "append" else frame.writeStream.foreachBatch(self._kept)
        if mode == "append":
            writer = writer.option("path", str(self.home / name))
        query = writer.outputMode(mode).option("checkpointLocation", str(self.home / f"{name}-state")).trigger(availableNow=True).start()
        query.awaitTermination()
        self.query = query
        if mode == "append":
            return self.spark.read.schema(frame.schema).parquet(str(self.home / name)).toArrow()
        return self.spark.read.schema(frame.schema).parquet(str(self.home / "kept")).toArrow()

    def _kept(self, batch, number):
        batch.write.mode("overwrite").parquet(str(self.home / "kept" / f"batch={number}"))


@pytest.fixture
def folder(spark, tmp_path):
    return Folder(spark, tmp_path)


def in_parts(table, parts):
    size = -(-table.num_rows // parts)
    return [table.slice(a, size) for a in range(0, table.num_rows, size)]


def operator_of(table, windows, aggs, delay, **options):
    """All rows at once, then the watermark of the newest."""
    op = sash.Operator(windows=windows, aggs=aggs, time="t", **options)
    op.add(table)
    newest = pc.max(table["t"]).as_py() - delay
    return op.advance(newest)


def keys_of(table, by):
    return [n for n in ("query", *by, "window", "rows") if n in table.column_names]


DELAY = datetime.timedelta(seconds=20)


@pytest.mark.parametrize("order_by", [None, "id"])
def test_tumbling_windows_by_spark_itself(folder, order_by):
    """``plan="plain"``: the same results, from Spark's own state, over a restart."""
    table = stream_rows()
    if order_by is None:  # each time once
        seen = {t: k for k, t in enumerate(table["t"].to_pylist())}
        table = table.take(sorted(seen.values()))
    windows, aggs = W.tumbling("10 seconds", offset="3 seconds"), [call.alias(name) for name, call in PLAIN.items()]
    parts = in_parts(table, 4)
    folder.add(*parts[:2])

    def frame(**more):
        options = {"by": "k", "time": "t", "order_by": order_by, "watermark": DELAY, "plan": "plain"} | more
        return sash.aggregate(folder.source(), windows=options.pop("windows", windows), aggs=options.pop("aggs", aggs), **options)

    folder.run(frame())
    folder.add(*parts[2:])
    got = folder.run(frame())
    wanted = operator_of(table, windows, aggs, DELAY, by="k", order_by=order_by).drop_columns("query")
    assert_same(got.cast(wanted.schema), wanted, ["k", "window"])
    told = sash.spark.progress(folder.query)
    assert sum(entry["rows"] + entry["without_time"] for entry in told) == parts[2].num_rows + parts[3].num_rows
    assert told[-1]["late_rows"] is None
    assert "Spark's own aggregation" in str(
        sash.explain(folder.source(), windows=windows, aggs=aggs, by="k", time="t", watermark=DELAY, plan="plain")
    )
    with pytest.raises(InvalidArgument, match="nothing to compare with"):
        sash.spark.check(frame(), str(folder.home / "results-state"))
    for more, reason in (
        ({"windows": W.sliding("10 seconds", every="5 seconds")}, "one query of tumbling windows"),
        ({"emit": "update"}, "no revisions"),
        ({"aggs": [S.count_distinct("v")]}, "in batches only"),
        ({"aggs": [S.product("v")]}, "no mergeable partial"),
        ({"time": "id", "watermark": 5, "windows": W.tumbling(10)}, "times with a zone only"),
        ({"aggs": [S.max_by("id", "s")], "order_by": "id"}, "has no opposite"),
        ({"plan": "catalyst"}, "one of auto, plain, fragments, rows"),
    ):
        with pytest.raises(InvalidArgument, match=reason):
            frame(**more)


@pytest.mark.parametrize("what", ["fragments", "rows"])
def test_all_windows_and_a_restart(folder, what):
    specs = {n: ENDING[n] for n in FREE if n in ENDING} if what == "fragments" else ENDING
    aggs = COMMON if what == "fragments" else ORDERED
    table = stream_rows()
    parts = in_parts(table, 4)
    folder.add(*[parts[k] for k in (0, 1)])

    def frame():
        source = folder.source()
        return sash.aggregate(source, windows=specs, aggs=aggs, by="k", time="t", order_by="id", watermark=DELAY, buckets=3)

    folder.run(frame())
    folder.add(parts[2], parts[3])
    got = folder.run(frame())
    wanted = operator_of(table, specs, aggs, DELAY, by="k", order_by="id")
    assert_same(got.cast(wanted.schema), wanted, keys_of(got, ["k"]))
    assert set(got["query"].to_pylist()) >= {"sliding", "session", "tumbling"}
    told = sash.spark.progress(folder.query)
    assert told[-1]["late_rows"] == 0
    assert told[-1]["slices" if what == "fragments" else "kept_rows"] > 0
    assert told[-1]["bytes_written"] > 0
    assert sum(p["without_time"] for p in told) == sum(p["t"].null_count for p in parts[2:])


@pytest.mark.parametrize("emit", ["update", "running"])
def test_revisions_end_where_final_results_are(folder, emit):
    specs = {n: SECONDS[n] for n in ("sliding", "session", "rows", "punctuation", "unbounded")}
    table = stream_rows(300)
    shuffled = [table.take(pa.array(range(k, 300, 3))) for k in range(3)]
    folder.add(*shuffled)
    options = {"by": "k", "order_by": "id"}
    aggs = [S.sum("v"), S.collect_list("id"), S.count()]
    times = {"time": "t", "watermark": "50 seconds", "lateness": "600 seconds"}
    frame = sash.aggregate(folder.source(), windows=specs, aggs=aggs, emit=emit, buckets=2, **times, **options)
    got = folder.run(frame, mode="update").drop_columns(["batch"])
    last: dict = {}
    for row in sorted(got.to_pylist(), key=lambda r: r["revision"]):
        identity = (row["query"], row["k"], *(row["rows"] or {"start": None}).values()) if row["query"] == "rows" else (
            row["query"], row["k"], *row["window"].values())  # fmt: skip
        last[identity] = row
    op = sash.Operator(windows=specs, aggs=aggs, time="t", emit=emit, lateness="600 seconds", **options)
    op.add(table)
    newest = pc.max(table["t"]).as_py()
    wanted = op.advance(newest - datetime.timedelta(seconds=50)).to_pylist()
    assert len(wanted) > 4
    for row in wanted:
        identity = (row["query"], row["k"], *row["rows"].values()) if row["query"] == "rows" else (
            row["query"], row["k"], *row["window"].values())  # fmt: skip
        found = last.pop(identity)
        assert {n: v for n, v in found.items() if n != "revision"} == {n: v for n, v in row.items() if n != "revision"}
    assert all(row["retracted"] for row in last.values())
    if emit == "running":
        assert max(row["revision"] for row in got.to_pylist()) == 2


def test_another_aggregation_behind_it(folder):
    """Spark's own, and ours again, as a second stateful operator of one query."""
    from pyspark.sql import functions as F

    table = stream_rows(400)
    folder.add(*in_parts(table, 4))
    first = sash.aggregate(
        folder.source(),
        windows=W.tumbling("5 seconds"),
        aggs=[S.count().alias("n")],
        by="k",
        time="t",
        watermark="1 second",
        lateness="1 second",
        buckets=2,
    )
    per_minute = first.groupBy(F.window("window", "1 minute")).agg(F.sum("n").alias("n"))
    got = folder.run(per_minute, name="spark")
    batch = sash.aggregate(table, windows=W.tumbling("1 minute"), aggs=[S.count().alias("n")], time="t")
    wanted = batch.filter(pc.less_equal(pc.struct_field(batch["window"], "end"), pc.max(got["window"].combine_chunks().field("end"))))
    assert len(wanted) > 2
    assert_same(got.cast(wanted.schema), wanted, ["window"])
    timed = first.select("k", "n", F.window_time("window").alias("at"))
    again = sash.aggregate(timed, windows=W.tumbling("1 minute"), aggs=[S.sum("n").alias("n")], time="at", buckets=2)
    ours = folder.run(again, name="ours")
    assert_same(ours.cast(wanted.schema), wanted, ["window"])


def test_sessions_behind_which_another_operator_stands_lose_nothing(folder):
    from pyspark.sql import functions as F

    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    seconds = [0, 1, 4, 7, 8, 20, 23, 30, 31, 60, 90]
    table = pa.table({"t": pa.array([start + datetime.timedelta(seconds=s) for s in seconds], pa.timestamp("us", "UTC"))})
    folder.add(*in_parts(table, 11))
    sessions = sash.aggregate(folder.source(), windows=W.session("3 seconds"), aggs=[S.count().alias("n")], time="t", watermark="0 seconds")
    got = folder.run(sessions.groupBy(F.window("window", "10 seconds")).agg(F.sum("n").alias("n")))
    assert sum(got["n"].to_pylist()) == 10  # the last one is open
    query = folder.query.lastProgress
    assert all(op.numRowsDroppedByWatermark == 0 for op in query.stateOperators)


def test_an_integer_measure_has_its_own_watermark(folder):
    table = pa.table({"k": [1, 2] * 200, "t": list(range(400)), "v": list(range(400))})
    folder.add(*in_parts(table, 4))
    specs = {"w": W.sliding(50, every=10), "s": W.session(3)}
    got = folder.run(sash.aggregate(folder.source(), windows=specs, aggs=[S.sum("v")], by="k", time="t", watermark=25, buckets=2))
    op = sash.Operator(windows=specs, aggs=[S.sum("v")], by="k", time="t")
    op.add(table)
    wanted = op.advance(399 - 25)
    assert_same(got.cast(wanted.schema), wanted, ["query", "k", "window"])
    assert [told["watermark"] for told in sash.spark.progress(folder.query)] == [99 - 25, 199 - 25, 299 - 25, 399 - 25]


def test_a_time_column_with_a_dot_in_its_name(folder):
    table = stream_rows(120).rename_columns(["a.t" if n == "t" else n for n in stream_rows(1).column_names])
    folder.add(*in_parts(table, 3))
    got = folder.run(
        sash.aggregate(folder.source(), windows=SECONDS["sliding"], aggs=[S.sum("v")], by="k", time="a.t", watermark=DELAY, buckets=2)
    )
    assert got.num_rows > 0
    whole = sash.aggregate(table, windows=SECONDS["sliding"], aggs=[S.sum("v")], by="k", time="a.t")
    given = {(r["k"], r["window"]["start"]): r["sum(v)"] for r in whole.to_pylist()}
    assert all(given[(r["k"], r["window"]["start"])] == r["sum(v)"] for r in got.to_pylist())


def test_late_rows_and_rows_ahead_are_counted(folder):
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    back = now - datetime.timedelta(hours=1)

    def batch(*times):
        return pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "v": [0 if t is None else 1 for t in times]})

    second = datetime.timedelta(seconds=1)
    folder.add(batch(back, back + second, None), batch(back + 100 * second, now + datetime.timedelta(days=9)))
    folder.add(batch(back + 101 * second), batch(back + 102 * second, back + second, back + 99 * second))
    aggs = [S.sum("v"), S.max("1 / v").alias("m")]  # of a row without a time nothing is asked, not even what it cannot answer
    frame = sash.aggregate(folder.source(), windows=W.tumbling("10 seconds"), aggs=aggs, time="t", watermark="5 seconds", max_ahead="1 day")
    got = folder.run(frame)
    told = sash.spark.progress(folder.query)
    assert [sum(p[n] for p in told) for n in ("late_rows", "ahead", "without_time")] == [1, 1, 1]
    assert sum(got["sum(v)"].to_pylist()) == 2
    assert told[-1]["watermark"].startswith((back + 97 * second).isoformat()[:19])


def test_processing_time(folder):
    folder.add(pa.table({"v": [1, 2]}), pa.table({"v": [3]}))
    frame = sash.aggregate(
        folder.source(), windows=W.tumbling("1 hour"), aggs=[S.sum("v").alias("s")], time=sash.processing_time(), emit="running"
    )
    got = folder.run(frame, mode="update")
    last = {row["window"]["start"]: row["s"] for row in sorted(got.to_pylist(), key=lambda row: row["revision"])}
    assert sum(last.values()) == 6
    now = datetime.datetime.now(datetime.UTC)
    assert all(now - datetime.timedelta(hours=2) < start <= now for start in last)


def test_a_frame_with_its_own_watermark_keeps_it(folder):
    table = stream_rows(200)
    folder.add(*in_parts(table, 2))
    own = folder.source().withWatermark("t", "20 seconds")
    got = folder.run(sash.aggregate(own, windows=ENDING["sliding"], aggs=[S.count()], by="k", time="t", buckets=2))
    wanted = operator_of(table, {"window": ENDING["sliding"]}, [S.count()], DELAY, by="k").drop_columns(["query"])
    assert_same(got.cast(wanted.schema), wanted, ["k", "window"])
    with pytest.raises(InvalidArgument, match="has a watermark on 't' already"):
        sash.aggregate(own, windows=W.tumbling("1 second"), aggs=[S.count()], time="t", watermark="1 second")
    with pytest.raises(InvalidArgument, match="max_ahead= sets rows aside before"):
        sash.aggregate(own, windows=W.tumbling("1 second"), aggs=[S.count()], time="t", max_ahead="1 second")
    other = folder.source().selectExpr("*", "t as u").withWatermark("u", "1 second")
    with pytest.raises(InvalidArgument, match="watermark is on 'u'"):
        sash.aggregate(other, windows=W.tumbling("1 second"), aggs=[S.count()], time="t")


def request_of(folder, changes):
    request = {"windows": W.tumbling("5 seconds"), "aggs": [S.sum("v + 1").alias("s")], "by": "k", "buckets": 2, **changes}
    return {"data": request.pop("source", None) or folder.source(), "time": "t", "watermark": "1 second", **request}


def test_a_changed_query_on_an_old_checkpoint_is_refused(folder):
    from pyspark.sql import functions as F

    table = stream_rows(100)
    folder.add(*in_parts(table, 2))

    def frame(**changes):
        return sash.aggregate(**request_of(folder, changes))

    folder.run(frame())
    folder.add(table)
    checkpoint = str(folder.home / "results-state")
    sash.spark.check(frame(), checkpoint)
    sash.spark.check(frame(), str(folder.home / "nothing has run here"))
    with pytest.raises(InvalidArgument, match="not a stream of sash"):
        sash.spark.check(folder.source(), checkpoint)
    for changes, words in (
        (
            {"windows": W.tumbling("6 seconds")},
            r"window 'window' was tumbling\(5 seconds\), and now is tumbling\(6 seconds\): the checkpoint",
        ),
        ({"aggs": [S.sum("v + 2").alias("s")]}, r"aggs was sum\(v \+ 1\) as s, and now is sum\(v \+ 2\) as s: the checkpoint"),
        ({"buckets": 3}, "buckets was 2, and now is 3"),
        ({"source": folder.source().withColumn("v", F.col("v").try_cast("int"))}, "the type of an expression was int64, and now is int32"),
    ):
        before = sorted(p.name for p in (folder.home / "results-state" / "commits").iterdir())
        with pytest.raises(InvalidSnapshot, match=words):  # before it is started, though no rows have come
            sash.spark.check(frame(**changes), checkpoint)
        with pytest.raises(InvalidSnapshot, match=words):
            sash.spark.check(sash.aggregate(**{**request_of(folder, changes), "flatten": True}), checkpoint)
        with pytest.raises(Exception, match=words):
            folder.run(frame(**changes))
        assert sorted(p.name for p in (folder.home / "results-state" / "commits").iterdir()) == before  # the batch was not taken
    got = folder.run(frame())  # nothing was lost
    op = sash.Operator(windows={"window": W.tumbling("5 seconds")}, aggs=[S.sum("v + 1").alias("s")], by="k", time="t")
    for part in in_parts(table, 2):
        op.add(part)
    wanted = op.advance(pc.max(table["t"]).as_py() - datetime.timedelta(seconds=1)).drop_columns(["query"])
    assert_same(got.cast(wanted.schema), wanted, ["k", "window"])


def test_bad_requests_on_streams_say_what_is_wrong(folder, spark):
    folder.add(stream_rows(10))
    source = folder.source()

    def refused(match, kind=InvalidArgument, frame=source, **changes):
        request = {"windows": W.tumbling("5 seconds"), "aggs": [S.sum("v")], "by": "k", "time": "t", "watermark": "1 second", **changes}
        with pytest.raises(kind, match=match):
            sash.aggregate(frame, **request)

    refused("emit='final' emits a window when the watermark passes its end, and there is none", watermark=None)
    refused("emit='update' emits a window when", watermark=None, emit="update")
    refused("lateness must not be negative", lateness="-1 second")
    refused("late='output' is for sash.Operator", late="output")
    refused("empty=True is for batch", empty=True)
    refused("'window' .* never ends", windows=W.unbounded())
    refused("buckets must be an integer from 1 to 16,384", buckets=0)
    refused("buckets must be an integer from 1 to 16,384", buckets=10**12)
    refused("watermark .* is too long", watermark="1000000000000 days")
    refused("over the row", kind=InvalidExpression, aggs=[S.sum("row_number() over (order by v)")])
    refused("plan must be one of auto, plain, fragments, rows", plan="catalyst")
    refused("plan='fragments' is not possible here", plan="fragments", windows=W.rows(3))
    refused("give an integer in the column's own unit|does not fit", kind=InvalidWindow, time="v")
    refused("watermark is 3600, and the time column is of type timestamp", kind=InvalidWindow, watermark=3600)
    refused("watermark 1 month: months and years have no fixed length", kind=InvalidWindow, watermark="1 month")
    refused("time", kind=(InvalidType, InvalidArgument), time="k")
    refused("max_ahead compares with the clock", time="v", max_ahead="1 hour", watermark=1, windows=W.tumbling(5))
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider.replace("RocksDB", "HDFSBacked"))
    try:
        refused("streams need Spark's RocksDB state store")
    finally:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    frame = sash.aggregate(source, windows=W.tumbling("5 seconds"), aggs=[S.sum("v")], by="k", time="t", watermark="1 second")
    with pytest.raises(Exception, match=r"(?i)complete"):
        frame.writeStream.format("memory").queryName("complete").outputMode("complete").start()


@pytest.mark.parametrize("emit", ["final", "update"])
def test_a_memory_sink_and_a_listener(folder, emit):
    from pyspark.sql.streaming import StreamingQueryListener

    heard = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event):  # noqa: N802
            pass

        def onQueryProgress(self, event):  # noqa: N802
            heard.append(event.progress)

        def onQueryIdle(self, event):  # noqa: N802
            pass

        def onQueryTerminated(self, event):  # noqa: N802
            pass

    table = stream_rows()
    folder.add(*in_parts(table, 3))
    specs, aggs = {n: ENDING[n] for n in ("sliding", "session")}, [S.sum("v").alias("sum"), S.count().alias("n")]
    frame = sash.aggregate(folder.source(), windows=specs, aggs=aggs, by="k", time="t", watermark=DELAY, emit=emit, buckets=2)
    name, listener = f"in_memory_{emit}", Listener()
    folder.spark.streams.addListener(listener)
    try:
        writer = frame.writeStream.format("memory").queryName(name).outputMode("append" if emit == "final" else "update")
        query = writer.option("checkpointLocation", str(folder.home / "state")).trigger(availableNow=True).start()
        query.awaitTermination()
        deadline = time.monotonic() + 60
        while len([p for p in heard if str(p.id) == str(query.id)]) < len(query.recentProgress) and time.monotonic() < deadline:
            time.sleep(0.05)  # listeners hear of it on a thread of their own
    finally:
        folder.spark.streams.removeListener(listener)
    got = folder.spark.table(name).toArrow()
    wanted = operator_of(table, specs, aggs, DELAY, by="k")
    if emit == "update":
        latest = {}
        for r in sorted(got.to_pylist(), key=lambda r: r["revision"]):
            latest[(r["query"], r["k"], *r["window"].values())] = r
        latest = [{n: v for n, v in r.items() if n not in ("revision", "retracted")} for r in latest.values() if not r["retracted"]]
        got = pa.Table.from_pylist(latest, schema=got.drop_columns(["revision", "retracted"]).schema)
    assert_same(got.cast(wanted.schema), wanted, keys_of(got, ["k"]))
    mine = [p for p in heard if str(p.id) == str(query.id)]
    metrics = [row.asDict() for p in mine for n, row in p.observedMetrics.items() if n.startswith("sash:") and "slices" in row.asDict()]
    assert sum(m["rows"] for m in metrics) == table.num_rows - table["t"].null_count
    told = sash.spark.progress(query)
    assert [m["slices"] for m in metrics] == [t["slices"] for t in told]


def test_over_gives_each_row_once_the_watermark_has_passed_it(folder):
    table = stream_rows(300)
    parts = in_parts(table, 3)
    specs = {"ten": W.trailing("10 seconds"), "five": W.trailing_rows(5)}
    aggs = [S.sum("v").alias("sum"), S.max_by("id", "x").alias("top"), S.count().alias("n")]
    folder.add(parts[0])

    def frame():
        return sash.over(folder.source(), windows=specs, aggs=aggs, by="k", time="t", order_by="id", watermark="5 seconds", buckets=2)

    folder.run(frame())
    folder.add(*parts[1:])
    late = parts[0].slice(20, 3)
    folder.add(late)
    got = folder.run(frame())
    wanted = sash.over(table, windows=specs, aggs=aggs, by="k", time="t", order_by="id")
    horizon = pc.max(table["t"]).as_py() - datetime.timedelta(seconds=5)
    wanted = wanted.filter(pc.or_kleene(pc.less(wanted["t"], horizon), pc.is_null(wanted["t"])))
    assert_same(got.cast(wanted.schema), wanted, ["id"])
    told = sash.spark.progress(folder.query)
    assert sum(p["late_rows"] for p in told) == late.num_rows - late["t"].null_count
    assert 0 < told[-1]["kept_rows"] < 250
    with pytest.raises(InvalidArgument, match="a row is returned when the watermark has passed it"):
        sash.over(folder.source(), windows=specs, aggs=aggs, by="k", time="t")


def test_over_with_an_aggregation_behind_it(folder):
    from pyspark.sql import functions as F

    table = stream_rows(200)
    folder.add(*in_parts(table, 3))
    rows_with = sash.over(
        folder.source(), windows=W.trailing("10 seconds"), aggs=[S.count().alias("n")], by="k", time="t", watermark="5 seconds", buckets=2
    )
    got = folder.run(rows_with.groupBy(F.window("t", "20 seconds")).agg(F.count("*").alias("rows")))
    batch = sash.aggregate(table, windows=W.tumbling("20 seconds"), aggs=[S.count().alias("rows")], time="t")
    wanted = batch.filter(pc.less_equal(pc.struct_field(batch["window"], "end"), pc.max(got["window"].combine_chunks().field("end"))))
    assert len(wanted) > 5
    assert_same(got.cast(wanted.schema), wanted, ["window"])


def test_explain_says_what_a_stream_will_do(folder):
    folder.add(stream_rows(10))
    source = folder.source()
    request = {"aggs": [S.sum("v")], "by": "k", "time": "t", "watermark": "10 seconds"}
    assert str(sash.explain(source, windows=W.sliding("1 minute", every="1 second"), **request)).splitlines() == [
        "aggregate on a stream of Spark (classic), measured in timestamp[us, tz=UTC]",
        "  window: sliding(1 minute, every 1 second), context free",
        "  watermark: 10 seconds behind the newest row (Spark's)",
        "  emit: final",
        "  before the shuffle: fragments",
        "    rows become slices before the shuffle, one for each key and slice of a partition",
        "  state: 16 buckets of keys, in chunks, on RocksDB",
        "  sum(v) -> int64",
    ]
    for changes, text in (
        ({"windows": W.rows(5)}, "): rows decide where windows start or end"),
        ({"windows": W.tumbling("1 second"), "aggs": [S.median("v")]}, "median(v) has no partial of fixed size: its rows are its partial"),
        ({"windows": W.tumbling("1 second"), "aggs": [S.first("v")]}, "first(v) does not commute: its rows must be in order"),
        ({"windows": W.tumbling("1 second"), "plan": "rows"}, "before the shuffle: rows\n    requested"),
        (
            {"windows": W.tumbling(5), "time": "v", "watermark": 3},
            "watermark: 3 behind the newest row (sash's own, since Spark has none for this type)",
        ),
        ({"windows": W.trailing("1 second"), "by": None}, "state: 1 bucket of keys"),
    ):
        assert text in str(sash.explain(source, **{**request, **changes})), sash.explain(source, **{**request, **changes})
