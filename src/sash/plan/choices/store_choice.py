"""What a stream has to store: the decision trees of the slicing paper (figures 4, 5 and 6), and the stores that follow from them.

Each returns an answer with its reason; ``op.explain()`` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sash.algebra import Form
from sash.plan.choices.decision import Decision
from sash.plan.choices.rows_needed import can_be_added_in_any_order
from sash.plan.logical import Query
from sash.windows.base import Window


@dataclass(frozen=True)
class Answer:
    """Yes or no, and why."""

    yes: bool
    why: str


@dataclass(frozen=True)
class Workload:
    """The properties of a stream, its aggregates and its results that decide what is stored."""

    ordered: bool
    """Whether rows are declared to be in the order of time."""
    forms: tuple[Form | None, ...]
    """The aggregates; None is one that has no partial of fixed size."""
    ranked: bool = False
    """Whether rows of one time have an order of their own (order_by)."""
    once: bool = True
    """Whether each window is emitted once, when it is final."""

    @property
    def commutes(self) -> bool:
        return can_be_added_in_any_order(self.forms)


def keeps_rows(workload: Workload, window: Window) -> Answer:
    """Figure 4, section 5.1: must individual rows be retained?"""
    if any(form is None for form in workload.forms):
        return Answer(True, "an aggregate has no partial of fixed size, so its rows are the partial")
    if workload.ordered:
        return _keeps_rows_in_order(workload, window)
    if not workload.commutes:
        return Answer(True, "out of order, and an aggregate does not commute: a late row must be inserted between others")
    if window.counts_rows:
        return Answer(True, "out of order, and rows are counted: a late row moves the last row of each slice on")
    if not window.is_by_time:
        return Answer(True, "out of order, and rows decide where windows start: a late row may split a slice")
    if window.is_session:
        return Answer(False, "sessions only ever merge, and merging needs partials alone")
    return Answer(False, "edges are known in advance and the aggregates commute: a late row is added to its slice")


def _keeps_rows_in_order(workload: Workload, window: Window) -> Answer:
    """The left side of figure 4, and what the paper leaves out: users' windows that read rows, and ties."""
    if window.context == "forward context aware":
        return Answer(True, "in order, but later rows decide where windows start: any range of rows may be needed")
    if window.is_shown_rows:
        return Answer(True, "a user's own window decides row by row where windows start: its slices are cut from rows")
    if workload.ranked and ((window.is_by_time and not workload.commutes) or (window.counts_rows and not workload.once)):
        return Answer(True, "in order, but rows of one time may arrive in another order than that of order_by")
    return Answer(False, "in order, and every edge is known by the time its row arrives")


StoreKind = Literal["slices", "slices and rows", "rows", "in order"]


KINDS: tuple[StoreKind, ...] = ("slices", "slices and rows", "rows", "in order")
"""The order of an engine's stores."""


def store_kind(workload: Workload, window: Window) -> StoreKind:
    """What is stored for a window: slices, slices with their rows, rows that are cut into slices when a window is due, or slices of rows
    that are declared to be in order."""
    if not keeps_rows(workload, window).yes:
        return "slices" if window.is_by_time else "in order"
    sliced = window.is_by_time and (window.is_session or not window.never_ends)
    return "slices and rows" if sliced and all(form is not None for form in workload.forms) else "rows"


def needs_splits(workload: Workload, window: Window) -> Answer:
    """Figure 5, section 5.2: can a slice have to be split?"""
    if window.context == "context free":
        return Answer(False, "edges are known in advance")
    if workload.ordered and window.context == "forward context free":
        return Answer(False, "in order, edges are known when the row arrives")
    if window.is_session:
        return Answer(False, "sessions only ever merge")
    return Answer(True, "a late row may bring a new edge" if not workload.ordered else "a later row may bring an earlier edge")


def removal(workload: Workload, window: Window, form: Form | None) -> str:
    """Figure 6, section 5.2: how are rows taken out of a slice?"""
    if not window.counts_rows or workload.ordered:
        return "never: no row moves from one slice to the next"
    if form is not None and form.invertible and form.commutative:
        return "invert: the row is taken away exactly"
    if form is not None and form.selective:
        return "nothing, unless the row was the extreme; then recompute"
    return "recompute the slice from its rows"


MANY_SLICES = 1 << 12
"""From this many slices per window on, combining them for every window costs more than maintaining a tree."""


def choose_store(requested: str, queries: tuple[Query, ...], forms: list[Form]) -> Decision:
    """Whether partials over slices are combined when windows end (lazy), or maintained in a tree (eager)."""
    if requested != "auto":
        return Decision(requested, ("requested",))
    periodic = [p for q in queries if (p := q.shape.as_periodic) is not None]
    step = min((p.every for p in periodic), default=1)
    slices = max((p.size // step for p in periodic), default=0)
    if slices < MANY_SLICES:
        return Decision(
            "lazy", (f"a window holds up to {slices} slices: they are combined when windows end, all windows of a step in one pass",)
        )
    if all(f.invertible for f in forms):
        return Decision("lazy", ("inverses are exact: windows are differences of what comes before each slice",))
    return Decision("eager", (f"a window holds up to {slices} slices, and what leaves it cannot be subtracted: a FlatFAT over slices",))


@dataclass(frozen=True)
class StoreGroup:
    """Queries that share one store."""

    kind: StoreKind
    queries: tuple[Query, ...]


def group_queries(workload: Workload, queries: tuple[Query, ...], *, idle: bool, in_chunks: bool) -> list[StoreGroup]:
    """The queries grouped by the store that they share, in the order of stores.

    With ``idle``, keys expire: windows that never end get stores of their own, which must be empty when an expired key returns. With
    ``in_chunks``, slices live behind a state store: those with periodic edges, which are written chunk by chunk, are separate from those
    that are one chunk and written whole.
    """
    groups: dict[tuple[StoreKind, bool, bool], list[Query]] = {}
    for query in queries:
        kind = store_kind(workload, query.window)
        apart = in_chunks and kind == "slices" and query.shape.as_periodic is None
        groups.setdefault((kind, apart, idle and query.window.never_ends), []).append(query)
    order = sorted(groups, key=lambda group: (KINDS.index(group[0]), *group[1:]))
    return [StoreGroup(group[0], tuple(groups[group])) for group in order]
