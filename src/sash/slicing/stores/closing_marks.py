"""How far each key's windows are closed, for windows that depend on its rows; and the pending rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sash.plan.logical import Plan, Query
from sash.slicing import validation
from sash.slicing.bounds.handler import handler
from sash.slicing.bounds.view import Bounds
from sash.slicing.ingest.slices import Slices
from sash.slicing.rows.pending import PendingRows
from sash.slicing.rows.timed import KeyedRows
from sash.slicing.stores.slice_store import Commit, Step
from sash.types import FAR_AHEAD, FAR_BACK

Array = npt.NDArray[Any]


class ClosingMarks:
    """The base class of stores that remember for each key how far its windows are closed."""

    marks_windows: ClassVar[bool] = True

    def __init__(self, plan: Plan, since: int) -> None:
        self.plan = plan
        self.since = since
        self.pending = PendingRows()
        self.closed: dict[str, Array] = {q.name: np.empty(0, np.int64) for q in plan.queries}
        """For each query and key how far its windows are closed, as :meth:`~sash.slicing.bounds.handler.Handler.mark` counts."""

    def prepare(self, rows: KeyedRows, *, at_once: bool = False) -> Commit:
        """The commit that adds rows; they are pending, in the order of arrival, until a step puts them in order."""
        rows = rows.since(self.since)
        table = rows.table.select(list(self.plan.reads))

        def commit() -> None:
            if len(rows):
                self.pending.add(table, rows.ticks, rows.codes, rows.ids)

        return commit

    def prepare_slices(self, slices: Slices, *, only: bool) -> Commit:
        raise NotImplementedError("windows that follow from rows need the rows")

    def next_due(self, after: int) -> int:
        """The next window end; the past where ends depend on rows, so that one may be due at any time."""
        ends = [q.shape.next_end(after) for q in self.plan.queries]
        return min((FAR_BACK if end is None else end for end in ends), default=FAR_BACK)

    def _grow(self, keys: int) -> None:
        """Extend all arrays by key to so many keys."""
        for query in self.plan.queries:
            self.closed[query.name] = lengthened(self.closed[query.name], keys, handler(query.shape).first_mark)

    def open_windows(self, query: Query, bounds: Bounds, due: Array, step: Step) -> Array:
        """For each window whether it was not closed before the step."""
        hand = handler(query.shape)
        still: Array = hand.mark(query.shape, bounds, due) > self.closed[query.name][bounds.keys]
        return still if hand.ends_in_the_past else still & (due > step.closed_before)

    def close_windows(self, query: Query, bounds: Bounds, due: Array) -> None:
        """Close windows: they are not emitted again."""
        np.maximum.at(self.closed[query.name], bounds.keys, handler(query.shape).mark(query.shape, bounds, due))

    def _begin_again(self, keys: Array) -> None:
        """Count the rows of these keys from 0 again."""
        for query in self.plan.queries:
            hand = handler(query.shape)
            if hand.counts_on:
                self.closed[query.name][keys] = hand.first_mark

    def _serve(self, plan: Plan) -> None:
        """Serve fewer queries from now on."""
        self.plan = plan
        self.pending.select(list(plan.reads))
        self.closed = {q.name: self.closed[q.name] for q in plan.queries}

    def _exported_marks(self) -> dict[str, list[int]]:
        return {name: marks.tolist() for name, marks in self.closed.items()}

    def _import_marks(self, saved: Any, keys: int, first: Array, after: Array) -> None:
        """Take over exported marks of so many keys, whose rows are numbered from ``first`` to ``after``; raises if they do not fit."""
        what = "the state"
        if not isinstance(saved, dict) or set(saved) != {q.name for q in self.plan.queries}:
            raise validation.damaged(what, "it is not that of these queries")
        if (first < 0).any():
            raise validation.damaged(what, "its slices have more rows than there were")
        for query in self.plan.queries:
            hand = handler(query.shape)
            marks = lengthened(validation.numbers(saved[query.name], what, most=keys), keys, hand.first_mark)
            problem = hand.mark_problem(query.shape, marks, first, after)
            if problem is not None:
                raise validation.damaged(what, problem)
            self.closed[query.name] = marks


def horizon_of_rows(step: Step) -> int:
    """The time before which a step puts pending rows in their place: a row at the horizon itself may end a window there."""
    return step.closed_now + 1 if step.emit == "final" and not len(step.idle) else FAR_AHEAD


def lengthened(values: Array, count: int, nothing: int) -> Array:
    """The values, extended to so many keys with ``nothing``."""
    missing = count - len(values)
    return values if missing <= 0 else np.concatenate([values, np.full(missing, nothing, np.int64)])
