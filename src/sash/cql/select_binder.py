"""The select list, groups, HAVING and ORDER BY over a relation."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from sash.cql import grammar as g
from sash.cql.aggregate_calls import Aggregates, Written, named
from sash.cql.phrases import SHORTEST_HOLE, Hole, check_condition, places_of, quoted, rewritten, type_of
from sash.cql.scopes import WINDOW_COLUMNS, ResultScope, RowScope
from sash.cql.tokens import Script
from sash.errors import SashError
from sash.functions.call import Call
from sash.plan.logical import call_column, output_type
from sash.plan.queries.relations import (
    END,
    START,
    TIME,
    Column,
    Grouped,
    Inner,
    Joined,
    Kind,
    OrderKey,
    Query,
    Relation,
    Selected,
    Windowed,
    is_rows,
)
from sash.types import Measure, is_orderable, value_type


@dataclass
class _Groups:
    """The keys and aggregates of a query, as they are found in its clauses."""

    keys: list[tuple[str, str]] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    """Keys that are columns: as the relation below has them, quoted, and their names."""
    phrases: list[tuple[g.Phrase, str]] = field(default_factory=list)
    """Keys that are expressions, and their names."""
    calls: list[Call] = field(default_factory=list)


class SelectBinder:
    """Binds the clauses of one SELECT behind FROM and WHERE."""

    def __init__(self, script: Script, rows: RowScope, aggregates: Aggregates, time: str, measure: Measure) -> None:
        self.script = script
        self.rows = rows
        self.aggregates = aggregates
        self.time = time
        self.measure = measure
        self.groups: _Groups | None = None
        self.scope = ResultScope(rows, time)
        self.schema = pa.schema([])

    def bind(self, query: g.Query, relation: Relation) -> Query:
        """The plan of a query over the relation of its sources."""
        select = query.select
        below = relation.schema
        if self._is_grouped(select):
            self._check_window(select, relation)
            self.groups = _Groups()
            for phrase in select.group_by:
                self._add_key(select, phrase, below)
            self.scope = ResultScope(self.rows, self.time, self.groups.columns)
        self.below = below
        columns = self._columns(select)
        having = self._having(select, columns)
        order = tuple(self._order_key(key, columns) for key in select.order_by)
        if self.groups is not None:
            relation = Grouped(relation, tuple(self.groups.keys), tuple(self.groups.calls), self._group_schema())
        kind: Kind = query.kind or self._default_kind(select, relation)
        limit = None if select.limit is None else int(select.limit.text)
        return Query(relation, having, columns, select.distinct, order, limit, kind, self.measure)

    def _default_kind(self, select: g.Select, relation: Relation) -> Kind:
        return "istream" if is_rows(relation) and not select.distinct else "rstream"

    def check_clauses(self, select: g.Select) -> None:
        """Raise for aggregates where there are no groups yet."""
        for phrase in [*select.conditions, *select.group_by]:
            clause = "WHERE" if phrase in select.conditions else "GROUP BY"
            for call in self.aggregates.written(self.script, phrase):
                hint = "a condition on aggregates stands in HAVING" if clause == "WHERE" else "groups are made before aggregates"
                raise self.script.error(f"{call.name} cannot stand in {clause}: {hint}", call.start, call.end)

    # Groups.

    def _is_grouped(self, select: g.Select) -> bool:
        phrases = [i.expression for i in select.items if i.expression] + [o.expression for o in select.order_by]
        phrases += [select.having] if select.having else []
        calls = [call for phrase in phrases for call in self.aggregates.written(self.script, phrase)]
        if select.having is not None and not select.group_by and not calls:
            raise self.script.error("HAVING is a condition on groups; there are none: use WHERE", select.having.start, select.having.end)
        return bool(calls or select.group_by)

    def _check_window(self, select: g.Select, relation: Relation) -> None:
        if isinstance(relation, Selected):
            return self._check_window(select, relation.child)
        if isinstance(relation, Joined):
            self._check_window(select, relation.left)
            return self._check_window(select, relation.right)
        if isinstance(relation, Windowed) and relation.windowing.is_implied:
            source = next((s for s in select.sources if s.window is None), select.sources[0])
            name = relation.origin.name
            message = f"an aggregate needs a window: write {name} [range 60 slide 1], or {name} [range unbounded] for everything so far"
            raise self.script.error(message, source.start, source.end)
        return None

    def _add_key(self, select: g.Select, phrase: g.Phrase, below: pa.Schema) -> None:
        groups = self.groups
        assert groups is not None
        source = self._key_phrase(select, phrase)
        if source is None:
            return
        text = rewritten(self.script, source, self.rows.resolve)
        t = type_of(self.script, source, text, below)
        if not is_orderable(value_type(t)):
            raise self.script.error(f"rows cannot be grouped by {t}", phrase.start, phrase.end)
        plain = next((n for n in below.names if quoted(n) == text), None)
        name = plain or f"@key{len(groups.keys)}"
        if name in [n for n, _ in groups.keys]:
            return
        groups.keys.append((name, text))
        if plain:
            groups.columns[text] = name
        else:
            groups.phrases.append((source, name))

    def _key_phrase(self, select: g.Select, phrase: g.Phrase) -> g.Phrase | None:
        """What a key stands for: itself, the column of the select list that it names; None for the window, which adds nothing."""
        tokens = phrase.tokens
        if len(tokens) == 1 and tokens[0].kind == "number" and tokens[0].text.isdigit():
            item = self._numbered(select, tokens[0].text, phrase)
            assert item.expression is not None
            return self._without_aggregates(item.expression, phrase)
        if [t.word for t in tokens] in (["window", "", "start"], ["window", "", "end"]) or (
            len(tokens) == 1 and tokens[0].word in WINDOW_COLUMNS and any(s.expands for s in self.rows.sources)
        ):
            return None
        if len(tokens) == 1 and tokens[0].is_name and all(s.column(tokens[0].text) is None for s in self.rows.sources):
            aliased = [i for i in select.items if i.alias and i.alias.text.lower() == tokens[0].text.lower() and i.expression]
            if aliased:
                assert aliased[0].expression is not None
                return self._without_aggregates(aliased[0].expression, phrase)
        return phrase

    def _without_aggregates(self, source: g.Phrase, phrase: g.Phrase) -> g.Phrase:
        if self.aggregates.written(self.script, source):
            raise self.script.error("groups are made before aggregates; this column is one", phrase.start, phrase.end)
        return source

    def _numbered(self, select: g.Select, number: str, phrase: g.Phrase) -> g.Item:
        """The column of the select list with a number, from 1."""
        if not 1 <= int(number) <= len(select.items) or select.items[int(number) - 1].expression is None:
            raise self.script.error(f"there is no column number {number} in the select list", phrase.start, phrase.end)
        return select.items[int(number) - 1]

    # Expressions over results.

    def _text(self, phrase: g.Phrase, scope: ResultScope) -> str:
        """A phrase over the results' columns: aggregates and keys are columns there."""
        holes = []
        for written in self.aggregates.written(self.script, phrase):
            holes.append(Hole(written.start, written.end, self._aggregate(written)))
        if self.groups is not None:
            for key, name in self.groups.phrases:
                for start, end in places_of(phrase, key):
                    if end - start >= SHORTEST_HOLE and not any(h.start < end and start < h.end for h in holes):
                        holes.append(Hole(start, end, name))
        return rewritten(self.script, phrase, scope.resolve, holes)

    def _aggregate(self, written: Written) -> str:
        """The column with an aggregate's result."""
        assert self.groups is not None
        call = self.aggregates.call(self.script, written, lambda phrase: rewritten(self.script, phrase, self.rows.resolve))
        for number, known in enumerate(self.groups.calls):
            if named(known, "") == named(call, ""):
                return f"@agg{number}"
        name = f"@agg{len(self.groups.calls)}"
        try:
            output_type(call_column(call, self.below))
        except SashError as error:
            raise self.script.error(str(error).partition("\n")[0], written.start, written.end) from error
        self.groups.calls.append(named(call, name))
        return name

    def _group_schema(self) -> pa.Schema:
        groups = self.groups
        assert groups is not None
        keys = [pa.field(name, value_type(self._type_below(text))) for name, text in groups.keys]
        calls = [pa.field(call.name, output_type(call_column(call, self.below))) for call in groups.calls]
        return pa.schema([*keys, *calls])

    def _type_below(self, text: str) -> pa.DataType:
        from sash.expressions import parse

        plain = next((n for n in self.below.names if quoted(n) == text), None)
        return self.below.field(plain).type if plain else parse(text).type(self.below)

    def _result_schema(self) -> pa.Schema:
        """The columns that the select list can name, with the window's."""
        base = self.below if self.groups is None else self._group_schema()
        return pa.schema([*base, *(pa.field(name, self.measure.type) for name in (TIME, START, END))])

    def _type(self, phrase: g.Phrase, text: str) -> pa.DataType:
        schema = self._result_schema()
        plain = next((n for n in schema.names if quoted(n) == text), None)
        return value_type(schema.field(plain).type) if plain else type_of(self.script, phrase, text, schema)

    # Clauses.

    def _columns(self, select: g.Select) -> tuple[Column, ...]:
        columns: list[Column] = []
        for item in select.items:
            columns += self._star(item) if item.expression is None else [self._column(item, item.expression)]
        seen: dict[str, g.Item] = {}
        for column, item in zip(columns, _repeated(select, columns), strict=True):
            if column.name.lower() in seen:
                message = f"two columns are named {column.name!r}; give one of them another name with AS"
                raise self.script.error(message, item.start, item.end)
            seen[column.name.lower()] = item
        return tuple(columns)

    def _column(self, item: g.Item, phrase: g.Phrase) -> Column:
        text = self._text(phrase, self.scope)
        name = item.alias.text if item.alias else self._own_name(phrase)
        if name.startswith("@"):
            raise self.script.error("names that start with '@' are reserved; use another", item.start, item.end)
        return Column(name, text, self._type(phrase, text))

    def _own_name(self, phrase: g.Phrase) -> str:
        """The name of a column without an alias: a column's own, an aggregate as Spark names it, otherwise its text."""
        calls = self.aggregates.written(self.script, phrase)
        if len(calls) == 1 and (calls[0].start, calls[0].end) == (phrase.start, phrase.end):

            def bare(p: g.Phrase) -> str:
                return self.script.text[p.start : p.end]

            return self.aggregates.call(self.script, calls[0], bare).name
        if phrase.tokens[-1].is_name and all(t.is_name or t.text == "." for t in phrase.tokens):
            return phrase.tokens[-1].text
        return " ".join(self.script.text[phrase.start : phrase.end].split())

    def _star(self, item: g.Item) -> list[Column]:
        if self.groups is not None:
            raise self.script.error("* has no meaning beside groups; name the columns", item.start, item.end)
        sources = [s for s in self.rows.sources if item.star_of is None or s.alias.lower() == item.star_of.text.lower()]
        if not sources:
            assert item.star_of is not None
            raise self.script.error(f"unknown source {item.star_of.text!r}", item.start, item.end)
        columns = []
        several = len(self.rows.sources) > 1
        for source in sources:
            for own, name in source.columns.items():
                text = quoted(TIME) if own.lower() == self.time.lower() and not several else quoted(name)
                columns.append(Column(own, text, value_type(source.relation.schema.field(name).type)))
            if source.expands:
                columns += [Column(own, quoted(name), self.measure.type) for own, name in WINDOW_COLUMNS.items()]
        return columns

    def _having(self, select: g.Select, columns: tuple[Column, ...]) -> str | None:
        if select.having is None:
            return None
        text = self._text(select.having, self._with_aliases(select, columns))
        check_condition(self.script, select.having, text, self._result_schema(), "HAVING")
        return text

    def _with_aliases(self, select: g.Select, columns: tuple[Column, ...]) -> ResultScope:
        aliases = {i.alias.text: c.text for i, c in zip(_repeated(select, columns), columns, strict=True) if i.alias}
        return ResultScope(self.rows, self.time, self.scope.keys, aliases)

    def _order_key(self, key: g.Order, columns: tuple[Column, ...]) -> OrderKey:
        phrase = key.expression
        if len(phrase.tokens) == 1 and phrase.tokens[0].kind == "number" and phrase.tokens[0].text.isdigit():
            number = int(phrase.tokens[0].text)
            if not 1 <= number <= len(columns):
                raise self.script.error(f"there is no column number {number} in the select list", phrase.start, phrase.end)
            return OrderKey(columns[number - 1].text, key.descending, key.nulls_first)
        aliases = {c.name: c.text for c in columns}
        text = self._text(phrase, ResultScope(self.rows, self.time, self.scope.keys, aliases))
        t = self._type(phrase, text)
        if not is_orderable(value_type(t)):
            raise self.script.error(f"rows cannot be ordered by {t}", phrase.start, phrase.end)
        return OrderKey(text, key.descending, key.nulls_first)


def _repeated(select: g.Select, columns: list[Column] | tuple[Column, ...]) -> list[g.Item]:
    """For each column the item that it comes from: a star has as many as there are left."""
    stars = sum(i.expression is None for i in select.items)
    spread = len(columns) - (len(select.items) - stars)
    items: list[g.Item] = []
    for item in select.items:
        items += [item] * (1 if item.expression is not None else spread // max(1, stars))
    return items + [select.items[-1]] * (len(columns) - len(items))


__all__ = ["Inner", "SelectBinder"]
