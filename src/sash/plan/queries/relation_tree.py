"""A query's plan as lines of text, from the result down to the streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sash.plan.queries.relations import (
    END,
    START,
    TIME,
    Applied,
    Column,
    Grouped,
    Inner,
    Joined,
    Query,
    Relation,
    Selected,
    StreamOf,
    Windowed,
    children,
)

Notes = Callable[[Relation], list[str]]
"""What a carrier makes of a relation, as lines of text."""

MEANINGS = {
    "istream": "each row once",
    "rstream": "each window's result",
    "dstream": "what is gone since one window earlier",
}


def tree(query: Query, notes: Notes = lambda relation: []) -> list[str]:
    """The plan of a query; ``notes`` adds lines under a relation."""
    lines = _query(query, notes)
    for name, inner in _streams(query.relation, {}).items():
        lines += [f"stream {name}", *_indented(_query(inner, notes))]
    return lines


def _streams(relation: Relation, found: dict[str, Query]) -> dict[str, Query]:
    """The named streams below a relation, the innermost last."""
    if isinstance(relation, Windowed) and isinstance(relation.origin, StreamOf):
        if relation.origin.name not in found:
            found[relation.origin.name] = relation.origin.query
            _streams(relation.origin.query.relation, found)
        return found
    for child in children(relation):
        _streams(child, found)
    return found


def _query(query: Query, notes: Notes) -> list[str]:
    meaning = MEANINGS[query.kind]
    if query.kind == "istream" and not query.is_rows:
        meaning = "what is new since one window earlier"
    lines = [f"{query.kind}: {meaning}"]
    names = _meanings(query.relation)
    lines.append(f"  select {'distinct ' * query.distinct}{', '.join(_column(c, names) for c in query.columns)}")
    if query.order:
        keys = ", ".join(f"{_plain(k.text, names)}{' desc' * k.descending}" for k in query.order)
        lines.append(f"  order by {keys}{f' limit {query.limit} per window' if query.limit is not None else ''}")
    elif query.limit is not None:
        lines.append(f"  limit {query.limit} per window")
    if query.having is not None:
        lines.append(f"  having {_plain(query.having, names)}")
    return [*lines, *_indented(_relation(query.relation, notes))]


def _meanings(relation: Relation) -> dict[str, str]:
    """What the columns of a result are that have no name in the query."""
    known = {TIME: "time of the result", START: "window.start", END: "window.end"}
    if isinstance(relation, Grouped):
        known |= {call.name: _plain(repr(replace(call, alias_name=None))) for call in relation.calls}
        known |= {name: _plain(text) for name, text in relation.keys if name.startswith("@")}
    return known


def _column(column: Column, names: dict[str, str]) -> str:
    text = _plain(column.text, names)
    return text if text == column.name else f"{text} as {column.name}"


def _plain(text: str, names: dict[str, str] | None = None) -> str:
    """An expression as people write it: names that need no quotes have none."""
    parts = " ".join(text.split()).split("`")
    for k in range(1, len(parts), 2):
        name = parts[k]
        parts[k] = (
            names[name]
            if names and name in names
            else name
            if name.replace("_", "a").replace(".", "a").replace("@", "a").isalnum()
            else f"`{name}`"
        )
    return "".join(parts)


def _relation(relation: Relation, notes: Notes) -> list[str]:
    head = _head(relation)
    lines = [head, *(f"  {note}" for note in notes(relation))]
    if isinstance(relation, Inner):
        return [*lines, *_indented(_query(relation.query, notes))]
    for child in children(relation):
        lines += _indented(_relation(child, notes))
    return lines


def _head(relation: Relation) -> str:
    if isinstance(relation, Windowed):
        window = "" if relation.windowing.is_implied else f" {relation.windowing.text}"
        return f"{relation.origin.name}{window}: {', '.join(relation.names)}"
    if isinstance(relation, Selected):
        return f"where {_plain(relation.condition)}"
    if isinstance(relation, Joined):
        parts = [f"{_plain(a)} = {_plain(b)}" for a, b in relation.equal] + ([_plain(relation.condition)] if relation.condition else [])
        return f"join on {' and '.join(parts)}" if parts else "join without a condition"
    if isinstance(relation, Grouped):
        keys = ", ".join(_plain(text) if name == _plain(text) else f"{_plain(text)} as {name}" for name, text in relation.keys)
        calls = ", ".join(_plain(repr(replace(call, alias_name=None))) for call in relation.calls)
        return f"aggregate {calls or 'nothing'}{f' by {keys}' if keys else ''}"
    if isinstance(relation, Applied):
        return f"window function {relation.name}"
    return "nested query, window by window"


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


__all__ = ["Notes", "tree"]
