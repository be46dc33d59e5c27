"""Queries over streams: which results can be emitted as rows come, which wait for windows to end, and which would never be final.

A *step* adds rows and advances the watermark. What a query emits at a step are its rows (:func:`is_immediate`), or the results of the
windows that end between the previous watermark and this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from sash.errors import InvalidQuery
from sash.expressions import parse
from sash.plan.queries.axes import axis_of
from sash.plan.queries.relations import (
    Applied,
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
from sash.types import Measure

IMMEDIATE = ("time", "instants", "sessions", "marks")
"""The kinds of windows of which each row is in one as soon as it comes."""


def is_immediate(query: Query) -> bool:
    """Whether a query's results are rows of its stream, each emitted when it comes."""
    return query.kind == "istream" and query.is_rows and all(w.windowing.kind in IMMEDIATE for w in windowed(query.relation))


def windowed(relation: Relation) -> list[Windowed]:
    """The sources of a relation, those of nested queries included."""
    if isinstance(relation, Windowed):
        return [relation]
    return [source for child in children(relation) for source in windowed(child)]


def sliced(relation: Grouped) -> Windowed | None:
    """The source whose windows :func:`sash.aggregate` can compute for a relation; None where they are not those of the query.

    Conditions may stand between: they are applied before time windows, and to no others.
    """
    source, is_filtered = relation.child, False
    while isinstance(source, Selected):
        source, is_filtered = source.child, True
    if not isinstance(source, Windowed) or source.windowing.window is None:
        return None
    windowing = source.windowing
    same_keys = windowing.partition and set(windowing.partition) == {text for _, text in relation.keys}
    counted = windowing.kind in ("rows", "sessions", "marks") and (same_keys or not (windowing.partition or relation.keys))
    return source if windowing.kind == "time" or (counted and not is_filtered) else None


def conditions_of(relation: Relation) -> list[str]:
    """The conditions above a source, the lowest first."""
    return [*conditions_of(relation.child), relation.condition] if isinstance(relation, Selected) else []


def is_sliced(query: Query) -> bool:
    """Whether a query is one aggregation over windows of one stream, and what can be computed from its results alone."""
    relation = query.relation
    if not isinstance(relation, Grouped) or not relation.calls or query.kind != "rstream" or query.distinct or query.limit is not None:
        return False
    source = sliced(relation)
    return source is not None and not _has_windows(source.origin)


def _has_windows(origin: object) -> bool:
    """Whether a stream consists of results that wait for windows."""
    return isinstance(origin, StreamOf) and not _is_row_by_row(origin.query)


def _is_row_by_row(query: Query) -> bool:
    return is_immediate(query) and not any(_has_windows(w.origin) for w in windowed(query.relation))


def has_one_row_per_row(query: Query) -> bool:
    """Whether a query and all streams below it emit rows as they come, so that nothing has to be stored."""
    return _is_row_by_row(query)


def origin_queries(query: Query) -> list[Query]:
    """The queries of the named streams that a query reads."""
    queries: list[Query] = []
    for source in windowed(query.relation):
        if isinstance(source.origin, StreamOf) and all(q is not source.origin.query for q in queries):
            queries.append(source.origin.query)
    return queries


@dataclass(frozen=True)
class StreamRead:
    """A stream that was passed, and the columns that a query reads of it."""

    name: str
    schema: pa.Schema
    time: str
    reads: frozenset[str]


def streams_read(query: Query) -> list[StreamRead]:
    """The streams that a query reads, those below its named streams included, by name."""
    found: dict[str, StreamRead] = {}
    waiting, seen = [query], set[int]()
    while waiting:
        query = waiting.pop()
        if id(query) in seen:
            continue
        seen.add(id(query))
        for source in windowed(query.relation):
            origin = source.origin
            if isinstance(origin, StreamOf):
                waiting.append(origin.query)
                continue
            known = found.setdefault(origin.name, StreamRead(origin.name, origin.schema, origin.time, frozenset()))
            if known.time != origin.time:
                raise InvalidQuery(f"{origin.name!r} is measured in {known.time!r} and in {origin.time!r}; a stream has one time")
            found[origin.name] = replace(known, reads=known.reads | set(source.names))
    return [found[name] for name in sorted(found)]


