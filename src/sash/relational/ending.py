"""The relations of those windows of a query that end in one span of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.plan.queries.relations import Grouped, Relation, Windowed
from sash.relational.edges import Edges
from sash.relational.members import Members, Results
from sash.relational.query_run import QueryRun
from sash.relational.selection import Output

Array = npt.NDArray[Any]


class EndingRun(QueryRun):
    """A run over the windows that end after one tick and up to another; sources have the rows that these windows can have."""

    def __init__(self, tables: Mapping[str, pa.Table], order_by: tuple[str, ...], after: int, upto: int) -> None:
        super().__init__(tables, order_by)
        self.after, self.upto = after, upto

    def relation(self, relation: Relation) -> Members | Results:
        """The rows of a relation in these windows."""
        rows = super().relation(relation)
        if isinstance(relation, Grouped) and isinstance(rows, Results):
            return rows.where(self._ends_now(rows.edges, rows.numbers))
        return rows

    def within(self, output: Output) -> Output:
        """The results of these windows."""
        assert output.numbers is not None
        flags = self._ends_now(output.edges, output.numbers)
        if flags.all():
            return output
        return replace(output, table=output.table.filter(pa.array(flags)), numbers=output.numbers[flags])

    def leaves(self, relation: Windowed) -> bool:
        """Whether the edge at which a row of this source is gone matters, too."""
        return False

    def _ends_now(self, edges: Edges, numbers: Array) -> Array:
        ends, _ = edges.ends(numbers)
        flags: Array = (ends > self.after) & (ends <= self.upto)
        return flags

    def _windowed(self, relation: Windowed) -> Members:
        rows = super()._windowed(relation)
        until = np.minimum(rows.until, self.upto + 1)
        if self.leaves(relation):
            return replace(rows, until=until)
        return replace(rows, since=np.maximum(rows.since, self.after + 1), until=until)
