"""Functions of text. Characters are code points; positions count from 1."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import InvalidExpression, UndefinedValue
from sash.expressions.arrays import by_value, is_ascii, spread
from sash.expressions.coercion import BINARY, BOOL, INT32, INT64, STRING, implicit
from sash.expressions.nodes import Node
from sash.expressions.table import Datum, Function, Typed, Typing, definer, takes, text

define = definer(__name__)


def _each(compute: Callable[..., Any], result: pa.DataType = STRING) -> Callable[..., Datum]:
    """A Python function of each distinct combination of arguments."""
    return lambda *values, type: by_value(compute, result, *spread(*values))


def _cased(quick: Callable[[Datum], Datum], full: Callable[[str], str]) -> Callable[..., Datum]:
    """Arrow's own for ASCII; beyond it one letter may become two."""
    return lambda value, *, type: quick(value) if is_ascii(value) else by_value(full, STRING, value)


def _initcap(value: str) -> str:
    return re.sub(r"[^ ]+", lambda m: m[0][0].title() + m[0][1:].lower(), value)


define("lower", 1, text(), _cased(pc.ascii_lower, str.lower), "lcase")
define("upper", 1, text(), _cased(pc.ascii_upper, str.upper), "ucase")
define("initcap", 1, text(), _each(_initcap))


# Lengths and concatenation.


def _bytes_or_text(*others: pa.DataType, returns: pa.DataType | None = None) -> Typing:
    """Bytes stay bytes; all else becomes text."""

    def typing(function: Function, arguments: list[Node], zone: str) -> Typed:
        first = arguments[0] if arguments[0].type == BINARY else implicit(arguments[0], STRING, function.title)
        rest = [implicit(a, t, function.title) for a, t in zip(arguments[1:], others, strict=False)]
        return Typed([first, *rest], returns or first.type)

    return typing


def _length(value: Datum, *, type: pa.DataType) -> Datum:
    return pc.binary_length(value) if value.type == BINARY else pc.utf8_length(value)


def _concat_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    t = BINARY if all(a.type == BINARY for a in arguments) else STRING
    return Typed([implicit(a, t, function.title) for a in arguments], t)


def _concat(*values: Datum, type: pa.DataType) -> Datum:
    return pc.binary_join_element_wise(*values, pa.scalar(b"" if type == BINARY else "", type))


def _concat_ws(separator: Datum, *values: Datum, type: pa.DataType) -> Datum:
    """Nulls are left out."""
    if not values:
        return pc.if_else(pc.is_valid(separator), pa.scalar(""), pa.scalar(None, STRING))
    rows = zip(*[v.to_pylist() for v in spread(separator, *values)], strict=True)
    return pa.array([None if s is None else s.join(v for v in rest if v is not None) for s, *rest in rows], STRING)


define("length", 1, _bytes_or_text(returns=INT32), _length, "len", "char_length", "character_length")
define("octet_length", 1, _bytes_or_text(returns=INT32), lambda v, *, type: pc.binary_length(v))
define("concat", (1, 255), _concat_typing, _concat, keeps_nulls=True)
define("||", 2, _concat_typing, _concat, keeps_nulls=True)
define("concat_ws", (1, 255), text(STRING), _concat_ws, keeps_nulls=True)


# Parts.


MOST = (1 << 31) - 1
"""The length of a part that reaches to the end of the text."""


def _slice(value: Any, start: int, length: int | None) -> Any:
    """Spark's ``substring``: counted from 1 (0 is 1), or from the end where negative; characters before the text's start count as well."""
    size = len(value)
    begin = start - 1 if start > 0 else size + start if start < 0 else 0
    end = begin + (MOST if length is None else length)
    return value[max(begin, 0) : max(end, 0)] if end > begin else value[:0]


def _substring(value: Datum, start: Datum, length: Datum | None = None, *, type: pa.DataType) -> Datum:
    fixed = [p for p in (start, length) if isinstance(p, pa.Scalar) and p.is_valid]
    if type == STRING and len(fixed) == 1 + (length is not None) and start.as_py() >= 0:
        first = max(start.as_py() - 1, 0)
        stop = None if length is None else first + max(0, length.as_py())
        return pc.utf8_slice_codeunits(value, start=first, stop=stop)
    if length is None:
        return by_value(lambda v, s: _slice(v, s, None), type, *spread(value, start))
    return by_value(_slice, type, *spread(value, start, length))


