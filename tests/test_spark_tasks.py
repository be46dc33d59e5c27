"""What Spark's workers run, without Spark: fragments, blocks of time, keys too large to hold, against one table. Many cases, fast."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from sash.plan.choices.spark_choice import time_blocks
from sash.plan.logical import make_plan
from sash.plan.request import Request
from sash.slicing.batch.fragments import CELL, FIRST, Fragments
from sash.slicing.batch.time_blocks import BLOCK, block_of
from sash.spark.batch import batch_frames
from sash.spark.workers.batch_tasks import AggregateRows, Assemble, MakeFragments, OverRows
from sash.spark.workers.runs import Runs
from tests import window_oracle
from tests.own_aggregates import affine
from tests.spark_cases import assert_same, window_keys
from tests.test_tables import rows_strategy, table_of

COMMUTE = [S.sum("v"), S.count(), S.min("v"), S.var_pop("v"), S.count("v").where("flag").alias("some"), S.product("v % 3")]
IN_ORDER = [affine("coalesce(v, 0)"), S.first("n"), S.last("v"), S.median("v"), S.collect_list("n")]
batches = st.integers(1, 12)
limits = st.integers(1, 50)


def in_blocks(table, position, blocks, ahead):
    """Each row once for every block that needs it, as Spark's explode does it."""
    if blocks is None:
        return table
    ticks = np.asarray(table.column(position))
    low = block_of(ticks if ahead else ticks - blocks.halo + 1, blocks.length)
    high = block_of(ticks + blocks.halo - 1 if ahead else ticks, blocks.length)
    places = np.repeat(np.arange(len(ticks)), high - low + 1)
    numbers = np.concatenate([np.arange(a, b + 1) for a, b in zip(low, high, strict=True)] or [np.empty(0, np.int64)])
    return table.take(pa.array(places)).append_column(BLOCK, pa.array(numbers.astype(np.int64)))


def shuffled(table, seed):
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def done(task, table, size):
    """A task over a table that comes in small batches."""
    parts = list(task.run(iter(table.to_batches(max_chunksize=size))))
    return pa.concat_tables(parts) if parts else None


def expect(result, request, table):
    wanted = sash.aggregate(table, windows=request.windows, aggs=request.aggs, by=request.by, time="t", order_by=request.order_by)
    if result is None:
        assert wanted.num_rows == 0
        return
    assert_same(result.cast(wanted.schema), wanted, window_keys(wanted, ["k"]))


several = st.dictionaries(st.sampled_from(["a", "b", "c"]), window_oracle.cases(), min_size=1, max_size=3)


@given(cases=several, rows=rows_strategy(), size=batches, limit=limits, seed=st.integers(0, 9), keyed=st.booleans())
def test_rows_of_keys_in_pieces(cases, rows, size, limit, seed, keyed):
    table = table_of(rows)
    request = Request.of({n: spec for n, (spec, _) in cases.items()}, [*COMMUTE, *IN_ORDER], ["k"] if keyed else [], "t", ["n"])
    blocks, _ = time_blocks(make_plan(table.schema, request))
    given_rows = shuffled(in_blocks(table, "t", blocks, ahead=False), seed)
    task = AggregateRows(request, table.schema, None if blocks is None else blocks.length, limit)
    expect(done(task, given_rows, size), request, table)


sliced = window_oracle.cases().filter(lambda case: case[0].context == "context free" or case[0].is_session)


@given(
    cases=st.dictionaries(st.sampled_from(["a", "b", "c"]), sliced, min_size=1, max_size=3),
    rows=rows_strategy(), size=batches, limit=limits, seed=st.integers(0, 9), keyed=st.booleans(),
)  # fmt: skip
def test_fragments_of_any_parts(cases, rows, size, limit, seed, keyed):
    table = table_of(rows)
    request = Request.of({n: spec for n, (spec, _) in cases.items()}, COMMUTE, ["k"] if keyed else [], "t")
    plan = make_plan(table.schema, request)
    blocks, _ = time_blocks(plan)
    made = done(MakeFragments(request, table.schema, limit), shuffled(table, seed), size)
    if made is None:
        return
    layout = Fragments(plan).layout
    assert made.schema == layout.schema
    given_slices = shuffled(in_blocks(made, FIRST if layout.timed else CELL, blocks, ahead=False), seed)
    task = Assemble(request, table.schema, None if blocks is None else blocks.length, limit)
    expect(done(task, given_slices, size), request, table)


trailing = st.one_of(
    st.builds(W.trailing, st.integers(1, 40), closed=st.sampled_from(["both", "left", "right", "neither"])),
    st.builds(W.trailing_rows, st.integers(1, 9)),
)


@given(specs=st.lists(trailing, min_size=1, max_size=3), rows=rows_strategy(), size=batches, limit=limits, seed=st.integers(0, 9))
def test_rows_with_their_trailing_windows_in_pieces(specs, rows, size, limit, seed):
    table = table_of(rows)
    windows = {f"w{k}": spec for k, spec in enumerate(specs)}
    request = Request.of(windows, [S.sum("v"), affine("coalesce(v, 0)"), S.count()], ["k"], "t", ["n"], trailing=True)
    blocks, _ = time_blocks(make_plan(table.schema, request))
    wanted = sash.over(table, windows=windows, aggs=request.aggs, by="k", time="t", order_by="n")
    given_rows = shuffled(in_blocks(table, "t", blocks, ahead=True), seed)
    columns = tuple(wanted.column_names)
    result = done(OverRows(request, table.schema, None if blocks is None else blocks.length, limit, columns), given_rows, size)
    if result is None:
        assert wanted.num_rows == 0
        return
    assert_same(result.cast(wanted.schema), wanted, ["n"])


@given(values=st.lists(st.integers(-20, 20), max_size=60), run=st.integers(1, 20), limit=st.integers(1, 30))
def test_runs_come_back_in_order(values, run, limit):
    table = pa.table({"o": pa.array(values, pa.int64()), "n": pa.array(range(len(values)), pa.int64())})
    with Runs("o") as runs:
        for start in range(0, len(values), run):
            runs.add(table.slice(start, run))
        if not values:
            return
        back = pa.concat_tables(list(runs.merged(limit))).to_pylist()
    assert [(r["o"], r["n"]) for r in back] == sorted((v, n) for n, v in enumerate(values))


def test_a_worker_holds_more_rows_where_they_become_few_windows():
    schema = pa.schema([("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])

    def at_once(windows, **more):
        plan = make_plan(schema, Request.of(windows, [S.sum("v")], None, "t", **more))
        return batch_frames.rows_at_once(plan) // batch_frames.ROWS_AT_ONCE

    assert at_once(W.tumbling("1 minute")) == 4
    assert at_once(W.session("1 minute")) == 4
    assert at_once(W.sliding("12 seconds", every="1 second")) == 2
    assert at_once(W.sliding("1 hour", every="1 second")) == 1
    assert at_once({"a": W.sliding("20 seconds", every="1 second"), "b": W.tumbling("1 second")}) == 1
    assert at_once(W.sliding("1 year", every="1 day", tz="Europe/Berlin")) == 1
    assert at_once(W.tumbling("1 minute"), empty=True) == 1