# What streams cannot have.


def check_flow(query: Query) -> None:
    """Raise for a query whose results over a stream are never final, or need rows that would have to be kept for ever."""
    for below in origin_queries(query):
        check_flow(below)
    if is_immediate(query) or is_sliced(query):
        return
    _check(query.relation)
    if query.kind == "rstream":
        return
    if query.limit is not None and not query.distinct and _is_of_rows(query.relation):
        raise InvalidQuery(
            f"{query.kind} of rows with a limit compares each window's rows with those of the window before, which a stream has forgotten; "
            "use rstream(select ...)"
        )
    axis = axis_of(query.relation, query.measure)
    if axis.kind != "time" or not axis.slide:
        raise InvalidQuery(
            f"{query.kind} compares each window with the one before, which on a stream is possible for windows such as "
            f"[range 60 slide 1]; {axis.text} has no slide. Use rstream(select ...)"
        )


def _is_of_rows(relation: Relation) -> bool:
    return isinstance(relation, Windowed) or (isinstance(relation, Selected) and _is_of_rows(relation.child))


def _check(relation: Relation) -> None:
    if isinstance(relation, Grouped) and is_periodic(sliced(relation)):
        return None
    if isinstance(relation, Inner):
        if is_immediate(relation.query):
            return _check_source_of(relation.query.relation)
        if relation.query.kind != "rstream":
            raise InvalidQuery(f"a nested query on a stream is one of each window's result; {relation.query.kind} changes that")
        return _check(relation.query.relation)
    if isinstance(relation, Windowed):
        return _check_source(relation)
    for child in children(relation):
        _check(child)
    return None


def _check_source_of(relation: Relation) -> None:
    for source in windowed(relation):
        _check_source(source)


def is_periodic(source: Windowed | None) -> bool:
    """Whether a source has windows at equal distances."""
    if source is None or source.windowing.kind != "time" or source.windowing.window is None:
        return False
    return source.windowing.window.bind(Measure(source.origin.measure_type)).as_periodic is not None


def _check_source(source: Windowed) -> None:
    windowing = source.windowing
    if is_periodic(source) or (windowing.kind == "instants" and windowing.reach is not None):
        return
    name = f"{source.origin.name} {windowing.text}" if not windowing.is_implied else f"{source.origin.name} without a window"
    reasons = {
        "time": "follows the calendar, which on a stream is possible where the query aggregates it alone",
        "instants": "would keep all of its rows for ever",
        "last rows": "would keep rows of every partition for ever",
        "rows": "counts the rows of the whole stream",
        "sessions": "has sessions of other keys than the groups",
        "marks": "has punctuation of other keys than the groups",
    }
    advice = {
        "rows": "aggregate it alone, grouped by what it is partitioned by",
        "sessions": "aggregate it alone, grouped by what it is partitioned by",
        "marks": "aggregate it alone, grouped by what it is partitioned by",
    }.get(windowing.kind, "on a stream use windows of a fixed size, such as [range 60 slide 1], or run the query in batch")
    raise InvalidQuery(f"{name} {reasons[windowing.kind]}; {advice}")


# Which groups of rows can be computed apart.


Expressions = tuple[str, ...]


def partition_of(query: Query) -> dict[str, Expressions] | None:
    """For each stream the expressions by which its rows can be split, so that each part is computed alone; None: they cannot."""
    if not _may_split(query):
        return None
    columns = _candidates(query)
    for texts in (columns, *((text,) for text in columns)):
        parts: dict[str, Expressions] = {}
        if texts and _split(query.relation, texts, parts):
            return parts
    return None


def _may_split(query: Query) -> bool:
    """Whether the edges of a query do not depend on its rows: otherwise each part would have edges of its own."""
    if not all(_may_split(below) for below in origin_queries(query)):
        return False
    return is_immediate(query) or axis_of(query.relation, query.measure).kind == "time"


