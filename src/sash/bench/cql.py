"""``sash bench cql``: queries as text on tables against DuckDB and polars, on Spark against PySpark by hand, and from Kafka to Kafka."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.cql_kafka import kafka_figures
from sash.bench.cql_spark import spark_figures
from sash.bench.cql_subjects import EXAMPLES, SUBJECTS, Subject, for_polars, with_duckdb, with_polars
from sash.bench.harness import Figure, Report, doing, new_report, number, same, side_by_side
from sash.bench.traces import streams
from sash.cql.binder import plan_query
from sash.plan.queries.rewrites import rewritten


def measure(*, quick: bool = False, data: Path | None = None) -> Report:
    """All figures."""
    report = new_report("cql")
    rows = streams(data, 200_000 if quick else 4_000_000)
    _tables(report, rows, "real traces, repeated" if data is not None else "generated streams of the traces' schemas")
    _text_against_python(report, rows["TaskEvents"])
    _planning(report, rows)
    _joins(report, 4_096 if quick else 32_768)
    spark_figures(report, rows, quick=quick)
    kafka_figures(report, quick=quick)
    return report


def _tables(report: Report, rows: dict[str, pa.Table], what: str) -> None:
    lines = []
    connection = duckdb.connect()
    connection.sql("set threads to 2")
    for subject in SUBJECTS:
        doing(f"{subject.name} on tables")
        table = rows[subject.stream]
        frame = for_polars(subject, table)
        calls: dict[str, Callable[[], Any]] = {
            "ours": partial(sash.sql, subject.text, streams={subject.stream: table}),
            "duckdb": partial(with_duckdb, subject, table, connection),
            "polars": partial(with_polars, subject, frame),
        }
        taken = side_by_side(calls, 3)
        mine = calls["ours"]()
        agree(subject, mine, calls["duckdb"](), "DuckDB")
        best = min(taken["duckdb"], taken["polars"])
        note = f"{number(taken['ours'] * 1e3)} ms; DuckDB {number(taken['duckdb'] * 1e3)}, polars {number(taken['polars'] * 1e3)}"
        report.figures.append(
            Figure(f"{subject.name} on tables: against the better of DuckDB and polars", best / taken["ours"], must=3, aim=10, note=note)
        )
        rate = table.num_rows / taken["ours"] / 1e6
        cells = [number(taken[n] * 1e3) for n in calls]
        lines.append([subject.name, *cells, number(rate), f"{mine.num_rows:,}", number(taken["ours"] / mine.num_rows * 1e9)])
    head = ["query", "sash ms", "DuckDB ms", "polars ms", "sash M rows/s", "results", "sash ns a result"]
    report.tables.append((f"SABER's queries over {max(t.num_rows for t in rows.values()):,} rows and more ({what})", head, lines))


def agree(subject: Subject, mine: pa.Table, theirs: pa.Table, what: str) -> None:
    """Raise unless both have the same results."""
    if mine.num_rows != theirs.num_rows:
        raise AssertionError(f"{subject.name}, {what}: {mine.num_rows} results against {theirs.num_rows}")
    keys = ("timestamp", *subject.keys)
    columns = [[np.asarray(t.column(n)).astype(np.int64) for n in keys] for t in (mine, theirs)]
    orders = [np.lexsort(c[::-1]) for c in columns]
    for k, name in enumerate(keys):
        same(columns[0][k][orders[0]], columns[1][k][orders[1]], f"{subject.name}, {what}: {name}")
    values = [np.asarray(t.column(subject.result)).astype(np.float64)[o] for t, o in zip((mine, theirs), orders, strict=True)]
    same(values[0], values[1], f"{subject.name}, {what}: {subject.result}")


def _text_against_python(report: Report, table: pa.Table) -> None:
    doing("text against Python")
    request: dict[str, Any] = {
        "windows": W.sliding(60, every=1),
        "aggs": [S.sum("cpu").alias("totalCpu")],
        "by": "category",
        "time": "timestamp",
    }
    text = SUBJECTS[0].text
    calls: dict[str, Callable[[], Any]] = {
        "text": lambda: sash.sql(text, TaskEvents=table),
        "python": lambda: sash.aggregate(table, **request),
    }
    taken = side_by_side(calls, 9)
    note = f"{number(taken['text'] * 1e3)} ms against {number(taken['python'] * 1e3)} ms"
    report.figures.append(
        Figure("cm1 as text against the same in Python", taken["text"] / taken["python"], "× the time", 1.05, better="lower", note=note)
    )


def _planning(report: Report, rows: dict[str, pa.Table]) -> None:
    doing("planning")
    worst, name = 0.0, ""
    for path in sorted((EXAMPLES / "saber").glob("*.cql")):
        text = path.read_text()
        schemas = {n: t.schema for n, t in rows.items() if n in text}
        taken = []
        for k in range(9):
            spaced = text + " " * k  # nothing is remembered of the text
            began = time.perf_counter()
            rewritten(plan_query(spaced, schemas))
            taken.append(time.perf_counter() - began)
        worst, name = max((worst, name), (statistics.median(taken), path.stem))
    report.figures.append(Figure("parse, check and plan, the slowest of the nine queries", worst * 1e3, "ms", 20, 5, "lower", name))


BAND = (
    "select A.id, B.id as other from A [range 1000 slide 1000] as A, B [range 1000 slide 1000] as B where A.x between B.x and B.x + {width}"
)
ANY = "select A.id, B.id as other from A [range 1000 slide 1000] as A, B [range 1000 slide 1000] as B where (A.x + 3 * B.x) % 100 = 0"


def _joins(report: Report, rows: int) -> None:
    """SABER's θ-join: two tables of 1 MB in one window, of whose pairs a hundredth fulfils the condition."""
    rng = np.random.default_rng(5)
    wide = 1_000_000
    tables = {
        name: pa.table(
            {"timestamp": np.sort(rng.integers(0, 1000, rows)), "id": np.arange(rows), "x": rng.integers(0, wide, rows)}
            | {f"c{k}": rng.integers(0, 9, rows).astype(np.int32) for k in range(2)}
        )
        for name in "AB"
    }
    connection = duckdb.connect()
    connection.sql("set threads to 2")
    for name, table in tables.items():
        connection.register(name, table)
    band = BAND.format(width=wide // 100)
    for what, text, condition in (
        ("a band", band, f"A.x between B.x and B.x + {wide // 100}"),
        ("any condition", ANY, "(A.x + 3 * B.x) % 100 = 0"),
    ):
        doing(f"θ-join, {what}")
        calls: dict[str, Callable[[], Any]] = {
            "ours": partial(sash.sql, text, streams=tables),
            "duckdb": lambda: connection.sql(f"select A.id, B.id as other from A, B where {condition}").to_arrow_table(),
        }
        taken = side_by_side(calls, 3)
        mine, theirs = calls["ours"](), calls["duckdb"]()
        codes = [np.sort(np.asarray(t.column("id")) * (1 << 32) + np.asarray(t.column("other"))) for t in (mine, theirs)]
        same(codes[0], codes[1], f"θ-join, {what}")
        note = f"{number(taken['ours'] * 1e3)} ms against {number(taken['duckdb'] * 1e3)} ms, {mine.num_rows:,} pairs"
        report.figures.append(
            Figure(f"θ-join of {rows:,} × {rows:,} rows, {what}: against DuckDB", taken["duckdb"] / taken["ours"], must=1, aim=2, note=note)
        )
