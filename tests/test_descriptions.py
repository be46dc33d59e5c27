"""What an operator was made with, as data: two of one query are equal, however it is spelled, and code counts with what it reads."""

from __future__ import annotations

import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.slicing import descriptions

COUNT = [S.count().alias("n")]
SIZE = 10


def helper(t):
    return t // SIZE * SIZE + SIZE


class Base(W.ContextFreeWindow):
    longest = 20

    def ended(self, after, until):
        end = self.next_edge(after)
        while end <= until:
            yield end - SIZE, end
            end += SIZE


class Helped(Base):
    def next_edge(self, t):
        return helper(t)


class Set(Base):
    def __init__(self, rule):
        self.rule = rule

    def next_edge(self, t):
        return self.rule(t)


def meaning(window):
    return descriptions.of_window(window)


def test_a_users_own_window_is_what_its_code_reads(monkeypatch):
    before, rule = meaning(Helped()), meaning(Set(lambda t: t // 5 * 5 + 5))
    assert meaning(Helped()) == before
    assert meaning(Set(lambda t: t // 4 * 4 + 4)) != rule
    monkeypatch.setitem(globals(), "SIZE", 20)
    assert meaning(Helped()) != before
    monkeypatch.setitem(globals(), "SIZE", 10)
    assert meaning(Helped()) == before
    monkeypatch.setitem(globals(), "helper", lambda t: t // 10 * 10 + 10)
    assert meaning(Helped()) != before


def test_a_snapshot_of_a_window_whose_helper_changed_is_refused(monkeypatch):
    op = sash.Operator(windows=Helped(), aggs=COUNT, time="t")
    op.add([{"t": 1}])
    kept = op.snapshot()
    sash.Operator.restore(kept, windows=Helped())
    monkeypatch.setitem(globals(), "SIZE", 20)
    with pytest.raises(sash.errors.InvalidSnapshot, match="Helped"):
        sash.Operator.restore(kept, windows=Helped())


def test_the_type_that_an_aggregate_gives_is_part_of_it():
    def made(gives):
        class Total:
            identity = (0,)
            commutative = True
            returns = gives

            def lift(v): return (v,)  # fmt: skip

            def combine(a, b): return (a[0] + b[0],)  # fmt: skip

            def lower(s): return s[0]  # fmt: skip

        return sash.udaf(state=("int64",))(Total)("v")

    assert descriptions.of_call(made("int64")) != descriptions.of_call(made("float64"))


def test_one_query_in_two_spellings_is_one_query():
    def described(by, window, lateness):
        op = sash.Operator(windows=window, aggs=COUNT, by=by, time="t", lateness=lateness)
        return descriptions.canonical(descriptions.of_request(op._asked))

    assert described("k", W.tumbling("60 seconds"), "1 hour") == described(["k"], W.tumbling("1 minute"), "60 minutes")
    assert described(None, W.tumbling("1 minute"), None) == described([], W.tumbling("1 minute"), None)
    assert described("k", W.tumbling("1 minute"), None) != described("j", W.tumbling("1 minute"), None)
    assert described("k", W.tumbling("1 minute"), None) != described("k", W.tumbling("2 minutes"), None)
    op = sash.Operator(windows={"w": W.tumbling("60 seconds")}, aggs=COUNT, time="t")
    sash.Operator.restore(op.snapshot(), windows={"w": W.tumbling("1 minute")})