define("substring", (2, 3), _bytes_or_text(INT32, INT32), _substring, "substr")
define("left", 2, _bytes_or_text(INT32), lambda v, n, *, type: by_value(lambda s, k: s[: max(k, 0)], type, *spread(v, n)))
define("right", 2, text(INT32), _each(lambda s, k: s[-k:] if k > 0 else ""))
define("reverse", 1, _bytes_or_text(), lambda v, *, type: pc.utf8_reverse(v) if type == STRING else by_value(lambda b: b[::-1], BINARY, v))
define("repeat", 2, text(INT32), _each(lambda s, k: s * max(k, 0)))


def _part(value: str, delimiter: str, place: int) -> str:
    if place == 0:
        raise UndefinedValue("split_part counts from 1, or from -1 at the end; 0 is no place")
    parts = value.split(delimiter) if delimiter else [value]
    k = place - 1 if place > 0 else len(parts) + place
    return parts[k] if 0 <= k < len(parts) else ""


define("split_part", 3, takes(STRING, STRING, INT32, returns=STRING), _each(_part))


def _padded(left: bool) -> Callable[..., Any]:
    def pad(value: Any, size: int, filler: Any = None) -> Any:
        filler = filler if filler is not None else b"\0" if isinstance(value, bytes) else " "
        if size <= len(value) or not filler:
            return value[: max(size, 0)]
        missing = size - len(value)
        padding = (filler * (missing // len(filler) + 1))[:missing]
        return padding + value if left else value + padding

    return lambda *values, type: by_value(pad, type, *spread(*values))


def _pad_typing(function: Function, arguments: list[Node], zone: str) -> Typed:
    """Bytes are padded with zeros, unless a text to pad with is passed."""
    t = BINARY if arguments[0].type == BINARY and len(arguments) == 2 else STRING
    return takes(t, INT32, STRING, returns=t)(function, arguments, zone)


define("lpad", (2, 3), _pad_typing, _padded(left=True))
define("rpad", (2, 3), _pad_typing, _padded(left=False))


# Trimming: spaces only, unless letters are named.


def _trim(quick: Callable[..., Datum], one: Callable[[str, str], str]) -> Callable[..., Datum]:
    def arrow(value: Datum, letters: Datum | None = None, *, type: pa.DataType) -> Datum:
        if letters is None:
            return quick(value, " ")
        if isinstance(letters, pa.Scalar) and letters.is_valid and letters.as_py():
            return quick(value, letters.as_py())
        return by_value(lambda v, c: one(v, c) if c else v, STRING, *spread(value, letters))

    return arrow


def _swapped(trim: Callable[..., Datum]) -> Callable[..., Datum]:
    """``ltrim('x', s)``: the letters come first."""
    return lambda *values, type: trim(*reversed(values), type=type)


_BOTH = _trim(pc.utf8_trim, str.strip)
_LEFT = _trim(pc.utf8_ltrim, str.lstrip)
_RIGHT = _trim(pc.utf8_rtrim, str.rstrip)
define("trim", (1, 2), text(), _swapped(_BOTH))
define("btrim", (1, 2), text(), _BOTH)
define("ltrim", (1, 2), text(), _swapped(_LEFT))
define("rtrim", (1, 2), text(), _swapped(_RIGHT))
define("trim leading", (1, 2), text(), _LEFT)
define("trim trailing", (1, 2), text(), _RIGHT)


# Searching.


def _position(value: str, part: str, start: int = 1) -> int:
    return value.find(part, start - 1) + 1 if start > 0 else 0


def _contains(quick: Callable[..., Datum], one: Callable[[Any, Any], bool]) -> Callable[..., Datum]:
    def arrow(value: Datum, part: Datum, *, type: pa.DataType) -> Datum:
        if isinstance(part, pa.Scalar) and part.is_valid:
            return quick(value, part.as_py())
        return by_value(one, BOOL, *spread(value, part))

    return arrow


_searched = takes(STRING, STRING, INT32, returns=INT32)
define("instr", 2, _searched, _each(_position, INT32))


def _locate(part: Datum, value: Datum, start: Datum | None = None, *, type: pa.DataType) -> Datum:
    """The position of the first occurrence of a part from ``start`` on, 0 if there is none or ``start`` is null."""
    if start is None:
        return by_value(lambda p, v: _position(v, p), INT32, *spread(part, value))
    positions = by_value(lambda p, v, s: _position(v, p, s), INT32, *spread(part, value, start))
    return pc.if_else(pc.is_null(start), pa.scalar(0, INT32), positions)


define("locate", (2, 3), _searched, _locate, "position", "charindex", keeps_nulls=True)
define("startswith", 2, text(returns=BOOL), _contains(pc.starts_with, str.startswith))
define("endswith", 2, text(returns=BOOL), _contains(pc.ends_with, str.endswith))
define("contains", 2, text(returns=BOOL), _contains(pc.match_substring, str.__contains__))


def _replace(value: str, old: str, new: str = "") -> str:
    return value.replace(old, new) if old else value


def _translate(value: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for k, c in enumerate(old):
        table.setdefault(ord(c), new[k] if k < len(new) else None)
    return value.translate(table)


def _replaced(value: Datum, old: Datum, new: Datum | None = None, *, type: pa.DataType) -> Datum:
    new = pa.scalar("") if new is None else new
    if all(isinstance(v, pa.Scalar) and v.is_valid for v in (old, new)) and old.as_py():
        return pc.replace_substring(value, old.as_py(), new.as_py())
    return by_value(_replace, STRING, *spread(value, old, new))


define("replace", (2, 3), text(), _replaced)
define("translate", 3, text(), _each(_translate))
define("ascii", 1, text(returns=INT32), _each(lambda s: ord(s[0]) if s else 0, INT32))
define("chr", 1, takes(INT64, returns=STRING), _each(lambda n: "" if n < 0 else chr(n & 255)), "char")


# Patterns.


def _like_parts(pattern: str, escape: str) -> list[str | None]:
    """A pattern as literal pieces (text), single wildcards (``_`` as an empty piece) and ``%`` (None)."""
    parts: list[str | None] = []
    place = 0
    while place < len(pattern):
        c = pattern[place]
        if c == escape:
            following = pattern[place + 1 : place + 2]
            if following not in ("_", "%", escape) or not following:
                raise UndefinedValue(f"the pattern {pattern!r} has {escape!r} before a character that needs none, or at its end")
            parts.append(following)
            place += 2
            continue
        parts.append(None if c == "%" else "" if c == "_" else c)
        place += 1
    return parts


def _like_regex(parts: list[str | None]) -> str:
    return "".join(".*" if p is None else "." if p == "" else re.escape(p) for p in parts)


def _like(value: Datum, pattern: Datum, escape: Datum | None = None, *, ignore_case: bool) -> Datum:
    sign = "\\" if escape is None else str(_single(escape))
    if len(sign) != 1:
        raise InvalidExpression(f"escape must be one character, not {sign!r}")
    if not isinstance(pattern, pa.Scalar):
        flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        return by_value(lambda v, p: re.fullmatch(_like_regex(_like_parts(p, sign)), v, flags) is not None, BOOL, *spread(value, pattern))
    if not pattern.is_valid:
        return pa.nulls(len(value), BOOL)
    parts = _like_parts(pattern.as_py(), sign)
    inner = parts[parts[:1] == [None] : len(parts) - (parts[-1:] == [None]) or None]
    if not ignore_case and None not in inner and "" not in inner and parts != [None]:
        literal = "".join(p for p in inner if p)
        starts, ends = parts[:1] != [None], parts[-1:] != [None]
        if starts and ends:
            return pc.equal(value, literal)
        return pc.starts_with(value, literal) if starts else pc.ends_with(value, literal) if ends else pc.match_substring(value, literal)
    if ignore_case and not is_ascii(value):
        return by_value(lambda v: re.fullmatch(_like_regex(parts), v, re.DOTALL | re.IGNORECASE) is not None, BOOL, value)
    return pc.match_substring_regex(value, f"(?s)^(?:{_like_regex_re2(parts)})$", ignore_case=ignore_case)


def _like_regex_re2(parts: list[str | None]) -> str:
    def quoted(c: str) -> str:
        return c if c.isalnum() or c == "_" or ord(c) > 127 else f"\\x{{{ord(c):x}}}"

    return "".join(".*" if p is None else "." if p == "" else quoted(p) for p in parts)


def _single(value: Datum) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value[0].as_py()


def _regex(value: Datum, pattern: Datum, *, type: pa.DataType) -> Datum:
    if isinstance(pattern, pa.Scalar) and pattern.is_valid:
        return pc.match_substring_regex(value, pattern.as_py())
    return by_value(lambda v, p: re.search(p, v) is not None, BOOL, *spread(value, pattern))


_pattern = takes(STRING, returns=BOOL)
define("like", (2, 3), _pattern, lambda *values, type: _like(*values, ignore_case=False))
define("ilike", (2, 3), _pattern, lambda *values, type: _like(*values, ignore_case=True))
define("rlike", 2, _pattern, _regex, "regexp", "regexp_like")
