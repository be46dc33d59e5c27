"""The columns of sources that do not say what they have: from text, or from an example row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from sash.errors import InvalidArgument, SashError
from sash.expressions import parse

ZONED = pa.timestamp("us", "UTC")


def schema_of(text: str, what: str) -> pa.Schema:
    """The columns in ``'a long, b timestamp'``, or those of an example row, ``'{"a": 1, "b": "2024-01-01 00:00:00"}'``.

    >>> schema_of("a long, b timestamp", "--schema").field("b").type
    TimestampType(timestamp[us, tz=UTC])
    >>> schema_of('{"a": 1, "b": "2024-01-01T00:00:00Z"}', "--schema").names
    ['a', 'b']
    """
    text = text.strip()
    return _of_row(text, what) if text.startswith("{") else _of_types(text, what)


def _of_types(text: str, what: str) -> pa.Schema:
    fields = []
    for part in _split(text):
        name, kind = _name_and_type(part.strip())
        if not name or not kind.strip():
            raise InvalidArgument(f"{what}: {part.strip()!r} must be a name and a type, such as 'a long, b timestamp'")
        try:
            fields.append(pa.field(name, parse(f"cast(null as {kind.strip()})").type(pa.schema([pa.field("t", ZONED)]))))
        except SashError as error:
            raise InvalidArgument(
                f"{what}: the type of {name!r} is not known: {kind.strip()!r}; write long, double, string, timestamp ..."
            ) from error
    names = [f.name.lower() for f in fields]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InvalidArgument(f"{what}: the column {twice!r} is there twice")
    return pa.schema(fields)


def _name_and_type(text: str) -> tuple[str, str]:
    if text.startswith("`"):
        name, _, kind = text[1:].partition("`")
        return name, kind
    name, _, kind = text.partition(" ")
    return name, kind


def _split(text: str) -> list[str]:
    """The parts between commas that are in no parentheses."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]]


def _of_row(text: str, what: str) -> pa.Schema:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{what}: the example row is not JSON ({error.msg} at character {error.pos})") from error
    return pa.schema([pa.field(str(name), type_of_value(value, f"{what}: {name!r}")) for name, value in row.items()])


def type_of_value(value: Any, what: str) -> pa.DataType:
    """The type of a value in a row of JSON: text that is a time is a time."""
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        is_time = len(value) >= 10 and value[:4].isdigit() and value[4] == "-" and _is_time(value)
        return ZONED if is_time else pa.string()
    raise InvalidArgument(f"{what} is {json.dumps(value)}, which tells no type; pass --schema NAME='a long, b timestamp'")


def _is_time(text: str) -> bool:
    one = pa.table({"s": [text], "t": pa.array([None], ZONED)})
    return bool(parse("try_cast(s as timestamp)").evaluate(one)[0].is_valid)


def checked_columns(schema: pa.Schema, time: str, what: str) -> None:
    """Raise unless there is a time column."""
    if not any(name.lower() == time.lower() for name in schema.names):
        raise InvalidArgument(f"{what}: there is no column {time!r} for the time of rows; pass --time, one of {', '.join(schema.names)}")
