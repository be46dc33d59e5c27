"""From SQL text to a syntax tree whose meaning does not depend on sqlglot's version.

sqlglot parses; but what it makes of a function's name, of quotes and of escapes differs from Spark and from release to release. So two
things are hidden from it, in place, such that every position in the text stays what it is: a function's first letter is replaced, which
makes each call an anonymous one with its own name and arguments; and a literal with quotes or escapes in it is replaced by a mark, and read
here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sash.errors import InvalidExpression

DIALECT = "databricks"
"""Spark's dialect with a CAST that raises, as ANSI mode has it; in sqlglot's ``spark`` it is TRY_CAST."""

_HIDDEN = 0xE000
"""From here on, characters that stand for a function's first letter."""
_MARKS = 0xE100
"""From here on, characters that stand for literals."""

_OWN_SYNTAX = frozenset(
    """
    cast try_cast extract and or not in between like ilike rlike regexp is when then else case div over filter within any all some exists
    from for as distinct escape interval select where on using by having limit end both leading trailing union intersect except values table
    lateral array struct map named_struct
    """.split()  # noqa: SIM905
)
"""Words before a parenthesis that are no functions, or functions whose arguments have words between them."""


_STATEMENTS = frozenset(
    """
    alter analyze attach begin cache call comment commit copy create delete desc describe detach drop execute explain export fetch grant
    insert kill load merge optimize pragma prepare refresh rename reset revoke rollback set show truncate uncache update use vacuum
    """.split()  # noqa: SIM905
)
"""Words that begin a statement for sqlglot; where an expression begins with one, it is a column's name."""
_FIRST_WORD = re.compile(r"\s*([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Hidden:
    """A text in which function names and awkward literals are hidden, and what the latter are."""

    text: str
    literals: dict[str, str]

    def name(self, hidden: str) -> str:
        """A function's own name."""
        code = ord(hidden[0]) - _HIDDEN
        return chr(code) + hidden[1:] if 0 <= code < _MARKS - _HIDDEN else hidden


def hide(text: str) -> Hidden:
    """Hide function names and awkward literals; positions stay."""
    from sqlglot.dialects.databricks import Databricks

    chars, literals = _literals(text)
    chars = list(without_statement("".join(chars)))
    masked = "".join(chars)
    tokens = Databricks().tokenize(masked)
    for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        name = token.text
        if after.text != "(" or not re.fullmatch(r"[A-Za-z_]\w*", name) or masked[token.start : token.start + 1] in "`'\"":
            continue
        previous = before.text.lower() if before is not None else ""
        if name.lower() in _OWN_SYNTAX or previous in ("as", "::", ".") or _is_worded(name, tokens, token):
            continue
        chars[token.start] = chr(_HIDDEN + ord(name[0]))
    return Hidden("".join(chars), literals)


def without_statement(text: str) -> str:
    """The text whose first letter is hidden if it belongs to a word that begins a statement."""
    first = _FIRST_WORD.match(text)
    if first is None or first[1].lower() not in _STATEMENTS:
        return text
    return text[: first.start(1)] + chr(_HIDDEN + ord(first[1][0])) + text[first.start(1) + 1 :]


def _is_worded(name: str, tokens: list[Any], token: Any) -> bool:
    """Whether a call such as ``trim(both 'x' from s)`` has words between its arguments."""
    if name.lower() not in ("trim", "substring", "substr", "position", "overlay"):
        return False
    depth = 0
    for t in tokens[tokens.index(token) + 1 :]:
        depth += (t.text == "(") - (t.text == ")")
        if depth == 0:
            return False
        if depth == 1 and t.text.lower() in ("from", "in", "placing", "both", "leading", "trailing"):
            return True
    return False


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)


