"""Rows that come one by one as dictionaries, which wait while nothing is due, against the same rows in Arrow batches, which do not."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from tests.own_aggregates import affine
from tests.test_operator import restored
from tests.test_tables import several

EPOCH = datetime.datetime(1970, 1, 1)
PLAIN = [S.sum("v").alias("sum"), S.count().alias("count"), S.min("v").alias("min"), S.first("v").alias("first")]
OWN = [affine("coalesce(v, 0)").alias("affine"), S.median("v").alias("median")]
OBJECTS = [S.median("v").alias("median"), S.collect_list("v").alias("list")]
SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64()), ("flag", pa.bool_())])

rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(-20, 60), st.one_of(st.none(), st.integers(-9, 9)), st.integers(-3, 8)),
    max_size=30,
)


def results(op, given_rows, *, plain, specs, aggs, restart):
    """All that comes out, step by step, and what was late."""
    found, watermark = [], -100
    op.add(SCHEMA.empty_table())
    for number, (k, t, v, ahead) in enumerate(given_rows):
        row = {"k": k, "t": t, "v": v, "flag": t % 5 == 0}
        op.add([row] if plain else pa.RecordBatch.from_pylist([row], SCHEMA))
        if number == restart:
            op = restored(op, specs, aggs)
        watermark = max(watermark, t - ahead)
        found += op.advance(watermark).to_pylist()
    return found + op.close().to_pylist(), op.stats.late


def assert_same_either_way(specs, aggs, given_rows, lateness, emit, restart):
    """Rows as dictionaries and as Arrow batches: the same results at the same steps."""
    pair = [sash.Operator(windows=specs, aggs=aggs, by="k", time="t", lateness=lateness, emit=emit) for _ in range(2)]
    one, other = (
        results(op, given_rows, plain=plain, specs=specs, aggs=aggs, restart=restart) for op, plain in zip(pair, (True, False), strict=True)
    )
    assert one == other


@pytest.mark.parametrize("emit", ["final", "update", "running"])
@pytest.mark.parametrize("aggs", [PLAIN, OWN, OBJECTS], ids=["plain", "own", "objects"])
def test_one_row_at_a_time(emit, aggs):
    @given(cases=several, given_rows=rows, lateness=st.integers(0, 12), restart=st.integers(-1, 20))
    def run(cases, given_rows, lateness, restart):
        specs = {name: spec for name, (spec, _) in cases.items()}
        assert_same_either_way(specs, aggs, given_rows, lateness, emit, restart)

    run()


few = st.dictionaries(
    st.sampled_from(["one", "two"]),
    st.one_of(
        st.integers(5, 40).map(W.tumbling),
        st.tuples(st.integers(5, 40), st.integers(5, 40)).map(lambda s: W.sliding(s[0], every=s[1])),
        st.integers(2, 15).map(W.session),
    ),
    min_size=1,
)
steps = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 7), st.integers(-9, 9), st.integers(0, 6)), max_size=40)


@pytest.mark.parametrize("emit", ["final", "update", "running"])
@pytest.mark.parametrize("aggs", [PLAIN[:3], PLAIN, [S.median("v").alias("median")]], ids=["joined", "in order", "rows kept"])
def test_one_row_at_a_time_nearly_in_order(emit, aggs):
    """Long stretches in which nothing is due, while windows that were given close for good."""

    @given(specs=few, given_steps=steps, lateness=st.integers(0, 12), restart=st.integers(-1, 30))
    def run(specs, given_steps, lateness, restart):
        now, given_rows = 0, []
        for k, step, v, ahead in given_steps:
            now += step
            given_rows.append((k, now - ahead // 5, v, ahead))
        assert_same_either_way(specs, aggs, given_rows, lateness, emit, restart)

    run()


def test_a_window_that_closes_while_nothing_is_due_is_not_retracted():
    op = sash.Operator(windows=W.tumbling(1000), aggs=[S.sum("v").alias("s")], time="t", emit="update", lateness=100)
    found = []
    for t in range(0, 3000, 10):
        op.add([{"t": t, "v": 1}])
        found += op.advance(t - 10).to_pylist()
        if t == 1500:
            op = sash.Operator.restore(op.snapshot())
    assert [(r["window"]["start"], r["s"], r["retracted"]) for r in found + op.close().to_pylist()] == [
        (0, 100, False),
        (1000, 100, False),
        (2000, 100, False),
    ]


@given(cases=several, given_rows=rows, delay=st.integers(0, 9), lateness=st.integers(0, 9))
def test_a_watermark_that_advances_by_itself(cases, given_rows, delay, lateness):
    specs = {name: spec for name, (spec, _) in cases.items()}
    itself = sash.Operator(windows=specs, aggs=PLAIN, by="k", time="t", lateness=lateness, watermark=delay)
    by_hand = sash.Operator(windows=specs, aggs=PLAIN, by="k", time="t", lateness=lateness)
    for op in (itself, by_hand):
        op.add(SCHEMA.empty_table())
    newest = None
    for k, t, v, size in given_rows:
        row = {"k": k, "t": t, "v": v, "flag": t % 5 == 0}
        found = itself.add([row] if size % 2 else pa.RecordBatch.from_pylist([row], SCHEMA))
        assert by_hand.add([row]) is None
        newest = t if newest is None else max(newest, t)
        assert found.equals(by_hand.advance(newest - delay))
    assert itself.close().equals(by_hand.close())
    assert itself.stats.late == by_hand.stats.late


def test_the_watermark_is_kept_over_a_snapshot():
    op = sash.Operator(windows=W.tumbling("10 seconds"), aggs=[S.count().alias("n")], time="t", watermark="2 seconds")
    assert op.add([{"t": EPOCH}]).num_rows == 0
    again = sash.Operator.restore(op.snapshot())
    assert again.add([{"t": EPOCH + datetime.timedelta(seconds=11)}]).num_rows == 0
    assert again.add([{"t": EPOCH + datetime.timedelta(seconds=12)}]).to_pylist()[0]["n"] == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_of_every_unit(unit, zone):
    """Datetimes in dictionaries, and the watermark as one, in columns of any unit."""
    t = pa.timestamp(unit, zone)
    moments = [EPOCH + datetime.timedelta(seconds=s) for s in (1, 5, 12, 7, 31)]
    if zone is not None:
        moments = [m.replace(tzinfo=datetime.UTC) for m in moments]
    op = sash.Operator(windows=W.tumbling("10 seconds"), aggs=[S.sum("v").alias("sum")], by="k", time="t")
    op.add(pa.table({"k": pa.array([], pa.string()), "t": pa.array([], t), "v": pa.array([], pa.float64())}))
    found = []
    for n, moment in enumerate(moments):
        op.add([{"k": "a", "t": moment, "v": float(n)}])
        found += op.advance(max(moments[: n + 1]) - datetime.timedelta(seconds=6)).to_pylist()
    found += op.close().to_pylist()
    assert [r["sum"] for r in found] == [4.0, 2.0, 4.0]


def test_rows_do_not_change_after_they_were_added():
    op = sash.Operator(windows=W.tumbling(10), aggs=[S.sum("v").alias("sum")], time="t")
    row = {"t": 1, "v": 1}
    for _ in range(3):
        op.add([row])
        row["v"] = 100
    assert op.close().to_pylist()[0]["sum"] == 201


def test_bad_watermark():
    with pytest.raises(sash.errors.InvalidArgument, match="every row is a watermark"):
        sash.Operator(windows=W.tumbling(10), aggs=[S.count()], time="t", ordered=True, watermark=5)
    with pytest.raises(sash.errors.InvalidArgument, match="must not be negative"):
        sash.Operator(windows=W.tumbling(10), aggs=[S.count()], time="t", watermark=-5)
