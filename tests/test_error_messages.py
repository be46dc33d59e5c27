"""Messages of errors as users read them, all in one page: ``tests/golden/error_messages.txt``.

After a change of words: ``SASH_GOLDEN=write pytest tests/test_error_messages.py``, and read the difference.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.algorithms import SubtractOnEvict, TwoStacks
from sash.testing import check_laws

GOLDEN = Path(__file__).parent / "golden" / "error_messages.txt"
UTC = datetime.UTC
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)
ROWS = pa.table({"t": pa.array([1, 2, 3]), "k": ["a", "b", "a"], "v": [1, 2, 3], "s": [[1], [2], [3]]})
TIMED = pa.table({"ts": pa.array([NOON, NOON], pa.timestamp("us", "UTC")), "v": [1, 2]})


def aggregate(data=ROWS, **changes):
    return sash.aggregate(data, **{"windows": W.tumbling(10), "aggs": [S.sum("v")], "time": "t", **changes})


def operator(batches=(), **changes):
    op = sash.Operator(**{"windows": W.tumbling(10), "aggs": [S.sum("v")], "time": "t", **changes})
    for batch in batches:
        op.add(batch)
    return op


def udaf(**members):
    functions = {"identity": (0,), "lift": lambda v: (v,), "combine": lambda a, b: (a[0] + b[0],), "lower": lambda s: s[0]}
    return sash.udaf(state=("int64",))(type("own", (), {n: f for n, f in {**functions, **members}.items() if f is not None}))


def not_associative():
    @sash.udaf(state=("int64",))
    class half:
        identity = (0,)

        def lift(v):
            return (v,)

        def combine(a, b):
            return ((a[0] + b[0]) // 2,)

        def lower(s):
            return s[0]

    return half


def uncompilable():
    @sash.udaf(state=("int64",))
    class strange:
        identity = (0,)

        def lift(v):
            return (v,)

        def combine(a, b):
            return ({a[0], b[0]}.pop(),)

        def lower(s):
            return s[0]

    return strange


CASES = {
    # Names and arguments.
    "an unknown column": lambda: aggregate(time="tt"),
    "an unknown column in an aggregate": lambda: aggregate(aggs=[S.sum("w")]),
    "an unknown key": lambda: aggregate(by="key"),
    "an unknown aggregate": lambda: sash.rolling([1, 2], 2, agg="summ"),
    "an unknown algorithm": lambda: sash.rolling([1, 2], 2, algorithm="two_stack"),
    "an unknown argument of explain": lambda: sash.explain(ROWS, windows=W.tumbling(10), aggs=S.count(), time="t", bye="k"),
    "a missing argument of explain": lambda: sash.explain(ROWS, windows=W.tumbling(10), aggs=S.count()),
    "no windows": lambda: aggregate(windows={}),
    "windows as text": lambda: aggregate(windows="10 seconds"),
    "no aggregates": lambda: aggregate(aggs=[]),
    "an aggregate without its column": lambda: aggregate(aggs=[S.sum()]),
    "an aggregate by a wrong type": lambda: aggregate(aggs=[3]),
    "two columns of one name": lambda: aggregate(aggs=[S.sum("v"), S.sum("v")]),
    "an alias that is a key": lambda: aggregate(by="k", aggs=[S.sum("v").alias("k")]),
    "emit": lambda: aggregate(emit="always"),
    "emit in a batch": lambda: aggregate(emit="update"),
    "a plan in one process": lambda: aggregate(plan="rows"),
    "a negative lateness": lambda: aggregate(lateness="-1 second"),
    "time that is missing": lambda: aggregate(time=None),
    "time in the index of a frame": lambda: aggregate(pd.DataFrame({"v": [1]}, index=pd.Index([1], name="t"))),
    "data of a wrong kind": lambda: aggregate([1, 2, 3]),
    # Windows and durations.
    "a duration with an unknown unit": lambda: W.tumbling("10 secs."),
    "a duration without a unit over times": lambda: aggregate(TIMED, windows=W.tumbling(10), time="ts"),
    "a duration with a unit over integers": lambda: aggregate(windows=W.tumbling("10 seconds")),
    "an empty window": lambda: W.tumbling(0),
    "a window finer than its column": lambda: aggregate(TIMED, windows=W.tumbling("1 nanosecond"), time="ts"),
    "a trailing window in aggregate": lambda: aggregate(windows=W.trailing(10)),
    "a tumbling window in over": lambda: sash.over(ROWS, windows=W.tumbling(10), aggs=S.count(), time="t"),
    "an unknown time zone": lambda: W.tumbling("1 day", tz="Europe/Bärlin"),
    "closed": lambda: W.trailing(10, closed="up"),
    "rows that are no number": lambda: W.rows(2.5),
    "a punctuation that is no condition": lambda: aggregate(windows=W.punctuation("v")),
    # Types and values.
    "a time column of floats": lambda: aggregate(pa.table({"t": [1.5], "v": [1]})),
    "a key that is a list": lambda: aggregate(by="s"),
    "a sum of text": lambda: aggregate(aggs=[S.sum("k")]),
    "a sum that does not fit": lambda: aggregate(pa.table({"t": [1, 1], "v": [2**63 - 1, 1]})),
    "an expression that cannot be parsed": lambda: aggregate(aggs=[S.sum("v +")]),
    "an expression with an unknown function": lambda: aggregate(aggs=[S.sum("sqroot(v)")]),
    "a condition that is no condition": lambda: aggregate(aggs=[S.sum("v").where("v + 1")]),
    "a text that is no number": lambda: aggregate(aggs=[S.sum("cast(k as int)")]),
    # Arrays.
    "size": lambda: sash.rolling([1, 2], 0),
    "an unlawful algorithm": lambda: sash.rolling([1.0, 2.0], 2, agg="sum", algorithm="running"),
    "an unlawful window": lambda: SubtractOnEvict("first", dtype="int64"),
    "out of a wrong type": lambda: sash.rolling(np.zeros(4), 2, out=np.zeros(3, np.int64)),
    "an empty window that is evicted": lambda: TwoStacks("max").evict(),
    "a value of a wrong type": lambda: TwoStacks("sum").insert("x"),
    # Streams.
    "a row out of order": lambda: operator([pa.table({"t": [5, None, 3], "v": [1, 1, 1]})], ordered=True),
    "a time out of order": lambda: operator(
        [pa.table({"t": pa.array([NOON, NOON - datetime.timedelta(minutes=90)], pa.timestamp("us", "UTC")), "v": [1, 2]})],
        windows=W.tumbling("1 hour"), ordered=True,
    ),
    "a watermark that goes back": lambda: [op.advance(10) and op.advance(5) for op in [operator([pa.table({"t": [1], "v": [1]})])]],
    "a watermark before any row": lambda: operator().advance(5),
    "a batch with other columns": lambda: operator([pa.table({"t": [1], "v": [1]}), pa.table({"t": [1], "w": [1]})]),
    "a batch with other types": lambda: operator([pa.table({"t": [1], "v": [1]}), pa.table({"t": [1], "v": ["x"]})]),
    "a closed operator": lambda: [op.close() and op.add(ROWS) for op in [operator([ROWS])]],
    "late rows that are only counted": lambda: operator([ROWS]).late_rows(),
    "a query that exists": lambda: operator([ROWS]).add_query("window", W.tumbling(5)),
    "the last query": lambda: operator([ROWS]).remove_query("window"),
    "a watermark in a stream in order": lambda: operator(ordered=True, watermark=5),
    "a snapshot that is none": lambda: sash.Operator.restore(b"not a snapshot"),
    "a snapshot of other aggregates": lambda: sash.Operator.restore(operator([ROWS]).snapshot(), aggs=[S.max("v")]),
    # Users' own aggregates.
    "an aggregate without lower": lambda: udaf(lower=None),
    "an aggregate with lambdas": lambda: sash.rolling([1, 2], 2, agg=udaf()),
    "a combine of three": lambda: udaf(combine=lambda a, b, c: a),
    "an unknown type of state": lambda: sash.udaf(state=("int65",)),
    "what cannot be compiled": lambda: sash.rolling(np.array([1, 2]), 2, agg=uncompilable()),
    "a broken law": lambda: check_laws(not_associative(), examples=50),
}  # fmt: skip


def message(case):
    with pytest.raises(sash.SashError) as caught:
        case()
    text = str(caught.value).splitlines()
    return f"{type(caught.value).__name__}: {text[0]}"


def test_messages_are_as_agreed():
    page = "\n\n".join(f"# {name}\n{message(case)}" for name, case in CASES.items()) + "\n"
    if os.environ.get("SASH_GOLDEN") == "write":
        GOLDEN.write_text(page)
    assert page == GOLDEN.read_text()


def test_no_message_speaks_of_ticks():
    assert "tick" not in GOLDEN.read_text()
