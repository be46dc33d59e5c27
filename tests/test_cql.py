"""Queries as text on tables, against the naive oracle."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from tests.cql_oracle import Aggregate, Part, Spec, Windows, evaluate, join

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "timestamp": st.one_of(st.none(), st.integers(-12, 30)),
            "k": st.sampled_from(["a", "b", None]),
            "v": st.one_of(st.none(), st.integers(-5, 5)),
        }
    ),
    max_size=25,
)
SCHEMA = pa.schema({"timestamp": pa.int64(), "k": pa.string(), "v": pa.int64()})


def sums(rows, name):
    values = [r[name] for r in rows if r[name] is not None]
    return sum(values) if values else None


def least(rows, name, pick):
    values = [r[name] for r in rows if r[name] is not None]
    return pick(values) if values else None


AGGREGATES = [
    Aggregate("count(*)", len),
    Aggregate("count(v)", lambda rows: sum(r["v"] is not None for r in rows)),
    Aggregate("sum(v)", lambda rows: sums(rows, "v")),
    Aggregate("min(v)", lambda rows: least(rows, "v", min)),
    Aggregate("max(k)", lambda rows: least(rows, "k", max)),
    Aggregate("first(v)", lambda rows: rows[0]["v"]),
    Aggregate("last(k)", lambda rows: rows[-1]["k"]),
    Aggregate("count(distinct v)", lambda rows: len({r["v"] for r in rows if r["v"] is not None})),
    Aggregate("sum(v) filter (where k = 'a')", lambda rows: sums([r for r in rows if r["k"] == "a"], "v")),
    Aggregate(
        "max(v + 1) - min(v)", lambda rows: None if least(rows, "v", max) is None else least(rows, "v", max) + 1 - least(rows, "v", min)
    ),
]
KEYS = [Part("k", lambda r: r["k"]), Part("v % 2", lambda r: None if r["v"] is None else abs(r["v"]) % 2 * (1 if r["v"] >= 0 else -1))]
CONDITIONS = [
    None,
    Part("v > 0", lambda r: None if r["v"] is None else r["v"] > 0),
    Part("k = 'a' or v is null", lambda r: r["k"] == "a" or r["v"] is None),
    Part("(v between -2 and 2) and k <> 'b'", lambda r: r["v"] is not None and -2 <= r["v"] <= 2 and r["k"] is not None and r["k"] != "b"),
]
ITEMS = [Part("v", lambda r: r["v"]), Part("k", lambda r: r["k"]), Part("v * 2", lambda r: None if r["v"] is None else r["v"] * 2)]
BY_TIME = st.builds(
    lambda size, slide, offset: Windows(
        f"[range {size} slide {slide}{f' offset {offset}' if offset else ''}]", "time", size, slide, offset
    ),
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(0, 5),
)
INSTANTS = st.one_of(
    st.builds(lambda n: Windows(f"[range {n}]", "range", n), st.integers(1, 12)),
    st.sampled_from([Windows("[range unbounded]", "unbounded"), Windows("[now]", "now", 1)]),
    st.builds(lambda n: Windows(f"[partition by k rows {n}]", "last rows", n, partition="k"), st.integers(1, 3)),
)


def is_marked(row):
    return None if row["v"] is None else row["v"] > 3


def partitioned(window, partition):
    if not partition:
        return window
    return Windows(f"[partition by k {window.text[1:]}", window.kind, window.size, window.slide, window.offset, "k", window.when)


BY_ROWS = st.builds(
    partitioned,
    st.one_of(
        st.builds(lambda n, every: Windows(f"[rows {n} slide {every}]", "rows", n, every), st.integers(1, 4), st.integers(1, 4)),
        st.builds(lambda gap: Windows(f"[session {gap}]", "session", gap), st.integers(1, 6)),
        st.just(Windows("[punctuation v > 3]", "punctuation", when=is_marked)),
    ),
    st.booleans(),
)
ANY_WINDOWS = st.one_of(BY_TIME, INSTANTS, BY_ROWS)


def table(rows):
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def check(spec, rows):
    """The results are the oracle's: windows in order, the rows of each as a multiset."""
    expected = evaluate(spec, rows)
    result = sash.sql(spec.text, S=table(rows))
    found = [tuple(r.values()) for r in result.to_pylist()]
    place = 0
    if spec.windows.partition is None:
        for window in expected:
            part = found[place : place + len(window)]
            assert Counter(part) == Counter(window), spec.text
            if spec.limit is not None and spec.kind in (None, "rstream"):
                assert part == window or not spec.is_grouped or spec.windows.partition, spec.text
            place += len(window)
        assert place == len(found), spec.text
    else:  # windows of several partitions may end together
        assert Counter(found) == Counter(row for window in expected for row in window), spec.text


