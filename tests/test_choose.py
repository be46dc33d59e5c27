"""Each rule of the chooser, with the plan that it gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.aggregates import named
from sash.plan.choices import ledger
from sash.plan.choices.rolling_choice import RULES, RollingFacts, choose, choose_holistic
from sash.plan.choices.slicing_choice import Facts, choose_slices
from sash.plan.choices.spark_choice import Blocks, choose_spark, time_blocks
from sash.plan.choices.store_choice import choose_store
from sash.plan.logical import Query, make_plan
from sash.plan.request import Request
from sash.slicing.rows.inputs import stored_form
from sash.spark.language.catalyst import why_not_catalyst
from sash.spark.language.native import why_not_native
from sash.types import Measure
from tests.own_aggregates import affine

MIN, FLOAT_SUM, INT_SUM = named("min")().form(pa.float64()), named("sum")().form(pa.float64()), named("sum")().form(pa.int64())
GEOMETRIC, ORDERED = named("geometric_mean")().form(pa.float64()), affine.form(pa.int64())
MANY = 1 << 20

GOLDEN = {
    "windows_do_not_overlap": (MIN, RollingFacts(MANY, 10, 10), "reduce", "a row is in one window at most"),
    "whole_slices": (FLOAT_SUM, RollingFacts(MANY, 1024, 64), "slices", "16 slices make a window"),
    "slide_of_several": (ORDERED, RollingFacts(MANY, 1024, 64), "blocks", "slide by 64"),
    "long_windows_with_inverse": (INT_SUM, RollingFacts(MANY, 10_000, 1), "tiles", "has an exact inverse"),
    "vector_lanes": (MIN, RollingFacts(MANY, 100, 1), "lanes", "its kernel is compiled"),
    "exact_inverse": (INT_SUM, RollingFacts(MANY, 100, 1, vector="not yet"), "running", "exact inverse"),
    "anything_else": (MIN, RollingFacts(MANY, 100, 1, vector="not yet"), "blocks", "takes seconds to compile"),
}


def test_every_rule_has_its_plan():
    assert set(GOLDEN) == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_rule(rule):
    form, shape, algorithm, reason = GOLDEN[rule.__name__]
    choice = choose(form, shape)
    assert choice == rule(form, shape)
    assert choice.choice == algorithm
    assert any(reason in r for r in choice.reasons)


def test_reasons_against_lanes():
    assert any("too few" in r for r in choose(MIN, RollingFacts(1000, 10, 1)).reasons)
    assert any("calls math.log" in r for r in choose(GEOMETRIC, RollingFacts(MANY, 10, 1)).reasons)
    assert choose(MIN, RollingFacts(MANY, 100, 1, vector="would pay")).reasons[-1].startswith("enough rows")


def test_aggregates_without_fixed_partials():
    expected = {"median": "ranks", "percentile": "ranks", "count_distinct": "distinct", "collect_set": "distinct"}
    expected |= {
        "collect_list": "gather",
        "string_agg": "gather",
        "approx_percentile": "objects",
        "approx_count_distinct": "objects",
    }
    for name, algorithm in expected.items():
        assert choose_holistic(named(name)()).choice == algorithm


def test_the_ledger_pays_once():
    counts = ledger.Ledger()
    counts.add("a", ledger.ROWS_THAT_PAY - 1)
    assert not counts.would_pay("b", 5)
    assert counts.would_pay("a", 1)
    assert not counts.would_pay("a", 0)


def test_explain_shows_plan_and_text():
    plan = str(sash.explain(pa.array(["b", None, "a"]), 2, agg="max"))
    assert "rolling max(string) -> string: 2 windows of 2 rows, every 1, over 3 rows" in plan
    assert "nulls are skipped" in plan
    assert "ranks" in plan
    assert "algorithm: ranks" in str(sash.explain(np.zeros(5), 2, agg="median"))
    assert "requested" in str(sash.explain(np.zeros(5), 2, algorithm="daba"))
    for algorithm in ("lanes", "blocks", "reduce", "slices", "daba", "hammer_slide", "reactive_aggregator"):
        text = str(sash.explain(np.zeros(5), 2, agg="sum", algorithm=algorithm, source=True))
        assert "def entry(" in text


# How tables are sliced, and operators' stores.


@pytest.mark.parametrize(
    ("facts", "algorithm", "reason"),
    [
        (Facts(100, False, True, 10), "sort", "some windows depend on the rows"),
        (Facts(100, True, False, 10), "sort", "some aggregate does not commute"),
        (Facts(0, True, True, 0), "sort", "no rows"),
        (Facts(100, True, True, None), "sort", "slices would outnumber the rows"),
        (Facts(100, True, True, 1 << 20), "sort", "slices would outnumber the rows"),
        (Facts(100, True, True, 1000), "scatter", "each row is added to its slice, in any order"),
    ],
)
def test_slices(facts, algorithm, reason):
    choice = choose_slices(facts)
    assert choice.choice == algorithm
    assert reason in choice.reasons[0]


@pytest.mark.parametrize(
    ("asked", "size", "aggregate", "algorithm", "reason"),
    [
        ("eager", 10, "sum", "eager", "requested"),
        ("auto", 10, "max", "lazy", "up to 10 slices"),
        ("auto", 1 << 13, "count", "lazy", "inverses are exact"),
        ("auto", 1 << 13, "max", "eager", "a FlatFAT over slices"),
    ],
)
def test_stores(asked, size, aggregate, algorithm, reason):
    window = W.sliding(size, 1)
    queries = (Query("w", window, window.bind(Measure(pa.int64()))),)
    made = named(aggregate)()
    choice = choose_store(asked, queries, [made.form(*[pa.int64()] * made.arity)])
    assert choice.choice == algorithm
    assert reason in choice.reasons[0]


SPARK_SCHEMA = pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64()), ("x", pa.float64())])
SLIDING = W.sliding("1 minute", every="1 second")
SPARK_CHOICES = {
    "tumbling": (W.tumbling("1 minute"), [S.sum("v")], "plain", "no row is in two windows"),
    "sampling": (W.sliding("1 second", every="1 minute"), [S.sum("v")], "plain", "no row is in two windows"),
    "unbounded": (W.unbounded(), [S.avg("x")], "plain", "no row is in two windows"),
    "sliding": (SLIDING, [S.sum("v"), S.var_pop("x")], "catalyst", "slices are computed by Spark's own aggregation"),
    "two tumbling": ({"a": W.tumbling("1 minute"), "b": W.tumbling("7 seconds")}, [S.count()], "catalyst", "slices are computed by Spark"),
    "own aggregate": (SLIDING, [S.product("v")], "fragments", "Catalyst has no mergeable partial for product"),
    "sessions": (W.session("1 minute"), [S.sum("v")], "fragments", "edges are not plain arithmetic"),
    "calendar": (W.tumbling("1 month"), [S.sum("v")], "fragments", "edges are not plain arithmetic"),
    "order": (SLIDING, [S.first("v")], "rows", "first(v) does not commute"),
    "holistic": (SLIDING, [S.median("v")], "rows", "median(v) has no partial of fixed size"),
    "row windows": (W.rows(10), [S.sum("v")], "rows", "rows decide where windows start"),
    "punctuation": (W.punctuation("v = 1"), [S.sum("v")], "rows", "rows decide where windows start"),
}


@pytest.mark.parametrize("name", SPARK_CHOICES)
def test_which_way_on_spark(name):
    windows, aggs, way, reason = SPARK_CHOICES[name]
    plan = make_plan(SPARK_SCHEMA, Request.of(windows, aggs, "k", "t"))
    forms = [stored_form(c, SPARK_SCHEMA) for c in plan.columns]
    reasons = [why_not_catalyst(c) for c in plan.columns], [why_not_native(c, plan.order_by) for c in plan.columns]
    choice = choose_spark(plan, forms, *reasons)
    assert choice.choice == way
    assert choice.reasons[0].startswith(reason), choice.reasons


def test_blocks_of_time_on_spark():
    def blocks(windows, **more):
        return time_blocks(make_plan(SPARK_SCHEMA, Request.of(windows, [S.count()], "k", "t", **more)))

    assert blocks(SLIDING)[0] == Blocks(16 * 60_000_000, 60_000_000)
    assert blocks({"a": SLIDING, "b": W.tumbling("1 hour")})[0] == Blocks(16 * 3_600_000_000, 3_600_000_000)
    assert blocks(W.sliding("30 days", every="1 second"))[0] == Blocks(30 * 86_400_000_000, 30 * 86_400_000_000)
    assert blocks(W.session("1 second"))[0] is None
    assert blocks(W.trailing("1 second"), trailing=True)[0] == Blocks(16 * 1_000_001, 1_000_001)
    assert blocks(W.trailing_rows(3), trailing=True)[0] is None
