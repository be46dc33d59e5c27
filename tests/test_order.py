"""Rows in order: by key, then time, then what breaks ties, then arrival."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from sash.plan.logical import make_plan
from sash.plan.request import Request
from sash.slicing.rows.order import FEW, of_keys_and_times, sorted_order
from sash.spark.workers.row_order import ORDER, TIME_BITS, ordered

TIMES = st.integers(-5, 5) | st.integers(-(1 << 61), 1 << 61)
TIES = st.none() | st.sampled_from([0.0, 1.5, math.inf, -math.inf, math.nan])


def place(tie: float | None) -> tuple[int, float]:
    """Null first, NaN last."""
    return (0, 0.0) if tie is None else (2, 0.0) if math.isnan(tie) else (1, tie)


@given(st.lists(st.tuples(st.integers(0, 4), TIMES, TIES), max_size=40), st.booleans(), st.booleans())
def test_rows_in_order(rows, with_ties, sort_first):
    rows = sorted(rows, key=lambda r: r[1]) if sort_first else rows
    codes, ticks = (np.array([r[k] for r in rows], np.int64) for k in (0, 1))
    ties = [pa.array([r[2] for r in rows], pa.float64(), from_pandas=False)] if with_ties else []
    wanted = sorted(range(len(rows)), key=lambda i: (rows[i][0], rows[i][1], place(rows[i][2]) if with_ties else ()))
    found = sorted_order(codes, 5, ticks, ties)
    assert (list(range(len(rows))) if found is None else found.tolist()) == wanted


TIE_TYPES = {
    "string": pa.string(),
    "string_view": pa.string_view(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "decimal": pa.decimal128(9, 2),
    "time": pa.time64("us"),
    "duration": pa.duration("ms"),
    "bool": pa.bool_(),
    "date": pa.date32(),
}


@pytest.mark.parametrize("kind", TIE_TYPES)
def test_what_breaks_ties_may_be_of_any_type(kind):
    """Two rows of one time, the later one first, behind a row that comes too early: so all are put into another order."""
    one, two = (False, True) if kind == "bool" else (1, 2)
    wanted = TIE_TYPES[kind]
    text = pa.types.is_string(wanted) or "view" in kind or kind == "dictionary"
    ties = [str(n) for n in (two, two, one)] if text else [two, two, one]
    column = pa.array(ties) if text else pa.array(ties, pa.bool_() if kind == "bool" else pa.int32() if kind == "date" else pa.int64())
    column = column.dictionary_encode().cast(wanted) if kind == "dictionary" else column.cast(pa.decimal128(19, 0)).cast(wanted) \
        if kind == "decimal" else column.cast(pa.binary()).cast(wanted) if kind == "binary_view" else column.cast(wanted)  # fmt: skip
    table = pa.table({"t": [5, 0, 0], "o": column, "v": [9, 2, 1]})
    request = {"aggs": [S.collect_list("v").alias("all"), S.first("o").alias("first")], "time": "t", "order_by": "o"}
    got = sash.aggregate(table, windows=W.tumbling(10), **request).to_pylist()
    assert got[0]["all"] == [1, 2, 9]
    assert got[0]["first"] == column[2].as_py()
    over = sash.over(table, windows=W.trailing(3), **{**request, "aggs": [S.first("v").alias("f")]})
    assert over.column("f").to_pylist() == [9, 1, 1]
    for aggs in (request["aggs"], [S.first("v").alias("f"), S.sum("v").alias("s")]):
        op = sash.Operator(windows=W.tumbling(10), aggs=aggs, time="t", order_by="o")
        op.add(table)
        row = op.close().to_pylist()[0]
        assert row.get("all", [1, 2, 9]) == [1, 2, 9]
        assert row.get("f", 1) == 1


@given(st.integers(0, 9), st.sampled_from([1, 3, 1 << 40]), st.sampled_from([1, 100, 1 << 60]), st.sampled_from([0, 1, 50, FEW + 7]))
def test_slices_in_order(seed, keys, times, count):
    rng = np.random.default_rng(seed)
    key, time = rng.integers(0, keys, count), rng.integers(-times, times, count)
    assert of_keys_and_times(key, time).tolist() == np.lexsort((time, key)).tolist()


def test_keys_that_differ_in_any_bits_are_in_many_groups():
    for shift in (0, 20, 40, 52):
        table = pa.table({"a": pa.array([k << shift for k in range(1, 129)], pa.int64()), "t": [0] * 128})
        plan = make_plan(table.schema, Request.of(W.tumbling(1), [S.count()], ["a"], "t"))
        assert len(set((ordered(plan, table, "t").column(ORDER).to_numpy() >> TIME_BITS).tolist())) > 120


@given(
    st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.integers(0, 2)), min_size=1, max_size=20),
    st.sampled_from([pa.int64(), pa.uint8(), pa.date32(), pa.timestamp("us"), pa.string()]),
)
def test_a_key_has_one_group_in_all_tables(keys, kind):
    """Rows that do not fit into memory are sorted table by table: a key's numbers must agree, whatever else is in the table."""
    times = pa.array([0] * len(keys), pa.int64())
    whole = pa.array([None if a is None else a % 5 for a, _ in keys], pa.int64())
    first = (whole.cast(pa.int32()) if kind == pa.date32() else whole).cast(kind)
    table = pa.table({"a": first, "b": pa.array([b for _, b in keys], pa.int16()), "t": times})
    plan = make_plan(table.schema, Request.of(W.tumbling(1), [S.count()], ["a", "b"], "t"))
    together = ordered(plan, table, "t").column(ORDER).to_numpy() >> TIME_BITS
    for row in range(len(keys)):
        assert int(ordered(plan, table.slice(row, 1), "t").column(ORDER)[0].as_py()) >> TIME_BITS == together[row]
