"""Cases that run on every kind of Spark (classic, Connect, a cluster), and their comparison with one process."""

from __future__ import annotations

import datetime
import decimal
import math
import random

import pyarrow as pa

import sash
from sash import functions as S
from sash import windows as W
from tests.own_aggregates import affine, mean
from tests.own_windows import FourAndFive, Moved

UTC = datetime.UTC


def rows(count=600, seed=1, span=200_000):
    """Rows around 1970 with nulls, NaN, ties and keys that are null; ``id`` tells them apart."""
    rng = random.Random(seed)
    pick = rng.choice
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    times = [pick([None] + [epoch + datetime.timedelta(milliseconds=rng.randrange(-span, span))] * 30) for _ in range(count)]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "k": pa.array([pick(["a", "b", "ü.b", None]) for _ in range(count)]),
            "d": pa.array([pick([0.0, -0.0, math.nan, None, 1.5]) for _ in range(count)]),
            "t": pa.array(times, pa.timestamp("us", "UTC")),
            "v": pa.array([pick([None, rng.randrange(-50, 50), 2**40, -(2**40)]) for _ in range(count)], pa.int64()),
            "i": pa.array([pick([None, rng.randrange(-50, 50), 2**31 - 1]) for _ in range(count)], pa.int32()),
            "x": pa.array([pick([None, math.nan, rng.uniform(-1, 1)]) for _ in range(count)], pa.float64()),
            "flag": pa.array([pick([True, False, False, None]) for _ in range(count)]),
            "m": pa.array(
                [pick([None, decimal.Decimal(rng.randrange(-9999, 9999)).scaleb(-2)]) for _ in range(count)], pa.decimal128(9, 2)
            ),
            "s": pa.array([pick([None, "x", "yy", "zzz"]) for _ in range(count)]),
            "when": pa.array([pick([None, datetime.date(2024, 1, rng.randrange(1, 28))]) for _ in range(count)], pa.date32()),
            "a.b": pa.array([rng.randrange(9) for _ in range(count)], pa.int16()),
        }
    )


COMMON = [
    S.sum("v").alias("sum"),
    S.sum("i"),
    S.count(),
    S.count("v").alias("n"),
    S.min("x"),
    S.max("when"),
    S.avg("v"),
    S.var_samp("i"),
    S.stddev_pop("x").where("x > -0.5"),
    S.max("v * 2").where("flag").alias("most"),
    S.sum("`a.b`"),
]
"""What Catalyst can state."""
OTHERS = [
    S.product("x"),
    S.sum("m"),
    S.avg("m"),
    mean("v").alias("own"),
    S.geometric_mean("abs(i) + 1").where("i < 1000").alias("g"),
    S.max_count("i"),
]
"""Partials of fixed size that Catalyst cannot state."""
ORDERED = [
    affine("coalesce(v, 0)").alias("affine"),
    S.first("v"),
    S.last("s", ignorenulls=True),
    S.max_by("id", "x"),
    S.median("i"),
    S.count_distinct("s"),
    S.collect_list("id"),
    S.string_agg("s"),
    S.min("s"),
    S.m4("v"),
]
"""Those that need their rows, or their order."""

SECONDS = {
    "sliding": W.sliding("10 seconds", every="3 seconds"),
    "uneven": W.sliding("1600 milliseconds", every="700 milliseconds", offset="1 second"),
    "tumbling": W.tumbling("7 seconds"),
    "sampling": W.sliding("1 second", every="3 seconds"),
    "session": W.session("2 seconds"),
    "month": W.tumbling("1 month"),
    "day": W.tumbling("1 day", tz="America/New_York"),
    "band": W.band(-5_000_000, 30_000_000),
    "unbounded": W.unbounded(),
    "rows": W.rows(5, every=3),
    "partial rows": W.rows(4, partial=True),
    "punctuation": W.punctuation("flag and v > 0"),
    "last rows": W.last_rows(4, every="5 seconds"),
    "own, context free": FourAndFive(),
    "own, context aware": Moved("coalesce(i, 0)", 40),
}
TRAILING = {
    "ten": W.trailing("10 seconds"),
    "left": W.trailing("3 seconds", closed="left"),
    "neither": W.trailing("90 seconds", closed="neither"),
    "rows": W.trailing_rows(7),
}
FREE = ("sliding", "uneven", "tumbling", "sampling", "session", "month", "day", "band", "unbounded", "own, context free")


