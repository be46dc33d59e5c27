"""The base classes of users' own windows: a spec that is its own shape, in ticks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.types import FAR_AHEAD, FAR_BACK, Measure
from sash.windows.base import Window
from sash.windows.shapes import Shape

Array = npt.NDArray[Any]


class ContextFreeWindow(Window, Shape):
    """A window type whose edges are known without looking at any row. A subclass has three methods, all in ticks.

    >>> class Primes(ContextFreeWindow):
    ...     '''From one prime number to the next.'''
    ...     longest = 1 << 20
    ...     def next_edge(self, t):
    ...         n = max(t + 1, 2)
    ...         while any(n % d == 0 for d in range(2, int(n ** 0.5) + 1)):
    ...             n += 1
    ...         return n
    ...     def ended(self, after, until):
    ...         edge = self.next_edge(after)
    ...         while edge <= until:
    ...             start = max((n for n in range(edge) if self.next_edge(n - 1) == n), default=None)
    ...             if start is not None:
    ...                 yield start, edge
    ...             edge = self.next_edge(edge)
    >>> list(Primes().ended(5, 13))
    [(5, 7), (7, 11), (11, 13)]
    """

    context = "context free"
    decided_by_rows = False
    has_known_edges = True

    @property
    def windows_per_row(self) -> int | None:
        return None

    @property
    @abstractmethod
    def longest(self) -> int:
        """No window is longer than this."""

    @abstractmethod
    def next_edge(self, t: int) -> int:
        """The first start or end of a window after ``t``; :data:`~sash.types.FAR_AHEAD` if there is none."""

    @abstractmethod
    def ended(self, after: int, until: int) -> Iterable[tuple[int, int]]:
        """Start and end of every window whose end is after ``after`` and not after ``until``."""

    def bind(self, measure: Measure) -> Shape:
        return self

    # Derived from the three; override where there is a faster way.

    def edges(self, first: int, last: int) -> Array:
        """All edges from ``first`` to ``last``, both included."""
        edges = []
        edge = self.next_edge(first - 1)
        while edge <= last:
            edges.append(edge)
            edge = self.next_edge(edge)
        return np.array(edges, np.int64)

    def previous_edges(self, ticks: Array) -> Array:
        """For each tick the latest edge at or before it; :data:`~sash.types.FAR_BACK` where there is none."""
        times, places = np.unique(ticks, return_inverse=True)
        edges = np.empty_like(times)
        upcoming, current = FAR_BACK, FAR_BACK
        for i, t in enumerate(times.tolist()):
            if t >= upcoming:
                # Most often there is one no further back than the longest window.
                current, edge = FAR_BACK, max(upcoming, self.next_edge(max(t - self.longest - 1, FAR_BACK)))
                while edge <= t:
                    current, edge = edge, self.next_edge(edge)
                upcoming = edge
                if current == FAR_BACK:
                    current = self._far_edge(max(t - self.longest - 1, FAR_BACK), upcoming)
            edges[i] = current
        result: Array = edges[places]
        return result

    def _far_edge(self, t: int, upcoming: int) -> int:
        """The latest edge at or before ``t``, after which ``upcoming`` is the next one: ever longer steps back, then halves."""
        step = max(1, self.longest)
        below = max(t - step, FAR_BACK)
        while self._edge_after(below) == upcoming:
            if below == FAR_BACK:
                return FAR_BACK
            t, step = below, 2 * step
            below = max(t - step, FAR_BACK)
        while t - below > 1:
            middle = (below + t) // 2
            below, t = (below, middle) if self._edge_after(middle) == upcoming else (middle, t)
        return t if self._edge_after(below) == t else FAR_BACK

    def _edge_after(self, t: int) -> int | None:
        """The next edge; None where time is too far back for a window that computes with dates."""
        try:
            return self.next_edge(t)
        except (OverflowError, ValueError):
            return None

    def next_end(self, t: int) -> int | None:
        return None if t <= FAR_BACK else self._edge_after(t)

    def density(self) -> float:
        return 0.0

    def listed(self, first: int, last: int) -> tuple[Array, Array]:
        """Starts and ends of all windows that may contain a tick from ``first`` to ``last``, in order of their ends."""
        reach = min(self.longest, FAR_AHEAD)
        pairs = [(s, e) for s, e in self.ended(first, min(last + reach, FAR_AHEAD)) if s <= last]
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return table[:, 0].copy(), table[:, 1].copy()


class Edges:
    """The edges of a context aware window's windows: ``notify`` adds and removes them."""

    def __init__(self, starts: Iterable[int] = (), ends: Iterable[int] = ()) -> None:
        self.starts: list[int] = list(starts)
        self.ends: list[int] = list(ends)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges) and (self.starts, self.ends) == (other.starts, other.ends)

    def start(self, t: int) -> None:
        """A window starts at ``t``."""
        self.starts.append(t)

    def end(self, t: int) -> None:
        """The open windows end at ``t``."""
        self.ends.append(t)

    def remove(self, t: int) -> None:
        """Take back the edges at ``t``."""
        self.starts = [s for s in self.starts if s != t]
        self.ends = [e for e in self.ends if e != t]


def is_json(context: Any) -> bool:
    """Whether a context is a JSON value, so that writing and reading it returns the same."""
    if isinstance(context, list):
        return all(map(is_json, context))
    if isinstance(context, dict):
        return all(isinstance(name, str) for name in context) and all(map(is_json, context.values()))
    return context is None or isinstance(context, bool | int | float | str)


class ContextAwareWindow(Window, Shape):
    """A window type whose edges depend on the rows. ``notify`` is called for each row of a key, in the order of time.

    When a row comes late, ``notify`` is called again for the retained rows of its key, from the context before the first of them. A
    context must be a JSON value (a number, text, a list, a dictionary), because snapshots carry it.
    """

    context = "forward context free"
    is_shown_rows = True
    never_ends = True

    @property
    def windows_per_row(self) -> int | None:
        return None

    def begin(self) -> Any:
        """The context before a key's first row."""
        return None

    @abstractmethod
    def notify(self, context: Any, time: int, *values: Any, edges: Edges) -> Any:
        """Called for each row, with the values of ``reads``: adds or removes edges, and returns the new context.

        An edge may lie at the row's time or later, and edges later than the row may be removed.
        """

    def bind(self, measure: Measure) -> Shape:
        return self
