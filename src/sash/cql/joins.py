"""Sources and conditions as one relation: conditions of one source stand below the join, equalities of two are its keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sash.cql.grammar import Phrase, Select
from sash.cql.phrases import check_condition, conjuncts, rewritten, sides_of_equality, type_of
from sash.cql.scopes import BoundSource, RowScope
from sash.cql.tokens import Script
from sash.errors import InvalidWindow
from sash.expressions import parse
from sash.plan.queries.axes import axis_of
from sash.plan.queries.relations import Joined, Relation, Selected
from sash.types import Measure


@dataclass(frozen=True)
class _Condition:
    """A part of WHERE, and the sources that it reads."""

    phrase: Phrase
    text: str
    reads: frozenset[int]


def join(script: Script, select: Select, sources: Sequence[BoundSource], names: RowScope, measure: Measure) -> Relation:
    """The relation of all sources under all conditions."""
    parts = [part for condition in select.conditions for part in conjuncts(condition)]
    waiting = [_condition(script, sources, names, part) for part in parts]
    relation, joined = sources[0].relation, frozenset([0])
    for number in range(len(sources)):
        own = [c for c in waiting if c.reads <= {number} and (c.reads or number == 0)]
        waiting = [c for c in waiting if c not in own]
        source: Relation = sources[number].relation
        for condition in own:
            source = Selected(source, condition.text)
        if number == 0:
            relation = source
            continue
        within = [c for c in waiting if c.reads <= joined | {number}]
        waiting = [c for c in waiting if c not in within]
        equal, others = list[tuple[str, str]](), list[str]()
        for condition in within:
            sides = _sides(script, sources, names, condition.phrase, joined, number)
            if sides is None:
                others.append(condition.text)
            else:
                equal.append(sides)
        joined |= {number}
        text = " and ".join(f"({t})" for t in others) or None
        relation = Joined(relation, source, tuple(equal), text)
        try:
            axis_of(relation, measure)
        except InvalidWindow as error:
            raise script.error(str(error), select.sources[number].start, select.sources[number].end) from error
    return relation


def _condition(script: Script, sources: Sequence[BoundSource], names: RowScope, phrase: Phrase) -> _Condition:
    text = rewritten(script, phrase, names.resolve)
    schema = _all_columns(sources)
    check_condition(script, phrase, text, schema, "WHERE")
    return _Condition(phrase, text, _reads(sources, text))


def _all_columns(sources: Sequence[BoundSource]) -> pa.Schema:
    return pa.schema([f for s in sources for f in s.relation.schema])


def _reads(sources: Sequence[BoundSource], text: str) -> frozenset[int]:
    columns = set(parse(text).columns(_all_columns(sources)))
    return frozenset(n for n, s in enumerate(sources) if columns & set(s.relation.schema.names))


def _sides(
    script: Script, sources: Sequence[BoundSource], names: RowScope, phrase: Phrase, left: frozenset[int], right: int
) -> tuple[str, str] | None:
    """The two expressions of an equality between what is joined already and a new source, if a condition is one."""
    sides = sides_of_equality(phrase)
    if sides is None:
        return None
    texts = [rewritten(script, side, names.resolve) for side in sides]
    reads = [_reads(sources, text) for text in texts]
    if reads[1] and reads[1] <= left and reads[0] == {right}:
        texts, reads = texts[::-1], reads[::-1]
    if not (reads[0] and reads[0] <= left and reads[1] == {right}):
        return None
    schema = _all_columns(sources)
    one, other = (type_of(script, phrase, text, schema) for text in texts)
    return (texts[0], texts[1]) if one == other else None  # other types are compared as the expression says
