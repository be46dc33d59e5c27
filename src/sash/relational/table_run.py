"""Queries over whole tables: in one go, or part by part."""

from __future__ import annotations

from sash.plan.choices.parts_choice import choose_parts
from sash.plan.queries.relations import Query
from sash.relational.parts import output_in_parts, span_of_sources
from sash.relational.query_run import QueryRun
from sash.relational.selection import Output


class TableRun(QueryRun):
    """A run over tables; each of its queries is computed as :mod:`sash.plan.choices.parts_choice` says."""

    def _computed(self, query: Query) -> Output:
        decision = choose_parts(query, lambda: span_of_sources(self, query))
        return super()._computed(query) if decision.count == 1 else output_in_parts(self, query, decision)
