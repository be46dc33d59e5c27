"""Windows: their laws, durations, and the classes for users' own."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import functions as S
from sash import windows as W
from sash.errors import BrokenLaw
from sash.testing import check_laws
from sash.types import FAR_AHEAD, FAR_BACK, Duration, Measure
from tests import window_oracle

MICROS = Measure(pa.timestamp("us"))


@pytest.mark.parametrize(
    "window", [window_oracle.Squares(), window_oracle.Nested(), window_oracle.Delta("v", 5), window_oracle.Threshold("v", 3)]
)
def test_lawful(window):
    check_laws(window)


@pytest.mark.parametrize(
    "spec",
    [
        W.tumbling("1 day", tz="Europe/Berlin"),
        W.sliding("2 days", "1 day", tz="America/New_York"),
        W.sliding("3 months", "1 month"),
        W.tumbling("1 week", tz="UTC"),
        W.sliding("1 month", "10 days"),
        W.band(5, 500),
    ],
)
def test_built_in_context_free_windows_are_lawful(spec):
    check_laws(spec.bind(Measure(pa.timestamp("s")) if "band" not in repr(spec) else Measure(pa.int64())), examples=30)


class Backwards(W.ContextFreeWindow):
    longest = 10

    def next_edge(self, t):
        return t - t % 10

    def ended(self, after, until):
        return []


class NotAtEdges(W.ContextFreeWindow):
    longest = 10

    def next_edge(self, t):
        return t - t % 10 + 10

    def ended(self, after, until):
        return [(e - 7, e) for e in range(after - after % 10 + 10, until + 1, 10)]


class Forgetful(NotAtEdges):
    def ended(self, after, until):
        return [(e - 10, e) for e in range(after - after % 10 + 20, until + 1, 10)]


class IntoThePast(W.ContextAwareWindow):
    def notify(self, context, time, *, edges):
        edges.start(time - 1)


class Impure(W.ContextAwareWindow):
    def notify(self, context, time, *, edges):
        return (time,)


UNLAWFUL = [
    (Backwards(), "must lie after"),
    (NotAtEdges(), "but next_edge"),
    (Forgetful(), "together"),
    (IntoThePast(), "before the row"),
    (Impure(), "JSON"),
]


@pytest.mark.parametrize(("window", "message"), UNLAWFUL)
def test_unlawful(window, message):
    with pytest.raises(BrokenLaw, match=message):
        check_laws(window)


@pytest.mark.parametrize(
    ("given_", "nanos"),
    [
        ("1 second", 10**9),
        ("90 seconds", 90 * 10**9),
        ("1 hour 30 minutes", 5400 * 10**9),
        ("1.5 hours", 5400 * 10**9),
        ("interval 2 days", 2 * 86400 * 10**9),
        ("250 milliseconds", 250 * 10**6),
        ("10ms", 10**7),
        ("-1 second", -(10**9)),
        (datetime.timedelta(minutes=2), 120 * 10**9),
        ("1 week", 7 * 86400 * 10**9),
    ],
)
def test_durations(given_, nanos):
    assert Duration.of(given_, "x").nanos == nanos


@given(
    size=st.integers(1, 40),
    every=st.integers(1, 40),
    offset=st.integers(-50, 50),
    ticks=st.lists(st.integers(-200, 200), min_size=1, max_size=20),
)
def test_periodic_edges(size, every, offset, ticks):
    shape = W.sliding(size, every, offset=offset).bind(Measure(pa.int64()))
    starts = {offset + k * every for k in range(-600, 600)}
    edges = sorted(starts | {s + size for s in starts})
    for t, found in zip(ticks, shape.previous_edges(pa.array(ticks).to_numpy()).tolist(), strict=True):
        assert found == max(e for e in edges if e <= t)
    low, high = min(ticks), max(ticks)
    assert shape.edges(low, high).tolist() == [e for e in edges if low <= e <= high]


@pytest.mark.parametrize("size", ["1 day", "1 month", "3 months"])
@pytest.mark.parametrize("every", ["5 months", "12 months", "2 years", "100 years"])
@pytest.mark.parametrize("aggs", [[S.count().alias("n")], [S.collect_list("v").alias("n")]], ids=["partials", "rows"])
def test_calendar_windows_that_leave_months_out(size, every, aggs):
    days = [(1969, 12, 31), (1970, 1, 1), (1971, 2, 5), (2023, 11, 5), (2024, 1, 1), (2024, 1, 5), (2024, 11, 5), (2070, 1, 1)]
    spec, months = W.sliding(size, every), {"5 months": 5, "12 months": 12, "2 years": 24, "100 years": 1200}[every]
    expected = {}
    for n, (year, month, day) in enumerate(days):
        start = ((year - 1970) * 12 + month - 1) // months * months
        first = datetime.datetime(1970 + start // 12, start % 12 + 1, 1)
        behind = start + int(size.split()[0])
        end = first + datetime.timedelta(days=1) if size == "1 day" else datetime.datetime(1970 + behind // 12, behind % 12 + 1, 1)
        if first <= datetime.datetime(year, month, day) < end:
            expected.setdefault((first, end), []).append(n)
    times = pa.array([datetime.datetime(*d) for d in days], pa.timestamp("us"))
    for some in [slice(None), *(slice(k, k + 2) for k in range(len(days)))]:
        table = pa.table({"t": times[some], "v": list(range(len(days)))[some]})
        op = sash.Operator(windows=spec, aggs=aggs, time="t")
        for batch in table.to_batches(max_chunksize=1):
            op.add(batch)
            op.advance(datetime.datetime(1960, 1, 1))
        wanted = {at: [n for n in held if n in table["v"].to_pylist()] for at, held in expected.items()}
        wanted = {at: held if "collect" in repr(aggs) else len(held) for at, held in wanted.items() if held}
        for result in (sash.aggregate(table, windows=spec, aggs=aggs, time="t"), op.close()):
            assert {(r["window"]["start"], r["window"]["end"]): r["n"] for r in result.to_pylist()} == wanted


@given(
    gaps=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 9)), max_size=5),
    ticks=st.lists(st.integers(-200, 1500), min_size=1, max_size=20),
)
def test_the_edge_before_a_row_however_far_back(gaps, ticks):
    """Windows with long pauses between them: the last edge before a row may be further back than any window is long."""
    windows, at = [], 0
    for pause, length in gaps:
        windows.append((at + pause, at + pause + length))
        at += pause + length
    edges = sorted({e for pair in windows for e in pair})

    class Visits(W.ContextFreeWindow):
        longest = 9

        def next_edge(self, t):
            return min((e for e in edges if e > t), default=FAR_AHEAD)

        def ended(self, after, until):
            return [(s, e) for s, e in windows if after < e <= until]

    found = Visits().previous_edges(np.array(ticks)).tolist()
    assert found == [max((e for e in edges if e <= t), default=FAR_BACK) for t in ticks]
