"""Rewrites of a query's plan before it runs: each rule is a function from plan to plan, and changes no result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

import pyarrow as pa

from sash.expressions import parse
from sash.functions import count_distinct
from sash.plan.queries.relations import (
    END,
    START,
    TIME,
    Applied,
    Grouped,
    Inner,
    Joined,
    Query,
    Relation,
    Selected,
    StreamOf,
    Windowed,
)

Rule = Callable[[Query], Query]


def rewritten(query: Query) -> Query:
    """The plan after all rules."""
    return reduce(lambda plan, rule: rule(plan), RULES, query)


# Conditions that are known.


def without_constant_conditions(query: Query) -> Query:
    """A condition without columns is true for all rows or for none; where it is true it is dropped."""
    return _Everywhere(_without_constants).query(query)


def _without_constants(relation: Relation) -> Relation:
    if isinstance(relation, Selected) and not parse(relation.condition).columns(relation.schema):
        one = pa.table({"x": pa.array([0])})
        if parse(relation.condition).evaluate(one)[0].as_py() is True:
            return relation.child
    return relation


# Conditions nearer to the rows.


def conditions_below(query: Query) -> Query:
    """A condition on the rows of a named stream that is a projection or a selection is asked before it: fewer rows get windows.

    Only below windows by time: any other window would have other rows.
    """
    return _Everywhere(_moved).query(query)


def _moved(relation: Relation) -> Relation:
    if not isinstance(relation, Selected) or not isinstance(relation.child, Windowed):
        return relation
    windowed = relation.child
    if windowed.windowing.kind != "time" or not isinstance(windowed.origin, StreamOf):
        return relation
    inner = windowed.origin.query
    if not inner.is_rows or inner.kind != "istream" or not isinstance(inner.relation, Windowed | Selected):
        return relation
    below = inner.relation
    source: Relation = below
    while isinstance(source, Selected):
        source = source.child
    if not isinstance(source, Windowed) or source.windowing.kind not in ("time", "instants"):
        return relation
    if source.windowing.kind == "time" or source.windowing.reach is not None:
        return relation  # a row may be in no window there, and is then no row of the stream
    own = dict(zip(windowed.schema.names, windowed.names, strict=True))
    texts = {c.name: c.text for c in inner.columns}
    by_name = {name: texts.get(origin) for name, origin in own.items()}
    reads = parse(relation.condition).columns(relation.schema)
    plain = {name: text for name in reads if (text := by_name[name]) is not None and _is_column(text, below.schema)}
    if len(plain) < len(reads):
        return relation
    condition = _renamed(relation.condition, {n: _name_of(t) for n, t in plain.items()})
    moved = replace(inner, relation=Selected(below, condition))
    return replace(windowed, origin=replace(windowed.origin, query=moved))


def _is_column(text: str, schema: pa.Schema) -> bool:
    return text.startswith("`") and _name_of(text) in schema.names


def _name_of(text: str) -> str:
    return text[1:-1].replace("``", "`")


def _renamed(text: str, names: dict[str, str]) -> str:
    """An expression whose quoted columns have other names."""
    for name, other in names.items():
        text = text.replace("`" + name.replace("`", "``") + "`", "\0" + other.replace("`", "``") + "\0")
    return text.replace("\0", "`")


# Groups that are only counted.


def counted_groups(query: Query) -> Query:
    """Counting the groups of a nested query, whose keys are the outer ones and one column more, is counting that column's values."""
    return _Everywhere(_counted).query(query)


def _counted(relation: Relation) -> Relation:
    if not isinstance(relation, Grouped) or not isinstance(relation.child, Inner):
        return relation
    nested = relation.child
    inner = nested.query
    below = inner.relation
    if not isinstance(below, Grouped) or below.calls or inner.having is not None or inner.distinct or inner.limit is not None:
        return relation
    texts, columns = dict(below.keys), {c.name: c.text for c in inner.columns}
    key_of = {own: _name_of(columns.get(name, "")) for own, name in zip(nested.schema.names, nested.names, strict=True)}
    outer = [(name, key_of.get(_name_of(text), "")) for name, text in relation.keys]
    counted = [key_of.get(_name_of(call.inputs[0]), "") if len(call.inputs) == 1 else "" for call in relation.calls]
    more = set(texts) - {key for _, key in outer}
    if not all(key in texts for _, key in outer) or len(more) != 1 or not counted or set(counted) != more:
        return relation
    if any(call.aggregate.name != "count" or call.condition is not None for call in relation.calls):
        return relation
    if any(name in below.child.schema.names and texts[key] != _quoted(name) for name, key in outer):
        return relation  # the name means another column there
    keys = tuple((name, texts[key]) for name, key in outer)
    (value,) = (texts[key] for key in more)
    calls = tuple(replace(count_distinct(value), alias_name=call.name) for call in relation.calls)
    return Grouped(below.child, keys, calls, relation.schema)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# Only what is read.


