"""Queries as text on Spark streams: what comes out, once the stream is far ahead, are the rows of tables."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sash
from sash.bench.traces import generated, nexmark
from sash.errors import InvalidArgument, InvalidQuery, InvalidSnapshot, InvalidType
from tests.own_aggregates import mean
from tests.test_cql_examples import ROWS, used

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FAR = 10**9
UTC = pa.timestamp("us", "UTC")


class Streams:
    """Tables as streams of files, and where their queries keep their state."""

    def __init__(self, spark, home):
        self.spark, self.home, self.queries = spark, home, {}

    def put(self, name, *tables):
        folder = self.home / name
        folder.mkdir(exist_ok=True)
        for table in tables:
            count = len(list(folder.iterdir()))
            path = folder / f"{count:04d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (count + 1, count + 1))

    def frame(self, name):
        schema = self.spark.read.parquet(str(self.home / name)).schema
        return self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.home / name))

    def start(self, frame, name, mode="append"):
        writer = frame.writeStream.format("parquet").option("path", str(self.home / f"out-{name}"))
        if mode == "update":
            writer = frame.writeStream.foreachBatch(lambda batch, n: batch.write.parquet(str(self.home / f"out-{name}" / f"b={n}")))
        checkpoint = str(self.home / f"state-{name}")
        self.queries[name] = writer.outputMode(mode).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()

    def results(self, frame, name):
        self.queries[name].awaitTermination()
        return self.spark.read.schema(frame.schema).parquet(str(self.home / f"out-{name}")).toArrow()


@pytest.fixture
def streams(spark, tmp_path):
    return Streams(spark, tmp_path)


def counted(table):
    return Counter(tuple(round(v, 6) if isinstance(v, float) else v for v in row.values()) for row in table.to_pylist())


def with_last(table, time="timestamp", far=FAR):
    """The rows, and one that moves the watermark far ahead."""
    last = table.slice(table.num_rows - 1, 1)
    ticks = last.column(time).cast(pa.int64()).to_pylist()[0] + far
    return last.set_column(table.column_names.index(time), time, pa.array([ticks], pa.int64()).cast(table.schema.field(time).type))


def test_sabers_queries(streams):
    expected, frames = {}, {}
    for stream, rows in ROWS.items():
        table = generated(stream, rows // 4)
        table = table.append_column("place", pa.array(range(table.num_rows)))
        half = table.num_rows // 2
        streams.put(stream, table.slice(0, half), table.slice(half), with_last(table))
        for path in sorted((EXAMPLES / "saber").glob("*.cql")):
            text = path.read_text()
            if used(text) == stream and path.stem not in ("lrb1", "lrb2"):
                expected[path.stem] = sash.sql(text, streams={stream: table}, order_by="place")
                source = {stream: streams.frame(stream)}
                frames[path.stem] = sash.sql(text, streams=source, order_by="place", watermark=0)
    for name, frame in frames.items():
        streams.start(frame, name)
    for name, frame in frames.items():
        found = streams.results(frame, name)
        assert found.column_names == expected[name].column_names
        assert expected[name].num_rows > 10
        assert counted(found) == counted(expected[name]), name


def test_what_needs_no_state_has_none(streams):
    table = generated("PosSpeedStr", 500)
    streams.put("PosSpeedStr", table)
    text = (EXAMPLES / "saber" / "lrb1.cql").read_text()
    frame = sash.sql(text, streams={"PosSpeedStr": streams.frame("PosSpeedStr")})
    streams.start(frame, "lrb1")
    found = streams.results(frame, "lrb1")
    assert counted(found) == counted(sash.sql(text, streams={"PosSpeedStr": table}))
    assert not streams.queries["lrb1"].lastProgress["stateOperators"]


def test_lrb2_is_refused(streams):
    table = generated("PosSpeedStr", 50)
    streams.put("PosSpeedStr", table)
    text = (EXAMPLES / "saber" / "lrb2.cql").read_text()
    with pytest.raises(
        InvalidQuery,
        match=r"SegSpeedStr \[partition by vehicle rows 1\] would keep rows of every partition for ever; .*\[range 60 slide 1\]",
    ):
        sash.sql(text, streams={"PosSpeedStr": streams.frame("PosSpeedStr")}, watermark=0)


def seconds(table, time="timestamp"):
    """Integer times as times with a zone."""
    ticks = pa.array([None if v is None else (v + 100) * 1_000_000 for v in table.column(time).to_pylist()], pa.int64())
    return table.set_column(table.column_names.index(time), time, ticks.cast(UTC))


R = pa.table(
    {
        "timestamp": [1, 2, 2, 5, 9, 9, 12, 20, None, 21, 22, 40],
        "id": list(range(12)),
        "k": ["a", "b", "a", "a", None, "b", "b", "a", "b", "c", "a", "a"],
        "v": [1, 2, 3, 4, 5, None, 6, 7, 8, -3, 0, 2],
    }
)
T = pa.table({"timestamp": [1, 3, 5, 8, 30], "id": [20, 21, 22, 23, 24], "k": ["a", "a", "b", "b", "a"], "w": [10, 2, 3, 40, 5]})
QUERIES = {
    "joined": "select L.id, R.id as r, timestamp from S [range 4 seconds slide 2 seconds] as L, T [range 6 seconds slide 2 seconds] as R "
    "where L.k = R.k and L.v < R.w",
    "new": "istream(select timestamp, k, count(*) as c from S [range 4 seconds slide 2 seconds] group by k)",
    "gone": "dstream(select id, v from S [range 4 seconds slide 3 seconds])",
    "top": "select timestamp, k, c from (select k, count(*) as c from S [range 10 seconds slide 5 seconds] group by k) as R "
    "order by c desc, k limit 1",
    "of stream": "create stream X as select timestamp, k, sum(v) as s from S [range 4 seconds slide 2 seconds] group by k; "
    "select timestamp, max(s) as m from X [range 6 seconds slide 3 seconds]",
    "distinct": "select distinct timestamp, k from S [range 4 seconds slide 4 seconds]",
    "instants": "select timestamp, k, count(*) as n, last(id) as l from S [range 10 seconds] group by k",
    "sessions": "select timestamp, window.start, k, sum(v) as s from S [partition by k session 3 seconds] group by k having s > 2",
    "rows": "select timestamp, k, sum(v) as s from S [partition by k rows 2 slide 1] group by k",
    "own": "select timestamp, mean(v) as m, typical(v) as t from S [range 10 seconds slide 5 seconds], "
    "T [range 10 seconds slide 5 seconds] where S.k = T.k",
}
FUNCTIONS = {"mean": mean, "typical": mean}


def test_other_queries_over_times(streams):
    tables = {"S": seconds(R), "T": seconds(T)}
    for name, table in tables.items():
        valid = table.filter(table.column("timestamp").is_valid())
        streams.put(name, table.slice(0, 5), table.slice(5), with_last(valid))
    frames, expected = {}, {}
    for name, text in QUERIES.items():
        functions = FUNCTIONS if name == "own" else None
        used_here = [n for n in tables if f"{n} [" in text]
        expected[name] = sash.sql(text, order_by="id", streams={n: tables[n] for n in used_here}, functions=functions)
        given = {n: streams.frame(n) for n in used_here}
        frames[name] = sash.sql(text, order_by="id", streams=given, functions=functions, watermark="1 second", lateness="1 second")
    for name, frame in frames.items():
        streams.start(frame, name)
    for name, frame in frames.items():
        found = streams.results(frame, name)
        assert found.num_rows, name
        assert counted(found) == counted(expected[name].cast(found.schema)), name


def test_revisions_of_having(streams):
    rows = pa.table({"timestamp": [101, 103, 112, 113, 104, 126, 127, 105, 140], "v": [5, 1, 9, 1, -8, 1, 1, 9, 1]})
    table = seconds(pa.table({"timestamp": [t - 100 for t in rows["timestamp"].to_pylist()], "v": rows["v"]}))
    streams.put("S", *[table.slice(n, 1) for n in range(table.num_rows)])
    text = "select window.start as t, sum(v) as s from S [range 10 seconds slide 10 seconds] having s > 0"
    frame = sash.sql(text, S=streams.frame("S"), watermark="0 seconds", lateness="1 minute", emit="update")
    streams.start(frame, "having", mode="update")
    found = streams.results(frame, "having")
    assert found.column_names[:4] == ["t", "s", "revision", "retracted"]
    first = min(found["t"].to_pylist())
    of_first = sorted((r["revision"], r["s"], r["retracted"]) for r in found.to_pylist() if r["t"] == first)
    assert of_first == [(0, 6, False), (1, -2, True), (2, 7, False)]


def test_restarts_and_changed_queries(streams):
    table = seconds(R)
    streams.put("S", table.slice(0, 7))
    text = "istream(select timestamp, k, count(*) as c from S [range 4 seconds slide 2 seconds] group by k)"

    def frame(query=text):
        return sash.sql(query, S=streams.frame("S"), watermark="1 second", order_by="id")

    streams.start(frame(), "restarted")
    streams.results(frame(), "restarted")
    streams.put("S", table.slice(7), with_last(table))
    checkpoint = str(streams.home / "state-restarted")
    sash.spark.check(frame(), checkpoint)
    sash.spark.check(frame(text.replace("count(*)", "COUNT( * )")), checkpoint)
    with pytest.raises(InvalidSnapshot, match=r"the query was .*count\(1\).*, and now is .*sum\(v\)"):
        sash.spark.check(frame(text.replace("count(*)", "sum(v)")), checkpoint)
    streams.start(frame(), "restarted")
    found = streams.results(frame(), "restarted")
    assert counted(found) == counted(sash.sql(text, S=table, order_by="id").cast(found.schema))
    last = sash.spark.progress(streams.queries["restarted"])[-1]
    assert last["newest"] is None or last["newest"] > 0


def test_nexmarks_queries(streams):
    market = nexmark(5_000)
    names = ["q0", "q3", "q5", "q7", "q8", "q11", "q12"]
    frames, expected = {}, {}
    for name, table in market.items():
        zoned = table.set_column(table.column_names.index("timestamp"), "timestamp", table["timestamp"].cast(UTC))
        market[name] = zoned
        half = table.num_rows // 2
        streams.put(name, zoned.slice(0, half), zoned.slice(half), with_last(zoned, far=FAR * 1000))
    for name in names:
        text = (EXAMPLES / "nexmark" / f"{name}.cql").read_text()
        here = [n for n in market if f"from {n}" in text or f", {n} " in text]
        given = {n: streams.frame(n) for n in here}
        if name == "q3":
            with pytest.raises(InvalidQuery, match="would keep all of its rows for ever"):
                sash.sql(text, streams=given, watermark="0 seconds")
            continue
        frames[name] = sash.sql(text, streams=given, watermark="0 seconds")
        expected[name] = sash.sql(text, streams={n: market[n] for n in here})
    for name, frame in frames.items():
        streams.start(frame, name)
    for name, frame in frames.items():
        found = streams.results(frame, name)
        if name == "q0":  # rows as they come, the last one too
            assert found.num_rows == expected[name].num_rows + 1
            continue
        assert expected[name].num_rows, name
        assert counted(found) == counted(expected[name].cast(found.schema)), name


def test_bad_requests(streams):
    streams.put("S", seconds(R))
    streams.put("T", seconds(T))
    s, t = streams.frame("S"), streams.frame("T")
    pairs = "select A.id from S [range 4 seconds slide 2 seconds] as A, T [range 4 seconds slide 2 seconds] as B"
    with pytest.raises(InvalidType, match="'S' is a stream and 'T' is a batch"):
        sash.sql(pairs, S=s, T=streams.spark.read.parquet(str(streams.home / "T")), watermark="1 second")
    with pytest.raises(InvalidArgument, match="'S' has no watermark"):
        sash.sql(pairs, S=s, T=t)
    own = {"S": s.withWatermark("timestamp", "1 second"), "T": t.withWatermark("timestamp", "1 second")}
    with pytest.raises(InvalidArgument, match="the frames have watermarks already"):
        sash.sql(pairs, streams=own, watermark="1 second")
    with pytest.raises(InvalidArgument, match="emit='update' is for one aggregation"):
        sash.sql(pairs, S=s, T=t, watermark="1 second", emit="update")
    with pytest.raises(InvalidArgument, match="late='output' is for sash.Operator"):
        sash.sql(pairs, S=s, T=t, watermark="1 second", late="output")
    with pytest.raises(InvalidQuery, match="S and .* slide differently|slide differently"):
        sash.sql(pairs.replace("slide 2 seconds] as B", "slide 1 seconds] as B"), S=s, T=t, watermark="1 second")
