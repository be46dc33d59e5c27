"""The slice store in chunks: tiny ones, so that a few rows have many, against a table and against an operator with one chunk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from sash.slicing.ingest.slices import Slices, joined
from sash.slicing.stores import partials_only
from sash.slicing.stores.chunks import Chunks, InMemory
from tests.own_aggregates import affine
from tests.spark_cases import assert_same
from tests.test_operator_machine import OperatorMachine

AGGS = [S.sum("v"), S.count(), S.max("v"), S.var_pop("v")]
IN_ORDER = [affine("v"), S.first("v"), S.max_by("n", "v"), S.count()]
specs = st.dictionaries(
    st.sampled_from("abc"), st.builds(lambda s, e, o: W.sliding(s, e, offset=o), st.integers(1, 300), st.integers(1, 9), st.integers(0, 9)),
    min_size=1, max_size=3,
)  # fmt: skip
steps = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 30), st.integers(-5, 5)), max_size=12), st.integers(0, 60)), max_size=14
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(InMemory, "slices_in_chunk", 1)
    monkeypatch.setattr(InMemory, "fewest_edges", 2)
    monkeypatch.setattr(partials_only, "FEW_CHUNKS", 0)


def batch(rows, now):
    return pa.table({"k": pa.array([r[0] for r in rows], pa.int64()), "t": pa.array([now + r[1] for r in rows], pa.int64()),
                     "v": pa.array([r[2] for r in rows], pa.int64())})  # fmt: skip


def numbered(table, start):
    """Rows with a number that tells them apart, and orders those of one time backwards."""
    return table.append_column("n", pa.array(range(start + table.num_rows, start, -1), pa.int64()))


def played(windows, given_steps, aggs=AGGS, **options):
    """All results, and the rows that were not late."""
    op = sash.Operator(windows=windows, aggs=aggs, by="k", time="t", late="output", **options)
    op.add(numbered(batch([], 0), 0))
    now, given_rows, results = 0, [], []
    for rows, move in given_steps:
        made = numbered(batch(rows, now), 1000 * len(given_rows))
        op.add(made)
        given_rows.append(made)
        now += move
        results.append(op.advance(now))
        if now % 3 == 0:
            op = sash.Operator.restore(op.snapshot(), windows=None, aggs=aggs if aggs is IN_ORDER else None)
    chunks = len(op._engine.stores[0].chunks.numbers)
    results.append(op.close())
    return pa.concat_tables(given_rows) if given_rows else numbered(batch([], 0), 0), results, op.late_rows(), chunks


@given(windows=specs, given_steps=steps, lateness=st.sampled_from([None, 5, 100]))
def test_results_are_a_tables(windows, given_steps, lateness):
    table, results, late, _ = played(windows, given_steps, lateness=lateness)
    wanted = sash.aggregate(table, windows=windows, aggs=AGGS, by="k", time="t")
    got = pa.concat_tables(results)
    if late.num_rows == 0 and lateness == 100:
        assert_same(got.cast(wanted.schema), wanted, ["query", "k", "window"])
    keys = [(r["query"], r["k"], r["window"]["start"]) for r in got.to_pylist()]
    assert len(keys) == len(set(keys))


@given(windows=specs, given_steps=steps, lateness=st.sampled_from([None, 5, 40]), emit=st.sampled_from(["final", "update", "running"]))
def test_chunks_do_not_show(windows, given_steps, lateness, emit):
    _, in_chunks, late, _ = played(windows, given_steps, lateness=lateness, emit=emit)
    InMemory.slices_in_chunk = 1 << 30
    try:
        _, in_one, late_too, _ = played(windows, given_steps, lateness=lateness, emit=emit)
    finally:
        InMemory.slices_in_chunk = 1
    assert late.num_rows == late_too.num_rows
    for a, b in zip(in_chunks, in_one, strict=True):
        assert_same(a, b, [n for n in ("query", "k", "window", "revision", "retracted") if n in a.column_names])


mixed = st.one_of(specs, st.builds(lambda a, g: {**a, "s": W.session(g)}, specs, st.integers(1, 20)))


@given(windows=mixed, given_steps=steps, order_by=st.sampled_from([None, "n"]), lateness=st.sampled_from([5, 200]))
def test_slices_with_rows_keep_the_order(windows, given_steps, order_by, lateness):
    table, results, late, _ = played(windows, given_steps, IN_ORDER, order_by=order_by, lateness=lateness)
    got = pa.concat_tables(results)
    if late.num_rows == 0 and lateness == 200:
        wanted = sash.aggregate(table, windows=windows, aggs=IN_ORDER, by="k", time="t", order_by=order_by)
        assert_same(got.cast(wanted.schema), wanted, ["query", "k", "window"])


def test_rows_in_order_are_joined_and_late_ones_compute_their_slice_again():
    op = sash.Operator(windows={"w": W.tumbling(10)}, aggs=[affine("v"), S.last("v")], time="t")
    state = None
    for start in range(0, 100, 5):
        op.add(pa.table({"t": np.arange(start, start + 5), "v": np.arange(5)}))
        op.advance(max(0, start - 40))
        state = op._engine.stores[0]
        assert state.recomputed == 0
    op.add(pa.table({"t": [51], "v": [9]}))  # late, and its window is open
    assert op.stats.kept_rows == 51  # windows that are closed need none
    assert op.advance(60).column("last(v)").to_pylist() == [4]
    assert state.recomputed == 1


def test_long_windows_read_few_slices(monkeypatch):
    """A window of 4,000 slices over 50 keys is answered from nodes; what a step looks at does not grow with the window."""
    monkeypatch.setattr(InMemory, "slices_in_chunk", 800)
    op = sash.Operator(windows={"w": W.sliding(4000, 1)}, aggs=[S.max("v"), S.sum("v")], by="k", time="t")
    looked = []
    everything = partials_only.PartialsOnly.step

    def step(self, *arguments):
        result = everything(self, *arguments)
        if result is not None:
            looked.append(result.view.count)
        return result

    monkeypatch.setattr(partials_only.PartialsOnly, "step", step)
    rng = np.random.default_rng(1)
    parts = []
    for start in range(0, 9000, 50):
        n = 50 * 50
        rows = pa.table({"k": np.tile(np.arange(50), 50), "t": np.repeat(np.arange(start, start + 50), 50), "v": rng.integers(-99, 99, n)})
        parts.append(rows)
        op.add(rows)
        last = op.advance(start + 50)
    assert op.stats.slices >= 3999 * 50
    assert looked[-1] < 50 * 4000 // 8
    wanted = sash.aggregate(pa.concat_tables(parts), windows={"w": W.sliding(4000, 1)}, aggs=[S.max("v"), S.sum("v")], by="k", time="t")
    ends = pa.compute.struct_field(wanted["window"], "end").to_numpy()
    assert_same(last, wanted.filter(pa.array((ends > 8950) & (ends <= 9000))), ["query", "k", "window"])


def test_a_batch_touches_its_chunks_only(monkeypatch):
    """What is put is what rows fell into, and the nodes above."""
    monkeypatch.setattr(InMemory, "slices_in_chunk", 64)
    op = sash.Operator(windows={"w": W.sliding(640, 1)}, aggs=[S.max("v")], by="k", time="t")
    put = []
    original = InMemory.put

    def watched(self, name, chunk):
        put.append(name)
        original(self, name, chunk)

    for start in range(0, 1280, 16):
        if start == 1264:
            monkeypatch.setattr(InMemory, "put", watched)
        op.add(pa.table({"k": np.tile(np.arange(4), 16), "t": np.repeat(np.arange(start, start + 16), 4), "v": np.arange(64)}))
        op.advance(start + 16)
    assert len({name for name in put if name[0] == 0}) <= 3
    assert len(put) <= 4 + 2 * InMemory.fan


@pytest.mark.parametrize("fan", [4, 8])
def test_every_cover_is_right(monkeypatch, fan):
    """No piece reaches across a point, and together they are all from the first point to the last, while the points move and rows come."""
    monkeypatch.setattr(InMemory, "fan", fan)

    def whole(slices):
        at = np.flatnonzero(np.append(True, slices.key[1:] != slices.key[:-1]))
        last = np.maximum.reduceat(slices.last, at)
        return Slices(slices.key[at], slices.cell[at], slices.first[at], last, np.add.reduceat(slices.count, at), [], [])

    chunks = Chunks(InMemory(), 16, 0, whole)
    ticks = np.arange(0, 16 * 900)
    ticks = ticks[ticks // 16 % 7 > 0]
    one = np.zeros(len(ticks), np.int64)
    counts = np.ones(16 * 900, np.int64)
    counts[np.arange(16 * 900) // 16 % 7 == 0] = 0
    for number, part in chunks.split(Slices(one, ticks, ticks, ticks, one + 1, [], [])):
        chunks.put(number, part)
    moving = [[100 + i, 9000 + i] for i in range(0, 900, 5)] + [[7000 + i, 9500 + i, 9700 + i] for i in range(0, 900, 33)]
    for points in ([5, 17], [200, 14000], [0, 64, 8 * 64 * 3], *moving):
        if points[0] % 3 == 0:  # a late row
            late = 16 * (points[0] // 16 + 40) + 3
            counts[late] += 7
            number = late // 16
            old = chunks.get(number)
            new = np.array([late])
            added = Slices(new * 0, new, new, new, new * 0 + 7, [], [])
            chunks.put(number, added if old is None else joined([old, added]).take(
                np.argsort(np.append(old.first, late), kind="stable")))  # fmt: skip
        cover = chunks.cover(np.array(points))
        assert cover is not None
        first, last, count = (np.concatenate([getattr(c, n) for c in cover]) for n in ("first", "last", "count"))
        assert np.all(np.diff(first) >= 0)
        assert len(first) < 200
        for low, high in zip(points[:-1], points[1:], strict=True):
            inside = (first >= low) & (first < high)
            assert np.all(last[inside] < high)
            assert count[inside].sum() == counts[low:high].sum()


TestMachineWithTinyChunks = OperatorMachine.TestCase


@pytest.mark.parametrize("aggregate", [S.first("v"), S.sum("v")])
def test_times_far_apart(aggregate):
    op = sash.Operator(windows={"q": W.tumbling(10**16)}, aggs=[aggregate.alias("x")], time="t")
    op.add([{"t": -17 * 10**17, "v": 1}, {"t": 17 * 10**17, "v": 2}])
    assert op.advance(17 * 10**17 - 1).column("x").to_pylist() == [1]
    assert op.close().column("x").to_pylist() == [2]
