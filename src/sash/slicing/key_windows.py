"""Windows that follow from each key's rows: what of them is closed, and the rows whose place is not settled yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.logical import Plan, Query
from sash.slicing import validation
from sash.slicing.waiting import Waiting
from sash.types import FAR_BACK
from sash.windows.base import Ranks

Array = npt.NDArray[Any]


class KeyWindows:
    """What states have in common that close each key's windows by themselves."""

    def __init__(self, plan: Plan, since: int) -> None:
        self.plan = plan
        self.since = since
        self.waiting = Waiting()
        self.closed: dict[str, Array] = {q.name: np.empty(0, np.int64) for q in plan.queries}
        """For each query and key the time up to which its windows are closed; for row windows, the number of closed ones."""

    def prepare(
        self, table: pa.Table, ticks: Array, codes: Array, ids: Array, span: tuple[int, int], *, at_once: bool = False
    ) -> Callable[[], None]:
        """The call that takes rows in; they wait, in the order of their own batch, until they are settled."""
        table = table.select(list(self.plan.reads))
        seen = ticks >= self.since
        if not seen.all():
            table, ticks, codes, ids = table.filter(pa.array(seen)), ticks[seen], codes[seen], ids[seen]

        def commit() -> None:
            if len(ticks):
                self.waiting.add(table, ticks, codes, ids)

        return commit

    def next_due(self, after: int) -> int:
        """A horizon before which nothing can be due: these windows depend on the rows that come."""
        return FAR_BACK

    def _grown(self, keys: int) -> None:
        """There are so many keys."""
        for query in self.plan.queries:
            nothing = 0 if isinstance(query.shape, Ranks) else FAR_BACK
            self.closed[query.name] = lengthened(self.closed[query.name], keys, nothing)

    def checked_marks(self, saved: Any, keys: int) -> dict[str, Array]:
        """Up to where each query's windows are closed, as it was saved."""
        if not isinstance(saved, dict) or set(saved) != {q.name for q in self.plan.queries}:
            raise validation.damaged("the state", "it is not that of these queries")
        return {name: validation.numbers(marks, "the state", most=keys) for name, marks in saved.items()}

    def check_ranks(self, first: Array, after: Array) -> None:
        """Windows over ranks are closed as far as rows are gone, those before each key's ``first``, and no further than its rows reach."""
        if (first < 0).any():
            raise validation.damaged("the state", "its slices have more rows than there were")
        for query in self.plan.queries:
            if isinstance(query.shape, Ranks):
                closed = lengthened(self.closed[query.name], len(first), 0)
                if (closed < 0).any() or (closed > 1 << 40).any():
                    raise validation.damaged("the state", "its row windows cannot be so many")
                reached = closed * query.shape.every
                if (first > reached).any() or (reached > after + query.shape.every).any():
                    raise validation.damaged("the state", "its row windows are not those of its rows")

    def open_windows(self, query: Query, keys: Array, due: Array, ranks: Array | None) -> Array:
        """Which windows are not closed."""
        marks = self.closed[query.name][keys]
        if isinstance(query.shape, Ranks):
            assert ranks is not None
            still: Array = ranks // query.shape.every >= marks
        else:
            still = due > marks
        return still

    def close_windows(self, query: Query, keys: Array, due: Array, ranks: Array | None) -> None:
        """These windows will not be given again."""
        marks = self.closed[query.name]
        if isinstance(query.shape, Ranks):
            assert ranks is not None or not len(keys)
            if ranks is not None:
                np.maximum.at(marks, keys, ranks // query.shape.every + 1)
        else:
            np.maximum.at(marks, keys, due)

    def _begin_again(self, keys: Array) -> None:
        """Ranks of these keys count from 0."""
        for query in self.plan.queries:
            if isinstance(query.shape, Ranks):
                self.closed[query.name][keys] = 0

    def _ask(self, plan: Plan) -> None:
        """Other queries from now on, of which none is new."""
        self.plan = plan
        self.waiting.select(list(plan.reads))
        self.closed = {q.name: self.closed[q.name] for q in plan.queries}


def lengthened(values: Array, count: int, nothing: int) -> Array:
    """A number for each key, also for those that came since."""
    missing = count - len(values)
    return values if missing <= 0 else np.concatenate([values, np.full(missing, nothing, np.int64)])