KINDS = st.sampled_from([None, "rstream", "istream", "dstream"])
LIMITS = st.sampled_from([None, None, 1, 2])


@given(
    ROWS,
    ANY_WINDOWS,
    st.sampled_from(CONDITIONS),
    st.sets(st.integers(0, 1)),
    st.sets(st.integers(0, 9), min_size=1, max_size=3),
    KINDS,
    LIMITS,
)
def test_aggregates_are_the_oracles(rows, windows, where, keys, aggregates, kind, limit):
    spec = Spec(windows, where, tuple(KEYS[k] for k in keys), tuple(AGGREGATES[k] for k in aggregates), kind=kind, limit=limit)
    check(spec, rows)


@given(ROWS, ANY_WINDOWS, st.sampled_from(CONDITIONS), st.booleans())
def test_having_is_a_condition_on_groups(rows, windows, where, by_alias):
    text = "c1 > 1" if by_alias else "count(*) > 1"
    spec = Spec(windows, where, (KEYS[0],), (AGGREGATES[0],), having=lambda values: values[1] > 1, having_text=text)
    check(spec, rows)


@given(ROWS, ANY_WINDOWS, st.sampled_from(CONDITIONS), st.sets(st.integers(0, 2), min_size=1), KINDS, LIMITS, st.booleans())
def test_projections_are_the_oracles(rows, windows, where, items, kind, limit, with_time):
    check(Spec(windows, where, (), (), tuple(ITEMS[k] for k in items), kind=kind, limit=limit, with_time=with_time), rows)


@given(ROWS, ANY_WINDOWS, st.sampled_from(CONDITIONS), st.sets(st.integers(0, 2), min_size=1), KINDS, LIMITS, st.booleans())
def test_distinct_rows_are_the_oracles(rows, windows, where, items, kind, limit, with_time):
    check(Spec(windows, where, (), (), tuple(ITEMS[k] for k in items), distinct=True, kind=kind, limit=limit, with_time=with_time), rows)


@given(ROWS, BY_TIME, st.integers(0, 1))
def test_nested_queries_work_per_window(rows, windows, key):
    inner = Spec(windows, None, (KEYS[0], KEYS[1]), (AGGREGATES[0],))
    expected = Counter()
    for window in evaluate(inner, rows):
        groups = {}
        for time, *values in window:
            groups.setdefault((time, values[key]), []).append(values[2])
        expected.update((time, k, len(counts), max(counts)) for (time, k), counts in groups.items())
    text = f"select timestamp, c{key}, count(*), max(c2) as most from ({inner.text}) as R group by c{key}"
    found = Counter(tuple(r.values()) for r in sash.sql(text, S=table(rows)).to_pylist())
    assert found == expected
    named = f"({inner.text}) as R select timestamp, c{key}, count(*), max(c2) as most from R group by c{key}"
    assert Counter(tuple(r.values()) for r in sash.sql(named, S=table(rows)).to_pylist()) == expected


