"""Which algorithm answers the windows of a rolling aggregate over one array.

Rules are tried from top to bottom; each is a function of the request. The same facts always lead to the same decision, but for one rule: a
kernel that takes seconds to compile is used once it is compiled, or once the slower one has aggregated enough rows to pay
for it (see :mod:`sash.plan.choices.ledger`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sash.algebra import Aggregate, Form
from sash.algorithms.rolling import Job, lane_sizes, slide_modules, window_algorithms
from sash.errors import UnlawfulAlgorithm, unknown
from sash.kernels.cpu.compiler import is_compiled
from sash.kernels.generate import vector_reason
from sash.plan.choices.decision import Decision
from sash.plan.choices.ledger import LEDGER

BULK = ("lanes", "tiles", "blocks", "running", "reduce", "slices")
VECTOR_KERNELS = ("lanes", "tiles")

FEWEST_ROWS_FOR_LANES = 1 << 16
SHORTEST_SLICE = 8


Readiness = Literal["compiled", "would pay", "not yet"]
"""Whether a vector kernel is compiled, should be compiled now, or would not pay yet."""


@dataclass(frozen=True)
class RollingFacts:
    """The properties of a rolling aggregate that decide which algorithm is used."""

    rows: int
    size: int
    every: int
    nulls: bool = False
    vector: Readiness = "compiled"
    """The readiness of the kernel that :func:`vector_kernel` names."""


Rule = Callable[[Form, RollingFacts], Decision | None]


def windows_do_not_overlap(form: Form, facts: RollingFacts) -> Decision | None:
    if facts.every < facts.size:
        return None
    return Decision("reduce", (f"every {facts.every} ≥ size {facts.size}: a row is in one window at most, so each window is reduced once",))


def whole_slices(form: Form, facts: RollingFacts) -> Decision | None:
    if facts.every < SHORTEST_SLICE or facts.size % facts.every or not form.commutative or vector_reason(form):
        return None
    return Decision(
        "slices",
        (
            f"size {facts.size} is a multiple of every {facts.every}: rows become slices of {facts.every}, "
            f"{facts.size // facts.every} slices make a window",
            "the aggregate commutes: slices are reduced in vector lanes",
        ),
    )


def slide_of_several(form: Form, facts: RollingFacts) -> Decision | None:
    if facts.every == 1:
        return None
    return Decision("blocks", (f"windows overlap and slide by {facts.every}: two stacks, block by block",))


def has_vector_kernel(form: Form, rows: int, size: int) -> bool:
    """Whether windows that slide by one can be computed in vector lanes."""
    return vector_reason(form) is None and rows >= FEWEST_ROWS_FOR_LANES and rows >= 4 * size


def vector_kernel(form: Form, size: int) -> str:
    """The vector kernel for windows that slide by one; long ones subtract what leaves, if that is exact."""
    return "tiles" if form.invertible and size > lane_sizes(form)["LONGEST_BLOCK"] else "lanes"


def long_windows_with_inverse(form: Form, facts: RollingFacts) -> Decision | None:
    if facts.vector == "not yet" or not has_vector_kernel(form, facts.rows, facts.size) or vector_kernel(form, facts.size) != "tiles":
        return None
    what = f"{form.name} has an exact inverse, and windows of {facts.size} rows are long: what leaves is subtracted, tile by tile"
    return Decision("tiles", (what, _compiled(facts)))


def vector_lanes(form: Form, facts: RollingFacts) -> Decision | None:
    if facts.vector == "not yet" or not has_vector_kernel(form, facts.rows, facts.size):
        return None
    return Decision("lanes", ("slide 1 over many rows: two stacks in vector lanes", _compiled(facts)))


def _compiled(facts: RollingFacts) -> str:
    return "its kernel is compiled" if facts.vector == "compiled" else "enough rows have been aggregated to pay for compiling it"


def exact_inverse(form: Form, facts: RollingFacts) -> Decision | None:
    if not form.invertible:
        return None
    return Decision("running", (f"{form.name} has an exact inverse: what leaves a window is subtracted", *_without_lanes(form, facts)))


def anything_else(form: Form, facts: RollingFacts) -> Decision | None:
    return Decision("blocks", ("slide 1: two stacks, block by block", *_without_lanes(form, facts)))


def _without_lanes(form: Form, facts: RollingFacts) -> tuple[str, ...]:
    reason = vector_reason(form)
    if reason:
        return (f"no vector lanes: {reason}",)
    if not has_vector_kernel(form, facts.rows, facts.size):
        return (f"no vector lanes: {facts.rows} rows are too few for windows of {facts.size}",)
    name = vector_kernel(form, facts.size)
    return (f"no vector lanes: their kernel takes seconds to compile, and has not paid yet (algorithm={name!r} compiles it)",)


RULES: tuple[Rule, ...] = (
    windows_do_not_overlap,
    whole_slices,
    slide_of_several,
    long_windows_with_inverse,
    vector_lanes,
    exact_inverse,
    anything_else,
)


def choose(form: Form, facts: RollingFacts) -> Decision:
    """The algorithm for an aggregate of flat fields."""
    for rule in RULES:
        choice = rule(form, facts)
        if choice is not None:
            return choice
    raise AssertionError("the last rule always applies")


def choose_holistic(aggregate: Aggregate) -> Decision:
    """The algorithm for an aggregate whose partials have no fixed size."""
    if aggregate.kind == "runs" and hasattr(aggregate, "q"):
        return Decision("ranks", ("an exact quantile: rows are sorted chunk by chunk, and a cursor follows the rank",))
    if aggregate.kind == "runs":
        return Decision("distinct", ("exact distinct values: dense codes, counted as rows enter and leave",))
    if aggregate.kind == "items":
        return Decision("gather", ("the rows themselves are the result: each window's rows are gathered in order",))
    return Decision("objects", ("sketches are merged as Python objects: two stacks",))


def forced(algorithm: str, form: Form, facts: RollingFacts) -> Decision:
    """The algorithm that was requested, if it is lawful for the aggregate and right for the windows."""
    known = (*BULK, *window_algorithms())
    if algorithm not in known:
        raise unknown("algorithm", algorithm, ("auto", *known))
    choice = Decision(algorithm, ("requested",))
    if algorithm in window_algorithms():
        window_algorithms()[algorithm].check_lawful(form)
        return choice
    if algorithm in ("running", "tiles") and not form.invertible:
        raise UnlawfulAlgorithm(
            f"{algorithm} needs an aggregate that is invertible; {form.name} over {', '.join(form.inputs)} is not, exactly"
        )
    if algorithm in ("lanes", "tiles", "running") and facts.every != 1:
        raise UnlawfulAlgorithm(f"{algorithm} is for windows that slide by 1, not by {facts.every}; try 'blocks' or 'slices'")
    if algorithm in ("lanes", "tiles", "slices") and (reason := vector_reason(form)):
        raise UnlawfulAlgorithm(f"{algorithm} needs branch-free functions; {reason}")
    if algorithm == "slices" and not form.commutative:
        raise UnlawfulAlgorithm(f"slices needs an aggregate that is commutative; {form.name} over {', '.join(form.inputs)} is not")
    if algorithm == "slices" and facts.size % facts.every:
        raise UnlawfulAlgorithm(f"slices needs a size that is a multiple of every; {facts.size} is not one of {facts.every}")
    if algorithm == "blocks" and facts.every >= facts.size:
        return Decision("reduce", ("windows do not overlap: blocks would be single windows",))
    return choice


def decide(form: Form, job: Job, algorithm: str = "auto") -> Decision:
    """The decision for a job: what :func:`sash.rolling` runs, and what ``sash.explain`` prints."""
    facts = RollingFacts(job.count, job.size, job.every, job.masked, _readiness(form, job))
    return choose(form, facts) if algorithm == "auto" else forced(algorithm, form, facts)


def note_rows(form: Form, job: Job, decision: Decision) -> None:
    """Count rows that a slower kernel is about to aggregate, so that the vector kernel is compiled once that pays."""
    if _has_vector_kernel(form, job) and decision.choice not in VECTOR_KERNELS:
        LEDGER.add(_title(form, job), job.count)


def _readiness(form: Form, job: Job) -> Readiness:
    if not _has_vector_kernel(form, job):
        return "not yet"
    if is_compiled(slide_modules(vector_kernel(form, job.size), form, job.masked)[0]):
        return "compiled"
    return "would pay" if LEDGER.would_pay(_title(form, job), job.count) else "not yet"


def _has_vector_kernel(form: Form, job: Job) -> bool:
    return job.every == 1 and has_vector_kernel(form, job.count, job.size)


def _title(form: Form, job: Job) -> str:
    return f"{vector_kernel(form, job.size)} of {form.name}({', '.join(form.inputs)})"
