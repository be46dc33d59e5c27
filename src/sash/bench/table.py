"""``sash bench table``: ``sash.aggregate`` and ``sash.over`` against polars and DuckDB on the same table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.harness import Figure, Report, doing, new_report, number, same, seconds, side_by_side

SECOND = 1_000_000
OVERLAPS = (1, 10, 60, 600, 3600)
AGGREGATES = [S.sum("v").alias("total"), S.count().alias("amount"), S.min("v").alias("least")]


def events(rows: int, keys: int, span: int) -> pa.Table:
    """Rows in the order of time, over ``span`` seconds."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(0, span * SECOND, rows))
    columns = {"k": rng.integers(0, keys, rows), "t": pa.array(times).cast(pa.timestamp("us")), "v": rng.integers(0, 1000, rows)}
    return pa.table(columns)


def measure(*, quick: bool = False, data: Path | None = None) -> Report:
    """All figures."""
    report = new_report("table")
    duckdb.sql("set threads to 2")
    doing("overlaps")
    _overlaps(report, 500_000 if quick else 5_000_000)
    doing("many keys")
    _many_keys(report, *((100_000, 2_000_000) if quick else (1_000_000, 20_000_000)))
    doing("sash.over")
    _over(report, 200_000 if quick else 5_000_000)
    return report


def ours(table: pa.Table, overlap: int) -> pa.Table:
    """Windows that slide by a second."""
    return sash.aggregate(table, windows=W.sliding(f"{overlap} seconds", every="1 second"), aggs=AGGREGATES, by="k", time="t")


def with_polars(frame: pl.DataFrame, overlap: int) -> pl.DataFrame:
    """polars leaves out the windows that start before the first row."""
    grouped = frame.group_by_dynamic("t", every="1s", period=f"{overlap}s", group_by="k")
    return grouped.agg(pl.col("v").sum().alias("total"), pl.len().alias("amount"), pl.col("v").min().alias("least"))


def with_duckdb(source: pa.Table, overlap: int) -> pa.Table:
    """Slices of a second, then a frame over the slices: the windows that end with a slice that has rows."""
    frame = f"over (partition by k order by b range between {(overlap - 1) * SECOND} preceding and current row)"
    return duckdb.sql(
        f"""
        with slices as (
            select k, (epoch_us(t) // {SECOND}) * {SECOND} as b, sum(v) as s, count(*) as n, min(v) as m from source group by k, b)
        select k, b, sum(s) {frame} as total, sum(n) {frame} as amount, min(m) {frame} as least from slices
        """
    ).to_arrow_table()


