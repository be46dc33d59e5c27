"""``check_laws`` for users' own windows: edges only advance, and every window that is reported starts and ends at one."""

from __future__ import annotations

from typing import Any

from sash.errors import BrokenLaw, InvalidArgument
from sash.types import FAR_AHEAD
from sash.windows.base import Window
from sash.windows.own import ContextAwareWindow, ContextFreeWindow, Edges, is_json


def check_window(window: Window, *, values: Any = None, examples: int = 200, times: tuple[int, int] = (-1000, 1000)) -> None:
    """Raise :class:`~sash.errors.BrokenLaw` with the simplest counterexample if a window breaks a law.

    For a context-free window: ``next_edge(t)`` lies after ``t``, and is the same from anywhere before that edge; the windows that ended
    between two watermarks start before they end, at edges, are no longer than ``longest``, and do not depend on how many calls report
    them. For a context-aware one: edges lie at the row's time or later, and windows start before they end. ``times`` are the ticks that
    are tried; ``values`` is a Hypothesis strategy for what the window reads of a row.
    """
    import hypothesis
    from hypothesis import strategies as st

    settings = hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck), print_blob=False,
        report_multiple_bugs=False,
    )  # fmt: skip
    ticks = st.integers(*times)
    name = type(window).__name__
    if isinstance(window, ContextFreeWindow):

        def run(a: int, b: int, c: int) -> None:
            _context_free(window, name, *sorted((a, b, c)))

        hypothesis.seed(0)(settings(hypothesis.given(a=ticks, b=ticks, c=ticks)(run)))()
    elif isinstance(window, ContextAwareWindow):
        reads = len(window.reads)
        one = values if values is not None else st.one_of(st.none(), st.integers(-100, 100))
        row = st.tuples(ticks, st.tuples(*[one] * reads) if reads != 1 or values is None else one.map(lambda v: (v,)))

        def run_rows(rows: list[tuple[int, tuple[Any, ...]]]) -> None:
            _context_aware(window, name, sorted(rows, key=lambda r: r[0]))

        hypothesis.seed(0)(settings(hypothesis.given(rows=st.lists(row, max_size=20))(run_rows)))()
    else:
        raise InvalidArgument(f"check_laws is for windows derived from ContextFreeWindow or ContextAwareWindow, not {window!r}")


def _context_free(window: ContextFreeWindow, name: str, a: int, b: int, c: int) -> None:
    edge = window.next_edge(a)
    if edge <= a:
        raise BrokenLaw(f"{name}.next_edge({a}) is {edge}: the next edge must lie after the time that was passed")
    if edge < FAR_AHEAD and a < b < edge and window.next_edge(b) != edge:
        raise BrokenLaw(f"{name}.next_edge({a}) is {edge}, but next_edge({b}), from a time before that edge, is {window.next_edge(b)}")
    ended = list(window.ended(a, c))
    for start, end in ended:
        if not start < end:
            raise BrokenLaw(f"{name}.ended({a}, {c}) has the window ({start}, {end}): it must start before it ends")
        if not a < end <= c:
            raise BrokenLaw(f"{name}.ended({a}, {c}) has the window ({start}, {end}), which does not end after {a} and by {c}")
        if end - start > window.longest:
            raise BrokenLaw(f"{name}.ended({a}, {c}) has the window ({start}, {end}), longer than longest = {window.longest}")
        for place in (start, end):
            if window.next_edge(place - 1) != place:
                edge = window.next_edge(place - 1)
                raise BrokenLaw(f"{name}.ended({a}, {c}) has the window ({start}, {end}), but next_edge({place - 1}) is {edge}")
    apart = sorted([*window.ended(a, b), *window.ended(b, c)])
    if sorted(ended) != apart:
        parts = f"ended({a}, {b}) and ended({b}, {c})"
        raise BrokenLaw(f"{name}.ended({a}, {c}) differs from {parts} together: {sorted(ended)} against {apart}")


def _context_aware(window: ContextAwareWindow, name: str, rows: list[tuple[int, tuple[Any, ...]]]) -> None:
    edges, context = Edges(), window.begin()
    for place, (time, values) in enumerate(rows):
        before = {*edges.starts, *edges.ends}
        context = window.notify(context, time, *values, edges=edges)
        after = {*edges.starts, *edges.ends}
        early = [e for e in before ^ after if e < time]
        if early:
            seen = rows[: place + 1]
            raise BrokenLaw(f"{name}.notify at {time} changed the edge {early[0]}, which lies before the row (rows: {seen})")
        if not is_json(context):
            raise BrokenLaw(
                f"{name}.notify returned the context {context!r}; JSON must be able to hold it, because it is part of the state"
            )
