"""Queries as text on Spark, batch: the rows are those of tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import sash
from sash.bench.traces import generated, nexmark
from sash.errors import InvalidArgument, InvalidType
from tests.test_cql_examples import ROWS, used

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TIMES = [1, 2, 2, 5, 9, 9, 12, 20, None, 21, 3]
S = pa.table(
    {
        "timestamp": pa.array(TIMES, pa.int64()),
        "id": list(range(11)),
        "k": ["a", "b", "a", "a", None, "b", "b", "a", "b", "c", "a"],
        "v": [1, 2, 3, 4, 5, None, 6, 7, 8, -3, 0],
    }
)
T = pa.table({"timestamp": [1, 3, 5, 8, 30], "id": [0, 1, 2, 3, 4], "k": ["a", "a", "b", "b", "a"], "w": [10, 2, 3, 40, 5]})
QUERIES = [
    "select timestamp, k, v from S where v > 1",
    "select timestamp, k, count(*) as n, first(v) as f, last(id) as l from S [range 10] group by k",
    "select timestamp, sum(v) as s, window.start, window.end from S [range 4 slide 2]",
    "select timestamp, k, sum(v) as s from S [range 3 slide 5 offset 1] where v <> 4 group by k having s > 1",
    "select timestamp, count(*) as n from S [now]",
    "select timestamp, sum(v) as s from S [range unbounded]",
    "select timestamp, k, sum(v) as s from S [rows 3 slide 2] group by k",
    "select timestamp, window.start, first(id) as f from S [rows 4]",
    "select timestamp, k, sum(v) as s from S [partition by k rows 2] group by k",
    "select timestamp, k, last(id) as l from S [partition by k rows 2 slide 1] group by k",
    "select timestamp, window.start, window.end, k, sum(v) as s from S [session 3] group by k",
    "select timestamp, window.start, window.end, k, sum(v) as s from S [partition by k session 3] group by k",
    "select timestamp, window.start, count(*) as n from S [punctuation v = 4 or v = 6]",
    "select window.start, k, count(*) as n from S [partition by k punctuation v = 4] group by k",
    "select id from S [rows 3 slide 4]",
    "rstream(select timestamp, v from S [range 4 slide 3])",
    "dstream(select timestamp, v from S [range 4 slide 3])",
    "dstream(select timestamp, id from S [range 4])",
    "istream(select timestamp, k, count(*) as c from S [range 4 slide 2] group by k)",
    "dstream(select timestamp, k, count(*) as c from S [session 4] group by k)",
    "select distinct timestamp, k from S [range 4 slide 4]",
    "istream(select distinct timestamp, k from S [range 10 slide 2])",
    "select timestamp, id, v from S [range 10 slide 10] order by v desc, id limit 2",
    "rstream(select timestamp, k, count(*) as c from S [range 10 slide 5] group by k order by c desc limit 1)",
    "select window_start, window_time, k, v from hop(S, timestamp, 5, 10)",
    "select L.id, R.id as r, timestamp from S [range 4 slide 2] as L, T [range 6 slide 2] as R where L.k = R.k",
    "select L.id, R.id as r, timestamp from S [range 4 slide 4] as L, T [partition by k rows 1] as R where L.k = R.k and L.v < R.w",
    "select A.id, B.id as b, timestamp from S [range unbounded] as A, T [now] as B where A.v < B.w",
    "select A.id, B.id as b, timestamp from S [rows 2] as A join T [rows 2 slide 1] as B on A.v < B.w",
    "select timestamp, A.k, count(*) as n from S [range 4 slide 2] as A, T [range 4 slide 2] as B where A.k = B.k group by A.k",
    "select timestamp, k, max(c) as m from (select k, v, count(*) as c from S [range 4 slide 2] group by k, v) as R group by k",
    "create stream X as select timestamp, k, sum(v) as s from S [range 4 slide 2] group by k; "
    "select timestamp, max(s) as m from X [range 6 slide 3]",
    "select timestamp, k, v % 2 as p, count(*) as n from S [range 10 slide 10] group by k, p",
]


@pytest.fixture(scope="module")
def frames(spark):
    return {"S": spark.createDataFrame(S).coalesce(1), "T": spark.createDataFrame(T).coalesce(1)}


def chosen(text, streams):
    return {name: data for name, data in streams.items() if f"from {name} " in f"{text} " or f"{name} [" in text or f"({name}," in text}


def rows_of(table):
    return Counter(tuple(round(v, 6) if isinstance(v, float) else v for v in row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("text", QUERIES)
def test_the_rows_are_those_of_tables(frames, text):
    expected = sash.sql(text, order_by="id", streams=chosen(text, {"S": S, "T": T}))
    found = sash.sql(text, order_by="id", streams=chosen(text, frames)).toArrow()
    assert found.column_names == expected.column_names
    assert rows_of(found) == rows_of(expected)


@pytest.mark.parametrize("name", ["cm1", "cm2", "sg1", "sg2", "sg3", "lrb1", "lrb2", "lrb3", "lrb4"])
def test_sabers_queries(spark, name):
    text = (EXAMPLES / "saber" / f"{name}.cql").read_text()
    stream = used(text)
    table = generated(stream, ROWS[stream] // 4)
    # Rows of a vehicle at one time come in an order that Spark does not know.
    table = table.append_column("place", pa.array(range(table.num_rows)))
    expected = sash.sql(text, streams={stream: table}, order_by="place")
    found = sash.sql(text, streams={stream: spark.createDataFrame(table)}, order_by="place").toArrow()
    assert expected.num_rows > 10
    assert found.schema.names == expected.schema.names
    assert rows_of(found) == rows_of(expected)


@pytest.mark.parametrize("name", ["q3", "q5", "q7", "q8", "q11"])
def test_nexmarks_queries(spark, name):
    text = (EXAMPLES / "nexmark" / f"{name}.cql").read_text()
    streams = {n: t for n, t in nexmark(20_000).items() if f"from {n}" in text or f", {n} " in text}
    expected = sash.sql(text, streams=streams)
    found = sash.sql(text, streams={n: spark.createDataFrame(t) for n, t in streams.items()})
    ntz = [f.name for f in found.schema.fields if f.dataType.simpleString() == "timestamp"]
    found = found.selectExpr(*[f"cast({n} as timestamp_ntz) as {n}" if n in ntz else n for n in found.columns]).toArrow()
    assert expected.num_rows
    assert rows_of(found) == rows_of(expected)


def test_what_does_not_fit_is_refused(frames):
    with pytest.raises(InvalidType, match="'T' is not; all streams of a query are of one kind"):
        sash.sql("select A.v from S [now] A, T [now] B", S=frames["S"], T=T)
    with pytest.raises(InvalidArgument, match="engine='table' needs tables"):
        sash.sql("select v from S", S=frames["S"], engine="table")
    with pytest.raises(InvalidArgument, match="engine='spark' needs Spark frames"):
        sash.sql("select v from S", S=S, engine="spark")
