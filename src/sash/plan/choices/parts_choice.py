"""Whether a query over tables is computed part by part: spans of time, each from the rows that its windows can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sash.plan.choices.decision import Decision
from sash.plan.queries.axes import axis_of
from sash.plan.queries.flows import is_immediate, windowed
from sash.plan.queries.relations import Applied, Query, Relation, StreamOf, Windowed, children
from sash.types import Measure

ROWS_IN_PART = 1 << 19
"""A part's rows and results fit into the caches, and its arrays are reused from part to part."""
REACHES_IN_PART = 8
"""A part is at least so many times as long as its windows: the rows before it are read twice."""


@dataclass(frozen=True)
class PartsDecision(Decision):
    """How many parts, and the reasons."""

    count: int = 1
    reach: int = 0
    """How many ticks before a window's end its first row may be."""


def choose_parts(query: Query, size: Callable[[], tuple[int, int]]) -> PartsDecision:
    """Parts for a query whose windows are at equal distances; ``size`` returns the rows and the ticks that they span."""
    reason = _why_whole(query)
    if reason is not None:
        return PartsDecision("whole", (reason,))
    reach = max(_reach(source) for source in windowed(query.relation))
    rows, span = size()
    count = min(rows // ROWS_IN_PART, span // (REACHES_IN_PART * reach))
    if count < 2:
        return PartsDecision("whole", ("there are few rows, or few windows one after the other",), 1, reach)
    return PartsDecision("parts", (f"{count} spans of time, by all threads",), count, reach)


def _why_whole(query: Query) -> str | None:
    if query.kind != "rstream":
        return "rows are emitted once, or windows are compared with those before"
    axis = axis_of(query.relation, query.measure)
    if axis.kind != "time" or not axis.slide:
        return f"the windows of {axis.text} are at no equal distances"
    if _applies(query.relation):
        return "a window function is called window by window, in order"
    for source in windowed(query.relation):
        if source.windowing.expands or not _reach(source):
            return f"{source.origin.name} {source.windowing.text} reaches back without an end"
        if isinstance(source.origin, StreamOf) and not is_immediate(source.origin.query):
            return f"{source.origin.name} consists of results"
    return None


def _applies(relation: Relation) -> bool:
    return isinstance(relation, Applied) or any(_applies(child) for child in children(relation))


def _reach(source: Windowed) -> int:
    """How far back the windows of a source reach; 0 if without an end."""
    windowing = source.windowing
    if windowing.kind == "instants":
        return windowing.reach or 0
    if windowing.kind != "time" or windowing.window is None:
        return 0
    periodic = windowing.window.bind(Measure(source.origin.measure_type)).as_periodic
    return 0 if periodic is None else periodic.size
