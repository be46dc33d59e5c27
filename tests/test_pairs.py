"""Joins through ranges of values and over conditions of any kind, against all pairs."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.relational import pairs

CONDITIONS = {
    "A.v between B.v and B.v + 3": lambda a, b: b["v"] <= a["v"] <= b["v"] + 3,
    "A.v > B.v": lambda a, b: a["v"] > b["v"],
    "B.v * 2 >= A.v and A.v + 1 > B.v": lambda a, b: b["v"] * 2 >= a["v"] and a["v"] + 1 > b["v"],
    "A.v < -B.v and A.v <= B.v": lambda a, b: a["v"] < -b["v"] and a["v"] <= b["v"],
    "A.v < B.v and (A.v + B.v) % 2 = 0": lambda a, b: a["v"] < b["v"] and (a["v"] + b["v"]) % 2 == 0,
    "A.k = B.k and A.v <= B.v": lambda a, b: a["k"] == b["k"] and a["v"] <= b["v"],
    "(A.v * 3 + 2 * B.v) % 4 = 1 or A.v = B.v": lambda a, b: np.fmod(a["v"] * 3 + 2 * b["v"], 4) == 1 or a["v"] == b["v"],
    "A.v not between B.v and 2": lambda a, b: not b["v"] <= a["v"] <= 2,
}
SIDES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.one_of(st.none(), st.integers(-6, 6))), max_size=12)


def table(rows):
    schema = pa.schema({"timestamp": pa.int64(), "k": pa.int64(), "v": pa.int64(), "id": pa.int64()})
    return pa.Table.from_pylist([{"timestamp": t, "k": k, "v": v, "id": n} for n, (t, k, v) in enumerate(rows)], schema=schema)


@pytest.mark.parametrize("condition", CONDITIONS)
@given(left=SIDES, right=SIDES, nulls=st.booleans())
def test_conditions(condition, left, right, nulls):
    if not nulls:
        left, right = ([(t, k, 0 if v is None else v) for t, k, v in side] for side in (left, right))
    text = f"select A.id, B.id as other from A [range 10 slide 5] as A, B [range 10 slide 5] as B where {condition}"
    sides = table(left), table(right)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "FEW_PAIRS", 0)
        patch.setattr(pairs, "MOST_PAIRS", 7)
        found = sash.sql(text, A=sides[0], B=sides[1])
    expected = []
    for a, b in itertools.product(sides[0].to_pylist(), sides[1].to_pylist()):
        if a["v"] is None or b["v"] is None or not CONDITIONS[condition](a, b):
            continue
        ends = [{e for e in range(0, 60, 5) if e - 10 <= row["timestamp"] < e} for row in (a, b)]
        expected += [(a["id"], b["id"])] * len(ends[0] & ends[1])
    assert sorted(zip(*(found.column(n).to_pylist() for n in ("id", "other")), strict=True)) == sorted(expected)


def test_values_of_other_kinds_are_compared_as_the_expression_says(monkeypatch):
    monkeypatch.setattr(pairs, "FEW_PAIRS", 0)
    days = [datetime.date(2024, 1, d) for d in (1, 2, 3)]
    times = pa.array([datetime.datetime(2024, 1, d, 12) for d in (1, 2, 3)], pa.timestamp("us"))
    left = pa.table({"timestamp": [1, 2, 3], "day": days, "x": pa.array([1.5, float("nan"), 2.0]), "s": ["1", "10", "9"]})
    right = pa.table({"timestamp": [1, 2, 3], "time": times, "y": [1, 2, 3], "n": pa.array([2, 10, 1], pa.uint64())})
    window = "[range 10 slide 10]"
    for condition, count in {"A.day <= B.time": 6, "A.x <= B.y": 4, "A.s > B.n": 4, "A.x >= B.n": 6}.items():
        out = sash.sql(f"select A.day, B.y from A {window} as A, B {window} as B where {condition}", A=left, B=right)
        assert out.num_rows == count, condition
