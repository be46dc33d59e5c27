"""``sash.rolling`` against the naive oracle, over types, sizes, slides, nulls, NaN, infinities and extreme integers."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash.aggregates import named
from sash.errors import IntegerOverflow, InvalidType
from tests import oracle
from tests.own_aggregates import affine, affine_of, mean

NUMBERS = [n for n in oracle.AGGREGATES if n not in ("string_agg",)] + ["max_by", "min_by"]
NARROW = ["min", "max", "sum", "avg", "first", "max_by", "count_distinct", "m4", "median"]

windows = st.tuples(st.integers(1, 12), st.integers(1, 14))
floats = st.one_of(st.floats(-1e6, 1e6, width=32), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0]))
moderate = st.integers(-1000, 1000)


def rows_of(values, nulls):
    return st.lists(st.one_of(st.none(), values) if nulls else values, max_size=40)


def check(name, arrow_type, rows, size, every):
    result = sash.rolling(pa.array(rows, arrow_type), size, every=every, agg=name)
    expected = oracle.rolling(name, rows, size, every)
    ours = result.to_pylist()
    assert len(ours) == len(expected)
    for k, (a, b) in enumerate(zip(ours, expected, strict=True)):
        window = rows[k * every : k * every + size]
        assert oracle.agree(name, a, b, window if arrow_type in (pa.float32(), pa.float64(), pa.int64()) else ()), (
            k,
            a,
            b,
            window,
        )


@pytest.mark.parametrize("nulls", [False, True], ids=["dense", "nulls"])
@pytest.mark.parametrize("name", NUMBERS)
def test_integers(name, nulls):
    @given(rows=rows_of(moderate, nulls), window=windows)
    @example(rows=[], window=(1, 1))
    @example(rows=[5], window=(1, 1))
    @example(rows=[None] * 6 if nulls else [1] * 6, window=(2, 1))
    def run(rows, window):
        check(name, pa.int64(), rows, *window)

    run()


@pytest.mark.parametrize("nulls", [False, True], ids=["dense", "nulls"])
@pytest.mark.parametrize("name", NUMBERS)
def test_floats(name, nulls):
    @given(rows=rows_of(floats, nulls), window=windows)
    def run(rows, window):
        check(name, pa.float64(), rows, *window)

    run()


OTHER_TYPES = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**63 // 16),
    pa.float32(): floats,
    pa.bool_(): st.booleans(),
    pa.timestamp("us"): st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
    pa.date32(): st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)),
    pa.decimal128(10, 2): st.decimals(-99999999, 99999999, places=2),
    pa.decimal128(30, 4): st.decimals(-(10**20), 10**20, places=4),
    pa.string(): st.text("abcé", max_size=3),
}


def accepted(name, t):
    types = (pa.int64(), t) if name in ("max_by", "min_by") else (t,)
    return named(name)().supports(*types)


@pytest.mark.parametrize(
    ("t", "name"),
    [(t, n) for t in OTHER_TYPES for n in [*NARROW, "string_agg", "collect_list", "collect_set"] if accepted(n, t)],
    ids=str,
)
def test_other_types(t, name):
    @given(rows=rows_of(OTHER_TYPES[t], True), window=windows)
    def run(rows, window):
        if name in ("median", "avg") and pa.types.is_decimal(t) and name == "median":
            size, every = window
            ours = sash.rolling(pa.array(rows, t), size, every=every, agg="median").to_pylist()
            theirs = oracle.rolling("median", [None if v is None else float(v) for v in rows], *window)
            assert all(a is b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(ours, theirs, strict=True))
        else:
            check(name, t, rows, *window)

    run()


def test_result_types_are_sparks():
    cases = {
        ("sum", pa.int8()): pa.int64(),
        ("sum", pa.float32()): pa.float64(),
        ("sum", pa.decimal128(10, 2)): pa.decimal128(20, 2),
        ("sum", pa.decimal128(35, 2)): pa.decimal128(38, 2),
        ("avg", pa.int32()): pa.float64(),
        ("avg", pa.decimal128(10, 2)): pa.decimal128(14, 6),
        ("min", pa.date32()): pa.date32(),
        ("min", pa.float16()): pa.float16(),
        ("max", pa.string()): pa.string(),
        ("count", pa.string()): pa.int64(),
        ("median", pa.int16()): pa.float64(),
        ("first", pa.timestamp("ns", "UTC")): pa.timestamp("ns", "UTC"),
        ("collect_list", pa.int16()): pa.list_(pa.int16()),
        ("var_samp", pa.decimal128(10, 2)): pa.float64(),
    }
    for (name, t), expected in cases.items():
        assert sash.rolling(pa.array([None, None], t), 3, agg=name).type == expected, (name, t)
        assert len(sash.rolling(pa.array([None, None], t), 3, agg=name)) == 0


@given(rows=st.lists(moderate, min_size=1, max_size=60), window=windows)
def test_order_is_kept(rows, window):
    size, every = window
    ours = sash.rolling(np.array(rows), size, every=every, agg=affine)
    expected = [affine_of(rows[s : s + size]) for s in range(0, len(rows) - size + 1, every)]
    assert ours.tolist() == expected


@given(rows=st.lists(st.one_of(st.none(), moderate), max_size=40), window=windows)
def test_own_aggregates_skip_nulls(rows, window):
    size, every = window
    ours = sash.rolling(pa.array(rows, pa.int64()), size, every=every, agg=mean).to_pylist()
    for a, b in zip(ours, oracle.rolling("avg", rows, size, every), strict=True):
        assert a == b or math.isclose(a, b)


@pytest.mark.parametrize("q", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_percentiles(q):
    @given(rows=rows_of(st.one_of(moderate, st.just(3)), True), window=windows)
    def run(rows, window):
        size, every = window
        ours = sash.rolling(pa.array(rows, pa.int64()), size, every=every, agg=S.percentile(q=q)).to_pylist()
        for k, value in enumerate(ours):
            known = [v for v in rows[k * every : k * every + size] if v is not None]
            assert value == (oracle.quantile(known, q) if known else None)

    run()


def test_percentiles_over_several_chunks():
    values = np.random.default_rng(3).normal(size=30_000)
    ours = sash.rolling(values, 999, every=7, agg=S.percentile(q=0.3))
    view = np.lib.stride_tricks.sliding_window_view(values, 999)[::7]
    np.testing.assert_allclose(ours, np.quantile(view, 0.3, axis=1), rtol=1e-12)


# Exactness.

EXTREMES = [2**63 - 1, -(2**63), 2**62, -(2**62), 1, -1, 0]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_integer_sums_raise_exactly_when_a_window_does_not_fit(size):
    @given(rows=st.lists(st.sampled_from(EXTREMES), min_size=size, max_size=12))
    def run(rows):
        sums = [sum(rows[k : k + size]) for k in range(len(rows) - size + 1)]
        fits = all(-(2**63) <= s < 2**63 for s in sums)
        for every in (1, 2, size):
            picked = sums[::every]
            if all(-(2**63) <= s < 2**63 for s in picked):
                assert sash.rolling(np.array(rows), size, every=every, agg="sum").tolist() == picked
            else:
                assert not fits
                with pytest.raises(IntegerOverflow, match="64 bits"):
                    sash.rolling(np.array(rows), size, every=every, agg="sum")

    run()


def test_averages_of_extreme_integers_do_not_overflow():
    rows = np.array([2**63 - 1] * 5 + [-(2**63)] * 5)
    ours = sash.rolling(rows, 4, agg="avg")
    expected = [sum(map(int, rows[k : k + 4])) / 4 for k in range(7)]
    assert ours.tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("algorithm", ["auto", "lanes", "blocks", "two_stacks", "daba", "hammer_slide", "flat_fat", "b_int"])
@pytest.mark.parametrize("name", ["sum", "avg"])
def test_float_sums_do_not_drift(name, algorithm):
    rows = np.ones(3000)
    rows[500] = 1e17
    ours = sash.rolling(rows, 100, agg=name, algorithm=algorithm)
    assert set(ours[501:]) == {100.0 if name == "sum" else 1.0}


def test_variance_is_stable():
    rows = np.array([1e9, 1e9 + 1, 1e9 + 2] * 50)
    assert sash.rolling(rows, 3, agg="var_pop") == pytest.approx([2 / 3] * 148, rel=1e-6)


def test_decimal_sums_that_do_not_fit_raise():
    big = Decimal(10) ** 37 * 9
    with pytest.raises(IntegerOverflow, match="38 digits"):
        sash.rolling(pa.array([big, big], pa.decimal128(38, 0)), 2, agg="sum")


# Inputs and outputs.


def test_numpy_in_numpy_out():
    x = np.array([3, 1, 2], np.int32)
    for name, expected in {"min": np.int32, "sum": np.int64, "avg": np.float64, "count": np.int64, "max_by": np.int64}.items():
        result = sash.rolling(x, 2, agg=name)
        assert isinstance(result, np.ndarray)
        assert result.dtype == expected
    assert sash.rolling(x, 4).dtype == np.int32
    assert sash.rolling(x, 4).shape == (0,)
    assert sash.rolling(np.array([True, False, True]), 2, agg="max").tolist() == [True, True]
    assert np.isnan(sash.rolling(x, 1, agg="var_samp")).all()
    assert sash.rolling(x, 2, agg="m4")["last"].tolist() == [1, 2]
    assert sash.rolling(x, 2, agg="collect_list").tolist() == [[3, 1], [1, 2]]
    assert sash.rolling(x.astype(">i4"), 2).tolist() == [1, 1]
    assert sash.rolling(np.arange(20)[::3], 2, agg="sum").tolist() == [3, 9, 15, 21, 27, 33]
    assert sash.rolling(np.array(["2020-01-02", "NaT", "2020-01-01"], "M8[D]"), 2).to_pylist()[0] == datetime.date(2020, 1, 2)


def test_pandas_and_polars_series():
    import pandas as pd
    import polars as pl

    for series in (
        pd.Series([1.0, None, 3.0]),
        pl.Series([1.0, None, 3.0]),
        [1.0, None, 3.0],
        pa.chunked_array([[1.0, None], [3.0]]),
    ):
        out = sash.rolling(series, 2, agg="sum")
        kind = type(series) if isinstance(series, pd.Series | pl.Series) else pa.DoubleArray
        assert type(out) is kind
        assert (out.to_pylist() if isinstance(out, pa.Array) else out.to_list()) == [1.0, 3.0]
    named = sash.rolling(pl.Series("load", [1, None, None, 4]), 2, agg="sum")
    assert (named.name, named.to_list()) == ("load", [1, None, 4])
    assert sash.rolling(pl.Series(["b", "a"]), 2).to_list() == ["a"]
    assert sash.rolling(pd.Series(["b", "a"], name="x"), 2).equals(pd.Series(["a"], name="x"))
    assert sash.rolling(pd.Series(["b", "a", "b"], dtype="category"), 2, agg="count_distinct").to_list() == [2, 2]
    assert sash.rolling(pl.Series(["b", "a", "b"], dtype=pl.Categorical), 2, agg="max").to_list() == ["b", "b"]
    assert sash.rolling(pd.Series([1, None, 3], dtype="int64[pyarrow]"), 1, agg="sum").dtype == "int64[pyarrow]"


def test_sliced_arrow_arrays():
    whole = pa.array([None, 9, None, 4, 5, None, 7, 8, None, 1, 2, 3])
    for offset in range(1, 9):
        part = whole.slice(offset)
        assert sash.rolling(part, 2, agg="sum").to_pylist() == oracle.rolling("sum", part.to_pylist(), 2, 1)
    flags = pa.array([True, None, False, True, True]).slice(2)
    assert sash.rolling(flags, 2, agg="min").to_pylist() == [False, True]


def test_out_is_used():
    x = np.arange(10.0)
    out = np.empty(8)
    assert sash.rolling(x, 3, agg="max", out=out) is out
    assert out.tolist() == list(range(2, 10))
    assert sash.rolling(x, 3, agg="median", out=out) is out
    assert out.tolist() == list(range(1, 9))


def test_sketches_stay_within_their_bounds():
    values = np.random.default_rng(0).integers(0, 5000, 4000)
    estimate = sash.rolling(values, 3000, every=500, agg=S.approx_count_distinct(rsd=0.02))
    exact = sash.rolling(values, 3000, every=500, agg="count_distinct")
    assert np.all(np.abs(estimate / exact - 1) < 4 * 0.02)
    approximate = sash.rolling(values, 3000, every=500, agg=S.approx_percentile(q=0.9, k=400))
    for k, value in enumerate(approximate):
        window = values[k * 500 : k * 500 + 3000]
        assert abs((window <= value).mean() - 0.9) < 0.03


# Layouts that kernels do not know themselves.


@pytest.mark.parametrize(
    "t",
    [pa.decimal32(7, 2), pa.decimal64(12, 2), pa.decimal128(12, 2), pa.decimal256(12, 2), pa.decimal256(30, 2)],
    ids=str,
)
def test_decimals_of_every_width(t):
    rows = [Decimal("11.75"), None, Decimal("-2.50"), Decimal("12.50")]
    values = pa.array(rows, t)
    for name in ("min", "max", "first", "m4", "count", "count_distinct", "collect_list", "sum"):
        result = sash.rolling(values, 2, agg=name)
        assert result.to_pylist() == oracle.rolling(name, rows, 2, 1), name
    assert sash.rolling(values, 2, agg="max").type == t
    assert sash.rolling(values, 2, agg="collect_list").type == pa.list_(t)


def test_decimals_beyond_128_bits():
    values = pa.array([Decimal(10) ** 60, None, Decimal(7)], pa.decimal256(76, 3))
    assert sash.rolling(values, 2, agg="max").to_pylist() == [Decimal(10) ** 60, Decimal(7)]
    assert sash.rolling(values, 3, agg="count").to_pylist() == [2]
    with pytest.raises(InvalidType, match="sum does not take decimal256"):
        sash.rolling(values, 2, agg="sum")


@pytest.mark.parametrize("t", [pa.large_string(), pa.string_view()], ids=str)
def test_strings_of_every_layout(t):
    values = pa.array(["b", None, "a"], t)
    assert sash.rolling(values, 2, agg="min").type == t
    assert sash.rolling(values, 2, agg="min").to_pylist() == ["b", "a"]
    assert sash.rolling(values, 3, agg=S.string_agg(separator="|")).to_pylist() == ["b|a"]


def test_other_layouts():
    import pyarrow.compute as pc

    encoded = pc.run_end_encode(pa.array([1, 1, 2]))
    assert sash.rolling(encoded, 2, agg="collect_list").to_pylist() == [[1, 1], [1, 2]]
    assert sash.rolling([None] * 3, 2, agg="count").to_pylist() == [0, 0]
    assert sash.rolling(np.arange(4, dtype=">f8"), 2, agg="count_distinct").tolist() == [2, 2, 2]
    masked = np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 1])
    assert sash.rolling(masked, 2, agg="sum").to_pylist() == [1, 3, 3]
    halves = np.arange(5, dtype=np.float16)
    out = np.zeros(4, np.float16)
    assert sash.rolling(halves, 2, agg="max", out=out) is out
    assert out.tolist() == [1, 2, 3, 4]
    big = np.array([2**63, 2**64 - 1, 1], np.uint64)
    assert sash.rolling(big, 2, agg="max").tolist() == [2**64 - 1, 2**64 - 1]
    assert sash.rolling(big, 1, agg="approx_percentile").tolist()[2] == 1


@pytest.mark.parametrize("algorithm", ["auto", "hammer_slide", "two_stacks", "reactive_aggregator"])
def test_huge_sizes_and_slides(algorithm):
    x = np.arange(10)
    assert sash.rolling(x, 3, every=2**70, agg="sum", algorithm=algorithm).tolist() == [3]
    assert sash.rolling(x, 2**70, every=1, agg="sum", algorithm=algorithm).tolist() == []
    if algorithm == "auto":
        assert sash.rolling(x, 2**70, every=2**70, agg="collect_list").shape[0] == 0
        assert sash.rolling(x, 2, every=2**70, agg="median").tolist() == [0.5]
