"""Queries step by step: whatever the batches, the order of arrival and the watermarks, the rows are those of the whole table."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.cql.binder import plan_query
from sash.errors import InvalidQuery, InvalidSnapshot
from sash.plan.queries.rewrites import rewritten
from sash.relational.steps.query_steps import QuerySteps
from sash.slicing.persistence.transactions import InDictionary
from sash.types import FAR_BACK
from tests.test_cql import AGGREGATES, BY_TIME, CONDITIONS, CONDITIONS_OF_PAIRS, ITEMS, KEYS, Spec, windows_of_joins

ROWS = st.lists(
    st.fixed_dictionaries(
        {"timestamp": st.integers(-12, 30), "k": st.sampled_from(["a", "b", None]), "v": st.one_of(st.none(), st.integers(-5, 5))}
    ),
    max_size=25,
)
SCHEMA = pa.schema({"timestamp": pa.int64(), "k": pa.string(), "v": pa.int64(), "id": pa.int64()})
SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=8)
END = 10_000


def table(rows, first=0):
    return pa.Table.from_pylist([{**row, "id": first + n} for n, row in enumerate(rows)], schema=SCHEMA)


def in_steps(text, streams, sizes, functions=None, until=END):
    """All results of a query over streams that come a few rows at a time, with the state written and read between steps."""
    query = rewritten(plan_query(text, {name: t.schema for name, t in streams.items()}, "timestamp", functions))
    storage, results = InDictionary(), []
    left, turn, watermark = dict(streams), 0, FAR_BACK
    while True:
        size = sizes[turn % len(sizes)] if turn < 40 else 10
        new = {name: t.slice(0, size) for name, t in left.items()}
        left = {name: t.slice(size) for name, t in left.items()}
        is_last = not any(t.num_rows for t in left.values())
        times = [t for part in left.values() for t in part.column("timestamp").to_pylist()]
        watermark = until if is_last else max(watermark, min(times))
        steps = QuerySteps(query, storage, {"query": text}, ("id",))
        output = steps.step(new, watermark)
        results += output.table.to_pylist()
        steps.commit()
        if is_last:
            return results, storage
        turn += 1


def counted(rows):
    return Counter(tuple(row.values()) for row in rows)


def check(text, streams, sizes):
    expected = sash.sql(text, streams=streams, order_by="id").to_pylist()
    found, _ = in_steps(text, streams, sizes)
    assert counted(found) == counted(expected), text


@given(
    ROWS,
    SIZES,
    BY_TIME,
    st.sampled_from(CONDITIONS),
    st.sets(st.integers(0, 1)),
    st.sets(st.integers(0, 9), min_size=1, max_size=3),
    st.sampled_from([None, "istream", "dstream"]),
    st.sampled_from([None, None, 1]),
)
def test_aggregates(rows, sizes, windows, where, keys, aggregates, kind, limit):
    spec = Spec(windows, where, tuple(KEYS[k] for k in keys), tuple(AGGREGATES[k] for k in aggregates), kind=kind, limit=limit)
    check(spec.text, {"S": table(rows)}, sizes)


INSTANTS = st.sampled_from(["[range 1]", "[range 4]", "[range 11]", "[now]"])


@given(ROWS, SIZES, INSTANTS, st.sampled_from(CONDITIONS), st.sets(st.integers(0, 1)))
def test_windows_at_each_row(rows, sizes, window, where, keys):
    condition = f" where {where.text}" if where else ""
    group = f" group by {', '.join(KEYS[k].text for k in keys)}" if keys else ""
    check(f"select timestamp, count(*) as n, sum(v) as s from S {window}{condition}{group}", {"S": table(rows)}, sizes)


@given(ROWS, SIZES, BY_TIME, st.sampled_from(CONDITIONS), st.sets(st.integers(0, 2), min_size=1), st.data())
def test_projections(rows, sizes, windows, where, items, data):
    kind, distinct, limit = data.draw(
        st.sampled_from(
            [
                *[(None, False, None), ("rstream", False, None), ("dstream", False, None), ("rstream", False, 2), (None, True, None)],
                *[("istream", True, None), ("dstream", True, None), ("istream", True, 1)],
            ]
        )
    )
    spec = Spec(windows, where, (), (), tuple(ITEMS[k] for k in items), distinct=distinct, kind=kind, limit=limit)
    check(spec.text, {"S": table(rows)}, sizes)


@given(ROWS, ROWS, SIZES, windows_of_joins(), st.sampled_from(CONDITIONS_OF_PAIRS), st.sampled_from([None, "istream", "dstream"]))
def test_joins(rows, others, sizes, windows, condition, kind):
    text = f"select timestamp, A.k, A.v, B.k as bk, B.v as bv from S {windows[0].text} as A, T {windows[1].text} as B where {condition[0]}"
    text = f"{kind}({text})" if kind else text
    streams = {"S": table(rows), "T": table(others, 100)}
    if {w.kind for w in windows} & {"rows", "unbounded", "last rows"} or (kind and "time" not in {w.kind for w in windows}):
        with pytest.raises(InvalidQuery):
            in_steps(text, streams, sizes)
        return
    check(text, streams, sizes)


@given(ROWS, SIZES, BY_TIME, st.integers(0, 1), st.booleans())
def test_nested_queries(rows, sizes, windows, key, ordered):
    inner = Spec(windows, None, (KEYS[0], KEYS[1]), (AGGREGATES[0],))
    most = " order by most desc, n limit 1" if ordered else ""
    text = f"select timestamp, c{key}, count(*) as n, max(c2) as most from ({inner.text}) as R group by c{key}{most}"
    check(text, {"S": table(rows)}, sizes)


@given(ROWS, SIZES, BY_TIME, st.sampled_from(["[range 5 slide 2]", "[range 3 slide 3]", "[range 4]"]), st.booleans())
def test_streams_of_results_and_of_rows(rows, sizes, windows, outer, grouped):
    if grouped:
        stream = f"select timestamp, k, sum(v) as v from S {windows.text} group by k"
    else:
        stream = "select timestamp, k, v + 1 as v from S where v <> 2"
    text = f"create stream X as {stream}; select timestamp, k, count(*) as n, max(v) as m from X {outer} group by k"
    check(text, {"S": table(rows)}, sizes)
    joined = (
        f"create stream X as {stream}; create stream Y as select timestamp, max(v) as m from S [range 5 slide 5]; "
        "select X.timestamp as t, X.k, Y.m from X [range 5 slide 5] as X, Y [range 5 slide 5] as Y where X.v < Y.m"
    )
    check(joined, {"S": table(rows)}, sizes)


@pytest.mark.parametrize("name", ["cm1", "cm2", "sg1", "sg2", "sg3", "lrb1", "lrb3", "lrb4"])
def test_sabers_queries(name):
    from sash.bench.traces import generated
    from tests.test_cql_examples import EXAMPLES, used

    text = (EXAMPLES / "saber" / f"{name}.cql").read_text()
    stream = used(text)
    rows = generated(stream, 600)
    rows = rows.append_column("id", pa.array(range(600)))
    expected = sash.sql(text, streams={stream: rows}, order_by="id").to_pylist()
    found, _ = in_steps(text, {stream: rows}, [70])
    round_ = lambda rows: Counter(tuple(round(v, 6) if isinstance(v, float) else v for v in r.values()) for r in rows)  # noqa: E731
    assert round_(found) == round_(expected)


def test_late_rows_count_in_windows_that_are_open():
    text = "select timestamp, count(*) as n from S [range 10 slide 5] as A, T [range 10 slide 5] as B"
    query = plan_query(text, {"S": SCHEMA, "T": SCHEMA}, "timestamp", None)
    storage = InDictionary()

    def step(s, t, watermark):
        steps = QuerySteps(query, storage, {"query": text})
        rows = {n: table([{"timestamp": x, "k": "a", "v": 1} for x in times]) for n, times in (("S", s), ("T", t))}
        result = steps.step(rows, watermark).table.to_pylist()
        return result, steps.commit()

    assert step([1, 12], [2], 10)[0] == [{"timestamp": 4, "n": 1}, {"timestamp": 9, "n": 1}]
    result, metrics = step([6], [8, -3], 20)  # 6 and 8 still count in [5, 15); -3 in nothing
    assert result == [{"timestamp": 14, "n": 2}]
    assert metrics.late_rows == 1


def test_state_is_small_and_of_one_query():
    rows = table([{"timestamp": t, "k": "a", "v": t} for t in range(300)])
    text = "select timestamp, count(*) as n from S [range 10 slide 5] as A, S [range 10 slide 5] as B"
    _, storage = in_steps(text, {"S": rows}, [20], until=299)
    query = rewritten(plan_query(text, {"S": SCHEMA}, "timestamp", None))
    steps = QuerySteps(query, storage, {"query": text}, ("id",))
    steps.step({"S": rows.slice(0, 0)}, 299)
    assert steps.commit().kept_rows == 10
    with pytest.raises(InvalidSnapshot, match="another query"):
        QuerySteps(query, storage, {"query": "select 1"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select A.v from S [range 30 slide 1] as A, T [partition by k rows 1] as B", "would keep rows of every partition"),
        ("select A.v from S [range 30 slide 1] as A, T [range unbounded] as B", "would keep all of its rows"),
        ("select sum(v) from S [range unbounded]", "would keep all of its rows"),
        ("select k, sum(v) from S [rows 3] group by k", "counts the rows of the whole stream"),
        ("istream(select count(*) from S [range 4])", "compares each window with the one before"),
    ],
)
def test_what_would_never_be_final_is_refused(text, message):
    schemas = {n: SCHEMA for n in ("S", "T") if f"{n} [" in text}
    query = plan_query(text, schemas, "timestamp", None)
    with pytest.raises(InvalidQuery, match=message):
        QuerySteps(query, InDictionary(), {"query": text})
