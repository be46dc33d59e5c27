"""How a table is sliced, and why: the rules that :mod:`sash.slicing.batch.whole_table` follows and ``sash.explain`` shows."""

from __future__ import annotations

from dataclasses import dataclass

from sash.plan.choose import Choice

DENSE = 4
"""Rows are scattered without sorting if there are no more places (keys × slices) than this many times the rows."""
FEWEST_PLACES = 1 << 16


@dataclass(frozen=True)
class Facts:
    """What decides how rows become slices."""

    rows: int
    context_free: bool
    """Whether all edges are known in advance."""
    commute: bool
    """Whether all aggregates are flat fields that commute."""
    places: int | None
    """Keys × slices; None if there are too many slices to count."""


def most_places(rows: int) -> int:
    """How many places rows may be scattered into."""
    return max(DENSE * rows, FEWEST_PLACES)


def choose_slices(facts: Facts) -> Choice:
    """Scatter rows into their slices as they come, or sort them first."""
    if not facts.context_free:
        return Choice("sort", ("some windows depend on the rows: rows are sorted by key and time, and cut where a query asks for it",))
    if not facts.commute:
        return Choice("sort", ("some aggregate does not commute, or has no flat partial: rows are sorted by key and time",))
    if facts.rows == 0:
        return Choice("sort", ("there are no rows",))
    if facts.places is None or facts.places > most_places(facts.rows):
        return Choice("sort", ("slices would outnumber the rows: rows are sorted, and slices are cut only where rows are",))
    return Choice("scatter", ("edges are known and aggregates commute: each row is added to its slice, in any order",))
