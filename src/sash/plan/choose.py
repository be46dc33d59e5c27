"""The one chooser: which algorithm answers the windows of a rolling aggregate, and why.

Rules are tried from top to bottom; each says what it looks at. The same facts always give the same choice, but for one rule: a
kernel that takes seconds to compile is used once it is at hand, or once enough rows have gone through the slower one to pay
for it (see :mod:`sash.plan.ledger`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sash.algebra import Aggregate, Form
from sash.algorithms.rolling import lane_sizes, window_algorithms
from sash.errors import UnlawfulAlgorithm, unknown
from sash.kernels.generate import vector_reason

BULK = ("lanes", "tiles", "blocks", "running", "reduce", "slices")

FEWEST_ROWS_FOR_LANES = 1 << 16
SHORTEST_SLICE = 8


@dataclass(frozen=True)
class Shape:
    """What the chooser knows of the windows and the data."""

    rows: int
    size: int
    every: int
    nulls: bool = False
    lanes: Literal["at hand", "would pay", "not yet"] = "at hand"
    """Whether the vector kernel (that of :func:`vector_kernel`) is compiled, or should be now."""


@dataclass(frozen=True)
class Choice:
    """An algorithm and the reasons for it."""

    algorithm: str
    reasons: tuple[str, ...]


Rule = Callable[[Form, Shape], Choice | None]


def windows_do_not_overlap(form: Form, shape: Shape) -> Choice | None:
    if shape.every < shape.size:
        return None
    return Choice("reduce", (f"every {shape.every} ≥ size {shape.size}: a row is in one window at most, so each window is reduced once",))


def whole_slices(form: Form, shape: Shape) -> Choice | None:
    if shape.every < SHORTEST_SLICE or shape.size % shape.every or not form.commutative or vector_reason(form):
        return None
    return Choice(
        "slices",
        (
            f"size {shape.size} is a multiple of every {shape.every}: rows become slices of {shape.every}, "
            f"{shape.size // shape.every} slices make a window",
            "the aggregate commutes: slices are reduced in vector lanes",
        ),
    )


def slide_of_several(form: Form, shape: Shape) -> Choice | None:
    if shape.every == 1:
        return None
    return Choice("blocks", (f"windows overlap and slide by {shape.every}: two stacks, block by block",))


def has_vector_kernel(form: Form, rows: int, size: int) -> bool:
    """Whether windows that slide by one may be had in vector lanes."""
    return vector_reason(form) is None and rows >= FEWEST_ROWS_FOR_LANES and rows >= 4 * size


def vector_kernel(form: Form, size: int) -> str:
    """The vector kernel for windows that slide by one; those of several blocks make each row's aggregates twice, as it comes and goes."""
    return "tiles" if form.invertible and size > lane_sizes(form)["LONGEST_BLOCK"] else "lanes"


def long_windows_with_inverse(form: Form, shape: Shape) -> Choice | None:
    if shape.lanes == "not yet" or not has_vector_kernel(form, shape.rows, shape.size) or vector_kernel(form, shape.size) != "tiles":
        return None
    what = f"{form.name} has an exact inverse, and windows of {shape.size} rows are long: what leaves is subtracted, tile by tile"
    return Choice("tiles", (what, _compiled(shape)))


def vector_lanes(form: Form, shape: Shape) -> Choice | None:
    if shape.lanes == "not yet" or not has_vector_kernel(form, shape.rows, shape.size):
        return None
    return Choice("lanes", ("slide 1 over many rows: two stacks in vector lanes", _compiled(shape)))


def _compiled(shape: Shape) -> str:
    return "its kernel is compiled" if shape.lanes == "at hand" else "enough rows have been asked for to pay for compiling it"


def exact_inverse(form: Form, shape: Shape) -> Choice | None:
    if not form.invertible:
        return None
    return Choice("running", (f"{form.name} has an exact inverse: what leaves a window is subtracted", *_without_lanes(form, shape)))


def anything_else(form: Form, shape: Shape) -> Choice | None:
    return Choice("blocks", ("slide 1: two stacks, block by block", *_without_lanes(form, shape)))


def _without_lanes(form: Form, shape: Shape) -> tuple[str, ...]:
    reason = vector_reason(form)
    if reason:
        return (f"no vector lanes: {reason}",)
    if not has_vector_kernel(form, shape.rows, shape.size):
        return (f"no vector lanes: {shape.rows} rows are too few for windows of {shape.size}",)
    name = vector_kernel(form, shape.size)
    return (f"no vector lanes: their kernel takes seconds to compile, and is not at hand yet (algorithm={name!r} makes it)",)


RULES: tuple[Rule, ...] = (
    windows_do_not_overlap,
    whole_slices,
    slide_of_several,
    long_windows_with_inverse,
    vector_lanes,
    exact_inverse,
    anything_else,
)


def choose(form: Form, shape: Shape) -> Choice:
    """The algorithm for an aggregate of flat fields."""
    for rule in RULES:
        choice = rule(form, shape)
        if choice is not None:
            return choice
    raise AssertionError("the last rule always applies")


def choose_holistic(aggregate: Aggregate) -> Choice:
    """The algorithm for an aggregate whose partials have no fixed size."""
    if aggregate.kind == "runs" and hasattr(aggregate, "q"):
        return Choice("ranks", ("an exact quantile: rows are sorted chunk by chunk, and a cursor follows the rank",))
    if aggregate.kind == "runs":
        return Choice("distinct", ("exact distinct values: dense codes, counted as rows come and go",))
    if aggregate.kind == "items":
        return Choice("gather", ("the rows themselves are the result: each window's rows are gathered in order",))
    return Choice("objects", ("sketches are merged as Python objects: two stacks",))


def forced(algorithm: str, form: Form, shape: Shape) -> Choice:
    """The algorithm that a user asked for, if it is lawful for the aggregate and right for the windows."""
    known = (*BULK, *window_algorithms())
    if algorithm not in known:
        raise unknown("algorithm", algorithm, ("auto", *known))
    choice = Choice(algorithm, ("asked for",))
    if algorithm in window_algorithms():
        window_algorithms()[algorithm].check_lawful(form)
        return choice
    if algorithm in ("running", "tiles") and not form.invertible:
        raise UnlawfulAlgorithm(
            f"{algorithm} needs an aggregate that is invertible; {form.name} over {', '.join(form.inputs)} is not, exactly"
        )
    if algorithm in ("lanes", "tiles", "running") and shape.every != 1:
        raise UnlawfulAlgorithm(f"{algorithm} is for windows that slide by 1, not by {shape.every}; try 'blocks' or 'slices'")
    if algorithm in ("lanes", "tiles", "slices") and (reason := vector_reason(form)):
        raise UnlawfulAlgorithm(f"{algorithm} needs branch-free functions; {reason}")
    if algorithm == "slices" and not form.commutative:
        raise UnlawfulAlgorithm(f"slices needs an aggregate that is commutative; {form.name} over {', '.join(form.inputs)} is not")
    if algorithm == "slices" and shape.size % shape.every:
        raise UnlawfulAlgorithm(f"slices needs a size that is a multiple of every; {shape.size} is not one of {shape.every}")
    if algorithm == "blocks" and shape.every >= shape.size:
        return Choice("reduce", ("windows do not overlap: blocks would be single windows",))
    return choice
