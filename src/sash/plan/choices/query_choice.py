"""How a query as text runs over streams on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sash.errors import InvalidArgument
from sash.plan.choices.decision import Decision
from sash.plan.options import Emit
from sash.plan.queries.flows import Expressions, check_flow, has_one_row_per_row, is_sliced, partition_of
from sash.plan.queries.relations import Query

QueryStrategy = Literal["rows", "windows", "steps"]


@dataclass(frozen=True)
class QueryDecision(Decision):
    """Where a query is computed, and the reasons."""

    choice: QueryStrategy
    split: Mapping[str, Expressions] | None = None
    """For each stream the expressions by which its rows are split into buckets; None if they are not."""


def choose_query(query: Query, emit: Emit) -> QueryDecision:
    """Spark's own projection where there is nothing to remember, ``sash.aggregate`` for one aggregation, steps in workers for the rest."""
    if has_one_row_per_row(query):
        _check_final(emit, "rows are emitted as they come")
        return QueryDecision("rows", ("each row is emitted as it comes, by Spark's own projection; there is no state",))
    if is_sliced(query):
        return QueryDecision("windows", ("one aggregation over windows of one stream, by sash.aggregate",))
    _check_final(emit, "this is another query")
    check_flow(query)
    split = partition_of(query)
    if split is None:
        return QueryDecision("steps", ("window by window, in one task: its results mix all rows of a window",))
    names = "; ".join(f"{stream} by {', '.join(texts)}" for stream, texts in split.items())
    return QueryDecision("steps", (f"window by window, in buckets: {names}",), split)


def _check_final(emit: Emit, why: str) -> None:
    if emit != "final":
        raise InvalidArgument(f"emit={emit!r} is for one aggregation over windows of one stream, without join, nesting or limit; {why}")
