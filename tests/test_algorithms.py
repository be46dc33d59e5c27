"""Every window algorithm with every aggregate that is lawful for it: discovered, driven by a state machine, bulk form included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import sash
from sash import algorithms
from sash.aggregates import registry
from sash.algorithms import FlatFat, HammerSlide, ReactiveAggregator, Recalculate, SubtractOnEvict
from sash.algorithms.rolling import window_algorithms
from sash.errors import EmptyWindow, InvalidArgument, InvalidType, UnlawfulAlgorithm
from sash.functions.call import resolve
from tests import oracle
from tests.own_aggregates import affine, affine_of

ALGORITHMS = list(window_algorithms().values())
SKETCHES = {n for n, a in registry().items() if a.kind == "sketch"}
AGGREGATES = [*(n for n in registry() if n not in SKETCHES), affine]


def label(value):
    return getattr(value, "__name__", None) or getattr(value, "label", None) or str(value)


def is_lawful(algorithm, aggregate):
    bound = resolve(aggregate).aggregate
    if bound.kind != "fields":
        return not algorithm.card.needs
    types = [sash.algorithms.binding._arrow_type("int64")] * max(1, bound.arity)
    return algorithm.missing_law(bound.form(*types)) is None


PAIRS = [(a, g) for a in ALGORITHMS for g in AGGREGATES]


def expected(aggregate, rows):
    if aggregate is affine:
        known = [v for v in rows if v is not None]
        return affine_of(known) if known else None
    if aggregate in ("max_by", "min_by"):
        known = [(x, by) for x, by in (r for r in rows if r is not None) if by is not None]
        if not known:
            return None
        pick = max if aggregate == "max_by" else min
        return next(x for x, by in known if by == pick(b for _, b in known))
    if aggregate == "string_agg":
        return "".join(v for v in rows if v is not None) or None
    result = oracle.aggregate(aggregate, rows)
    return tuple(result.values()) if isinstance(result, dict) else result


def rows_for(aggregate):
    if aggregate in ("max_by", "min_by"):
        return st.tuples(st.one_of(st.none(), st.integers(0, 99)), st.one_of(st.none(), st.integers(-3, 3)))
    if aggregate == "string_agg":
        return st.one_of(st.none(), st.text("ab", min_size=1, max_size=2))
    return st.one_of(st.none(), st.integers(-9, 9))


def same(aggregate, ours, theirs, rows):
    name = aggregate if isinstance(aggregate, str) else "own"
    if isinstance(ours, tuple):
        return ours == theirs
    return oracle.agree(name, ours, theirs, [r for r in rows if isinstance(r, int)])


@pytest.mark.parametrize(("algorithm", "aggregate"), [p for p in PAIRS if is_lawful(*p)], ids=label)
def test_state_machine(algorithm, aggregate):
    class Window(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            options = {} if aggregate in ("string_agg",) or resolve(aggregate).aggregate.kind != "fields" else {"dtype": "int64"}
            self.window = algorithm(aggregate, **options, capacity=2)
            self.rows = []

        @rule(values=st.lists(rows_for(aggregate), min_size=1, max_size=6))
        def insert(self, values):
            for v in values:
                self.window.insert(v)
                self.rows.append(v)

        @precondition(lambda self: self.rows)
        @rule(count=st.integers(1, 8))
        def evict(self, count):
            for _ in range(min(count, len(self.rows))):
                self.window.evict()
                self.rows.pop(0)

        @invariant()
        def agrees(self):
            assert len(self.window) == len(self.rows)
            ours, theirs = self.window.query(), expected(aggregate, self.rows)
            if not self.rows and aggregate not in oracle.OF_NOTHING:
                theirs = None
            assert same(aggregate, ours, theirs, self.rows), (ours, theirs, self.rows)

    run_state_machine_as_test(
        Window,
        settings=settings(
            max_examples=12, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.parametrize(("algorithm", "aggregate"), [p for p in PAIRS if not is_lawful(*p)], ids=label)
def test_unlawful_pairs_are_refused(algorithm, aggregate):
    with pytest.raises(UnlawfulAlgorithm, match="needs an aggregate that is"):
        algorithm(aggregate, **({} if resolve(aggregate).aggregate.kind != "fields" else {"dtype": "int64"})).insert(1)


BULK = ["min", "sum", "avg", "last", "stddev_pop", affine]


@pytest.mark.parametrize("aggregate", BULK, ids=label)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=label)
def test_bulk_form(algorithm, aggregate):
    if not is_lawful(algorithm, aggregate):
        pytest.skip("unlawful, see above")

    @given(rows=st.lists(st.integers(-50, 50), max_size=80), size=st.integers(1, 20), every=st.integers(1, 25))
    def run(rows, size, every):
        ours = sash.rolling(np.array(rows, np.int64), size, every=every, agg=aggregate, algorithm=algorithm.card.name)
        windows = [rows[s : s + size] for s in range(0, len(rows) - size + 1, every)]
        theirs = [affine_of(w) if aggregate is affine else oracle.aggregate(aggregate, w) for w in windows]
        assert len(ours) == len(theirs)
        for a, b, w in zip(ours.tolist(), theirs, windows, strict=True):
            assert same(aggregate, a, b, w)

    run()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=label)
def test_edges(algorithm):
    window = algorithm("max")
    assert len(window) == 0
    assert window.query() is None
    with pytest.raises(EmptyWindow, match="empty"):
        window.evict()
    window.insert(2)
    with pytest.raises(InvalidType, match="float64"):
        window.insert(2.5)
    window.insert(None)
    window.evict()
    assert window.query() is None
    assert algorithm("count", dtype="int64").query() == 0
    wide = algorithm("max", dtype="float64")
    wide.insert(3)
    assert wide.query() == 3.0
    with pytest.raises(InvalidArgument, match="capacity"):
        algorithm("max", capacity=0)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=label)
def test_values_that_are_no_numbers(algorithm):
    if algorithm is SubtractOnEvict:
        with pytest.raises(UnlawfulAlgorithm):
            algorithm("max").insert("b")
        return
    window = algorithm("max")
    for v in ("b", "c", None, "a"):
        window.insert(v)
    assert window.query() == "c"
    window.evict()
    window.evict()
    assert window.query() == "a"


# Hammer Slide's own.

SWITCHES = ("ring", "decomposed", "per_slide", "simd")


@pytest.mark.parametrize("off", [None, *SWITCHES, "all"], ids=str)
@pytest.mark.parametrize("slide", [1, 3, 20, None], ids=str)
def test_hammer_slide_evicts_slides(slide, off):
    switches = {s: False for s in SWITCHES if off in (s, "all")}

    @given(st.data())
    def run(data):
        window = HammerSlide("sum", slide, dtype="int64", capacity=2, **switches)
        slides, filling = [], []
        for _ in range(data.draw(st.integers(0, 40))):
            action = data.draw(st.sampled_from(["insert", "insert", "insert", "evict", "cut"]))
            if action == "insert":
                v = data.draw(st.integers(-9, 9))
                window.insert(v)
                filling.append(v)
                if len(filling) == slide:
                    slides.append(filling)
                    filling = []
            elif action == "cut" and slide is None:
                window.cut()
                slides.append(filling)
                filling = []
            elif action == "evict" and (slides or filling):
                window.evict()
                if slides:
                    slides.pop(0)
                else:
                    filling = []
            rows = [v for s in slides for v in s] + filling
            assert len(window) == len(rows)
            assert window.query() == (sum(rows) if rows else None)

    run()


def test_hammer_slide_rejects_a_slide_that_cannot_be():
    with pytest.raises(InvalidArgument, match="slide must be a positive integer"):
        HammerSlide("max", slide=0)


# The tree.


class Counted:
    """An object aggregate that counts its combines."""

    def __init__(self):
        self.calls = 0

    def combine(self, a, b):
        self.calls += 1
        return a + b


def counting_tree(n):
    from sash.algebra import Objects

    tree = FlatFat("collect_list", values=list(range(n)))
    counter = Counted()
    tree._binding.objects = Objects(lift=lambda v: (v,), combine=counter.combine, lower=list, identity=tuple)
    return tree, counter


@given(power=st.integers(1, 7), data=st.data())
def test_theorem_4_2(power, data):
    """new makes n - 1 calls, m writes at most m (1 + ceil(log2(n / m))), a prefix or suffix at most log2(n), everything none."""
    n = 2**power
    tree, counter = counting_tree(n)
    tree._build()
    assert counter.calls == n - 1
    places = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    counter.calls = 0
    tree.update(places, [-p for p in places])
    m = len(places)
    assert counter.calls <= m * (1 + math.ceil(math.log2(n / m)))
    values = [-p if p in places else p for p in range(n)]
    counter.calls = 0
    assert tree.aggregate() == values
    assert counter.calls == 0
    i = data.draw(st.integers(0, n - 1))
    assert tree.prefix(i) == values[: i + 1]
    assert counter.calls <= power
    counter.calls = 0
    assert tree.suffix(i) == values[i:]
    assert counter.calls <= power


@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=20), data=st.data())
def test_compiled_tree(values, data):
    tree = FlatFat("last", values=values)
    changes = data.draw(st.dictionaries(st.integers(0, len(values) - 1), st.integers(-9, 9)))
    tree.update(list(changes), list(changes.values()))
    now = [changes.get(k, v) for k, v in enumerate(values)]
    i = data.draw(st.integers(0, len(values) - 1))
    assert (tree.aggregate(), tree.prefix(i), tree.suffix(i)) == (now[-1], now[i], now[-1])


def test_tree_bad_input():
    tree = FlatFat("sum", values=[1, 2, 3])
    with pytest.raises(InvalidArgument, match="place must be from 0 to 2"):
        tree.update([3], [1])
    with pytest.raises(InvalidArgument, match="each place once"):
        tree.update([1, 1], [1, 2])
    with pytest.raises(InvalidArgument, match="as many values as places"):
        tree.update([1], [1, 2])
    with pytest.raises(InvalidArgument, match="empty"):
        FlatFat("sum", values=[])
    assert tree.aggregate() == 6


# The Reactive Aggregator's own.


@pytest.mark.parametrize("aggregate", ["max", "sum", "first", "collect_list", affine], ids=label)
def test_rows_leave_from_anywhere(aggregate):
    @given(st.data())
    def run(data):
        window = ReactiveAggregator(aggregate, capacity=2)
        rows = []
        for _ in range(data.draw(st.integers(1, 60))):
            action = data.draw(st.sampled_from(["insert", "insert", "oldest", "any", "query"]))
            if action == "insert":
                v = data.draw(st.integers(-9, 9))
                rows.append((window.insert(v), v))
            elif rows and action == "oldest":
                window.evict()
                rows.pop(0)
            elif rows and action == "any":
                handle, _ = rows.pop(data.draw(st.integers(0, len(rows) - 1)))
                window.evict(handle)
                with pytest.raises(InvalidArgument if rows else EmptyWindow):
                    window.evict(handle)
            elif action == "query" and rows:
                assert window.query() == expected(aggregate, [v for _, v in rows])
            assert len(window) == len(rows)

    run()


@pytest.mark.parametrize("aggregate", ["max", "first", "collect_list", affine], ids=label)
def test_the_first_in_first_out_form(aggregate):
    @given(st.data())
    def run(data):
        window = ReactiveAggregator(aggregate, fifo=True, capacity=2)
        rows = []
        for _ in range(data.draw(st.integers(1, 12))):
            for v in data.draw(st.lists(st.integers(-9, 9), max_size=20)):
                window.insert(v)
                rows.append(v)
            for _ in range(data.draw(st.integers(0, len(rows)))):
                window.evict()
                rows.pop(0)
            if rows:
                assert window.query() == expected(aggregate, rows)

    run()


def test_fifo_refuses_other_orders():
    window = ReactiveAggregator("max", fifo=True)
    first, second = window.insert(1), window.insert(2)
    with pytest.raises(InvalidArgument, match="in the order of their insertion"):
        window.evict(second)
    window.evict(first)
    assert window.query() == 2


def test_capacity_follows_the_paper():
    window = ReactiveAggregator("sum", capacity=16)
    handles = [window.insert(1) for _ in range(16)]
    for h in handles[2:8]:
        window.evict(h)  # 10 of 16 left, with holes: full but not more than three quarters used
    window.insert(1)
    assert (window.capacity, window.query()) == (16, 11)
    for _ in range(5):
        window.insert(1)
    assert window.capacity == 16
    window.insert(1)  # 16 of 16 used
    assert (window.capacity, window.query()) == (32, 17)
    while len(window) >= 8:
        window.evict()
    assert (window.capacity, window.query()) == (16, 7)


def test_the_inverted_buffer():
    """Figure 5: 9 arrives at place 1 while 7, 3, 2 lie behind it."""
    window = ReactiveAggregator("collect_list", capacity=4)
    for v in (4, 7, 3, 2):
        window.insert(v)
    window.evict()
    window.insert(9)
    assert window.query() == [7, 3, 2, 9]
    assert window.capacity == 4


def test_keys():
    windows = ReactiveAggregator.per_key("max")
    windows.insert("a", 1)
    handle = windows.insert("a", 5)
    windows.insert("b", 3)
    windows.evict("a", handle)
    assert (windows.query("a"), windows.query("b"), windows.query("c")) == (1, 3, None)
    windows.evict("a")
    assert windows.keys() == ["b"]
    with pytest.raises(EmptyWindow, match="'a'"):
        windows.evict("a")


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=label)
def test_cards_are_filled_in(algorithm):
    card = algorithm.card
    assert card.name
    assert all((card.idea, card.insert, card.evict, card.query, card.space, card.paper))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=label)
def test_nulls_before_the_first_value(algorithm):
    window = algorithm("sum")
    window.insert(None)
    window.insert(None)
    assert (len(window), window.query()) == (2, None)
    window.evict()
    window.insert(2**53 + 1)
    assert (len(window), window.query()) == (2, 2**53 + 1)
    window.evict()
    window.evict()
    assert len(window) == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=label)
def test_values_that_do_not_fit_are_refused(algorithm):
    for first, then in ((True, 5), (1, "a"), (1, 2**70), (np.int8(1), 300)):
        window = algorithm("max", dtype=np.asarray(first).dtype)
        window.insert(first)
        with pytest.raises(InvalidType, match="max takes"):
            window.insert(then)
        assert (len(window), window.query()) == (1, first)
    with pytest.raises(InvalidArgument, match="capacity"):
        algorithm("max", capacity=2.5)


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a is not SubtractOnEvict], ids=label)
def test_values_and_keys_have_types_of_their_own(algorithm):
    window = algorithm("max_by")
    for row in ((1.5, 5), (2.5, 9), (3.5, 7)):
        window.insert(row)
    assert window.query() == 2.5
    names = algorithm("max_by")
    for row in (("x", 5), ("y", 9)):
        names.insert(row)
    assert names.query() == "y"
    with pytest.raises(InvalidType, match="rows of 2 values"):
        algorithm("max_by", dtype="int64").insert(7)


def test_a_failed_insert_leaves_the_window_as_it_was():
    for algorithm in ALGORITHMS:
        if algorithm in (SubtractOnEvict, Recalculate, ReactiveAggregator, algorithms.BInt):
            continue  # refused, or rows are joined only later
        window = algorithm("max")
        window.insert("a")
        with pytest.raises(InvalidType, match="cannot join 1"):
            window.insert(1)
        assert (len(window), window.query()) == (1, "a")


def test_handles_are_checked():
    window = ReactiveAggregator("max")
    first = window.insert(None)
    window.insert(3)
    for wrong in (True, 1.0, "a"):
        with pytest.raises(InvalidArgument, match="handle"):
            window.evict(wrong)
    window.evict(first)
    assert (len(window), window.query()) == (1, 3)
