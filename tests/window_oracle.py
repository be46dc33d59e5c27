"""Which rows each window holds, written as plainly as possible: lists of rows, no slices.

A case is a pair: a spec, and a function from a key's rows (in order) to its windows ``(start, end, ranks, rows)``. ``end`` may be None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from sash import windows as W
from tests.own_windows import Moved as Delta


@dataclass(frozen=True)
class Row:
    """A row: its key, time, tie breaker, value, and place of arrival."""

    key: Any
    t: int
    v: Any
    flag: bool = False
    n: int = 0


def periodic(size: int, every: int, offset: int = 0):
    def windows(rows):
        if not rows:
            return []
        low, high = rows[0].t - size, rows[-1].t
        starts = [s for s in range(low - every, high + 1) if (s - offset) % every == 0]
        found = [(s, s + size, None, [r for r in rows if s <= r.t < s + size]) for s in starts]
        return [w for w in found if w[3]]

    return windows


def sessions(gap: int):
    def windows(rows):
        found: list[list[Row]] = []
        for r in rows:
            if found and r.t - found[-1][-1].t <= gap:
                found[-1].append(r)
            else:
                found.append([r])
        return [(g[0].t, g[-1].t + gap, None, g) for g in found]

    return windows


def ranks(size: int, every: int, partial: bool):
    def windows(rows):
        found = []
        for k in range(0, len(rows), every):
            part = rows[k : k + size]
            if len(part) == size or partial:
                found.append((part[0].t, part[-1].t, (k, k + len(part)), part))
        return found

    return windows


def punctuation(rows):
    if not rows:
        return []
    marks = sorted({r.t for r in rows if r.flag})
    starts = sorted({rows[0].t, *marks})
    found = []
    for s, e in zip(starts, [*starts[1:], None], strict=True):
        found.append((s, e, None, [r for r in rows if s <= r.t and (e is None or r.t < e)]))
    return found


def last_rows(count: int, every: int):
    def windows(rows):
        edges = sorted({(r.t // every + 1) * every for r in rows})
        found = []
        for e in edges:
            part = [r for r in rows if r.t < e][-count:]
            found.append((part[0].t, e, None, part))
        return found

    return windows


def band(start: int, end: int):
    return lambda rows: [(start, end, None, part)] if (part := [r for r in rows if start <= r.t < end]) else []


def unbounded(rows):
    return [(None, None, None, rows)] if rows else []


def delta(d: int):
    def windows(rows):
        starts, last = [], None
        for r in rows:
            if r.v is not None and (last is None or abs(r.v - last) >= d):
                starts.append(r.t)
                last = r.v
        starts = sorted(set(starts))
        found = []
        for s, e in zip(starts, [*starts[1:], None], strict=False):
            part = [r for r in rows if s <= r.t and (e is None or r.t < e)]
            found.append((s, e, None, part))
        return [w for w in found if w[3]]

    return windows


class Threshold(W.ContextAwareWindow):
    """Frames: as long as the value is above ``x``."""

    def __init__(self, column: str, x: float) -> None:
        self.reads = (column,)
        self.x = x

    def begin(self):
        return False

    def notify(self, context, time, value, *, edges):
        above = value is not None and value > self.x
        if above and not context:
            edges.start(time)
        if context and not above:
            edges.end(time)
        return above


def threshold(x: int):
    def windows(rows):
        edges, above = [], False
        for r in rows:
            now = r.v is not None and r.v > x
            if now != above:
                edges.append((now, r.t))
            above = now
        starts, ends = sorted({t for now, t in edges if now}), sorted({t for now, t in edges if not now})
        found = []
        for s in starts:
            e = next((t for t in ends if t > s), None)
            found.append((s, e, None, [r for r in rows if s <= r.t and (e is None or r.t < e)]))
        return [w for w in found if w[3]]

    return windows


class Alarm(W.ContextAwareWindow):
    """From a value above ``x`` until ``n`` ticks after the last such value; every other alarm does not count."""

    def __init__(self, column: str, x: float, n: int) -> None:
        self.reads = (column,)
        self.x, self.n = x, n

    def begin(self):
        return {"alarms": 0, "until": None}

    def notify(self, context, time, value, *, edges):
        if value is None or value <= self.x:
            return context
        if context["until"] is not None and time < context["until"]:
            edges.remove(context["until"])
        else:
            context["alarms"] += 1
            if context["alarms"] % 2:
                edges.start(time)
        context["until"] = time + self.n
        if context["alarms"] % 2:
            edges.end(context["until"])
        return context


def alarms(x: int, n: int):
    def windows(rows):
        groups: list[list[int]] = []
        for r in rows:
            if r.v is None or r.v <= x:
                continue
            if groups and r.t < groups[-1][-1] + n:
                groups[-1].append(r.t)
            else:
                groups.append([r.t])
        spans = [(g[0], g[-1] + n) for g in groups[::2]]
        return [(s, e, None, [r for r in rows if s <= r.t < e]) for s, e in spans]

    return windows


class Squares(W.ContextFreeWindow):
    """From one square number to the one after the next: windows overlap, and no two have one length."""

    longest = 1 << 12

    def next_edge(self, t):
        n = 0
        while n * n <= t:
            n += 1
        return n * n

    def ended(self, after, until):
        n = 2
        while n * n <= until:
            if n * n > after:
                yield (n - 2) ** 2, n * n
            n += 1


def squares(rows):
    found = [(n * n, (n + 2) ** 2, None, [r for r in rows if n * n <= r.t < (n + 2) ** 2]) for n in range(40)]
    return [w for w in found if w[3]]


class Nested(W.ContextFreeWindow):
    """Ten ticks, and the middle four of them: windows within windows."""

    longest = 10

    def next_edge(self, t):
        return min(x + (t - x) // 10 * 10 + 10 for x in (0, 3, 7))

    def ended(self, after, until):
        for base in range(after // 10 * 10 - 20, until + 1, 10):
            for start, end in ((base, base + 10), (base + 3, base + 7)):
                if after < end <= until:
                    yield start, end


def nested(rows):
    if not rows:
        return []
    bases = range(rows[0].t // 10 * 10, rows[-1].t + 1, 10)
    pairs = [p for b in bases for p in ((b, b + 10), (b + 3, b + 7))]
    found = [(s, e, None, [r for r in rows if s <= r.t < e]) for s, e in pairs]
    return [w for w in found if w[3]]


small = st.integers(1, 15)


def cases():
    """Windows of every type over an integer measure, with their oracle."""
    return st.one_of(
        st.builds(lambda s, e, o: (W.sliding(s, e, offset=o), periodic(s, e, o)), small, small, st.integers(-7, 7)),
        st.builds(lambda s: (W.tumbling(s), periodic(s, s)), small),
        st.builds(lambda g: (W.session(g), sessions(g)), small),
        st.builds(lambda s, e, p: (W.rows(s, e, partial=p), ranks(s, e, p)), st.integers(1, 6), st.integers(1, 7), st.booleans()),
        st.just((W.punctuation("flag"), punctuation)),
        st.builds(lambda n, e: (W.last_rows(n, e), last_rows(n, e)), st.integers(1, 6), small),
        st.builds(lambda a, s: (W.band(a, a + s), band(a, a + s)), st.integers(-20, 20), small),
        st.just((W.unbounded(), unbounded)),
        st.builds(lambda d: (Delta("v", d), delta(d)), st.integers(1, 30)),
        st.builds(lambda x: (Threshold("v", x), threshold(x)), st.integers(-30, 30)),
        st.builds(lambda x, n: (Alarm("v", x, n), alarms(x, n)), st.integers(-30, 30), small),
        st.just((Squares(), squares)),
        st.just((Nested(), nested)),
    )


def by_key(rows: list[Row], tie=None) -> dict[Any, list[Row]]:
    """Each key's rows in order."""
    groups: dict[Any, list[Row]] = {}
    for r in rows:
        groups.setdefault(r.key, []).append(r)
    return {k: sorted(g, key=(lambda r: (r.t, *(tie(r) if tie else ())))) for k, g in groups.items()}