def _candidates(query: Query) -> Expressions:
    """Expressions over the relation of a query that tell apart what its results do not mix."""
    if query.limit is not None:
        return ()
    if query.distinct:
        return tuple(c.text for c in query.columns if _is_plain(c.text))
    return _candidates_of(query.relation)


def _candidates_of(relation: Relation) -> Expressions:
    if isinstance(relation, Grouped):
        return tuple(_quoted(name) for name, _ in relation.keys)
    if isinstance(relation, Selected):
        return _candidates_of(relation.child)
    if isinstance(relation, Joined):
        return tuple(a for a, _ in relation.equal)
    if isinstance(relation, Inner):
        return tuple(_quoted(n) for n in relation.schema.names if n != relation.time)
    return ()


def _split(relation: Relation, texts: Expressions, parts: dict[str, Expressions]) -> bool:
    """Whether rows with different values of ``texts`` never meet below a relation; notes the expressions over its streams."""
    if isinstance(relation, Selected):
        return _split(relation.child, texts, parts)
    if isinstance(relation, Grouped):
        keys = {_quoted(name): text for name, text in relation.keys}
        return all(t in keys for t in texts) and _split(relation.child, tuple(keys[t] for t in texts), parts)
    if isinstance(relation, Joined):
        return _split_pairs(relation, texts, parts)
    if isinstance(relation, Inner):
        return _split_query(relation.query, _inside(texts, relation.names, relation.schema, relation.query), parts)
    if isinstance(relation, Applied):
        return False
    origin = relation.origin
    below = _below(texts, dict(zip(relation.schema.names, map(_quoted, relation.names), strict=True)), relation.schema)
    if isinstance(origin, StreamOf):
        return _split_query(origin.query, _inside(below, tuple(origin.schema.names), origin.schema, origin.query), parts)
    return parts.setdefault(origin.name, below) == below


def _split_pairs(relation: Joined, texts: Expressions, parts: dict[str, Expressions]) -> bool:
    left, right = dict(relation.equal), {b: a for a, b in relation.equal}
    if all(t in left for t in texts):
        return _split(relation.left, texts, parts) and _split(relation.right, tuple(left[t] for t in texts), parts)
    if all(t in right for t in texts):
        return _split(relation.left, tuple(right[t] for t in texts), parts) and _split(relation.right, texts, parts)
    return False


def _split_query(query: Query, texts: Expressions | None, parts: dict[str, Expressions]) -> bool:
    return texts is not None and query.limit is None and _split(query.relation, texts, parts)


def _inside(texts: Expressions, names: tuple[str, ...], schema: pa.Schema, query: Query) -> Expressions | None:
    """Expressions over a query's results as expressions over its relation; None where they read its window or its time."""
    columns = {c.name: c.text for c in query.columns}
    known = {own: columns.get(name) for own, name in zip(schema.names, names, strict=True)}
    reads = {n for text in texts for n in parse(text).columns(schema)}
    if any(known[n] is None or "`@" in str(known[n]).replace("`@key", "") for n in reads):
        return None
    return _below(texts, {n: str(known[n]) for n in reads}, schema)


def _below(texts: Expressions, names: Mapping[str, str], schema: pa.Schema) -> Expressions:
    """Expressions whose columns are replaced by other expressions."""
    return tuple(_substituted(text, {n: names[n] for n in parse(text).columns(schema)}) for text in texts)


def _substituted(text: str, names: Mapping[str, str]) -> str:
    if text in map(_quoted, names):
        return names[next(n for n in names if _quoted(n) == text)]
    parts = [text]
    for name, other in names.items():
        parts = [piece for part in parts for piece in _between(part, _quoted(name), f"({other})")]
    return "".join(part.removeprefix("\0") for part in parts)


def _between(part: str, name: str, other: str) -> list[str]:
    """A text cut at a name, with what stands for it; pieces that are replaced already start with a mark."""
    if part.startswith("\0"):
        return [part]
    pieces = part.split(name)
    return [piece for k, p in enumerate(pieces) for piece in ([f"\0{other}", p] if k else [p])]


def _is_plain(text: str) -> bool:
    return text.startswith("`") and text.count("`") == 2 and not text.startswith("`@")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
