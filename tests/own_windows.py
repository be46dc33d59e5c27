"""Users' own windows for the tests; times are in microseconds."""

from __future__ import annotations

from sash import windows as W

SECOND = 1_000_000


class FourAndFive(W.ContextFreeWindow):
    """Four seconds, then five, and so on."""

    longest = 5 * SECOND

    def next_edge(self, t):
        start = t // (9 * SECOND) * 9 * SECOND
        return next(e for e in (start + 4 * SECOND, start + 9 * SECOND) if e > t)

    def ended(self, after, until):
        edge = self.next_edge(after)
        while edge <= until:
            yield edge - (5 * SECOND if edge % (9 * SECOND) == 0 else 4 * SECOND), edge
            edge = self.next_edge(edge)


class Moved(W.ContextAwareWindow):
    """A new window starts when the value has moved by at least ``d`` since the last one started."""

    def __init__(self, column, d):
        self.reads = (column,)
        self.d = d

    def notify(self, context, time, value, *, edges):
        if value is None or (context is not None and abs(value - context) < self.d):
            return context
        if context is not None:
            edges.end(time)
        edges.start(time)
        return value


class Faulty(Moved):
    """Raises at the first value that it does not like."""

    def notify(self, context, time, value, *, edges):
        if value is not None and value > 40:
            raise ValueError(f"cannot stand {value}")
        return super().notify(context, time, value, edges=edges)
