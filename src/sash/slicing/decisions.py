"""The paper's decision trees (figures 4, 5 and 6): what the characteristics of a workload ask of the slices.

Each returns an answer and the reason for it; ``op.explain()`` shows them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sash.algebra import Form
from sash.windows.base import Window


@dataclass(frozen=True)
class Answer:
    """Yes or no, and why."""

    yes: bool
    why: str


def keeps_rows(ordered: bool, window: Window, forms: list[Form | None]) -> Answer:
    """Figure 4, section 5.1: must individual rows be kept? A form that is None has no partial of fixed size."""
    if any(form is None for form in forms):
        return Answer(True, "an aggregate has no partial of fixed size, so its rows are the partial")
    if ordered:
        if window.context == "forward context aware":
            return Answer(True, "in order, but later rows decide where windows start: any range of rows may be asked for")
        return Answer(False, "in order, and every edge is known by the time its row comes")
    if any(form is not None and not form.commutative for form in forms):
        return Answer(True, "out of order, and an aggregate does not commute: a late row must go between others")
    if window.counts_rows:
        return Answer(True, "out of order, and rows are counted: a late row moves the last row of each slice on")
    if window.context != "context free" and not window.is_session:
        return Answer(True, "out of order, and rows decide where windows start: a late row may split a slice")
    if window.is_session:
        return Answer(False, "sessions only ever merge, and merging needs partials alone")
    return Answer(False, "edges are known in advance and the aggregates commute: a late row is added to its slice")


def needs_splits(ordered: bool, window: Window) -> Answer:
    """Figure 5, section 5.2: can a slice have to be split?"""
    if window.context == "context free":
        return Answer(False, "edges are known in advance")
    if ordered and window.context == "forward context free":
        return Answer(False, "in order, edges are known when the row comes")
    if window.is_session:
        return Answer(False, "sessions only ever merge")
    return Answer(True, "a late row may bring a new edge" if not ordered else "a later row may bring an earlier edge")


def removal(ordered: bool, window: Window, form: Form | None) -> str:
    """Figure 6, section 5.2: how are rows taken out of a slice?"""
    if not window.counts_rows or ordered:
        return "never: no row moves from one slice to the next"
    if form is not None and form.invertible and form.commutative:
        return "invert: the row is taken away exactly"
    if form is not None and form.selective:
        return "nothing, unless the row was the extreme; then recompute"
    return "recompute the slice from its rows"
