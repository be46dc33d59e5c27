"""What a step of a stream costs per aggregate: with one, with several, over values with nulls, and with conditions."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.harness import Figure, Report, in_turns, number

BATCH, STEP = 10_000, 10_000
"""Rows of a micro-batch, and by how many microseconds event time passes in it: a million rows a second."""
NULLS = 0.2
BOUND = 1.3


@dataclass(frozen=True)
class Case:
    """Aggregates over one stream; their cost is compared with that of ``than``'s, aggregate for aggregate."""

    what: str
    aggs: tuple[sash.functions.Call, ...]
    than: str | None = None


CASES = (
    Case("sum", (S.sum("v").alias("a"),)),
    Case("avg", (S.avg("v").alias("a"),)),
    Case("sum, max, min, count of one column", (S.sum("v"), S.max("v"), S.min("v"), S.count("v")), "sum"),
    Case("sums of four columns", tuple(S.sum(c) for c in "vwxy"), "sum"),
    Case("sum, 20 % nulls", (S.sum("n").alias("a"),), "sum"),
    Case("avg, 20 % nulls", (S.avg("n").alias("a"),), "avg"),
    Case("sums of three columns with 20 % nulls", tuple(S.sum(c) for c in "nmo"), "sum"),
    Case("sum, where v > 20", (S.sum("v").where("v > 20").alias("a"),), "sum"),
    Case("sums of one column under three conditions", tuple(S.sum("v").where(f"v > {b}").alias(f"a{b}") for b in (20, 50, 80)), "sum"),
    Case("sum, max, avg, two with nulls, one condition", (S.sum("n"), S.max("m"), S.avg("v").where("v > 20").alias("a")), "sum"),
)


def per_aggregate(report: Report, rows: int) -> None:
    """Microseconds a step of 10,000 rows, 20 tumbling windows, half of the rows out of order."""
    batches, watermarks = _batches(rows)
    calls = {case.what: partial(_measured, case, batches, watermarks) for case in CASES}
    for case in CASES:
        _check(case, batches, watermarks)
    taken = {name: statistics.median(values) for name, values in in_turns(calls, 7).items()}
    lines, worst = [], (0.0, "")
    for case in CASES:
        ratio = taken[case.what] / len(case.aggs) / taken[case.than] if case.than else None
        lines.append([case.what, number(taken[case.what]), number(taken[case.what] / len(case.aggs)), number(ratio) if ratio else ""])
        worst = max(worst, (ratio or 0.0, case.what))
    what = "several aggregates, nulls or conditions in a stream, against one aggregate without nulls, per aggregate: the dearest"
    report.figures.append(Figure(what, worst[0], must=BOUND, better="lower", note=worst[1]))
    header = ["aggregates", "µs a step", "µs a step and aggregate", "× one without nulls"]
    report.tables.append(("A step of 10,000 rows, 20 tumbling windows, 50 % out of order", header, lines))


def _batches(rows: int) -> tuple[list[pa.RecordBatch], list[int]]:
    rng = np.random.default_rng(5)
    ticks = np.sort(rng.integers(0, rows, rows))
    order = np.argsort(ticks + np.where(rng.random(rows) < 0.5, rng.integers(0, 2_000_001, rows), 0), kind="stable")
    columns: dict[str, Any] = {"t": pa.array(ticks[order]).cast(pa.timestamp("us"))}
    columns |= {name: rng.integers(0, 100, rows) for name in "vwxy"}
    columns |= {name: pa.array(rng.integers(0, 100, rows), mask=rng.random(rows) < NULLS) for name in "nmo"}
    batches = pa.table(columns).combine_chunks().to_batches(max_chunksize=BATCH)
    newest = np.maximum.accumulate(ticks[order])[np.minimum(np.arange(BATCH, rows + BATCH, BATCH), rows) - 1]
    return batches, np.maximum(newest - 2_000_000, 0).tolist()


WINDOWS = {f"w{k}": W.tumbling(f"{k + 1} seconds") for k in range(20)}


def _measured(case: Case, batches: list[pa.RecordBatch], watermarks: list[int]) -> float:
    operator = sash.Operator(windows=WINDOWS, aggs=case.aggs, time="t")
    operator.add(batches[0].slice(0, 0))
    began = time.perf_counter()
    for batch, watermark in zip(batches, watermarks, strict=True):
        operator.add(batch)
        operator.advance(watermark)
    return (time.perf_counter() - began) / len(batches) * 1e6


def _check(case: Case, batches: list[pa.RecordBatch], watermarks: list[int]) -> None:
    """Raise unless a stream's results are those of ``sash.aggregate`` over its rows."""
    operator = sash.Operator(windows=WINDOWS, aggs=case.aggs, time="t")
    parts = []
    for batch, watermark in zip(batches, watermarks, strict=True):
        operator.add(batch)
        parts.append(operator.advance(watermark))
    emitted = pa.concat_tables([*parts, operator.close()])
    expected = sash.aggregate(pa.Table.from_batches(batches), windows=WINDOWS, aggs=case.aggs, time="t")
    emitted = emitted.select(expected.column_names)
    if sorted(map(repr, emitted.to_pylist())) != sorted(map(repr, expected.to_pylist())):
        raise AssertionError(f"{case.what}: the answers differ")
