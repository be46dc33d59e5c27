"""A query over streams as values that JSON can represent, by which its stored state is recognised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sash.functions.call import Call
from sash.functions.udaf import UserAggregate
from sash.plan.queries.relation_tree import tree
from sash.plan.queries.relations import Applied, Grouped, Query, Relation, StreamOf, Windowed, children
from sash.slicing.persistence.code_digest import digest
from sash.slicing.persistence.descriptions import of_call


def of_query(query: Query, order_by: tuple[str, ...]) -> dict[str, Any]:
    """The description of a query: its plan as lines of text, and the code of users' functions."""
    relations = list(_relations(query, set()))
    own = {call.name: of_call(call) for call in calls_of(relations) if isinstance(call.aggregate, UserAggregate)}
    own |= {r.name: {"own": r.name, "text": digest(r.function)} for r in relations if isinstance(r, Applied)}
    columns = {f"{s.origin.name}.{f.name}": str(f.type) for s in relations if isinstance(s, Windowed) for f in s.origin.schema}
    return {"query": tree(query), "functions": own, "order_by": list(order_by), "columns": dict(sorted(columns.items()))}


def calls_of(relations: list[Relation]) -> list[Call]:
    """The aggregates that relations compute."""
    return [call for relation in relations if isinstance(relation, Grouped) for call in relation.calls]


def own_functions(query: Query) -> tuple[list[Call], list[Any]]:
    """The aggregates of a query, and its window functions."""
    relations = list(_relations(query, set()))
    return calls_of(relations), [r.function for r in relations if isinstance(r, Applied)]


def _relations(query: Query, seen: set[int]) -> Iterator[Relation]:
    """All relations of a query and of the streams below it, each once."""
    waiting = [query.relation]
    while waiting:
        relation = waiting.pop()
        if id(relation) in seen:
            continue
        seen.add(id(relation))
        yield relation
        waiting += children(relation)
        if isinstance(relation, Windowed) and isinstance(relation.origin, StreamOf):
            waiting.append(relation.origin.query.relation)