def _literals(text: str) -> tuple[list[str], dict[str, str]]:
    """The text's characters with awkward literals replaced by marks, and what the marks stand for."""
    chars, literals = list(text), dict[str, str]()
    place = 0
    while place < len(text):
        c = text[place]
        if text.startswith("--", place):
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        elif text.startswith("/*", place):
            end = text.find("*/", place + 2)
            place = len(text) if end < 0 else end + 2
        elif c == "`":
            end = text.find("`", place + 1)
            place = len(text) if end < 0 else end + 1
        elif c in "'\"":
            end = _end_of_literal(text, place)
            raw = place > 0 and text[place - 1] in "rR" and not (place > 1 and (text[place - 2].isalnum() or text[place - 2] == "_"))
            inside = text[place + 1 : end]
            if end < len(text) and not raw and ("\\" in inside or c in inside):
                mark = chr(_MARKS + len(literals))
                literals[mark] = _ESCAPE.sub(_unescaped, inside.replace(c * 2, c))
                chars[place + 1 : end] = mark + " " * (len(inside) - 1)
            place = end + 1
        elif chr(_HIDDEN) <= c < chr(_HIDDEN + 6400):
            raise InvalidExpression(f"{text!r} has a character outside of quotes that is for private use: {c!r}")
        else:
            place += 1
    return chars, literals


def _end_of_literal(text: str, start: int) -> int:
    """Where the literal's closing quote stands; a doubled quote does not close it, nor does one behind a backslash."""
    quote, place = text[start], start + 1
    raw = start > 0 and text[start - 1] in "rR"
    while place < len(text):
        if text[place] == "\\" and not raw:
            place += 2
        elif text[place] != quote:
            place += 1
        elif text.startswith(quote * 2, place) and not raw:
            place += 2
        else:
            return place
    return len(text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    return _ESCAPES.get(code, code)


def split_alias(text: str) -> tuple[str, str | None]:
    """``k % 2 as parity`` as its two parts; the name is None where there is none.

    >>> split_alias("k % 2 as parity"), split_alias("cast(k as int)")
    (('k % 2', 'parity'), ('cast(k as int)', None))
    """
    from sqlglot.dialects.databricks import Databricks
    from sqlglot.errors import SqlglotError

    try:
        tokens = Databricks().tokenize(text)
    except SqlglotError:
        return text, None
    if len(tokens) > 2 and tokens[-2].text.lower() == "as" and re.fullmatch(r"\w+|`[^`]+`", text[tokens[-1].start : tokens[-1].end + 1]):
        return text[: tokens[-2].start].rstrip(), tokens[-1].text
    return text, None


def tree_of(text: str) -> Any:
    """The syntax tree, with functions anonymous under their own names in lower case, and literals as they are meant."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ErrorLevel

    hidden = hide(text)
    tree = sqlglot.parse_one(hidden.text, dialect=DIALECT, error_level=ErrorLevel.IMMEDIATE)
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            node.set("this", hidden.name(node.this).lower())
        elif isinstance(node, exp.Identifier):
            node.set("this", hidden.name(node.this))
        elif isinstance(node, exp.Literal) and node.is_string and node.this[:1] in hidden.literals:
            node.set("this", hidden.literals[node.this[:1]])
    return tree


# Spark's precedence among + - ||, shifts, &, ^ and |, from the strongest on; sqlglot has another.
LEVELS = [("Add", "Sub", "DPipe"), ("BitwiseLeftShift", "BitwiseRightShift"), ("BitwiseAnd",), ("BitwiseXor",), ("BitwiseOr",)]
_LEVEL = {name: k for k, names in enumerate(LEVELS) for name in names}


def is_regrouped(node: Any) -> bool:
    """Whether a node is an operator whose precedence in Spark differs from sqlglot's."""
    return type(node).__name__ in _LEVEL


def chain_of(node: Any) -> list[tuple[str, Any]]:
    """Operands from left to right, each with the operator before it; what is in parentheses is one operand."""
    if not is_regrouped(node):
        return [("", node)]
    left, right = chain_of(node.this), chain_of(node.expression)
    return [*left, (type(node).__name__, right[0][1]), *right[1:]]


def grouped(chain: list[tuple[str, Any]], join: Callable[[str, Any, Any], Any]) -> Any:
    """Operands joined as Spark groups their operators: the strongest first, from left to right."""
    for level in LEVELS:
        joined = [chain[0]]
        for operator, operand in chain[1:]:
            if operator in level:
                before, left = joined[-1]
                joined[-1] = (before, join(operator, left, operand))
            else:
                joined.append((operator, operand))
        chain = joined
    return chain[0][1]
