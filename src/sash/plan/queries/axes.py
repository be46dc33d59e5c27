"""Axes: which edges a sequence of relations has, and whether two sequences have the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sash.errors import InvalidWindow
from sash.plan.queries.relations import Applied, Inner, Joined, Relation, Windowed, children
from sash.types import Measure


@dataclass(frozen=True)
class Axis:
    """The edges of a sequence of relations.

    - ``time``: every ``slide`` ticks, at ``phase``; of a calendar both are 0, and ``text`` says which;
    - ``instants``: one tick after each distinct time of a row;
    - ``rows``, ``sessions``, ``marks``: the ends of windows that depend on the rows, one after the other.
    """

    kind: Literal["time", "instants", "rows", "sessions", "marks"]
    text: str
    slide: int = 0
    phase: int = 0


def axis_of(relation: Relation, measure: Measure) -> Axis:
    """The axis of a relation; raises :class:`InvalidWindow` where relations without a common one are joined."""
    if isinstance(relation, Windowed):
        return _axis_of_windows(relation, measure)
    if isinstance(relation, Inner):
        return axis_of(relation.query.relation, relation.query.measure)
    if isinstance(relation, Joined | Applied):
        first, *others = (axis_of(child, measure) for child in children(relation))
        for other in others:
            first = common_axis(first, other)
        return first
    (child,) = children(relation)
    return axis_of(child, measure)


def _axis_of_windows(relation: Windowed, measure: Measure) -> Axis:
    windowing = relation.windowing
    if windowing.kind == "instants" or windowing.kind == "last rows":
        return Axis("instants", windowing.text)
    if windowing.kind != "time":
        return Axis(windowing.kind, windowing.text)
    assert windowing.window is not None
    periodic = windowing.window.bind(measure).as_periodic
    if periodic is None:
        return Axis("time", windowing.text)
    return Axis("time", windowing.text, periodic.every, (periodic.offset + periodic.size) % periodic.every)


def common_axis(one: Axis, other: Axis) -> Axis:
    """The axis of a join: windows of one slide and offset, rows with rows, and what has no slide with anything by time."""
    kinds = {one.kind, other.kind}
    if kinds == {"time"}:
        if (one.slide, one.phase) == (other.slide, other.phase) and (one.slide or one.text == other.text):
            return one
        if one.slide != other.slide or not one.slide:
            raise InvalidWindow(f"{one.text} and {other.text} slide differently, so they have no windows in common; use the same slide")
        raise InvalidWindow(f"the windows of {one.text} and {other.text} end at different times; shift one of them by an offset")
    if kinds == {"instants"} or kinds == {"rows"}:
        return one
    if kinds == {"time", "instants"}:
        return one if one.kind == "time" else other
    for axis in (one, other):
        if axis.kind in ("sessions", "marks"):
            raise InvalidWindow(f"{axis.text} depends on its own stream's rows: no other stream has the same windows; join windows by time")
    raise InvalidWindow(f"{one.text} and {other.text} cannot be joined: one counts rows, the other measures time")
