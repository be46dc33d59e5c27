"""A glance at the first rows decides whether Spark makes slices before the shuffle; the results are the same either way."""

from __future__ import annotations

import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.spark.batch import glance

ROWS = 1 << 11


@pytest.fixture
def small(monkeypatch):
    """Small frames are looked at, too, and partitions are taken to be small."""
    monkeypatch.setattr(glance, "LEAST_BYTES", 1)
    monkeypatch.setattr(glance, "ROWS", ROWS)
    monkeypatch.setattr(glance, "PARTITION", ROWS << 4)


def events(spark, keys: int, tick: str, folder) -> object:
    columns = (f"pmod(xxhash64(id), {keys}) k", f"timestamp_micros({tick}) t", "id % 1000 v")
    spark.range(6 * ROWS).selectExpr(*columns).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


CALL = {"windows": W.sliding("6 seconds", every="1 second"), "aggs": [S.sum("v").alias("s"), S.count().alias("n")], "by": "k", "time": "t"}
IN_ORDER, SHUFFLED = "id * 1000", "pmod(xxhash64(id, 5), 12000000)"


@pytest.mark.parametrize(
    ("keys", "tick", "reduces"),
    [
        (16, IN_ORDER, True),
        (100_000, IN_ORDER, False),  # a slice has a thousand rows
        (4_000, IN_ORDER, False),
        (1_000, "id * 10", True),  # all rows are in one slice
        (16, SHUFFLED, True),
        (100_000, SHUFFLED, False),
        (1_000, SHUFFLED, True),  # of the rows that are looked at few meet, but a partition has many more
    ],
)
def test_rows_are_sent_where_slices_save_nothing(spark, small, tmp_path, keys, tick, reduces):
    frame = events(spark, keys, tick, tmp_path / "rows")
    assert "or stage 1: rows" in str(sash.explain(frame, **CALL))
    found = sash.aggregate(frame, **CALL)
    expected = sash.aggregate(frame.toArrow(), **CALL)
    flat = [t.append_column("start", t["window"].combine_chunks().field("start")) for t in (found.toArrow(), expected)]
    order = [("k", "ascending"), ("start", "ascending")]
    assert flat[0].sort_by(order).to_pylist() == flat[1].sort_by(order).to_pylist()
    found.collect()
    plan = found._jdf.queryExecution().executedPlan().toString().partition("\n+- == Initial Plan")[0]
    assert "EmptyRelation" in plan
    assert ("partial_sum" in plan) == reduces


@pytest.mark.parametrize("plan", ["catalyst", "fragments", "rows"])
def test_a_plan_that_is_named_is_not_looked_at(spark, small, tmp_path, plan):
    frame = events(spark, 16, IN_ORDER, tmp_path / "rows")
    assert "or stage" not in str(sash.explain(frame, **CALL, plan=plan))


def test_only_what_can_be_read_twice_is_looked_at(spark, small, tmp_path):
    frame = events(spark, 16, IN_ORDER, tmp_path / "rows")
    assert glance.is_readable(frame.where("v > 3").selectExpr("k", "t", "v + 1 as v"))
    assert not glance.is_readable(frame.repartition(3))
    assert not glance.is_readable(frame.groupBy("k").count())
    assert not glance.is_readable(frame.join(frame.groupBy("k").count(), "k"))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert not glance.is_readable(frame)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")


def test_a_small_frame_is_not_looked_at(spark, tmp_path):
    frame = events(spark, 16, IN_ORDER, tmp_path / "rows")
    assert "or stage" not in str(sash.explain(frame, **CALL))


def test_sessions_and_frames_without_keys_are_not_looked_at(spark, small, tmp_path):
    frame = events(spark, 16, IN_ORDER, tmp_path / "rows")
    assert "or stage" not in str(sash.explain(frame, **{**CALL, "windows": W.session("2 seconds")}))
    assert "or stage" not in str(sash.explain(frame, **{**CALL, "by": None}))
    assert "or stage" not in str(sash.explain(frame, **{**CALL, "windows": W.tumbling("2 seconds")}))
