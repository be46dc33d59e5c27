"""The window manager: decides which windows a step emits, which have changed, and which no longer exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sash.plan.logical import Query
from sash.plan.options import Emit
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import Bounds
from sash.slicing.stores.slice_store import SliceStore, Step, StepSlices
from sash.slicing.stream.revisions import Emitted, as_bounds

Array = npt.NDArray[Any]


@dataclass
class Report:
    """Windows to emit, of one query or several."""

    queries: Array
    """Each window's query, by its place in the store's plan."""
    bounds: Bounds
    revision: Array | None = None
    """None where windows are final when they are emitted."""
    retracted: Array | None = None


Part = tuple[SliceStore, StepSlices, list[Report]]
"""What a step emits of one store's queries: the store, the slices, and the windows over them."""


class WindowManager:
    """Decides which windows are emitted, and remembers the emitted ones that may still change."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._closing: list[Callable[[], None]] = []
        self.emitted: dict[str, Emitted] = {}
        """For each query the emitted windows that are not closed."""

    def commit(self) -> None:
        """Close the step's windows, once their results are computed."""
        for close in self._closing:
            close()
        self._closing = []

    def begin(self) -> None:
        """Begin a step; what a failed one would have closed is discarded."""
        self._closing = []

    def live_keys(self) -> Array:
        """The keys of windows that may still change."""
        return np.concatenate([np.empty(0, np.int64), *(emitted.identity[:, 0] for emitted in self.emitted.values())])

    def renumber(self, new_id_of: Array) -> None:
        """Replace key numbers by their new ones."""
        self.emitted = {name: emitted.renumbered(new_id_of) for name, emitted in self.emitted.items()}

    def forget_keys(self, query: str, keys: Array) -> None:
        """Drop the keys of a query whose windows never end."""
        if query in self.emitted:
            self.emitted[query] = self.emitted[query].without_keys(keys)

    def forget_query(self, query: str) -> None:
        """Drop a query."""
        self.emitted.pop(query, None)

    def export(self) -> dict[str, list[Array]]:
        """The emitted windows, as arrays."""
        return {name: emitted.arrays() for name, emitted in self.emitted.items()}

    def import_(self, saved: dict[str, list[Any]], keys: int) -> None:
        """Continue from exported state, of so many keys."""
        self.emitted = {name: Emitted.from_arrays(columns, keys) for name, columns in saved.items()}

    def part(self, store: SliceStore, step: Step, keys: int) -> Part | None:
        """What a step emits of one store's queries; None if nothing."""
        slices = store.step(step, keys)
        if slices is None:
            return None
        reports = [] if slices.ended is None else [Report(*slices.ended)]
        for k in slices.queries:
            report = self._report(store.plan.queries[k], store, slices, step)
            report.queries[:] = k
            reports.append(report)
        reports = [report for report in reports if len(report.bounds)]
        return (store, slices, reports) if reports else None

    def _report(self, query: Query, store: SliceStore, slices: StepSlices, step: Step) -> Report:
        shape, hand = query.shape, handler(query.shape)
        bounds = hand.bounds(shape, slices.view, False, slices.after, slices.until)
        due = hand.due(shape, bounds)
        wanted = store.open_windows(query, bounds, due, step)
        if query.is_late_comer:
            wanted &= bounds.start >= query.since
        all_open = wanted
        if step.closing:
            pass
        elif self.emit == "final":
            wanted = wanted & (due <= step.closed_now)
        elif self.emit == "update":
            wanted = wanted & ((due <= step.watermark) | shape.is_whole)
        if len(step.idle) and query.window.never_ends:
            wanted |= all_open & np.isin(bounds.keys, step.idle)
        complete = hand.is_complete(shape, due)
        if complete is not None:
            wanted &= complete
        places = np.flatnonzero(wanted)
        bounds, due = bounds.take(places), due[places]
        if self.emit == "final":
            report = Report(np.zeros(len(places), np.int64), bounds)
        else:
            report = self._changes(query, bounds, due, slices, step)
        if store.marks_windows:
            closed = np.flatnonzero(due <= step.closed_now)
            self._closing.append(partial(store.close_windows, query, bounds.take(closed), due[closed]))
        return report

    def _changes(self, query: Query, bounds: Bounds, due: Array, slices: StepSlices, step: Step) -> Report:
        """The report of new and changed windows, and of retractions of those that no longer exist."""
        before = self.emitted.get(query.name) or Emitted.nothing()
        now = Emitted.of(query, bounds, due, slices.view, slices.row_ids)
        after, places, revision, gone = before.updated(now, complete=slices.complete)
        self._closing.append(partial(self.emitted.__setitem__, query.name, after.open_after(step.closed_now)))
        return _with_retractions(bounds.take(places), revision[places], gone)


def _with_retractions(changed: Bounds, revisions: Array, gone: Emitted) -> Report:
    """The report of changed windows, followed by the retractions of those in ``gone``."""
    if not len(gone):
        return Report(np.zeros(len(changed), np.int64), changed, revisions, np.zeros(len(changed), bool))
    last = as_bounds(gone, ranked=changed.rows is not None)

    def column(name: str) -> Array:
        return np.concatenate([getattr(changed, name), getattr(last, name)])

    def known(name: str) -> Array:
        flags = getattr(changed, name)
        return np.concatenate([np.ones(len(changed), bool) if flags is None else flags, getattr(last, name)])

    ranks = None
    if changed.rows is not None and last.rows is not None:
        ranks = (np.concatenate([changed.rows[0], last.rows[0]]), np.concatenate([changed.rows[1], last.rows[1]]))
    bounds = Bounds(
        column("keys"), column("lo"), column("hi"), column("start"), column("end"),
        known("start_known"), known("end_known"), ranks,
    )  # fmt: skip
    retracted = np.concatenate([np.zeros(len(changed), bool), np.ones(len(gone), bool)])
    return Report(np.zeros(len(bounds), np.int64), bounds, np.concatenate([revisions, gone.revision]), retracted)
