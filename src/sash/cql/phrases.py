"""Expressions of a query as text over other names: each column that a phrase names is replaced, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from sash.cql.grammar import Phrase
from sash.cql.tokens import Script
from sash.errors import InvalidExpression, InvalidQuery, SashError
from sash.expressions import parse

_HOLES = 0xF000
"""From here on, characters that stand for holes."""
SHORTEST_HOLE = 3
"""A hole needs room for a quoted name of one character."""


@dataclass(frozen=True)
class Hole:
    """A part of the text that is computed elsewhere, and the column that has its value."""

    start: int
    end: int
    column: str


@dataclass(frozen=True)
class Part:
    """One name of ``a.b.c``, with its place in the script."""

    text: str
    start: int
    end: int


Resolve = Callable[[Sequence[Part]], tuple[int, str]]
"""How many of the parts name a column, and what stands in their place."""


def quoted(name: str) -> str:
    """A column's name as it is written in an expression."""
    return "`" + name.replace("`", "``") + "`"


def rewritten(script: Script, phrase: Phrase, resolve: Resolve, holes: Sequence[Hole] = ()) -> str:
    """The phrase with every column replaced by what ``resolve`` says, and every hole by its column."""
    from sqlglot import exp

    chars, columns = list(script.text[phrase.start : phrase.end]), dict[str, str]()
    for number, hole in enumerate(holes):
        mark = chr(_HOLES + number)
        columns[mark] = hole.column
        chars[hole.start - phrase.start : hole.end - phrase.start] = f"`{mark}`".ljust(hole.end - hole.start)
    tree = _tree(script, "".join(chars), phrase)
    replacements: list[tuple[int, int, str]] = []
    for column in tree.find_all(exp.Column):
        parts = []
        for identifier in column.parts:
            place = identifier.meta.get("start")
            if place is None:  # a word that the parser takes for a column and has no place for
                raise script.error(f"{identifier.name!r} cannot be read as a column here; write it in backticks", phrase.start, phrase.end)
            parts.append(Part(identifier.name, phrase.start + place, phrase.start + identifier.meta["end"] + 1))
        if parts[0].text in columns:
            count, text = 1, quoted(columns[parts[0].text])
        else:
            count, text = resolve(parts)
        replacements.append((parts[0].start - phrase.start, parts[count - 1].end - phrase.start, text))
    for start, end, text in sorted(replacements, reverse=True):
        chars[start:end] = text
    return "".join(chars)


