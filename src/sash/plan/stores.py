"""Whether an operator's slices have a tree above them, and why."""

from __future__ import annotations

from sash.algebra import Form
from sash.plan.choose import Choice
from sash.plan.logical import Query

MANY_SLICES = 1 << 12
"""From so many slices a window, adding them up for every window costs more than keeping a tree."""


def choose_store(asked: str, queries: tuple[Query, ...], forms: list[Form]) -> Choice:
    """Lazy or eager; asked for, or by the queries."""
    if asked != "auto":
        return Choice(asked, ("asked for",))
    periodic = [p for q in queries if (p := q.shape.as_periodic) is not None]
    step = min((p.every for p in periodic), default=1)
    slices = max((p.size // step for p in periodic), default=0)
    if slices < MANY_SLICES:
        return Choice(
            "lazy", (f"a window holds up to {slices} slices: they are added up when windows end, all windows of a step in one pass",)
        )
    if all(f.invertible for f in forms):
        return Choice("lazy", ("inverses are exact: windows are differences of what comes before each slice",))
    return Choice("eager", (f"a window holds up to {slices} slices, and what leaves it cannot be subtracted: a FlatFAT over slices",))
