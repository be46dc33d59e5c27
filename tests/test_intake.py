"""Batches of all kinds and sizes that wait together: none of their rows is lost, and a row without a time is counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import LateRow

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])


def batch(*rows: tuple[int | None, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"t": t, "v": v} for t, v in rows], schema=SCHEMA)


def test_batches_and_dictionaries_with_and_without_times():
    op = sash.Operator(W.tumbling(10), [S.sum("v").alias("s")], time="t")
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
    op = sash.Operator(W.tumbling(10), [S.sum("v").alias("s")], time="t", ordered=ordered)
    op.add(batch((None, 1)))
    assert (op.stats.rows, op.stats.without_time, op.close().num_rows) == (1, 1, 0)


def test_a_declared_order_goes_across_the_chunks_of_a_table():
    op = sash.Operator(W.tumbling(10), [S.sum("v").alias("s")], time="t", ordered=True)
    given = op.add(pa.Table.from_batches([batch((1, 1), (None, 2)), batch((None, 3)), batch((5, 4), (12, 5))]))
    assert given.column("s").to_pylist() == [5]
    with pytest.raises(LateRow):
        op.add(pa.Table.from_batches([batch((13, 1)), batch((12, 1))]))
    op.add(batch((19, 2)))
    assert op.close().column("s").to_pylist() == [7]