@given(ROWS, BY_TIME)
def test_a_created_stream_takes_windows(rows, windows):
    inner = Spec(windows, None, (KEYS[0],), (AGGREGATES[2],))
    results = [{"timestamp": time, "k": k, "v": v} for window in evaluate(inner, rows) for time, k, v in window]
    outer = Spec(Windows("[range 5 slide 2]", "time", 5, 2), None, (KEYS[0],), (AGGREGATES[2],))
    text = f"create stream X as {inner.text.replace('c0', 'k').replace('c1', 'v')}; {outer.text.replace('from S', 'from X')}"
    found = Counter(tuple(r.values()) for r in sash.sql(text, S=table(rows)).to_pylist())
    assert found == Counter(row for window in evaluate(outer, results) for row in window)


CONDITIONS_OF_PAIRS = [
    ("A.k = B.k", lambda x, y: x["k"] is not None and x["k"] == y["k"]),
    ("A.v < B.v", lambda x, y: x["v"] is not None and y["v"] is not None and x["v"] < y["v"]),
    (
        "B.k = A.k and A.v + 1 >= B.v",
        lambda x, y: x["k"] is not None and x["k"] == y["k"] and None not in (x["v"], y["v"]) and x["v"] + 1 >= y["v"],
    ),
    ("A.v > 0 and B.k = 'a'", lambda x, y: x["v"] is not None and x["v"] > 0 and y["k"] == "a"),
]


@st.composite
def windows_of_joins(draw):
    """Windows that have edges in common."""
    kind = draw(st.sampled_from(["time", "as of", "instants", "rows"]))
    if kind == "instants":
        return draw(INSTANTS), draw(INSTANTS)
    if kind == "rows":
        one, other = (draw(st.integers(1, 3)) for _ in range(2))
        return tuple(
            Windows(f"[rows {n} slide {m}]", "rows", n, m) for n, m in ((one, draw(st.integers(1, 3))), (other, draw(st.integers(1, 3))))
        )
    left = draw(BY_TIME)
    if kind == "time":
        size = left.size + left.slide * draw(st.integers(0, 2))
        offset = f" offset {left.offset}" if left.offset else ""
        return left, Windows(f"[range {size} slide {left.slide}{offset}]", "time", size, left.slide, left.offset)
    pair = (left, draw(INSTANTS))
    return pair if draw(st.booleans()) else pair[::-1]


@given(ROWS, ROWS, windows_of_joins(), st.sampled_from(CONDITIONS_OF_PAIRS))
def test_joins_are_the_oracles(rows, others, windows, condition):
    text = f"select timestamp, A.k, A.v, B.k as bk, B.v as bv from S {windows[0].text} as A, T {windows[1].text} as B where {condition[0]}"
    found = [tuple(r.values()) for r in sash.sql(text, S=table(rows), T=table(others)).to_pylist()]
    expected = join(*windows, rows, others, condition[1])
    wanted = Counter((time, x["k"], x["v"], y["k"], y["v"]) for window in expected for time, x, y in window)
    assert Counter(found) == wanted
    assert [f[0] for f in found] == sorted(f[0] for f in found)
    counted = (
        f"select timestamp, A.k, count(*) as n from S {windows[0].text} as A join T {windows[1].text} as B on {condition[0]} group by A.k"
    )
    groups = Counter((time, x["k"]) for window in expected for time, x, _ in window)
    if windows[0].kind != "rows":  # several windows of rows may have one time
        result = Counter({(r["timestamp"], r["k"]): r["n"] for r in sash.sql(counted, S=table(rows), T=table(others)).to_pylist()})
        assert result == groups


@pytest.mark.parametrize("text", ["select * from S", "select S.* from S [range unbounded]", "istream(select * from S [range 5 slide 5])"])
def test_a_star_is_all_columns(text):
    rows = [{"timestamp": 1, "k": "a", "v": 2}, {"timestamp": 3, "k": None, "v": None}]
    assert sash.sql(text, S=table(rows)).to_pylist() == rows
