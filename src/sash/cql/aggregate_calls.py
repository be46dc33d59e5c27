"""Calls of aggregates in an expression: where they stand, and the :class:`~sash.functions.Call` that each one is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import sash.functions as library
from sash.cql.grammar import Phrase
from sash.cql.tokens import Script, Token
from sash.errors import SashError
from sash.functions.call import Call
from sash.functions.udaf import UserAggregate

ALIASES = {
    "any_value": "first", "approx_distinct": "approx_count_distinct", "array_agg": "collect_list", "first_value": "first",
    "last_value": "last", "listagg": "string_agg", "mean": "avg", "percentile_approx": "approx_percentile", "std": "stddev_samp",
    "stddev": "stddev_samp", "variance": "var_samp",
}  # fmt: skip
"""Spark's and others' names for aggregates."""
OPTIONS = frozenset(["q", "rsd", "k", "separator", "ignorenulls"])
"""Parameters of aggregates that are no columns."""


@dataclass(frozen=True)
class Written:
    """A call as it was written."""

    name: str
    arguments: tuple[Phrase, ...]
    is_star: bool
    is_distinct: bool
    where: Phrase | None
    ignores_nulls: bool
    start: int
    end: int


class Aggregates:
    """The aggregates that a query can name: those of ``sash.functions``, and the user's own."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self.own = {name.lower(): f for name, f in functions.items() if isinstance(f, UserAggregate)}
        built_in = [n for n in library.__all__ if n[0].islower() and n != "udaf"]
        self.built_in: dict[str, Callable[..., Call]] = {n: getattr(library, n) for n in built_in}

    def knows(self, name: str) -> bool:
        """Whether a function of this name is an aggregate."""
        return name in self.own or name in self.built_in or name in ALIASES

    def names(self) -> list[str]:
        """All names."""
        return [*self.own, *self.built_in, *ALIASES]

    def written(self, script: Script, phrase: Phrase) -> list[Written]:
        """The calls of aggregates in an expression that are not inside another one."""
        calls, place, tokens = list[Written](), 0, phrase.tokens
        while place < len(tokens):
            token = tokens[place]
            is_call = place + 1 < len(tokens) and tokens[place + 1].text == "(" and token.kind == "word"
            if not is_call or not self.knows(token.word) or (place and tokens[place - 1].text == "."):
                place += 1
                continue
            call, place = self._one(script, tokens, place)
            calls.append(call)
        return calls

    def _one(self, script: Script, tokens: tuple[Token, ...], place: int) -> tuple[Written, int]:
        begin, close = place, _closing(tokens, place + 1)
        inside = tokens[place + 2 : close]
        is_star = len(inside) == 1 and inside[0].text == "*"
        is_distinct = bool(inside) and inside[0].word == "distinct"
        arguments = () if is_star else _listed(script, inside[1:] if is_distinct else inside, tokens[close])
        place, where, ignores_nulls = close + 1, None, False
        if _words(tokens, place, "filter") and place + 1 < len(tokens) and tokens[place + 1].text == "(":
            end = _closing(tokens, place + 1)
            if not _words(tokens, place + 2, "where") or end == place + 3:
                raise script.error("FILTER (WHERE condition)", tokens[place].start, tokens[end].end)
            where, place = Phrase(tokens[place + 3 : end]), end + 1
        if _words(tokens, place, "ignore", "nulls"):
            ignores_nulls, place = True, place + 2
        elif _words(tokens, place, "respect", "nulls"):
            place += 2
        elif _words(tokens, place, "over"):
            raise script.error("OVER is not supported; a window stands behind the stream: FROM S [range 60 slide 1]", tokens[place].start)
        for argument in arguments:
            for inner in self.written(script, argument):
                message = f"{tokens[begin].text} of {inner.name}: an aggregate of an aggregate needs a nested query"
                raise script.error(message, inner.start, inner.end)
        name = tokens[begin].word
        return Written(name, arguments, is_star, is_distinct, where, ignores_nulls, tokens[begin].start, tokens[place - 1].end), place

    def call(self, script: Script, written: Written, text: Callable[[Phrase], str]) -> Call:
        """The call, over the texts that ``text`` makes of its arguments."""
        name = ALIASES.get(written.name, written.name) if written.name not in self.own else written.name
        try:
            call = self._call(script, written, name, text)
            return call if written.where is None else call.where(text(written.where))
        except SashError as error:
            if hasattr(error, "line"):
                raise
            raise script.error(f"{written.name}: {error}", written.start, written.end) from error

    def _call(self, script: Script, written: Written, name: str, text: Callable[[Phrase], str]) -> Call:
        def wrong(message: str) -> SashError:
            return script.error(message, written.start, written.end)

        if written.is_distinct:
            if name in ("min", "max", "collect_set", "count_distinct"):
                pass
            elif name == "count":
                name = "count_distinct"
            else:
                raise wrong(f"{written.name}(distinct ...) is not supported; count(distinct x) is")
        if written.is_star and name != "count":
            raise wrong(f"{written.name}(*) has no meaning; only count(*) has")
        if name in self.own:
            aggregate = self.own[name]
            if len(written.arguments) != aggregate.inputs:
                raise wrong(f"{written.name} takes {aggregate.inputs} columns, {len(written.arguments)} were passed")
            result: Call = aggregate(*map(text, written.arguments))
            return result
        function = self.built_in[name]
        if name == "count":
            if len(written.arguments) > 1:
                raise wrong("count takes one column or *")
            is_constant = len(written.arguments) == 1 and [t.kind for t in written.arguments[0].tokens] == ["number"]
            return function(*([] if is_constant else map(text, written.arguments)))
        parameters = list(inspect.signature(function).parameters)
        if len(written.arguments) > len(parameters) or not written.arguments:
            wanted = ", ".join(f"({p})" if p in OPTIONS else p for p in parameters)
            count = len(written.arguments)
            raise wrong(f"{written.name}({wanted}) takes {'other' if count else 'some'} arguments; {count or 'none'} were passed")
        values: dict[str, Any] = {}
        for parameter, argument in zip(parameters, written.arguments, strict=False):
            values[parameter] = _constant(script, argument) if parameter in OPTIONS else text(argument)
        if written.ignores_nulls:
            if "ignorenulls" not in parameters:
                raise wrong(f"{written.name} ignores nulls anyway; IGNORE NULLS is for first and last")
            values["ignorenulls"] = True
        return function(**values)


