"""The window manager: which windows are given at a step, which have changed, and which are no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algorithms import tables
from sash.plan.logical import Query
from sash.slicing.given import Given, as_bounds
from sash.slicing.in_order import InOrderState
from sash.slicing.key_windows import KeyWindows
from sash.slicing.ordered_slices import OrderedSliceState
from sash.slicing.row_state import RowState
from sash.slicing.shapes import handler
from sash.slicing.slice_state import SliceState
from sash.slicing.view import Bounds, View
from sash.types import FAR_AHEAD, FAR_BACK
from sash.windows.base import ContextAwareWindow, Everything, Marks, Ranks

Array = npt.NDArray[Any]
State = SliceState | RowState | InOrderState

MOST_TOGETHER = 1 << 12
"""Keys × queries up to which all windows of a step are found in one go."""
FEW_WINDOWS = 64


@dataclass
class Step:
    """A watermark that moved."""

    previous: int
    watermark: int
    lateness: int
    emit: str
    dirty: int
    """The oldest row that came since the last step."""
    closing: bool = False
    idle: Array = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def closed_before(self) -> int:
        """Windows due by then were closed before this step."""
        return max(self.previous - self.lateness, FAR_BACK)

    @property
    def closed_now(self) -> int:
        """Windows due by then are closed after it."""
        return FAR_AHEAD - 1 if self.closing else max(self.watermark - self.lateness, FAR_BACK)

    @property
    def reported(self) -> int:
        """Windows due by then are given."""
        return FAR_AHEAD - 1 if self.closing else self.closed_now if self.emit == "final" else self.watermark


@dataclass
class Report:
    """Windows to give, of one query or several."""

    queries: Array
    """Each window's query, by its place in the plan."""
    bounds: Bounds
    revision: Array | None = None
    """None where windows are given once and for all."""
    retracted: Array | None = None


Part = tuple[State, View, list[Report]]
"""What a step gives of one state's queries, and the slices that its windows are made of."""


