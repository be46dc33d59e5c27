"""How the rows of a table become slices; executed by :mod:`sash.slicing.batch.whole_table`."""

from __future__ import annotations

from dataclasses import dataclass

from sash.plan.choices.decision import Decision

DENSE = 4
"""Rows are scattered without sorting if there are at most this many times as many places (keys × slices) as rows."""
FEWEST_PLACES = 1 << 16

SCATTER, SORT = "scatter", "sort"


@dataclass(frozen=True)
class Facts:
    """The properties of a table and its plan that decide how rows become slices."""

    rows: int
    context_free: bool
    """Whether all edges are known in advance."""
    commute: bool
    """Whether all aggregates are flat fields that commute."""
    places: int | None
    """Keys × slices; None if there are too many slices to count."""
    on_device: bool = False


def most_places(rows: int) -> int:
    """How many places rows may be scattered into."""
    return max(DENSE * rows, FEWEST_PLACES)


def choose_slices(facts: Facts) -> Decision:
    """Whether rows are scattered into their slices in input order, or sorted first."""
    if facts.on_device:
        return Decision(SORT, ("a device reduces runs of neighbouring rows: rows are sorted by key and time",))
    if not facts.context_free:
        return Decision(SORT, ("some windows depend on the rows: rows are sorted by key and time, and cut where a query needs it",))
    if not facts.commute:
        return Decision(SORT, ("some aggregate does not commute, or has no flat partial: rows are sorted by key and time",))
    if facts.rows == 0:
        return Decision(SORT, ("there are no rows",))
    if facts.places is None or facts.places > most_places(facts.rows):
        return Decision(SORT, ("slices would outnumber the rows: rows are sorted, and slices are cut only where rows are",))
    return Decision(SCATTER, ("edges are known and aggregates commute: each row is added to its slice, in any order",))
