"""Windows that lie apart, with aggregates that Spark's own functions compute: the same as over the table, ties by time and ``order_by``."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.spark.language.packing import packing

NAN, INF = float("nan"), float("inf")
TYPES = {
    "i": (pa.int32(), [0, 1, -1, 7, 2**31 - 1, -(2**31), None]),
    "l": (pa.int64(), [0, 5, -5, 2**63 - 1, -(2**63), None]),
    "f": (pa.float64(), [0.0, -0.0, 1.5, NAN, INF, -INF, None]),
    "g": (pa.float64(), [1 / 3, 0.3, 0.1 + 0.2, 0.25, 1e300, -1e300, 5e-324, 1.0, None]),
    "h": (pa.float32(), [0.1, -0.1, 2.5, 16777216.0, None]),
    "s": (pa.string(), ["", "a", "b", "ü", None]),
    "d": (pa.decimal128(12, 2), [Decimal("0.00"), Decimal("1.25"), Decimal("-7.50"), Decimal("9999999999.99"), None]),
    "e": (pa.decimal128(30, 10), [Decimal("0.0000000001"), Decimal(10) ** 19, -(Decimal(10) ** 19), None]),
    "b": (pa.bool_(), [True, False, None]),
    "day": (pa.date32(), [datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(2026, 2, 28), None]),
    "z": (
        pa.timestamp("us", "UTC"),
        [datetime.datetime(y, 1, 1, tzinfo=datetime.UTC) for y in (2026, 2025, 1960, 1, 9999)] + [None],
    ),
}


def rows(count: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    columns = {
        "k": pa.array([draw.choice(["x", "y", None]) for _ in range(count)], pa.string()),
        "t": pa.array([start + datetime.timedelta(seconds=draw.randrange(60)) for _ in range(count)], pa.timestamp("us", "UTC")),
        "id": pa.array(draw.sample(range(count), count), pa.int64()),
        **{name: pa.array([draw.choice(values) for _ in range(count)], t) for name, (t, values) in TYPES.items()},
    }
    return pa.table(columns)


def shown(table: pa.Table) -> list[str]:
    """Rows in an order of their own, floats such that NaN equals NaN; sets have no order."""
    out = []
    for row in table.to_pylist():  # Spark counts both zeros as one, either of them
        plain = {n: 0.0 if isinstance(v, float) and v == 0 else v for n, v in row.items()}
        sets = {n: sorted({repr(0.0 if x == 0 and isinstance(x, float) else x) for x in v}) for n, v in plain.items() if n == "set"}
        out.append(repr({**plain, **sets}))
    return sorted(out)


ORDERED = [("first", S.first), ("last", S.last), ("list", S.collect_list)]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("windows", [W.tumbling("10 seconds"), W.sliding("3 seconds", every="7 seconds"), W.unbounded()])
def test_values_of_every_type(spark, name, windows):
    table = rows(400, 1)
    aggs = [function(name).alias(label) for label, function in ORDERED]
    aggs += [S.first(name, ignorenulls=True).alias("known first"), S.last(name, ignorenulls=True).where("i > 0").alias("some last")]
    aggs += [
        S.count_distinct(name).alias("distinct"),
        S.collect_set(name).alias("set"),
        S.count_distinct(name).where("b").alias("some distinct"),
    ]
    aggs += [S.max_by("id", name).alias("max_by") if name != "s" else S.count().alias("n"), S.min_by("id", name).alias("min_by")]
    aggs += [S.max_by(name, "f").alias("of max"), S.min_by(name, "l").where("i is not null").alias("of min")]
    if name in "ilfghde":
        aggs += [
            S.median(name).alias("median"),
            S.percentile(name, q=0.9).alias("p90"),
            S.percentile(name, q=0.25).where("b").alias("some"),
        ]
    if name == "s":
        aggs += [S.string_agg("s", ",").alias("text"), S.string_agg("s").where("i > 3").alias("some text")]
    call = {"windows": windows, "aggs": aggs, "by": "k", "time": "t", "order_by": "id"}
    frame = spark.createDataFrame(table)
    assert "plain" in str(sash.explain(frame, **call))
    assert shown(sash.aggregate(frame, **call).toArrow()) == shown(sash.aggregate(table, **call))


@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize("seed", range(3))
def test_ties_go_to_the_first_row_by_time(spark, seed, by):
    """Without ``order_by``, where times are unique; small and large numbers, all of one kind and mixed."""
    table = rows(60, seed)
    times = pa.array(
        [
            datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=s)
            for s in random.Random(seed).sample(range(60), 60)
        ]
    )
    table = table.set_column(1, "t", times.cast(pa.timestamp("us", "UTC")))
    aggs = [S.max_by("id", "b").alias("max"), S.min_by("id", "b").alias("min"), S.first("id").alias("first"), S.last("id").alias("last")]
    aggs += [f("id", n).alias(f"{n} {f.__name__}") for n in TYPES for f in (S.max_by, S.min_by)]
    aggs += [
        S.max_by("s", "i").alias("text"),
        S.max_by("f", "l").where("b").alias("some"),
        S.min_by("day", "i").where("i < 0").alias("less"),
    ]
    aggs += [S.max_by("id", "f").alias("of f"), S.max("f").alias("f"), S.sum("i").alias("sum"), S.collect_list("id").alias("ids")]
    call = {"windows": W.tumbling("20 seconds"), "aggs": aggs, "by": by, "time": "t"}
    assert shown(sash.aggregate(spark.createDataFrame(table), **call).toArrow()) == shown(sash.aggregate(table, **call))


def test_doubles_are_packed_in_their_order(spark):
    """All bits of a double count, at every magnitude."""
    draw = random.Random(1)
    edges = [math.ldexp(1.0, e) for e in range(-1074, 1024)]
    near = [x for e in edges for x in (math.nextafter(e, 0), e, math.nextafter(e, INF))]
    some = [math.ldexp(draw.random(), draw.randrange(-1000, 1000)) for _ in range(2000)]
    values = sorted({y for x in [*near, *some] if 0 < x < INF for y in (x, -x)})
    values = [-INF, *values, INF, NAN]
    packed = packing("v", pa.float64(), "0L", 10_000_000)
    frame = spark.createDataFrame(pa.table({"v": values}))
    found = frame.selectExpr(f"{packed.large_of(packed.value, 24, '0L')} as n", f"{packed.small_of(packed.value)} as s").toArrow()
    numbers = found.column("n").to_pylist()
    assert all(a < b for a, b in zip(numbers, numbers[1:], strict=False))
    small = [(s, v) for s, v in zip(found.column("s").to_pylist(), values, strict=True) if s is not None]
    assert small
    assert all(s / 10_000 == v for s, v in small)


def test_sketches_are_near(spark):
    table = rows(2000, 4)
    aggs = [S.approx_count_distinct("id").alias("n"), S.approx_percentile("id", q=0.5).alias("m")]
    (row,) = sash.aggregate(spark.createDataFrame(table), windows=W.unbounded(), aggs=aggs, time="t").toArrow().to_pylist()
    assert abs(row["n"] - 2000) < 300
    assert abs(row["m"] - 1000) < 40


def test_what_spark_cannot_turn_around_is_sorted(spark):
    """Text has no opposite: its largest comes first only if no column decides between rows of one time."""
    table = rows(50, 5)
    call = {"windows": W.tumbling("10 seconds"), "aggs": [S.max_by("id", "s").alias("m")], "time": "t", "order_by": "id"}
    frame = spark.createDataFrame(table)
    assert "rows" in str(sash.explain(frame, **call))
    assert shown(sash.aggregate(frame, **call).toArrow()) == shown(sash.aggregate(table, **call))
    with pytest.raises(sash.errors.InvalidArgument, match="plan='plain' is not possible here: max_by.* is ordered by string"):
        sash.aggregate(frame, **call, plan="plain")
    with pytest.raises(sash.errors.InvalidArgument, match="plan='catalyst' is not possible here"):
        sash.aggregate(frame, **{**call, "aggs": [S.count_distinct("id")]}, plan="catalyst")
