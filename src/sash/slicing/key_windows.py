"""Windows that follow from each key's rows: what of them is closed, and the rows whose place is not settled yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.logical import Plan, Query
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

    def add(self, table: pa.Table, ticks: Array, codes: Array, ids: Array, span: tuple[int, int]) -> None:
        """Take rows in; they wait, in the order of their own batch, until they are settled."""
        table = table.select(list(self.plan.reads))
        seen = ticks >= self.since
        if not seen.all():
            table, ticks, codes, ids = table.filter(pa.array(seen)), ticks[seen], codes[seen], ids[seen]
        if len(ticks):
            self.waiting.add(table, ticks, codes, ids)

    def next_due(self, after: int) -> int:
        """A horizon before which nothing can be due: these windows depend on the rows that come."""
        return FAR_BACK

    def _grown(self, keys: int) -> None:
        """There are so many keys."""
        for query in self.plan.queries:
            nothing = 0 if isinstance(query.shape, Ranks) else FAR_BACK
            self.closed[query.name] = lengthened(self.closed[query.name], keys, nothing)

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
