"""Laws of every aggregate, in plain Python and compiled; the law checker itself; sorted runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.aggregates import _runs as runs
from sash.aggregates import registry
from sash.algebra.laws import LAWS, same_partial
from sash.errors import BrokenLaw, InvalidArgument
from sash.testing import check_laws
from tests.own_aggregates import affine, mean

TYPES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(-1e6, 1e6, width=32),
    pa.bool_(): st.booleans(),
}
FIELDS = [(n, t) for n, a in registry().items() for t in TYPES if a.kind == "fields" and a().supports(*[t] * max(1, a.arity))]


@pytest.mark.parametrize(("name", "t"), FIELDS, ids=str)
def test_built_in_aggregates_keep_their_laws(name, t):
    aggregate = registry()[name]()
    form = aggregate.form(*[t] * aggregate.arity)
    row = st.tuples(*([TYPES[t]] * len(form.inputs)))

    def folded(rows):
        partial = form.lift(*rows[0])
        for r in rows[1:]:
            partial = form.combine(partial, form.lift(*r))
        return partial

    partials = st.lists(row, min_size=1, max_size=3).map(folded)

    @given(st.tuples(partials, partials, partials))
    def run(given):
        for law in LAWS:
            if law.claimed(form):
                assert law.holds(form, same_partial, *given[: law.partials]), (law.name, given)

    run()


def test_tables_1_and_2_of_the_reactive_aggregator():
    """The paper's table 2, but for invertibility, which is claimed only where it is exact."""
    commutative = {"count", "sum", "max", "min", "avg", "geometric_mean", "max_count", "min_count", "stddev_samp", "stddev_pop"}
    ordered = {"max_by", "min_by", "first", "last"}
    exactly_invertible = {"count", "sum", "avg"}
    for name in commutative | ordered:
        aggregate = registry()[name]()
        form = aggregate.form(*[pa.int64()] * aggregate.arity)
        assert form.commutative == (name in commutative), name
        assert form.invertible == (name in exactly_invertible), name
    assert not registry()["sum"]().form(pa.float64()).invertible
    assert registry()["collect_list"].kind == "items"


def test_check_laws_accepts_what_is_right():
    check_laws(affine, examples=50)
    check_laws(mean, examples=50)
    for name in ("min", "sum", "stddev_pop"):
        check_laws(name, examples=30)


def own(**changes):
    def lift(v):
        return (v,)

    def combine(a, b):
        return (a[0] + b[0],)

    def lower(s):
        return s[0]

    members = {"identity": (0,), "lift": lift, "combine": combine, "lower": lower, **changes}
    return sash.udaf(state=("int64",))(type("own", (), members))


def minus(a, b):
    return (a[0] - b[0],)


def second(a, b):
    return (b[0] if b[0] != 0 else a[0],)


def wrong_inverse(a, b):
    return (b[0] - a[0],)


def rarely_wrong(a, b):
    return (a[0] + b[0] if a[0] < 1000 or b[0] < 1000 else 0,)


def two_fields(v):
    return (v, v)


def test_check_laws_shows_the_simplest_counterexample():
    with pytest.raises(BrokenLaw, match=r"own is not neutral in its identity: .* fails for a = \(1,\), identity = \(0,\)"):
        check_laws(own(combine=minus))
    with pytest.raises(BrokenLaw, match=r"not commutative: .* fails for a = \(1,\), b = \(-?\d,\)"):
        check_laws(own(combine=second, commutative=True))
    with pytest.raises(BrokenLaw, match=r"not invertible: invert\(combine\(a, b\), a\) == b fails for a = \(0,\), b = \(1,\)"):
        check_laws(own(invert=wrong_inverse))
    with pytest.raises(BrokenLaw, match="lift.* returned 2 fields where state has 1"):
        check_laws(own(lift=two_fields))
    with pytest.raises(BrokenLaw, match=r"not associative: .* fails for a = \(.*1000"):
        check_laws(own(combine=rarely_wrong), examples=2000)


def test_broken_laws_are_noticed_before_any_work():
    for broken, law in (
        (own(combine=minus), "identity"),
        (own(combine=second, commutative=True), "commutative"),
        (own(invert=wrong_inverse), "invertible"),
    ):
        with pytest.raises(BrokenLaw, match=law):
            sash.rolling(np.arange(5), 2, agg=broken)


def test_check_laws_bad_input():
    with pytest.raises(InvalidArgument, match="known types"):
        check_laws(mean, inputs="int65")
    with pytest.raises(InvalidArgument, match="takes 1 inputs"):
        check_laws(mean, inputs=("int64", "int64"))
    with pytest.raises(InvalidArgument, match="keeps items"):
        check_laws("collect_list")


# Sorted runs.

rows = st.lists(st.one_of(st.integers(-5, 5).map(float), st.just(float("nan"))), max_size=20)


@given(rows, rows, rows)
def test_runs_merge(a, b, c):
    one, two, three = (runs.from_rows(np.array(r, float)) for r in (a, b, c))
    assert runs.merge(runs.merge(one, two), three) == runs.merge(one, runs.merge(two, three))
    assert runs.merge(one, two) == runs.merge(two, one) == runs.from_rows(np.array(a + b, float))
    assert runs.merge(one, runs.EMPTY) == one
    assert one.total == len(a)


def test_one_error_with_the_smallest_case():
    """Several things are wrong with it: one error is raised, not a group, and it shows a small case."""

    @sash.udaf(state=("int64",))
    class wrong:
        identity = (0,)
        commutative = True
        returns = "int64"

        def lift(v):
            return (v,)

        def combine(a, b):
            return (a[0] - 2 * b[0] if a[0] > 5 else a[0] * b[0] - 7,)

        def lower(s):
            return s[0]

    with pytest.raises(BrokenLaw) as caught:
        check_laws(wrong)
    assert type(caught.value) is BrokenLaw
    assert len(str(caught.value)) < 300


def test_rows_in_the_order_of_time():
    """An aggregate that only makes sense over rows that follow each other: how far apart neighbours are at most."""
    from hypothesis import strategies as st

    @sash.udaf(state=("int64", "int64", "int64"))
    class widest_gap:
        identity = (1, 0, 0)
        returns = "int64"

        def lift(t):
            return (t, t, 0)

        def combine(a, b):
            if a[0] > a[1]:
                return b
            if b[0] > b[1]:
                return a
            if b[0] < a[1]:
                raise ValueError("rows are not in the order of time")
            return (a[0], b[1], max(a[2], b[2], b[0] - a[1]))

        def lower(s):
            return s[2]

    times = st.lists(st.integers(0, 1000), min_size=1, max_size=8).map(sorted)
    check_laws(widest_gap, values=times)
