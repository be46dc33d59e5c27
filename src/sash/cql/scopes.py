"""What names mean at a place in a query: columns of sources, keys of groups, aliases, the window and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from sash.cql.phrases import Part, quoted
from sash.cql.tokens import Script
from sash.errors import InvalidQuery
from sash.plan.queries.relations import END, START, TIME, Relation

WINDOW_COLUMNS = {"window_start": START, "window_end": END, "window_time": TIME}
"""What table functions add to a row."""


@dataclass(frozen=True)
class BoundSource:
    """A source with the names that its columns have in the query and in its relation."""

    alias: str
    relation: Relation
    columns: dict[str, str]
    """A column's own name, and its name in ``relation.schema``."""
    time: str
    """The name of its time column."""
    expands: bool = False
    """Whether it has the columns of a table function."""

    def column(self, name: str) -> str | None:
        """The relation's name for a column; names are compared as Spark does, regardless of case, if that is unique."""
        if name in self.columns:
            return self.columns[name]
        folded = [own for own in self.columns if own.lower() == name.lower()]
        return self.columns[folded[0]] if len(folded) == 1 else None


@dataclass(frozen=True)
class RowScope:
    """Names in WHERE, GROUP BY and the arguments of aggregates: columns of the sources."""

    script: Script
    sources: tuple[BoundSource, ...]

    def resolve(self, parts: Sequence[Part]) -> tuple[int, str]:
        """How many parts name a column, and the column."""
        source = self.qualifier(parts)
        if source is not None:
            column = source.column(parts[1].text)
            if column is None:
                raise self._unknown(parts[1], f"column of {source.alias!r}", list(source.columns))
            return 2, quoted(column)
        found = [(s, c) for s in self.sources if (c := s.column(parts[0].text)) is not None]
        if len(found) > 1:
            ways = " or ".join(f"{s.alias}.{parts[0].text}" for s, _ in found)
            raise self.script.error(f"{parts[0].text!r} is in several sources; write {ways}", parts[0].start, parts[0].end)
        if not found:
            if len(parts) > 1 and not any(parts[0].text.lower() == s.alias.lower() for s in self.sources):
                names = [s.alias for s in self.sources]
                raise self._unknown(parts[0], "source or column", [*names, *self.column_names()])
            raise self._unknown(parts[0], "column", self.column_names())
        return 1, quoted(found[0][1])

    def qualifier(self, parts: Sequence[Part]) -> BoundSource | None:
        """The source that the first of several parts names."""
        if len(parts) < 2:
            return None
        return next((s for s in self.sources if s.alias.lower() == parts[0].text.lower()), None)

    def column_names(self) -> list[str]:
        """All names that may stand alone."""
        return list(dict.fromkeys(name for s in self.sources for name in s.columns))

    def _unknown(self, part: Part, kind: str, names: list[str]) -> InvalidQuery:
        return unknown_name(self.script, part.text, kind, names, part.start, part.end)


@dataclass(frozen=True)
class ResultScope:
    """Names in the select list, HAVING and ORDER BY: the window and its time, aliases, and rows or groups."""

    rows: RowScope
    time: str
    """The unqualified name that is the time of a result."""
    keys: dict[str, str] | None = None
    """Of a query with groups: the relation's columns that are keys, and their names among the groups."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Where aliases may be used: their expressions."""

    def resolve(self, parts: Sequence[Part]) -> tuple[int, str]:
        """How many parts name a column, and the column."""
        name = parts[0].text.lower()
        for alias, text in self.aliases.items():
            if alias.lower() == name and self.rows.qualifier(parts) is None:
                return 1, f"({text})"
        if len(parts) == 1 and name == self.time.lower():
            return 1, quoted(TIME)
        known = self._of_window(parts, name)
        if known is not None:
            return known
        count, column = self.rows.resolve(parts)
        if self.keys is None:
            return count, column
        if column not in self.keys:
            written = ".".join(p.text for p in parts)
            message = f"{written!r} is neither in GROUP BY nor inside an aggregate"
            raise self.rows.script.error(message, parts[0].start, parts[-1].end)
        return count, quoted(self.keys[column])

    def _of_window(self, parts: Sequence[Part], name: str) -> tuple[int, str] | None:
        if name == "window" and len(parts) == 2 and all(s.column("window") is None for s in self.rows.sources):
            ends = {"start": START, "end": END}
            end = parts[1].text.lower()
            if end not in ends:
                raise self.rows.script.error("a window has window.start and window.end", parts[1].start, parts[1].end)
            return 2, quoted(ends[end])
        if len(parts) == 1 and name in WINDOW_COLUMNS and any(s.expands for s in self.rows.sources):
            return 1, quoted(WINDOW_COLUMNS[name])
        return None


def unknown_name(script: Script, name: str, kind: str, names: Sequence[str], start: int, end: int) -> InvalidQuery:
    """An error that suggests the nearest known name."""
    near = get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    meant = next((n for n in names if near and n.lower() == near[0]), None)
    known = ", ".join(sorted(names)[:20]) + (", ..." if len(names) > 20 else "")
    hint = f": did you mean {meant!r}?" if meant is not None else "."
    return script.error(f"unknown {kind} {name!r}{hint} Known: {known or 'none'}", start, end)
