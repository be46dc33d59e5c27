"""Rows that arrive one by one as dictionaries, each followed by an ``advance``: the cost per row, by window and type of time."""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.harness import Figure, Report, in_turns, number

START = datetime.datetime(2026, 1, 1)
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A stream of rows, how far the watermark stays behind, and the request."""

    what: str
    windows: Any
    row: Callable[[int], Row]
    delay: Any
    by: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    must: float | None = None
    aim: float | None = None
    share: float = 1.0
    """The share of the rows that is measured: some windows take long."""


def at(i: int, step: int) -> Row:
    """A row with a datetime, ``step`` milliseconds after the one before, and a key."""
    return {"t": START + datetime.timedelta(milliseconds=i * step), "k": "abc"[i % 3], "v": i % 100}


def ticked(i: int) -> Row:
    """A row with an integer time."""
    return {"t": i, "v": i % 100}


BEHIND = datetime.timedelta(milliseconds=10)
CASES = (
    Case("integer time, no key, tumbling", W.tumbling(1000), ticked, 10, must=10, aim=3),
    Case("datetime and key, tumbling minutes", W.tumbling("1 minute"), lambda i: at(i, 50), BEHIND, "k", must=25, aim=8),
    Case("datetime and key, a minute by the second", W.sliding("1 minute", every="1 second"), lambda i: at(i, 5), BEHIND, "k"),
    Case("datetime and key, sessions", W.session("5 seconds"), lambda i: at(i, 50), BEHIND, "k"),
    Case("integer time, updates", W.tumbling(1000), ticked, 10, options={"emit": "update", "lateness": 100}),
    Case("integer time, a window of ten rows' time", W.tumbling(10), ticked, 10),
    Case("integer time, row windows", W.rows(100), ticked, 10, share=0.1),
)


def row_by_row(report: Report, rows: int) -> None:
    """Microseconds a row: building the dictionary, ``add``, ``advance``."""
    calls = {case.what: partial(_measured, case, int(rows * case.share)) for case in CASES}
    taken = {name: statistics.median(values) for name, values in in_turns(calls, 5).items()}
    for case in CASES:
        if case.must is not None:
            what = f"one row at a time, add then advance: {case.what}"
            report.figures.append(Figure(what, taken[case.what], "µs a row", must=case.must, aim=case.aim, better="lower"))
    lines = [[name, number(value)] for name, value in taken.items()]
    report.tables.append((f"one row at a time, {rows:,} dictionaries, add then advance", ["what", "µs a row"], lines))


def _measured(case: Case, rows: int) -> float:
    operator = sash.Operator(windows=case.windows, aggs=[S.sum("v").alias("s")], by=case.by, time="t", **case.options)
    operator.add([case.row(0)])
    results = [operator.advance(case.row(0)["t"] - case.delay)]
    began = time.perf_counter()
    for i in range(1, rows):
        row = case.row(i)
        operator.add([row])
        emitted = operator.advance(row["t"] - case.delay)
        if emitted.num_rows:
            results.append(emitted)
    taken = time.perf_counter() - began
    results.append(operator.close())
    _check(case, rows, pa.concat_tables(results))
    return taken / rows * 1e6


def _check(case: Case, rows: int, results: pa.Table) -> None:
    """Raise unless the windows and their sums are those of ``sash.aggregate`` over the table of all rows."""
    table = pa.Table.from_pylist([case.row(i) for i in range(rows)])
    expected = sash.aggregate(table, windows=case.windows, aggs=[S.sum("v").alias("s")], by=case.by, time="t")
    names = [name for name in expected.column_names if name in results.column_names]
    if sorted(map(repr, results.select(names).to_pylist())) != sorted(map(repr, expected.select(names).to_pylist())):
        raise AssertionError(f"{case.what}: the answers differ")
