"""Bad input: a clear error before any work, and nothing changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import InvalidArgument, InvalidType, InvalidWindow, UnknownName, UnlawfulAlgorithm
from tests.own_aggregates import affine

X = np.arange(10.0)

CASES = [
    (lambda: sash.rolling(X, 0), InvalidWindow, "size must be at least 1, not 0"),
    (lambda: sash.rolling(X, -3), InvalidWindow, "size must be at least 1"),
    (lambda: sash.rolling(X, 2.0), InvalidWindow, "size must be an integer, not 2.0"),
    (lambda: sash.rolling(X, True), InvalidWindow, "size must be an integer"),
    (lambda: sash.rolling(X, 2, every=0), InvalidWindow, "every must be at least 1"),
    (lambda: sash.rolling(X, 2, every="1"), InvalidWindow, "every must be an integer"),
    (lambda: sash.rolling(X.reshape(5, 2), 2), InvalidType, "one dimension, not 2"),
    (lambda: sash.rolling(X.astype(object), 2), InvalidType, "object; give it a type first"),
    (lambda: sash.rolling(X.astype(complex), 2), InvalidType, "complex128"),
    (lambda: sash.rolling(X.astype(np.longdouble), 2), InvalidType, "float128|longdouble|float96"),
    (lambda: sash.rolling(7, 2), InvalidType, "not int"),
    (lambda: sash.rolling([1, "a"], 2), InvalidType, "one type"),
    (lambda: sash.rolling(X, 2, agg="mni"), UnknownName, "did you mean 'min'"),
    (lambda: sash.rolling(X, 2, agg=3), InvalidType, "not 3"),
    (lambda: sash.rolling(X, 2, agg=S.sum("cpu")), InvalidArgument, "without them"),
    (lambda: sash.rolling(X, 2, agg=S.sum().where("x > 1")), InvalidArgument, "no condition"),
    (lambda: sash.rolling(X, 2, algorithm="two_stack"), UnknownName, "did you mean 'two_stacks'"),
    (lambda: sash.rolling(X, 2, algorithm=1), InvalidArgument, "must be a name"),
    (lambda: sash.rolling(X, 2, agg="sum", algorithm="running"), UnlawfulAlgorithm, "invertible"),
    (lambda: sash.rolling(X, 2, agg="sum", algorithm="tiles"), UnlawfulAlgorithm, "tiles needs an aggregate that is invertible"),
    (lambda: sash.rolling(X, 2, agg="sum", algorithm="subtract_on_evict"), UnlawfulAlgorithm, "invertible or selective"),
    (lambda: sash.rolling(X, 4, every=2, agg="first", algorithm="slices"), UnlawfulAlgorithm, "commutative"),
    (lambda: sash.rolling(X, 5, every=2, algorithm="slices"), UnlawfulAlgorithm, "multiple"),
    (lambda: sash.rolling(X, 5, every=2, algorithm="lanes"), UnlawfulAlgorithm, "slide by 1"),
    (lambda: sash.rolling(X, 5, agg="geometric_mean", algorithm="lanes"), UnlawfulAlgorithm, "branch-free"),
    (lambda: sash.rolling(X, 5, agg="median", algorithm="blocks"), UnlawfulAlgorithm, "one algorithm of its own"),
    (lambda: sash.rolling(X, 2, device="cpuu"), UnknownName, "unknown device 'cpuu': did you mean 'cpu'"),
    (lambda: sash.rolling(["a", "b"], 2, agg="sum"), InvalidType, "sum does not take string"),
    (lambda: sash.rolling([True, False], 2, agg="sum"), InvalidType, "sum does not take bool"),
    (lambda: sash.rolling(pa.array([[1]]), 1), InvalidType, "list"),
    (lambda: sash.rolling(pa.table({"a": [1]}), 1), InvalidType, "one column"),
    (lambda: sash.rolling(["a"], 1, agg=affine), InvalidType, "does not take string"),
    (lambda: S.percentile(q=1.5), InvalidArgument, "from 0 to 1"),
    (lambda: S.approx_percentile(k=1), InvalidArgument, "from 8 to 65535"),
    (lambda: S.approx_count_distinct(rsd=0), InvalidArgument, "0.0008 to 0.25"),
    (lambda: S.string_agg("x", 3), InvalidArgument, "separator"),
    (lambda: S.sum(3), InvalidType, "column names"),
    (lambda: S.max_by("x"), InvalidArgument, "takes 2 columns"),
    (lambda: S.sum("x").alias(""), InvalidArgument, "alias"),
    (lambda: S.sum("x").where(" "), InvalidArgument, "condition"),
    (lambda: sash.rolling(X, 3, out=np.empty(8, np.float32)), InvalidArgument, r"float64\[8\], not float32\[8\]"),
    (lambda: sash.rolling(X, 3, out=np.empty(7)), InvalidArgument, r"float64\[8\]"),
    (lambda: sash.rolling(X, 3, out=np.empty(16)[::2]), InvalidArgument, "contiguous"),
    (lambda: sash.rolling(X, 1, out=X), InvalidArgument, "share memory"),
    (lambda: sash.rolling(X, 3, out=np.zeros(65, np.uint8)[1:].view(float)), InvalidArgument, "aligned"),
    (lambda: sash.rolling(np.array([1], "M8[h]"), 1), InvalidType, "units"),
    (lambda: sash.rolling(pa.array(X), 3, out=np.empty(8)), InvalidArgument, "NumPy input"),
    (lambda: sash.rolling(X, 3, agg="m4", out=np.empty(8)), InvalidArgument, "out cannot take"),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES, ids=[c[2][:30] for c in CASES])
def test_errors_say_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, sash.SashError)
    assert isinstance(caught.value, ValueError | TypeError | LookupError)


def members(**changes):
    def lift(v):
        return (v,)

    def combine(a, b):
        return a

    def lower(s):
        return s[0]

    return {"identity": (0,), "lift": lift, "combine": combine, "lower": lower, **changes}


UDAFS = [
    (("int65",), {}, "known types"),
    ((), {}, "at least one field"),
    (("int64",), {"identity": (0, 0)}, "identity has 2 fields"),
    (("int64",), {"returns": "str"}, "returns is 'str'"),
    (("int64",), {"combine": 3}, "must be a function"),
    (("int64",), {"combine": lambda self, a, b: a}, "and no self"),
    (("int64",), {"merge": lambda a, b: a}, "not part of a udaf"),
]


@pytest.mark.parametrize(("state", "changes", "message"), UDAFS, ids=[u[2] for u in UDAFS])
def test_own_aggregates_are_checked(state, changes, message):
    with pytest.raises(InvalidArgument, match=message):
        sash.udaf(state=state)(type("own", (), members(**changes)))


def test_own_aggregate_without_a_part():
    given = members()
    del given["lower"]
    with pytest.raises(InvalidArgument, match="has no lower"):
        sash.udaf(state=("int64",))(type("own", (), given))
    with pytest.raises(InvalidArgument, match="write @sash.udaf"):
        sash.udaf(type("own", (), given))
    with pytest.raises(InvalidArgument, match="takes 1 columns"):
        affine("a", "b")


def test_threads_must_be_a_number(monkeypatch):
    for value in ("0", "many", "-1"):
        monkeypatch.setenv("SASH_THREADS", value)
        with pytest.raises(InvalidArgument, match="SASH_THREADS"):
            sash.rolling(X, 2)


def test_out_is_unharmed_after_an_error():
    out = np.full(8, 5.0)
    with pytest.raises(UnknownName):
        sash.rolling(X, 3, agg="maxx", out=out)
    assert (out == 5).all()


# Tables.


TABLE = pa.table(
    {"time": pa.array([0, 1], pa.timestamp("us")), "n": [1, 2], "cpu": [1.0, 2.0], "job": ["a", "b"], "s": [{"x": 1}, {"x": 2}]}
)
GOOD = {"windows": W.tumbling("1 second"), "aggs": [S.sum("cpu")], "time": "time"}


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"time": "tme"}, LookupError, "unknown column in time 'tme': did you mean 'time'"),
        ({"time": None}, ValueError, "time is missing"),
        ({"time": "job"}, TypeError, "'job' has the type string; it must be a timestamp"),
        ({"by": "jbo"}, LookupError, "did you mean 'job'"),
        ({"by": "s"}, TypeError, "cannot be grouped by"),
        ({"aggs": [S.sum("cpi")]}, LookupError, "did you mean 'cpu'"),
        ({"aggs": [S.sum("cpu +")]}, ValueError, r"cpu \+\n"),
        ({"aggs": [S.sum("flor(cpu)")]}, LookupError, "did you mean 'floor'"),
        ({"aggs": [S.sum("job")]}, TypeError, "sum does not take string"),
        ({"aggs": [S.sum("cpu").where("cpu")]}, ValueError, "must be true or false"),
        ({"aggs": []}, ValueError, "aggs is empty"),
        ({"aggs": [S.sum()]}, ValueError, "needs a column"),
        ({"aggs": [S.sum("cpu"), S.sum("cpu")]}, ValueError, r"two columns named 'sum\(cpu\)'"),
        ({"aggs": [S.sum("cpu").alias("window")]}, ValueError, "two columns named 'window'"),
        ({"windows": None}, ValueError, "windows must be made with sash.windows"),
        ({"windows": {}}, ValueError, "windows is empty"),
        ({"windows": "1 second"}, ValueError, "made with sash.windows"),
        ({"windows": W.tumbling(5)}, ValueError, "pass a duration such as"),
        ({"windows": W.tumbling("1 second"), "time": "n"}, ValueError, "pass an integer"),
        ({"windows": W.tumbling("1 nanosecond")}, ValueError, "finer than the time column's unit"),
        ({"windows": W.trailing("1 second")}, ValueError, "for sash.over"),
        ({"windows": W.punctuation("cpu")}, ValueError, "must be true or false"),
        ({"emit": "update"}, ValueError, "for streams"),
        ({"emit": "sometimes"}, ValueError, "emit must be one of"),
        ({"lateness": "-1 second"}, ValueError, "must not be negative"),
        ({"empty": 1}, ValueError, "empty must be"),
    ],
)
def test_tables_refuse(change, kind, message):
    with pytest.raises(kind, match=message) as caught:
        sash.aggregate(TABLE, **{**GOOD, **change})
    assert isinstance(caught.value, sash.SashError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: W.tumbling("-5 seconds"), "must be positive"),
        (lambda: W.tumbling(0), "must be positive"),
        (lambda: W.tumbling("5 parsecs"), "unknown unit 'parsecs'"),
        (lambda: W.tumbling("soon"), "not a duration"),
        (lambda: W.tumbling(None), "must be a duration"),
        (lambda: W.sliding("1 hour", every="0 seconds"), "every must be positive"),
        (lambda: W.session(0), "gap must be positive"),
        (lambda: W.rows(0), "at least 1 row"),
        (lambda: W.rows(2.5), "number of rows"),
        (lambda: W.last_rows(-1, every="1 second"), "at least 1 row"),
        (lambda: W.tumbling("1 hour", tz="Europe/Berlin"), "whole days"),
        (lambda: W.tumbling("1 day", tz="Mars/Olympus"), "not a time zone"),
        (lambda: W.trailing("1 hour", closed="up"), "closed must be one of"),
        (lambda: W.punctuation(""), "SQL text"),
        (lambda: W.tumbling("1 month 2 days"), "mixes months"),
    ],
)
def test_windows_refuse(make, message):
    with pytest.raises(sash.errors.InvalidWindow, match=message):
        make()


def test_over_refuses():
    with pytest.raises(ValueError, match="over takes trailing windows"):
        sash.over(TABLE, windows=W.tumbling("1 second"), aggs=[S.sum("cpu")], time="time")
    with pytest.raises(ValueError, match="two columns named 'cpu'"):
        sash.over(TABLE, windows=W.trailing("1 second"), aggs=[S.sum("cpu").alias("cpu")], time="time")
    with pytest.raises(TypeError, match="must speak Arrow"):
        sash.over([1, 2], windows=W.trailing("1 second"), aggs=[S.sum("cpu")], time="time")
