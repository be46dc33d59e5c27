"""What ``sash.explain`` says is what runs: every algorithm that it names is told by the kernels, or the strategies, that were called."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.algorithms.rolling import window_algorithms
from sash.kernels.cpu.compiler import Kernel
from sash.plan.choices import rolling_choice
from sash.plan.choices.ledger import ROWS_THAT_PAY, Ledger
from sash.plan.choices.spark_choice import STRATEGIES
from sash.types import FAR_AHEAD

KERNELS_OF_RANGES = {
    "prefixes": {"running.prefixes", "running.differences"},
    "two stacks": {"blocks.ranges"},
    "one by one": {"reduce.ranges"},
    "FlatFAT": {"flat_fat.fill", "flat_fat.ranges"},
}
KERNELS_OF_SLICES = {"scatter": {"scattering.scatter"}, "sort": {"reduce.segments", "reduce.segments_in_lanes"}}


@pytest.fixture
def called(monkeypatch):
    """The titles of the kernels that are called."""
    titles = []
    call = Kernel.__call__
    monkeypatch.setattr(Kernel, "__call__", lambda kernel, *arguments: titles.append(kernel.module.title) or call(kernel, *arguments))
    return titles


def functions_for(aggregate, titles):
    """The kernels that worked on an aggregate."""
    return {title.partition(" of ")[0] for title in titles if title.partition(" of ")[2].startswith(f"{aggregate}(")}


def said(explanation, start):
    """What a line says behind these words."""
    (line,) = [line.strip() for line in explanation.lines if line.strip().startswith(start)]
    return line.removeprefix(start).strip()


# One array.

RULES = {
    "windows_do_not_overlap": ("reduce", {"agg": "min", "size": 10, "every": 10}),
    "whole_slices": ("slices", {"agg": "min", "size": 64, "every": 16}),
    "slide_of_several": ("blocks", {"agg": "first", "size": 64, "every": 16}),
    "long_windows_with_inverse": ("tiles", {"agg": "count", "size": 20_000}),
    "vector_lanes": ("lanes", {"agg": "min", "size": 100}),
    "exact_inverse": ("running", {"agg": "sum", "size": 100}),
    "anything_else": ("blocks", {"agg": "geometric_mean", "size": 100}),
}
NOT_YET = {"exact_inverse"}
"""Rules for kernels that have not paid for their compilation."""


@pytest.mark.parametrize("rule", RULES)
def test_rolling(rule, called, monkeypatch):
    assert set(RULES) == {r.__name__ for r in rolling_choice.RULES}
    algorithm, arguments = RULES[rule]
    size = arguments["size"]
    arguments = {name: value for name, value in arguments.items() if name != "size"}
    values = np.arange(1 << 17) + 1
    ledger = Ledger()
    monkeypatch.setattr(rolling_choice, "LEDGER", ledger)
    if rule in NOT_YET:
        monkeypatch.setattr(rolling_choice, "is_compiled", lambda module: False)
    else:
        monkeypatch.setattr(ledger, "would_pay", lambda title, rows: True)
    plan = sash.explain(values, size, source=True, **arguments)
    sash.rolling(values, size, **arguments)
    named = [line.partition("kernel: ")[2].rpartition(" (")[0] for line in plan.lines if "  kernel: " in line]
    assert set(called) <= set(named)
    assert called[0] in named
    assert said(plan, "algorithm:") == algorithm


@pytest.mark.parametrize("algorithm", [*rolling_choice.BULK, *window_algorithms()])
def test_rolling_as_requested(algorithm, called):
    values = np.arange(2000)
    arguments = {"agg": "sum", "algorithm": algorithm, "every": 20 if algorithm == "reduce" else 1}
    size = 20
    plan = sash.explain(values, size, source=True, **arguments)
    sash.rolling(values, size, **arguments)
    named = {line.partition("kernel: ")[2].rpartition(" (")[0] for line in plan.lines if "  kernel: " in line}
    assert said(plan, "algorithm:") == algorithm
    assert called
    assert set(called) <= named


def test_the_ledger_is_not_touched_by_explain(monkeypatch):
    ledger = Ledger()
    monkeypatch.setattr(rolling_choice, "LEDGER", ledger)
    monkeypatch.setattr(rolling_choice, "is_compiled", lambda module: False)
    values = np.zeros(1 << 17)
    before = str(sash.explain(values, 10, agg="min"))
    assert "has not paid" in before
    ledger.add(rolling_choice._title(*_form_and_job(values, 10)), ROWS_THAT_PAY)
    assert "enough rows" in str(sash.explain(values, 10, agg="min"))


def _form_and_job(values, size):
    from sash.api.rolling import checked, prepare

    form, _, job = prepare(checked(values, size, 1, "min", "auto", "cpu"))
    return form, job


# Tables.


def table(rows=2000):
    n = np.arange(rows)
    return pa.table({"t": n * 7 % 1999, "k": n % 3, "i": n, "x": n / 7})


class Widening(W.ContextFreeWindow):
    """Windows around one point of time, each reaching further than the one before, in both directions."""

    longest = 2000

    def next_edge(self, t):
        return max(0, 5 * (t // 5 + 1)) if t < 2000 else FAR_AHEAD

    def ended(self, after, until):
        return ((2000 - end, end) for end in range(1005, 2001, 5) if after < end <= until)


NESTED = {"wide": W.sliding(900, every=1), "narrow": W.band(0, 3), "all": W.unbounded()}
TABLES = {
    "scattered": (W.sliding(50, every=5), ["sum", "max"], None),
    "sorted for order": (W.sliding(50, every=5), ["sum", "max", "first"], None),
    "sorted for rows": (W.rows(10, every=3), ["sum", "max"], "k"),
    "sessions": (W.session(3), ["sum", "max", "first"], "k"),
    "long windows": (W.sliding(100_000, every=7), ["sum", "max"], None),
    "few windows": (W.unbounded(), ["max", "sum"], None),
    "widening": (Widening(), ["max", "first"], None),
    "several": (NESTED, ["sum", "max", "first"], "k"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, called):
    windows, names, by = TABLES[name]
    aggs = [getattr(S, n)("x" if n == "max" else "i") for n in names]
    request = {"windows": windows, "aggs": aggs, "by": by, "time": "t"}
    plan = sash.explain(table(), **request)
    called.clear()
    sash.aggregate(table(), **request)
    slicing = said(plan, "slices:")
    for n in names:
        ran = functions_for(n, called)
        assert ran & KERNELS_OF_SLICES[slicing]
        assert not any(ran & kernels for kind, kernels in KERNELS_OF_SLICES.items() if kind != slicing)
        check_ranges(said(plan, f"{n}("), ran)


OVER = {
    "time": {"a": W.trailing(40), "b": W.trailing(400, closed="left")},
    "rows": W.trailing_rows(5),
}


@pytest.mark.parametrize("name", OVER)
def test_over(name, called):
    request = {"windows": OVER[name], "aggs": [S.sum("i"), S.max("x"), S.first("i")], "by": "k", "time": "t"}
    plan = sash.explain(table(), **request)
    called.clear()
    sash.over(table(), **request)
    for n in ("sum", "max", "first"):
        check_ranges(said(plan, f"{n}("), functions_for(n, called))


def check_ranges(line, ran):
    """An aggregate's line: "x) -> type: algorithm, algorithm over slices"."""
    algorithms = line.partition(": ")[2].partition(" over ")[0].split(", ")
    assert ran & set().union(*KERNELS_OF_RANGES.values()) == set().union(*(KERNELS_OF_RANGES[a] for a in algorithms))