def cases():
    """``{name: (windows, aggregates, other arguments)}``."""
    found = {f"common, {name}": (spec, COMMON, {}) for name, spec in SECONDS.items()}
    found |= {f"others, {name}": (SECONDS[name], OTHERS, {}) for name in FREE}
    found |= {f"ordered, {name}": (spec, ORDERED, {"order_by": "id"}) for name, spec in SECONDS.items()}
    found["two queries"] = ({n: SECONDS[n] for n in ("sliding", "uneven")}, COMMON, {})
    found["all at once"] = (SECONDS, [S.sum("v"), S.count()], {"order_by": ["id"]})
    found["no key"] = (SECONDS["sliding"], COMMON, {"by": None})
    found["two keys"] = (SECONDS["sliding"], COMMON, {"by": ["d", "k"]})
    found["two keys, rows"] = (SECONDS["sliding"], ORDERED, {"by": ["k", "d"], "order_by": "id"})
    found["a float key, sessions"] = (SECONDS["session"], OTHERS, {"by": "d"})
    found["a key with a dot"] = (SECONDS["uneven"], ORDERED, {"by": "a.b", "order_by": "id"})
    found["empty windows"] = (SECONDS["tumbling"], COMMON, {"empty": True})
    found["empty windows, rows"] = (SECONDS["uneven"], ORDERED, {"empty": True, "order_by": "id"})
    return found


def normal(value):
    """A key that compares and sorts: NaN equals NaN, and one zero another."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return tuple(normal(v) for v in value.values()) if isinstance(value, dict) else value


def alike(a, b):
    """Whether two results are the same, floats but for their last digits."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def assert_same(got, wanted, keys):
    """Two tables have the same rows, told apart by their ``keys``."""
    ours, theirs = ({tuple(normal(r[k]) for k in keys): r for r in t.to_pylist()} for t in (got, wanted))
    assert len(ours) == got.num_rows, "a row is there twice"
    assert len(theirs) == wanted.num_rows
    assert ours.keys() == theirs.keys(), (
        sorted(map(str, ours.keys() - theirs.keys()))[:3],
        sorted(map(str, theirs.keys() - ours.keys()))[:3],
    )
    for at, row in theirs.items():
        different = [(name, ours[at][name], row[name]) for name in row if not alike(ours[at][name], row[name]) and name not in keys]
        assert not different, (at, different)


def window_keys(table, by):
    """The columns that tell a result's rows apart."""
    return [n for n in table.column_names if n in ("query", "window", "rows", *by)]


def arguments(windows, aggs, more):
    return {"windows": windows, "aggs": aggs, "by": ["k"], "time": "t", **more}


def compare(frame, table, windows, aggs, more):
    """``sash.aggregate`` on a frame gives what it gives on the table that the frame was made of."""
    request = arguments(windows, aggs, more)
    lazy = sash.aggregate(frame, **request)
    wanted = sash.aggregate(table, **request)
    assert lazy.columns == wanted.column_names
    got = lazy.toArrow()
    by = [request["by"]] if isinstance(request["by"], str) else request["by"] or []
    assert_same(got.cast(wanted.schema), wanted, window_keys(wanted, by))
    return len(wanted)


def compare_over(frame, table, windows, aggs, more):
    request = arguments(windows, aggs, more)
    wanted = sash.over(table, **request)
    lazy = sash.over(frame, **request)
    assert lazy.columns == wanted.column_names
    assert_same(lazy.toArrow().cast(wanted.schema), wanted, ["id"])
