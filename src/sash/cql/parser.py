"""From tokens to the syntax tree: one method per rule of the grammar (docs/cql.md).

Clauses, sources and windows are parsed by descent; an expression is the run of tokens up to the next clause, comma or closing parenthesis.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeVar

from sash.cql.grammar import Amount, Call, Definition, Item, Name, Order, Phrase, Query, Relation2Stream, Select, Source, Statements
from sash.cql.tokens import Script, Token, tokenize
from sash.cql.window_parser import WindowParser
from sash.errors import InvalidQuery

T = TypeVar("T")

CLAUSES = frozenset(["from", "where", "group", "having", "order", "limit"])
UNSUPPORTED = {
    "union": "UNION is not supported; write two queries",
    "intersect": "INTERSECT is not supported",
    "except": "EXCEPT is not supported",
    "qualify": "QUALIFY is not supported; ORDER BY ... LIMIT n works per window",
    "offset": "OFFSET is not supported; LIMIT works per window",
    "left": "outer joins are not supported; joins are inner joins: FROM A [...], B [...] WHERE ...",
    "right": "outer joins are not supported; joins are inner joins: FROM A [...], B [...] WHERE ...",
    "full": "outer joins are not supported; joins are inner joins: FROM A [...], B [...] WHERE ...",
    "natural": "natural joins are not supported; write the condition in WHERE",
}
JOINS = frozenset(["join", "inner", "cross", "on"])
RESERVED = CLAUSES | JOINS | frozenset(UNSUPPORTED) | frozenset(["select", "as", "by", "and", "or", "not", "create"])
"""Words that are no alias unless they are quoted or stand behind AS."""
STREAMS: dict[str, Relation2Stream] = {"istream": "istream", "rstream": "rstream", "dstream": "dstream"}
TABLE_FUNCTIONS = frozenset(["tumble", "hop", "session"])

# A word behind an operand is an alias, unless the word before it, or it itself, is an operator.
_BEFORE_OPERANDS = frozenset(
    "and or not like ilike rlike regexp between in is div case when then else interval distinct escape from select any all".split()  # noqa: SIM905
)
_NEVER_ALIAS = frozenset("end null true false nulls asc desc and or not like ilike rlike regexp between in is div escape over".split())  # noqa: SIM905


class Parser(WindowParser):
    """A position among the tokens of a script, and the rules."""

    def statements(self) -> Statements:
        """``{ create stream NAME as query ; | ( query ) as NAME } query [;]``"""
        definitions: list[Definition] = []
        while True:
            if self.at("create"):
                definitions.append(self._create_stream())
            elif (named := self._named_relation()) is not None:
                definitions.append(named)
            else:
                break
        if self.is_at_end:
            where = definitions[-1].name if definitions else None
            message = f"the script ends with the definition of {where.text!r}; a query must follow" if where else "the query is empty"
            raise self.error(message)
        query = self._query()
        self.skip(";")
        if not self.is_at_end:
            for clause in ("where", "group", "having", "order", "limit"):
                self._hint_at(clause, self.place - 1, self.place)
            raise self._unexpected("the query should end here")
        return Statements(tuple(definitions), query)

    def _create_stream(self) -> Definition:
        self.take()
        self.expect("stream", "CREATE STREAM NAME AS ... is how an intermediate stream is named")
        name = self.name("a name for the stream")
        self.expect("as", f"CREATE STREAM {name.text} AS SELECT ...")
        query = self._query()
        self.expect(";", f"the stream {name.text!r} ends with ';', and the next query follows")
        return Definition(name, query, is_stream=True)

    def _named_relation(self) -> Definition | None:
        """``( query ) as NAME``, or None if a query in parentheses is the script's last one."""
        if not self.at("("):
            return None
        begin = self.place
        self.take()
        query = self._query()
        self.expect(")", "this query in parentheses is not closed")
        if self.skip("as"):
            name = self.name("a name for the relation")
            self.skip(";")
            return Definition(name, query, is_stream=False)
        self.place = begin
        return None

    def _query(self) -> Query:
        """``[istream | rstream | dstream] select``, also in parentheses."""
        kind = STREAMS.get(self.here.word)
        if kind is not None:
            self.take()
        if self.skip("("):
            inner = self._query()
            self.expect(")", "this query in parentheses is not closed")
            if kind is not None and inner.kind is not None:
                raise self.error(f"{kind} of {inner.kind}: a query becomes a stream once")
            return inner if kind is None else Query(kind, inner.select)
        return Query(kind, self._select())

    def _select(self) -> Select:
        start = self.here.start
        self.expect("select", "a query starts with SELECT")
        distinct = self.skip("distinct")
        if not distinct:
            self.skip("all")
        items = self.listed(self._item)
        if not self.at("from"):
            self._hint_at("from", self.place - 1, self.place - 2)
        self.expect("from", "FROM and a stream are missing")
        sources, conditions = self._sources()
        if self.skip("where"):
            conditions.append(self.phrase("a condition"))
        group_by: tuple[Phrase, ...] = ()
        if self.skip("group"):
            self.expect("by", "GROUP BY")
            group_by = self.listed(lambda: self.phrase("a column to group by"))
        having = self.phrase("a condition") if self.skip("having") else None
        order_by: tuple[Order, ...] = ()
        if self.skip("order"):
            self.expect("by", "ORDER BY")
            order_by = self.listed(self._order)
        limit = self._limit() if self.skip("limit") else None
        if self.here.word in CLAUSES:
            word = self.here.text.upper()
            raise self.error(f"{word} stands at the wrong place; the order is FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT")
        if self.here.word in UNSUPPORTED:
            raise self.error(UNSUPPORTED[self.here.word])
        end = self.tokens[self.place - 1].end
        return Select(distinct, items, sources, tuple(conditions), group_by, having, order_by, limit, start, end)

    def listed(self, rule: Callable[[], T]) -> tuple[T, ...]:
        """One or several of a rule, with commas between them."""
        several = [rule()]
        while self.skip(","):
            several.append(rule())
        return tuple(several)

    def _item(self) -> Item:
        first = self.here
        if self.skip("*"):
            return Item(None, None, None, first.start, first.end)
        if first.is_name and self.peek(1).text == "." and self.peek(2).text == "*":
            self.place += 3
            return Item(None, None, Name(first.text, first.start, first.end), first.start, self.tokens[self.place - 1].end)
        phrase = self.phrase("a column")
        if self.skip("as"):
            alias: Name | None = self.name("a name for the column")
        else:
            phrase, alias = _split_alias(phrase)
        return Item(phrase, alias, None, phrase.start, alias.end if alias else phrase.end)

    def _order(self) -> Order:
        phrase = self.phrase("a column to order by", frozenset(["asc", "desc", "nulls"]))
        descending = self.skip("desc")
        if not descending:
            self.skip("asc")
        nulls_first = not descending  # as in Spark
        if self.skip("nulls"):
            nulls_first = self.at("first")
            if not self.skip("first"):
                self.expect("last", "NULLS FIRST or NULLS LAST")
        return Order(phrase, descending, nulls_first)

    def _limit(self) -> Amount:
        token = self.take()
        if token.kind != "number" or not token.text.isdigit():
            raise self.script.error(f"LIMIT takes a number of rows, not {token.text or 'nothing'!r}", token.start, token.end)
        return Amount(token.text, token.start, token.end)

    # Sources.

    def _sources(self) -> tuple[tuple[Source, ...], list[Phrase]]:
        sources, conditions = [self._source()], list[Phrase]()
        while True:
            if self.skip(","):
                sources.append(self._source())
                continue
            if self.here.word in UNSUPPORTED and self.here.word != "offset":
                raise self.error(UNSUPPORTED[self.here.word])
            crossed = self.skip("cross")
            if not crossed:
                self.skip("inner")
            if not self.skip("join"):
                return tuple(sources), conditions
            sources.append(self._source())
            if not crossed:
                self.expect("on", "JOIN needs ON and a condition")
                conditions.append(self.phrase("a condition", JOINS | frozenset(UNSUPPORTED)))

    def _source(self) -> Source:
        start = self.here.start
        window = None
        if self.at("("):
            self.take()
            of: Name | Query | Call = self._query()
            self.expect(")", "this query in parentheses is not closed")
        elif self.here.word == "table" and self.peek(1).text == "(":  # Flink's table(tumble(table S, ...))
            self.place += 2
            of, window = self._table_function()
            self.expect(")", "TABLE( is not closed")
        elif self.peek(1).text == "(" and self.here.word in TABLE_FUNCTIONS:
            of, window = self._table_function()
        elif self.here.is_name and self.peek(1).text == "(":
            of = self._window_function()
        else:
            of = self.name("a stream")
        if self.at("["):
            if window is not None:
                raise self.error("a table function has its window already")
            window = self.window_clause()
        alias: Name | None = None
        if self.skip("as") or (self.here.is_name and self.here.word not in RESERVED):
            alias = self.name("an alias")
        if self.at("["):
            raise self.error("a window stands before the alias: FROM S [range 60 slide 1] AS A")
        return Source(of, window, alias, start, self.tokens[self.place - 1].end)

    def _window_function(self) -> Call:
        name = self.name("a window function")
        self.expect("(", "(")
        sources = self.listed(self._source)
        self.expect(")", f"{name.text}( is not closed")
        return Call(name, sources)

    # Expressions.

    def phrase(self, wanted: str, stops: frozenset[str] = frozenset()) -> Phrase:
        """The run of tokens up to a clause, a comma, ``as`` or a closing parenthesis."""
        begin, depth = self.place, 0
        ending = CLAUSES | frozenset(UNSUPPORTED) | frozenset(["as", "create"]) | stops
        while self.here.kind != "end":
            token = self.here
            called = token.word in ("left", "right") and self.peek(1).text == "("  # functions, too
            is_member = self.place > begin and self.tokens[self.place - 1].text == "."
            is_ending = token.word in ending and not (called or is_member or self._is_distinct_from())
            if depth == 0 and (token.text in (",", ")", "]", ";") or is_ending):
                break
            if token.text == "[" and self.peek(1).word in ("range", "rows", "now", "session", "punctuation", "partition"):
                raise self.error("a window stands behind a stream in FROM, nowhere else")
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            self.take()
        if self.place == begin:
            raise self._unexpected(f"{wanted} is missing")
        return Phrase(self.tokens[begin : self.place])

    def _is_distinct_from(self) -> bool:
        return self.here.word == "from" and self.place > 0 and self.tokens[self.place - 1].word == "distinct"

    def _hint_at(self, clause: str, *places: int) -> None:
        """Raise if a word at one of these places is nearly a clause's."""
        for place in places:
            token = self.tokens[max(0, place)]
            if token.word and get_close_matches(token.word, [clause], cutoff=0.7):
                raise self.script.error(f"did you mean {clause.upper()} instead of {token.text!r}?", token.start, token.end)

    def _unexpected(self, message: str) -> InvalidQuery:
        token = self.here
        written = f"; there is {token.text!r}" if token.kind != "end" else ""
        return self.script.error(f"{message}{written}", token.start, token.end)


def _split_alias(phrase: Phrase) -> tuple[Phrase, Name | None]:
    """``sum(cpu) total`` as its two parts."""
    if len(phrase.tokens) < 2:
        return phrase, None
    *_, before, last = phrase.tokens
    is_operand = (
        before.kind in ("number", "text", "quoted") or before.text in (")", "]") or (before.word and before.word not in _BEFORE_OPERANDS)
    )
    in_interval = len(phrase.tokens) > 2 and phrase.tokens[-3].word == "interval" and before.kind in ("number", "text")
    if not last.is_name or last.word in _NEVER_ALIAS or not is_operand or in_interval or before.text == ".":
        return phrase, None
    return Phrase(phrase.tokens[:-1]), Name(last.text, last.start, last.end)


def parse_script(text: str) -> tuple[Script, Statements]:
    """The syntax tree of a script.

    >>> _, tree = parse_script("select avg(cpu) as load from S [range 60 slide 1] where cpu > 0")
    >>> tree.query.select.items[0].alias.text, tree.query.select.sources[0].window.kind
    ('load', 'range')
    """
    script = tokenize(text)
    return script, Parser(script).statements()


__all__ = ["Parser", "Token", "parse_script"]