def test_every_algorithm_for_ranges_is_seen():
    """The cases above reach each of them."""
    seen = set()
    for windows, names, by in TABLES.values():
        plan = sash.explain(table(), windows=windows, aggs=[getattr(S, n)("i") for n in names], by=by, time="t")
        for n in names:
            seen |= set(said(plan, f"{n}(").partition(": ")[2].partition(" over ")[0].split(", "))
    assert seen == set(KERNELS_OF_RANGES)


# Streams in one process.


@pytest.mark.parametrize(("store", "kernels"), [("lazy", {"blocks.ranges", "reduce.ranges"}), ("eager", {"flat_fat.fill"})])
def test_operators(store, kernels, called):
    op = sash.Operator(windows=W.sliding(100, every=1), aggs=[S.max("x")], time="t", store=store)
    op.add(table())
    assert f"slices: {store} (requested)" in op.explain()
    called.clear()
    op.advance(1000)
    assert functions_for("max", called) & kernels
    assert ("flat_fat.ranges" in functions_for("max", called)) == (store == "eager")


# Spark.

FRAMES = {
    "plain": {"windows": W.tumbling("1 second")},
    "catalyst": {"windows": W.sliding("10 seconds", every="1 second")},
    "fragments": {"windows": W.session("1 second")},
    "rows": {"windows": W.rows(10)},
}


@pytest.mark.parametrize("requested", ["auto", "fragments", "rows"])
@pytest.mark.parametrize("name", FRAMES)
def test_frames(name, requested, spark, monkeypatch):
    from sash.spark.batch import batch_frames

    if requested != "auto" and STRATEGIES.index(requested) < STRATEGIES.index(name):
        pytest.skip("a more special strategy than the windows allow is refused")
    ran = []

    def recording(strategy, function):
        return lambda prepared: ran.append(strategy) or function(prepared)

    monkeypatch.setattr(batch_frames, "STRATEGIES", {n: recording(n, f) for n, f in batch_frames.STRATEGIES.items()})
    frame = spark.range(100).selectExpr("timestamp_millis(id * 100) as t", "id as v")
    request = {**FRAMES[name], "aggs": [S.sum("v")], "time": "t", "plan": requested}
    plan = sash.explain(frame, **request)
    sash.aggregate(frame, **request)
    assert [said(plan, "plan:")] == ran == [name if requested == "auto" else requested]


@pytest.mark.parametrize(("window", "aggregate"), [(W.tumbling("1 second"), "sum"), (W.tumbling("1 second"), "first"), (W.rows(3), "sum")])
@pytest.mark.parametrize("requested", ["auto", "rows"])
def test_streaming_frames(window, aggregate, requested, spark, monkeypatch):
    from sash.spark.streams import stream_frames

    ran = []
    make = stream_frames.MakePayloads
    monkeypatch.setattr(stream_frames, "MakePayloads", lambda *args: ran.append(args[2]) or make(*args))
    frame = spark.readStream.format("rate").load().selectExpr("timestamp as t", "value as v")
    request = {"windows": window, "aggs": [getattr(S, aggregate)("v")], "time": "t", "watermark": "1 second", "plan": requested}
    plan = sash.explain(frame, **request)
    sash.aggregate(frame, **request)
    assert [said(plan, "before the shuffle:")] == ran