def _constant(script: Script, phrase: Phrase) -> Any:
    sign = -1 if phrase.tokens[0].text == "-" else 1
    token = phrase.tokens[-1]
    if len(phrase.tokens) == (1 if sign == 1 else 2):
        if token.kind == "number":
            try:
                return sign * (int(token.text) if token.text.isdigit() else float(token.text))
            except ValueError:
                pass
        elif token.kind == "text" and sign == 1:
            return token.text[1:-1]
        elif token.word in ("true", "false"):
            return token.word == "true"
    raise script.error("a constant should stand here", phrase.start, phrase.end)


def _words(tokens: tuple[Token, ...], place: int, *words: str) -> bool:
    return [t.word for t in tokens[place : place + len(words)]] == list(words)


def _closing(tokens: tuple[Token, ...], opening: int) -> int:
    """The place of the parenthesis that closes the one at ``opening``."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place].text in ("(", "[")) - (tokens[place].text in (")", "]"))
        if depth == 0:
            return place
    raise AssertionError("the tokenizer has checked parentheses")


def _listed(script: Script, tokens: tuple[Token, ...], close: Token) -> tuple[Phrase, ...]:
    """The arguments between commas."""
    arguments, begin, depth = list[Phrase](), 0, 0
    for place, token in enumerate((*tokens, close)):
        if depth == 0 and (token.text == "," or place == len(tokens)):
            if place == begin and tokens:
                raise script.error("an argument is missing", token.start, token.end)
            if place > begin:
                arguments.append(Phrase(tokens[begin:place]))
            begin = place + 1
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
    return tuple(arguments)


def named(call: Call, name: str) -> Call:
    """The call under a column's name."""
    return replace(call, alias_name=name)