def columns_that_are_read(query: Query) -> Query:
    """Sources have the columns that something above reads, and no others; aggregates that nothing reads are not computed."""
    return _Everywhere(lambda relation: relation, lambda q: _pruned(q, None)).query(query)


def _pruned(query: Query, wanted: set[str] | None) -> Query:
    """A query with the columns ``wanted``; None: all."""
    keeps_all = wanted is None or query.distinct or query.limit is not None or (query.kind != "rstream" and not query.is_rows)
    columns = query.columns if keeps_all or wanted is None else tuple(c for c in query.columns if c.name in wanted)
    texts = [*(c.text for c in columns), *(k.text for k in query.order), *([query.having] if query.having else [])]
    schema = pa.schema([*query.relation.schema, *(pa.field(n, query.measure.type) for n in (TIME, START, END))])
    return replace(query, columns=columns, relation=_narrow(query.relation, _reads(texts, schema)))


def _reads(texts: Iterable[str], schema: pa.Schema) -> set[str]:
    """The columns that expressions read."""
    names: set[str] = set()
    for text in texts:
        name = _name_of(text) if text.startswith("`") and text.endswith("`") else text
        names.update([name] if name in schema.names else parse(text).columns(schema))
    return names


def _narrow(relation: Relation, wanted: set[str]) -> Relation:
    if isinstance(relation, Selected):
        return replace(relation, child=_narrow(relation.child, wanted | _reads([relation.condition], relation.schema)))
    if isinstance(relation, Joined):
        texts = [text for sides in relation.equal for text in sides] + ([relation.condition] if relation.condition else [])
        wanted = wanted | _reads(texts, relation.schema)
        return replace(relation, left=_narrow(relation.left, wanted), right=_narrow(relation.right, wanted))
    if isinstance(relation, Grouped):
        calls = tuple(c for c in relation.calls if c.name in wanted)
        inputs = [text for _, text in relation.keys]
        for call in calls:
            inputs += [*call.inputs, *([call.condition] if call.condition else [])]
        schema = pa.schema([f for f in relation.schema if f.name in wanted or f.name in dict(relation.keys)])
        return replace(relation, child=_narrow(relation.child, _reads(inputs, relation.child.schema)), calls=calls, schema=schema)
    if isinstance(relation, Applied):
        return replace(relation, sources=tuple(_narrow(s, set(s.schema.names)) for s in relation.sources))
    return _narrow_source(relation, wanted)


def _narrow_source(relation: Windowed | Inner, wanted: set[str]) -> Windowed | Inner:
    kept = [(n, f) for n, f in zip(relation.names, relation.schema, strict=True) if f.name in wanted or f.name == relation.time]
    names, schema = tuple(n for n, _ in kept), pa.schema([f for _, f in kept])
    if isinstance(relation, Inner):
        query = _pruned(relation.query, set(names))
        return replace(relation, query=query, names=names, schema=schema)
    return replace(relation, names=names, schema=schema)


class _Everywhere:
    """Applies a rule to every query and every relation of a plan, from below; a named stream that is used twice stays one."""

    def __init__(self, of_relation: Callable[[Relation], Relation], of_query: Rule = lambda query: query) -> None:
        self._of_relation, self._of_query = of_relation, of_query
        self._streams: dict[int, Query] = {}

    def query(self, query: Query) -> Query:
        return self._of_query(replace(query, relation=self.relation(query.relation)))

    def relation(self, relation: Relation) -> Relation:
        if isinstance(relation, Selected | Grouped):
            relation = replace(relation, child=self.relation(relation.child))
        elif isinstance(relation, Joined):
            relation = replace(relation, left=self.relation(relation.left), right=self.relation(relation.right))
        elif isinstance(relation, Applied):
            relation = replace(relation, sources=tuple(map(self.relation, relation.sources)))
        elif isinstance(relation, Inner):
            relation = replace(relation, query=self.query(relation.query))
        elif isinstance(relation.origin, StreamOf):
            query = relation.origin.query
            if id(query) not in self._streams:
                self._streams[id(query)] = self.query(query)
            relation = replace(relation, origin=replace(relation.origin, query=self._streams[id(query)]))
        return self._of_relation(relation)


RULES: tuple[Rule, ...] = (without_constant_conditions, conditions_below, columns_that_are_read, counted_groups, columns_that_are_read)