class WindowManager:
    """Remembers what was given of windows that may still change."""

    def __init__(self, emit: str) -> None:
        self.emit = emit
        self._closing: list[Callable[[], None]] = []
        self.given: dict[str, Given] = {}
        """For each query what was given and is not closed."""

    def commit(self) -> None:
        """The step's results were computed: its windows are closed."""
        for close in self._closing:
            close()
        self._closing = []

    def begin(self) -> None:
        """A new step; one that failed left nothing behind."""
        self._closing = []

    def live_keys(self) -> Array:
        """The keys of windows that may still change."""
        return np.concatenate([np.empty(0, np.int64), *(given.identity[:, 0] for given in self.given.values())])

    def renumber(self, went: Array) -> None:
        """Keys have new numbers."""
        self.given = {name: given.renumbered(went) for name, given in self.given.items()}

    def forget(self, query: str, keys: Array) -> None:
        """Keys are gone from a query that never ends."""
        if query in self.given:
            self.given[query] = self.given[query].without_keys(keys)

    def save(self) -> dict[str, list[Array]]:
        """What was given, as data."""
        return {name: given.arrays() for name, given in self.given.items()}

    def load(self, saved: dict[str, list[Any]], keys: int) -> None:
        """Take over what was saved, of so many keys."""
        self.given = {name: Given.from_arrays(columns, keys) for name, columns in saved.items()}

    def reports(self, state: State, step: Step, keys: int) -> tuple[View | None, list[Report]]:
        """What a step gives of one state's queries."""
        if isinstance(state, KeyWindows | OrderedSliceState):
            # A row at the horizon itself may end a window there.
            state.settle(step.closed_now + 1 if self.emit == "final" and not len(step.idle) else FAR_AHEAD)
        found: list[Report] = []
        ends = (step.closed_before, step.closed_now)
        if isinstance(state, KeyWindows):
            candidates = state.ending(*ends, keys) if self._only_ends(step) else list(range(len(state.plan.queries)))
            if not candidates:
                return None, []
            view, ids = state.view(keys)
        else:
            slicer = state.slicer
            periodic, candidates = state.ending(*ends) if self._only_ends(step) else (slicer.all, slicer.others)
            if not len(periodic) and not candidates:
                return None, []
            view, ids = state.view(keys, *self._span(periodic, step))
            together = self._periodic(state, periodic, step, view)
            if together is None:
                candidates = sorted([*slicer.places[periodic].tolist(), *candidates])
            else:
                found.append(together)
        for k in candidates:
            query = state.plan.queries[k]
            report = self._report(query, state, step, view, ids)
            report.queries[:] = k
            found.append(report)
        return view, [report for report in found if len(report.bounds)]

    def _only_ends(self, step: Step) -> bool:
        """Whether only queries with a window that ends have something to give: few of many, most of the time."""
        return self.emit == "final" and not step.closing and not len(step.idle)

    def _span(self, periodic: Array, step: Step) -> tuple[Array | None, int, int]:
        """Which periodic queries' windows are looked at, and from when to when they end; None where that may be any."""
        changes_only = self.emit == "update" and step.dirty >= step.previous
        if step.closing or len(step.idle) or not (self.emit == "final" or changes_only):
            return None, FAR_BACK, FAR_AHEAD
        return periodic, step.previous if changes_only else step.closed_before, step.reported

    def _periodic(self, state: SliceState, which: Array, step: Step, view: View) -> Report | None:
        """The windows of periodic queries that end in a step, all in one go; None if there are too many."""
        if self.emit != "final" or len(step.idle) or not view.count or not 0 < view.keys * len(which) <= MOST_TOGETHER:
            return None
        slicer = state.slicer
        kernel, most = tables.plain(tables.ending_windows), FEW_WINDOWS
        while True:
            found = np.empty((6, most), np.int64)
            count = kernel(
                which, len(which), slicer.size, slicer.every, slicer.offset, slicer.since, step.closed_before, step.closed_now,
                view.first, view.last, view.key_offsets, view.keys, 4 * MOST_TOGETHER, most, found,
            )  # fmt: skip
            if count <= most:
                break
            most = count
        if count < 0:
            return None
        asked, keys, lo, hi, start, end = (column[:count] for column in found)
        return Report(slicer.places[asked], Bounds(keys, lo, hi, start, end))

    def _report(self, query: Query, state: State, step: Step, view: View, ids: Array | None) -> Report:
        shape, hand = query.shape, handler(query.shape)
        after, until = step.closed_before, step.reported
        changes_only = self.emit != "final" and isinstance(state, SliceState) and step.dirty >= step.previous
        if changes_only and self.emit == "update":
            after = step.previous  # nothing that was given before can have changed
        if self.emit == "running" or isinstance(state, KeyWindows):
            until = FAR_AHEAD
        bounds = hand.bounds(shape, view, False, after if isinstance(state, SliceState) else FAR_BACK, until)
        due = hand.due(shape, bounds)
        forever = isinstance(shape, Everything)
        ranks = None if bounds.rows is None else bounds.rows[0]
        if isinstance(state, KeyWindows):
            asked = state.open_windows(query, bounds.keys, due, ranks)
            if not isinstance(shape, Ranks | Marks | ContextAwareWindow):  # of those, a late row may end one that was due before
                asked &= due > step.closed_before
        else:
            asked = due > after
        if query.since > FAR_BACK:
            asked &= bounds.start >= query.since
        full = asked
        if step.closing:
            pass
        elif self.emit == "final":
            asked = asked & (due <= step.closed_now)
        elif self.emit == "update":
            asked = asked & ((due <= step.watermark) | forever)
        if len(step.idle) and query.window.never_ends:
            asked |= full & np.isin(bounds.keys, step.idle)
        if isinstance(shape, Ranks) and not shape.partial:
            asked &= due < FAR_AHEAD
        places = np.flatnonzero(asked)
        bounds, due = pick(bounds, places), due[places]
        if self.emit == "final":
            report = Report(np.zeros(len(places), np.int64), bounds)
        else:
            report = self._changes(query, bounds, due, view, ids, step, complete=not (changes_only and self.emit == "update"))
        if isinstance(state, KeyWindows):
            closed = due <= step.closed_now
            ranks = None if bounds.rows is None else bounds.rows[0][closed]
            self._closing.append(partial(state.close_windows, query, bounds.keys[closed], due[closed], ranks))
        return report

    def _changes(self, query: Query, bounds: Bounds, due: Array, view: View, ids: Array | None, step: Step, *, complete: bool) -> Report:
        """New windows, changed ones, and those that are no more."""
        before = self.given.get(query.name) or Given.nothing()
        after, places, revision, gone = before.updated(Given.of(query, bounds, due, view, ids), complete=complete)
        self._closing.append(partial(self.given.__setitem__, query.name, after.open_after(step.closed_now)))
        return _with_retractions(pick(bounds, places), revision[places], gone)


def pick(bounds: Bounds, places: Array) -> Bounds:
    """Some of the windows."""

    def one(column: Array | None) -> Array | None:
        return None if column is None else column[places]

    return Bounds(
        bounds.keys[places], bounds.lo[places], bounds.hi[places], bounds.start[places], bounds.end[places],
        one(bounds.start_known), one(bounds.end_known), None if bounds.rows is None else (bounds.rows[0][places], bounds.rows[1][places]),
    )  # fmt: skip


def _with_retractions(changed: Bounds, revisions: Array, gone: Given) -> Report:
    """Changed windows, then those that are no more."""
    if not len(gone):
        return Report(np.zeros(len(changed), np.int64), changed, revisions, np.zeros(len(changed), bool))
    last = as_bounds(gone, ranked=changed.rows is not None)

    def column(name: str) -> Array:
        return np.concatenate([getattr(changed, name), getattr(last, name)])

    def known(name: str) -> Array:
        given = getattr(changed, name)
        return np.concatenate([np.ones(len(changed), bool) if given is None else given, getattr(last, name)])

    ranks = None
    if changed.rows is not None and last.rows is not None:
        ranks = (np.concatenate([changed.rows[0], last.rows[0]]), np.concatenate([changed.rows[1], last.rows[1]]))
    bounds = Bounds(
        column("keys"), column("lo"), column("hi"), column("start"), column("end"),
        known("start_known"), known("end_known"), ranks,
    )  # fmt: skip
    retracted = np.concatenate([np.zeros(len(changed), bool), np.ones(len(gone), bool)])
    return Report(np.zeros(len(bounds), np.int64), bounds, np.concatenate([revisions, gone.revision]), retracted)
