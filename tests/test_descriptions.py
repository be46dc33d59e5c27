"""What an operator was made with, as data: two of one query are equal, however it is spelled, and code counts with what it reads."""

from __future__ import annotations

import functools
import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import sash
from sash import functions as S
from sash import windows as W
from sash.slicing.persistence import descriptions

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
        return descriptions.canonical(descriptions.of_request(op._request, op._options))

    assert described("k", W.tumbling("60 seconds"), "1 hour") == described(["k"], W.tumbling("1 minute"), "60 minutes")
    assert described(None, W.tumbling("1 minute"), None) == described([], W.tumbling("1 minute"), None)
    assert described(None, W.tumbling("1 minute"), None) == described(None, W.tumbling("1 minute"), "0 seconds")
    assert described("k", W.tumbling("1 minute"), None) != described("j", W.tumbling("1 minute"), None)
    assert described("k", W.tumbling("1 minute"), None) != described("k", W.tumbling("2 minutes"), None)
    op = sash.Operator(windows={"w": W.tumbling("60 seconds")}, aggs=COUNT, time="t")
    sash.Operator.restore(op.snapshot(), windows={"w": W.tumbling("1 minute")})


LOG = logging.getLogger("windows")
LIMITS = np.array(["a", "b"], object)


@functools.lru_cache
def cached(t):
    LOG.debug("an edge after %s", t)
    return t // 10 * 10 + 10


@dataclass(frozen=True)
class Careful(Base):
    limit: int = 3

    def next_edge(self, t):
        return cached(t) if LIMITS[0] == "a" else t


def test_what_a_process_remembers_does_not_count():
    before = meaning(Careful())
    LOG.debug("a level is worked out and kept")
    logging.getLogger("windows.below")
    Careful().next_edge(5)
    assert meaning(Careful()) == before
    assert meaning(Careful(4)) != before
    script = "from tests.test_descriptions import *; print(json.dumps(meaning(Careful())))"
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        told = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True).stdout
        assert json.loads(told) == before


def test_a_compiled_helper_is_read_as_it_was_written():
    class Compiled:
        """As numba's dispatchers are: the function within, and much that changes."""

        def __init__(self, function):
            self.py_func = function
            self.calls = 0

    def made(step):
        return Compiled(lambda t: t // step * step + step)

    one = made(10)
    before = meaning(Set(one))
    one.calls = 7
    assert meaning(Set(one)) == before
    assert meaning(Set(made(20)))["text"] != before["text"]
