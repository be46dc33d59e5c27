"""What users' functions mean: a checkpoint must notice when a helper or a constant has changed."""

from __future__ import annotations

from sash.functions.sources import meaning, with_helpers

LIMIT = 3


def capped(v):
    return min(v, LIMIT)


def lift(v):
    return (capped(v), 1)


def limited(limit):
    def lift(v):
        return (min(v, limit),)

    return lift


def calls_itself(v):
    return calls_itself(v - 1) if v else 0


def test_helpers_belong_to_a_function():
    assert with_helpers([lift]) == [lift, capped]
    assert with_helpers([calls_itself]) == [calls_itself]
    assert with_helpers([min]) == []


def test_what_a_function_means_follows_its_helpers_and_constants(monkeypatch):
    before = meaning([lift])
    assert "min(v, LIMIT)" in before
    assert "'LIMIT': 3" in before
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert meaning([lift]) != before
    assert meaning([limited(1)]) == meaning([limited(1)])
    assert meaning([limited(1)]) != meaning([limited(2)])
