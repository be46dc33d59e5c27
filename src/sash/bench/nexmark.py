"""Nexmark-shaped bids on Spark: the benchmark's windowed queries, and related queries, against plain PySpark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sash
from sash import functions as S
from sash import windows as W
from sash.bench.harness import Figure, Report, number

BIDS = (
    "timestamp_micros(1700000000000000L + id * 150) as ts",
    "1 + cast(pow(rand(1), 3) * 20000 as bigint) as auction",
    "1 + cast(rand(2) * 50000 as bigint) as bidder",
    "100 + cast(exp(rand(3) * 10) as bigint) as price",
)
"""Bids in the order of time, some auctions with many of them; a price is an amount of cents."""
TEN = "10 seconds"


@dataclass(frozen=True)
class Query:
    """One query, for Sash and for Spark."""

    what: str
    windows: Any
    by: str | None
    ours: list[Any]
    theirs: tuple[str, ...]
    spark_window: str
    must: float | None = None
    aim: float | None = None
    exact: tuple[str, ...] = ()
    """Spark expressions with exactly the same results, where ``theirs`` may take any row among equal ones, or any order."""


def tumbling(what: str, by: str | None, ours: list[Any], theirs: tuple[str, ...], **more: Any) -> Query:
    return Query(what, W.tumbling(TEN), by, ours, theirs, f"window(ts, '{TEN}')", **more)


def first_of(value: str, order: str) -> str:
    """SQL for the value of the first of the rows with the largest order."""
    return f"max_by({value}, struct({order}, -unix_micros(ts)))"


NEXMARK = (
    Query(
        "q5: bids per auction, 10 s by 2 s",
        W.sliding(TEN, every="2 seconds"),
        "auction",
        [S.count().alias("x")],
        ("count(*)",),
        f"window(ts, '{TEN}', '2 seconds')",
        must=1.5,
        aim=3,
    ),
    tumbling(
        "q7: highest bid and bidder",
        None,
        [S.max("price").alias("x"), S.max_by("bidder", "price").alias("y")],
        ("max(price)", "max_by(bidder, price)"),
        must=0.95,
        aim=1,
        exact=("max(price)", first_of("bidder", "price")),
    ),
    Query(
        "q11: bids per bidder and session",
        W.session(TEN),
        "bidder",
        [S.count().alias("x")],
        ("count(*)",),
        f"session_window(ts, '{TEN}')",
        must=2,
        aim=4,
    ),
    tumbling("q12: bids per bidder", "bidder", [S.count().alias("x")], ("count(*)",), must=1, aim=1),
    tumbling(
        "bidders per auction, count_distinct",
        "auction",
        [S.count_distinct("bidder").alias("x")],
        ("count(distinct bidder)",),
        must=0.95,
        aim=1,
    ),
    tumbling(
        "percentile of the price per auction",
        "auction",
        [S.percentile("price", q=0.9).alias("x")],
        ("percentile(price, 0.9)",),
        must=0.95,
        aim=1,
    ),
    tumbling(
        "max_by per auction",
        "auction",
        [S.max_by("bidder", "price").alias("x")],
        ("max_by(bidder, price)",),
        must=1 / 1.1,
        aim=1,
        exact=(first_of("bidder", "price"),),
    ),
)
ORDERS = {
    "a decimal": "cast(price / 100 as decimal(12, 2))",
    "a double of two digits": "price / 100",
    "any double": "price / 7D",
    "a time": "timestamp_micros(unix_micros(ts) + price)",
    "text": "cast(price as string)",
}


def largest(what: str, by: str | None, order: str) -> Query:
    return tumbling(what, by, [S.max_by("bidder", order).alias("x")], (f"max_by(bidder, {order})",), exact=(first_of("bidder", order),))


BESIDE = (
    *(largest(f"max_by per auction, by {name}", "auction", order) for name, order in ORDERS.items()),
    *(largest(f"max_by of all, by {name}", None, order) for name, order in ORDERS.items()),
    tumbling(
        "first and last per auction, against min_by and max_by of the time",
        "auction",
        [S.first("price").alias("x"), S.last("price").alias("y")],
        ("min_by(price, ts)", "max_by(price, ts)"),
    ),
    tumbling(
        "first and last per auction, against any first and last",
        "auction",
        [S.first("price").alias("x"), S.last("price").alias("y")],
        ("first(price)", "last(price)"),
        exact=("min_by(price, ts)", "max_by(price, ts)"),
    ),
    tumbling(
        "collect_list per auction, in the order of time, against any order",
        "auction",
        [S.collect_list("price").alias("x")],
        ("collect_list(price)",),
        exact=("transform(sort_array(collect_list(struct(ts, price))), s -> s.price)",),
    ),
    tumbling("collect_set per auction", "auction", [S.collect_set("price").alias("x")], ("collect_set(price)",)),
)


def nexmark(report: Report, bids: Any, timed: Callable[[dict[str, Callable[[], Any]], int], dict[str, float]]) -> None:
    """Measure each query on both, in turns."""
    lines = []
    for query in (*NEXMARK, *BESIDE):
        calls: dict[str, Callable[[], Any]] = {"ours": partial(ours, bids, query), "spark": partial(theirs, bids, query)}
        taken = timed(calls, 5 if query.must is not None else 3)
        _check(query, ours(bids, query), theirs(bids, query, query.exact or query.theirs))
        ratio = taken["spark"] / taken["ours"]
        note = f"{number(taken['ours'])} s against {number(taken['spark'])} s"
        if query.must is not None:
            report.figures.append(Figure(f"bids, {query.what}: against plain PySpark", ratio, must=query.must, aim=query.aim, note=note))
        else:
            lines.append([query.what, number(taken["ours"]), number(taken["spark"]), number(ratio)])
    report.tables.append((f"bids in tumbling windows of {TEN}", ["what", "sash s", "PySpark s", "×"], lines))


def ours(bids: Any, query: Query) -> Any:
    return sash.aggregate(bids, windows=query.windows, aggs=query.ours, by=query.by, time="ts")


def theirs(bids: Any, query: Query, texts: tuple[str, ...] = ()) -> Any:
    from pyspark.sql import functions as F

    keys = [] if query.by is None else [F.col(query.by)]
    results = [F.expr(text).alias(name) for text, name in zip(texts or query.theirs, "xy", strict=False)]
    return bids.groupBy(*keys, F.expr(query.spark_window).alias("window")).agg(*results)


def _check(query: Query, mine: Any, other: Any) -> None:
    """Raise unless both have the same windows with the same results."""
    values = [f"sort_array({c.name})" if c.aggregate.name == "collect_set" else c.name for c in query.ours]
    row = ", ".join(["unix_micros(window.start)", "unix_micros(window.end)", *([] if query.by is None else [query.by]), *values])
    digests = [list(frame.selectExpr("count(*)", f"bit_xor(xxhash64({row}))").collect()[0]) for frame in (mine, other)]
    if digests[0] != digests[1]:
        raise AssertionError(f"{query.what}: the answers differ")