def _tree(script: Script, text: str, phrase: Phrase) -> Any:
    """The syntax tree of a phrase whose positions are those of the text."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from sash.expressions.syntax import tree_of

    try:
        tree = tree_of(text)
    except SqlglotError as error:
        raise _syntax_error(script, text, phrase, error) from error
    except InvalidExpression as error:
        raise script.error(str(error), phrase.start, phrase.end) from error
    for node in tree.walk():
        if isinstance(node, exp.Query):
            message = "a query inside an expression is not supported; nested queries stand in FROM"
            raise script.error(message, phrase.start, phrase.end)
        if isinstance(node, exp.Anonymous):
            _check_function(script, phrase, str(node.this))
    return tree


def _check_function(script: Script, phrase: Phrase, name: str) -> None:
    """Raise for a function that does not exist."""
    from sash.aggregates import registry
    from sash.expressions.library import ALIASES, FUNCTIONS
    from sash.expressions.resolve import CASTS

    scalar = [n for n in (*FUNCTIONS, *ALIASES, *CASTS) if n.isidentifier()]
    if name in scalar:
        return
    place = next((t for t in phrase.tokens if t.word == name), phrase.tokens[0])
    near = get_close_matches(name, [*scalar, *registry()], n=1, cutoff=0.6)
    meant = f": did you mean {near[0]!r}?" if near else "; docs/expressions.md and docs/cql.md list all"
    if name in registry():
        raise script.error(f"{name} is an aggregate, which cannot stand here", place.start, place.end)
    raise script.error(f"unknown function {name!r}{meant}", place.start, place.end)


def _syntax_error(script: Script, text: str, phrase: Phrase, error: Any) -> InvalidQuery:
    details = (getattr(error, "errors", None) or [{}])[0]
    reason = str(details.get("description") or "it cannot be parsed").rstrip(".")
    if reason.startswith("Required keyword"):
        reason = "an operand or argument is missing"
    line, column, marked = details.get("line"), details.get("col"), details.get("highlight") or ""
    place = 0
    if line and column:
        for _ in range(int(line) - 1):
            place = text.find("\n", place) + 1
        place += max(0, int(column) - len(marked))
    return script.error(reason, phrase.start + min(place, len(text)), phrase.start + min(place + len(marked), len(text)))


def type_of(script: Script, phrase: Phrase, text: str, schema: pa.Schema) -> pa.DataType:
    """The type of a rewritten phrase over columns; an error shows the phrase."""
    try:
        expression = parse(text)
        expression.columns(schema)
        return expression.type(schema)
    except SashError as error:
        message = str(error).partition("\n")[0].replace(f" (in {text!r})", "")
        raise script.error(message, phrase.start, phrase.end) from error


def check_condition(script: Script, phrase: Phrase, text: str, schema: pa.Schema, clause: str) -> None:
    """Raise unless a phrase is true or false for each row."""
    t = type_of(script, phrase, text, schema)
    if not (pa.types.is_boolean(t) or pa.types.is_null(t)):
        raise script.error(f"{clause} must be true or false for each row; this is {t}", phrase.start, phrase.end)


def conjuncts(phrase: Phrase) -> list[Phrase]:
    """The parts of a condition between its ANDs; the condition itself if there is an OR beside them."""
    parts, begin, depth, in_between, in_case = list[Phrase](), 0, 0, 0, 0
    for place, token in enumerate(phrase.tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth:
            continue
        in_case += (token.word == "case") - (token.word == "end")
        in_between += token.word == "between"
        if token.word == "or" and not in_case:
            return [phrase]
        if token.word == "and" and not in_case:
            if in_between:
                in_between -= 1
                continue
            if place > begin:
                parts.append(Phrase(phrase.tokens[begin:place]))
            begin = place + 1
    if begin == 0 or begin == len(phrase.tokens):
        return [phrase]
    return [*parts, Phrase(phrase.tokens[begin:])]


def sides_of_equality(phrase: Phrase) -> tuple[Phrase, Phrase] | None:
    """Both sides of ``a = b``; None for any other condition."""
    depth, places = 0, list[int]()
    for place, token in enumerate(phrase.tokens):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0 and token.kind != "text" and (token.text in ("<", ">", "<=", ">=", "<>", "!=", "<=>") or token.word in _NO_SIDES):
            return None
        if depth == 0 and token.text in ("=", "=="):
            places.append(place)
    if len(places) != 1 or not 0 < places[0] < len(phrase.tokens) - 1:
        return None
    return Phrase(phrase.tokens[: places[0]]), Phrase(phrase.tokens[places[0] + 1 :])


_NO_SIDES = frozenset("not and or like ilike rlike regexp between in is case".split())  # noqa: SIM905


def same(one: Phrase, other: Phrase) -> bool:
    """Whether two phrases are written alike, spaces and case of words aside."""
    return _spelled(one.tokens) == _spelled(other.tokens)


def places_of(phrase: Phrase, part: Phrase) -> list[tuple[int, int]]:
    """Where a part stands in a phrase as a whole operand: the whole of it, or between parentheses and commas."""
    spelled, wanted, found = _written(phrase.tokens), _spelled(part.tokens), list[tuple[int, int]]()
    place = 0
    while place + len(wanted) <= len(spelled):
        end = place + len(wanted)
        opened = place == 0 or phrase.tokens[place - 1].text in ("(", ",")
        closed = end == len(spelled) or phrase.tokens[end].text in (")", ",")
        if spelled[place:end] == wanted and opened and closed:
            found.append((phrase.tokens[place].start, phrase.tokens[end - 1].end))
            place = end
        else:
            place += 1
    return found


def _written(tokens: Sequence[Any]) -> list[str]:
    return [t.word or ("=" if t.text == "==" else t.text) for t in tokens]


def _spelled(tokens: Sequence[Any]) -> list[str]:
    """The same without parentheses around the whole."""
    written = _written(tokens)
    while len(written) > 2 and written[0] == "(" and written[-1] == ")" and _is_wrapped(written):
        written = written[1:-1]
    return written


def _is_wrapped(written: list[str]) -> bool:
    depth = 0
    for place, text in enumerate(written):
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return place == len(written) - 1
    return False