def frame_of(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _keyed(table: pa.Table, times: Any) -> tuple[Any, dict[str, Any]]:
    """A number for each (key, window), in order, and the columns."""
    code = np.asarray(table.column("k")).astype(np.int64) * (1 << 44) + np.asarray(times).astype(np.int64) + (1 << 40)
    order = np.argsort(code)
    return code[order], {n: np.asarray(table.column(n)).astype(np.float64)[order] for n in ("total", "amount", "least")}


def agree(mine: pa.Table, theirs: pa.Table, their_times: Any, my_times: Any, what: str) -> None:
    """Raise unless the windows that the peer has are the same in ours."""
    codes, columns = _keyed(mine, my_times)
    other_codes, other = _keyed(theirs, their_times)
    place = np.searchsorted(codes, other_codes)
    same(codes[np.minimum(place, len(codes) - 1)], other_codes, f"{what}: windows")
    for name, values in other.items():
        same(columns[name][place], values, f"{what}: {name}")


def starts(table: pa.Table) -> Any:
    return pc.struct_field(table.column("window"), "start").cast(pa.int64())


def _overlaps(report: Report, rows: int) -> None:
    span = rows // 2000
    table = events(rows, 16, span)
    sorted_frame = frame_of(table).sort("k", "t")
    lines, times = [], {}
    for overlap in OVERLAPS:
        calls: dict[str, Any] = {"ours": lambda: ours(table, overlap)}
        if overlap <= 600:
            calls["polars"] = lambda: with_polars(sorted_frame, overlap)
        calls["duckdb"] = lambda: with_duckdb(table, overlap)
        calls["read"] = lambda: [np.sum(np.asarray(c)) for c in (table["k"], table["t"].cast(pa.int64()), table["v"])]
        taken = side_by_side(calls, 3 if overlap <= 60 else 2)
        times[overlap] = taken
        mine = ours(table, overlap)
        if "polars" in taken:
            theirs = with_polars(sorted_frame, overlap).to_arrow()
            agree(mine, theirs, theirs.column("t").cast(pa.timestamp("us")).cast(pa.int64()), starts(mine), f"polars, overlap {overlap}")
        slices = with_duckdb(table, overlap)
        shift = (overlap - 1) * SECOND
        agree(mine, slices, np.asarray(slices.column("b")) - shift, starts(mine), f"DuckDB, overlap {overlap}")
        cells = [number(taken[n] * 1e3) if n in taken else "" for n in ("ours", "polars", "duckdb")]
        lines.append([str(overlap), *cells, f"{mine.num_rows:,}", number(taken["ours"] / mine.num_rows * 1e9)])
    report.tables.append(
        (
            f"{rows:,} rows, 16 keys, sum + count + min, sliding by 1 s",
            ["overlap", "sash ms", "polars ms", "DuckDB over slices ms", "results", "sash ns a result"],
            lines,
        )
    )
    for overlap in (10, 60, 600):
        value = times[overlap]["polars"] / times[overlap]["ours"]
        report.figures.append(
            Figure(
                f"overlap {overlap}: against polars group_by_dynamic on a sorted frame", value, must=3, aim=10 if overlap == 60 else None
            )
        )
    worst = min(t["duckdb"] / t["ours"] for t in times.values())
    report.figures.append(Figure("against DuckDB over slices that it makes first, worst overlap", worst, must=1))
    long = times[3600]["ours"] / times[1]["ours"]
    report.figures.append(Figure("overlap 3600 against overlap 1", long, "× the time", must=1.5, better="lower"))
    read = times[60]["ours"] / times[60]["read"]
    report.figures.append(Figure("overlap 60 against reading the columns once", read, "× the time", aim=3, better="lower"))
    report.facts["ns a result, 16 keys"] = times[10]["ours"] / (16 * (span + 9)) * 1e9


def _many_keys(report: Report, keys: int, rows: int) -> None:
    table = events(rows, keys, 20)
    frame = frame_of(table)
    calls = {"ours": lambda: ours(table, 6), "polars": lambda: with_polars(frame, 6)}
    taken = side_by_side(calls, 3)
    mine = ours(table, 6)
    theirs = with_polars(frame, 6).to_arrow()
    agree(mine, theirs, theirs.column("t").cast(pa.timestamp("us")).cast(pa.int64()), starts(mine), "polars, many keys")
    ratio = taken["polars"] / taken["ours"]
    each = taken["ours"] / mine.num_rows * 1e9
    note = f"{number(taken['ours'])} s against {number(taken['polars'])} s"
    report.figures.append(Figure(f"{keys:,} keys, {rows:,} rows, 6 slides a window: against polars", ratio, must=2, aim=5, note=note))
    relative = each / report.facts["ns a result, 16 keys"]
    report.figures.append(
        Figure("the same: cost of a result against that of 16 keys", relative, "×", must=3, better="lower", note=f"{number(each)} ns")
    )


def _over(report: Report, rows: int) -> None:
    table = events(rows, 1000, 86_400)
    lengths = {"short": 600, "middle": 3600, "long": 21_600}
    frame = frame_of(table)
    specs = {name: W.trailing(f"{length} seconds") for name, length in lengths.items()}
    aggs = [S.sum("v").alias("total"), S.max("v").alias("most"), S.count().alias("amount")]

    def mine() -> pa.Table:
        return sash.over(table, windows=specs, aggs=aggs, by="k", time="t")

    def polars(frame: pl.DataFrame) -> Any:
        parts = []
        for length in lengths.values():
            rolled = frame.rolling("t", period=f"{length}s", group_by="k", closed="both")
            parts.append(rolled.agg(pl.col("v").sum().alias("total"), pl.col("v").max().alias("most"), pl.len().alias("amount")))
        return parts

    def duck() -> Any:
        source = table  # DuckDB looks it up by the variable's name
        clauses = ", ".join(
            f"sum(v) over w_{n} as total_{n}, max(v) over w_{n} as most_{n}, count(*) over w_{n} as amount_{n}" for n in lengths
        )
        named = ", ".join(
            f"w_{n} as (partition by k order by t range between interval {length} seconds preceding and current row)"
            for n, length in lengths.items()
        )
        return duckdb.sql(f"select k, t, {clauses} from source window {named}").to_arrow_table() if source.num_rows else None

    times = {"ours": seconds(mine, 3), "polars": seconds(lambda: polars(frame), 1), "duckdb": seconds(duck, 1)}
    times["sorting"] = seconds(lambda: polars(frame.sort("k", "t")), 1)
    result, theirs = mine(), duck()
    order = np.lexsort((np.asarray(result["v"]), np.asarray(result["t"].cast(pa.int64())), np.asarray(result["k"])))
    other = np.lexsort((np.asarray(theirs["t"].cast(pa.int64())), np.asarray(theirs["k"])))
    rolled = polars(frame.sort("k", "t"))
    for name, part in zip(lengths, rolled, strict=True):
        for column in ("total", "most", "amount"):
            values = np.asarray(result[f"{column}_{name}"])[order]
            same(values, np.asarray(theirs[f"{column}_{name}"]).astype(np.float64)[other], f"DuckDB OVER {name} {column}")
            same(values, part[column].to_numpy(), f"polars rolling {name} {column}")
    millions = rows / times["ours"] / 1e6
    what = f"over: {rows:,} rows, 1,000 keys, three lengths, sum + max + count"
    report.figures.append(
        Figure(f"{what}: against DuckDB's OVER RANGE", times["duckdb"] / times["ours"], must=8, aim=20, note=f"{number(millions)} M rows/s")
    )
    report.figures.append(Figure(f"{what}: against polars' rolling on the same table", times["polars"] / times["ours"], must=5, aim=20))
    report.figures.append(Figure(f"{what}: against polars' rolling, if it sorts by key first", times["sorting"] / times["ours"]))
