"""Batches of all kinds and sizes that wait together: none of their rows is lost, and a row without a time is counted."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import InvalidArgument, InvalidType, LateRow, UnknownName

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])


def batch(*rows: tuple[int | None, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"t": t, "v": v} for t, v in rows], schema=SCHEMA)


def test_batches_and_dictionaries_with_and_without_times():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t")
    for rows in (batch((1, 1), (None, 2)), batch((None, 3)), batch(), batch((5, 4), (12, 5))):
        op.add(rows)
    op.add([{"t": None, "v": 7}, {"t": 3, "v": 8}])
    op.add(batch((14, 1)))
    op.add([{"t": None, "v": 7}])
    assert op.close().select(["window", "s"]).to_pylist() == [
        {"window": {"start": 0, "end": 10}, "s": 13}, {"window": {"start": 10, "end": 20}, "s": 6},
    ]  # fmt: skip
    assert (op.stats.rows, op.stats.without_time) == (9, 4)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_batch_of_rows_without_a_time_gives_nothing(ordered):
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t", ordered=ordered)
    op.add(batch((None, 1)))
    assert (op.stats.rows, op.stats.without_time, op.close().num_rows) == (1, 1, 0)


def test_a_declared_order_goes_across_the_chunks_of_a_table():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t", ordered=True)
    given = op.add(pa.Table.from_batches([batch((1, 1), (None, 2)), batch((None, 3)), batch((5, 4), (12, 5))]))
    assert given.column("s").to_pylist() == [5]
    with pytest.raises(LateRow):
        op.add(pa.Table.from_batches([batch((13, 1)), batch((12, 1))]))
    op.add(batch((19, 2)))
    assert op.close().column("s").to_pylist() == [7]


NOON = datetime.datetime(2026, 1, 1, 12)
NANO = "2026-01-01T12:00:00.000000001"


def newest(kind: pa.DataType, value: object) -> object:
    """The greatest value of a column after one row that is given as a dictionary."""
    op = sash.Operator(windows=W.unbounded(), aggs=[S.max("v").alias("m"), S.count().alias("n")], time="t")
    op.add(pa.schema([("t", pa.int64()), ("v", kind)]).empty_table())
    op.add({"t": 1, "v": value})
    (given,) = op.close().to_pylist()
    assert given["n"] == 1
    return given["m"]


@pytest.mark.parametrize(("kind", "value", "wanted"), [
    (pa.int64(), 2.0, 2), (pa.int64(), np.int32(5), 5), (pa.int64(), Decimal(4), 4), (pa.float64(), 3, 3.0), (pa.float32(), 0.5, 0.5),
    (pa.float32(), float("inf"), float("inf")), (pa.date32(), NOON.date(), NOON.date()), (pa.date32(), pd.NaT, None),
    (pa.timestamp("s"), NOON, NOON), (pa.timestamp("us"), pd.Timestamp(NOON), NOON), (pa.timestamp("us"), pd.NaT, None),
    (pa.timestamp("ns"), pd.Timestamp(NANO), pd.Timestamp(NANO)), (pa.timestamp("ns"), np.datetime64(NANO), pd.Timestamp(NANO)),
    (pa.timestamp("us"), np.datetime64("2026-01-01T12"), NOON), (pa.timestamp("us"), NOON.replace(year=9000), NOON.replace(year=9000)),
    (pa.timestamp("us"), None, None), (pa.duration("s"), datetime.timedelta(seconds=2), datetime.timedelta(seconds=2)),
    (pa.duration("s"), None, None),
])  # fmt: skip
def test_a_dictionarys_value_in_the_type_of_its_column(kind, value, wanted):
    assert newest(kind, value) == wanted


@pytest.mark.parametrize(("kind", "value"), [
    (pa.int64(), 2.5), (pa.int64(), "7"), (pa.int64(), b"7"), (pa.int64(), True), (pa.int64(), [1]), (pa.int64(), NOON.date()),
    (pa.int64(), pd.NaT), (pa.int64(), np.datetime64("2026-01-01")), (pa.int8(), 300), (pa.float64(), "2"), (pa.float64(), True),
    (pa.float32(), 1e300), (pa.date32(), NOON), (pa.timestamp("s"), NOON.replace(microsecond=1)), (pa.timestamp("us"), pd.Timestamp(NANO)),
    (pa.timestamp("us"), np.datetime64(NANO)), (pa.timestamp("us"), "2026-01-01"), (pa.duration("s"), datetime.timedelta(seconds=1.5)),
    (pa.bool_(), 1), (pa.string(), 1),
])  # fmt: skip
def test_nothing_is_cut_off_to_fit_a_column(kind, value):
    with pytest.raises(InvalidType, match="column 'v' is of type"):
        newest(kind, value)


def test_columns_that_a_batch_lacks():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s")], time="t")
    op.add([{"t": 1}, {"t": 2, "v": 7}])  # some row has it
    for rows in ({"t": 3}, {}, {"v": 1}, [{"v": 1}, {}]):
        with pytest.raises(UnknownName, match="the batch lacks"):
            op.add(rows)
    with pytest.raises(InvalidArgument, match="'w'"):
        op.add({"t": 3, "v": 1, "w": 1})
    op.add([{"t": 4}, {"t": 5, "v": 1}])
    op.add([])
    assert op.close().column("s").to_pylist() == [8]


def test_a_column_of_nulls_fits_any_type():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.count("v").alias("n"), S.count().alias("all")], by="k", time="t")
    op.add(pa.table({"k": ["a"], "t": [1], "v": [2]}))
    op.add(pd.DataFrame({"k": [None], "t": [2], "v": [None]}))
    op.add(pd.DataFrame({"k": [], "t": [], "v": []}, dtype=object))
    assert [(r["k"], r["n"], r["all"]) for r in op.close().to_pylist()] == [("a", 1, 1), (None, 0, 1)]
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.count().alias("n")], time="t")
    op.add([{"t": 1, "v": None}])
    op.add([{"t": 1, "v": "text"}])  # the first value tells the type
    with pytest.raises(InvalidType, match="'v' is of type string"):
        op.add([{"t": 1, "v": 3}])
    assert op.close().to_pylist()[0]["n"] == 2


def test_a_step_before_the_first_value_takes_it_for_a_number():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("s"), S.count().alias("n")], time="t")
    op.add([{"t": 1, "v": None}])
    op.add(pa.table({"t": [2], "v": pa.nulls(1)}))
    assert op.advance(1).num_rows == 0
    op.add([{"t": 3, "v": 4}])
    with pytest.raises(InvalidType, match="'v' is of type double"):
        op.add([{"t": 3, "v": "text"}])
    assert [(r["s"], r["n"]) for r in op.close().to_pylist()] == [(4.0, 3)]


def test_times_are_not_mixed():
    naive = datetime.datetime(2026, 11, 18, 12)
    op = sash.Operator(windows=W.tumbling("1 hour"), aggs=[S.count().alias("n")], time="t")
    op.add([{"t": naive}])
    for wrong in (5, 1.5, naive.replace(tzinfo=datetime.UTC), True, "2026-11-18"):
        with pytest.raises(InvalidType, match="'t' is of type timestamp"):
            op.add([{"t": wrong}])
    aware = sash.Operator(windows=W.tumbling("1 hour"), aggs=[S.count().alias("n")], time="t")
    aware.add([{"t": naive.replace(tzinfo=datetime.UTC)}])
    with pytest.raises(InvalidType, match="has no time zone"):
        aware.add([{"t": naive}])
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    aware.add([{"t": naive.replace(tzinfo=berlin)}])
    assert [r["n"] for r in aware.close().to_pylist()] == [1, 1]


def test_a_row_out_of_order_is_named_with_its_time():
    op = sash.Operator(windows=W.tumbling("10 seconds"), aggs=[S.count()], time="t", ordered=True)
    times = [None, datetime.datetime(2026, 1, 1, 0, 0, 5), None, datetime.datetime(2026, 1, 1, 0, 0, 3)]
    with pytest.raises(LateRow, match=r"row 3 of the batch has the time 2026-01-01 00:00:03\.000000, after 2026-01-01 00:00:05\.000000"):
        op.add(pa.table({"t": pa.array(times, pa.timestamp("us"))}))
