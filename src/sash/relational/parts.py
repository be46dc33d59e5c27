"""A query over tables part by part: each part is the windows that end in one span of time, and parts run on all threads.

A part's arrays are small enough to stay in the caches and to be allocated from memory that the part before has freed: for queries with
many results, faulting in fresh pages takes longer than the computation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash import threads
from sash.plan.choices.parts_choice import PartsDecision
from sash.plan.queries.flows import windowed
from sash.plan.queries.relations import Query, Windowed
from sash.relational.ending import EndingRun
from sash.relational.query_run import Loaded, QueryRun
from sash.relational.selection import Output, select

Array = npt.NDArray[Any]


class PartRun(EndingRun):
    """One part, over the sources of a whole run."""

    def __init__(self, whole: QueryRun, reach: int, after: int, upto: int) -> None:
        super().__init__(whole.tables, whole.order_by, after, upto)
        self._whole, self._reach = whole, reach

    def load(self, relation: Windowed) -> Loaded:
        """The rows that the part's windows can have."""
        loaded = self._whole.load(relation)
        first, last = np.searchsorted(loaded.ticks, [self.after + 1 - self._reach, self.upto])
        return Loaded(loaded.table.slice(int(first), int(last - first)), loaded.ticks[first:last])


def span_of_sources(run: QueryRun, query: Query) -> tuple[int, int]:
    """How many rows the sources of a query have, and from which tick to which."""
    loaded = [run.load(source).ticks for source in windowed(query.relation)]
    ticks = [t for t in loaded if len(t)]
    if not ticks:
        return 0, 0
    return sum(map(len, ticks)), int(max(t[-1] for t in ticks)) - int(min(t[0] for t in ticks))


def output_in_parts(run: QueryRun, query: Query, decision: PartsDecision) -> Output:
    """The results of a query, part by part, in order."""
    ticks = [t for t in (run.load(source).ticks for source in windowed(query.relation)) if len(t)]
    first, last = int(min(t[0] for t in ticks)), int(max(t[-1] for t in ticks)) + decision.reach
    cuts = [first + (last + 1 - first) * k // decision.count for k in range(decision.count + 1)]
    outputs: list[Output | None] = [None] * decision.count

    def work(k: int) -> None:
        part = PartRun(run, decision.reach, cuts[k], cuts[k + 1])
        outputs[k] = part.within(select(query, part.relation(query.relation)))

    threads.in_turn(work, decision.count)
    done = [output for output in outputs if output is not None]
    numbers = [output.numbers for output in done if output.numbers is not None]
    return Output(pa.concat_tables([output.table for output in done]), done[0].measure, done[0].edges, np.concatenate(numbers))
