"""The tokens of a query, each with its place in the text, and errors that show the place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sash.errors import InvalidQuery

Kind = Literal["word", "quoted", "text", "number", "symbol", "end"]
LONGEST = 1 << 20
"""Longer queries are refused."""
DEEPEST = 64
"""Parentheses nested deeper than this are refused, so that no parser runs out of stack."""


@dataclass(frozen=True)
class Token:
    """A piece of the text from ``start`` to before ``end``."""

    kind: Kind
    text: str
    """As written; of a quoted name what is between the quotes."""
    start: int
    end: int

    @property
    def word(self) -> str:
        """In lower case, if it is a word without quotes; otherwise empty."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


@dataclass(frozen=True)
class Script:
    """The text of a query and its tokens; the last one is the end."""

    text: str
    tokens: tuple[Token, ...]

    def error(self, message: str, start: int, end: int | None = None) -> InvalidQuery:
        """An error that shows the line, with a caret under the place."""
        return error_at(self.text, message, start, end)


def error_at(text: str, message: str, start: int, end: int | None = None) -> InvalidQuery:
    """An error at a place in a text: line and column, the line itself, and carets under the place."""
    start = max(0, min(start, len(text)))
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop].replace("\t", " ").rstrip("\r")
    number, column = text.count("\n", 0, start) + 1, start - begin + 1
    width = max(1, min(end or start + 1, begin + len(line)) - start)
    if len(line) > 160:  # a query on one line: the part around the place
        cut = max(0, column - 80)
        line, shown = line[cut : cut + 160], column - cut
    else:
        shown = column
    carets = "^" * min(width, max(1, 160 - shown))
    error = InvalidQuery(f"line {number}, column {column}: {message}\n  {line}\n  {' ' * (shown - 1)}{carets}")
    error.line, error.column = number, column
    return error


_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_PAIRS = {"'": "text", '"': "text", "`": "name in backticks"}


def tokenize(text: str) -> Script:
    """The tokens of a query; comments are left out."""
    from sqlglot.dialects.databricks import Databricks
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str):
        raise InvalidQuery(f"a query is text, not {text!r}")
    if len(text) > LONGEST:
        raise InvalidQuery(f"the query has {len(text):,} characters; at most {LONGEST:,} are read")
    check_closed(text)
    try:
        pieces = Databricks().tokenize(text)
    except SqlglotError as error:
        raise error_at(text, f"this cannot be read: {error}", 0) from error
    tokens: list[Token] = []
    for piece in pieces:
        start, end = piece.start, piece.end + 1
        written = text[start:end]
        if tokens and start < tokens[-1].end:
            continue  # a part of a token before it: the second half of 'it''s', or the type of 5L
        if written[:1] == "`":
            tokens.append(Token("quoted", written[1:-1].replace("``", "`"), start, end))
        elif written[:1] in "'\"" or re.match(r"[A-Za-z]['\"]", written):
            tokens.append(Token("text", written, start, end))
        elif written[:1].isdigit() or (written[:1] == "." and written[1:2].isdigit()):
            tokens.append(Token("number", written, start, end))
        elif _WORD.match(written):  # the tokenizer takes GROUP BY for one token
            tokens += [Token("word", m[0], start + m.start(), start + m.end()) for m in _WORD.finditer(written)]
        else:
            tokens.append(Token("symbol", written, start, end))
    _check_brackets(text, tokens)
    return Script(text, (*tokens, Token("end", "", len(text), len(text))))


def check_closed(text: str) -> None:
    """Raise where a quote or a comment is opened and not closed, at its opening."""
    place = 0
    while place < len(text):
        c = text[place]
        if text.startswith("--", place):
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        elif text.startswith("/*", place):
            end = text.find("*/", place + 2)
            if end < 0:
                raise error_at(text, "this comment is not closed; write */ behind it", place)
            place = end + 2
        elif c in _PAIRS:
            end = place + 1
            raw = c != "`" and place > 0 and text[place - 1] in "rR" and not text[max(0, place - 2)].isalnum()
            while end < len(text) and text[end] != c:
                end += 2 if text[end] == "\\" and c != "`" and not raw else 1
            if end >= len(text):
                raise error_at(text, f"this {_PAIRS[c]} is not closed; write {c} behind it", place)
            place = end + 1
        else:
            place += 1


_OPENING = {"(": ")", "[": "]"}


def _check_brackets(text: str, tokens: list[Token]) -> None:
    waiting: list[Token] = []
    for token in tokens:
        if token.kind != "symbol":
            continue
        if token.text in _OPENING:
            waiting.append(token)
            if len(waiting) > DEEPEST:
                raise error_at(text, f"parentheses are nested more than {DEEPEST} deep", token.start)
        elif token.text in (")", "]"):
            if not waiting:
                raise error_at(text, f"{token.text!r} closes nothing", token.start)
            opened = waiting.pop()
            if _OPENING[opened.text] != token.text:
                raise error_at(text, f"{token.text!r} cannot close {opened.text!r}; write {_OPENING[opened.text]!r} first", token.start)
    if waiting:
        raise error_at(text, f"{waiting[-1].text!r} is not closed", waiting[-1].start)
