"""Which algorithm aggregates ranges over slices or rows; executed by :mod:`sash.slicing.partials.ranges`."""

from __future__ import annotations

from typing import Protocol

from sash.algebra import Form
from sash.kernels.generate import vector_reason
from sash.plan.choices.decision import Decision

PREFIXES_PAY = 4
"""Prefixes are computed if there are at least a quarter as many ranges as places."""
FROM_SCRATCH = 4
"""Ranges in no order are aggregated one by one if together they span at most this many times all places."""
FEW_RANGES = 4
"""Up to this many ranges are aggregated one by one, whatever their shape."""
LONG_SLICE = 32
"""Slices of this many rows on average are reduced in vector lanes."""

PREFIXES, TWO_STACKS, ONE_BY_ONE, FLAT_FAT, BY_CHANGES = "prefixes", "two stacks", "one by one", "FlatFAT", "changes"
IN_LANES, IN_ORDER = "in lanes", "in order"


class RangeFacts(Protocol):
    """The properties of ranges that decide which algorithm is used."""

    @property
    def only_advance(self) -> bool:
        """Whether neither starts nor ends ever move back from one range to the next."""

    @property
    def total(self) -> int:
        """How many places all ranges have together."""

    def __len__(self) -> int: ...


def choose_ranges(form: Form | None, ranges: RangeFacts, places: int, *, are_stored: bool = False) -> Decision:
    """The algorithm for ranges over ``places`` places; without a form, partials are Python objects.

    With ``are_stored``, the partials belong to a stream that answers a few ranges in each step: prefixes would not pay.
    """
    if are_stored and len(ranges) <= FEW_RANGES:
        return Decision(ONE_BY_ONE, ("few ranges: each from scratch",))
    if form is not None and form.invertible and form.identity is not None and len(ranges) * PREFIXES_PAY >= places:
        return Decision(PREFIXES, ("the inverse is exact: what precedes a range's end, less what precedes its start",))
    if ranges.only_advance and (form is None or len(ranges) > FEW_RANGES):
        return Decision(TWO_STACKS, ("starts and ends only advance: two stacks, block by block",))
    if form is None or len(ranges) <= FEW_RANGES or ranges.total <= FROM_SCRATCH * places:
        return Decision(ONE_BY_ONE, ("few or short ranges: each from scratch",))
    return Decision(FLAT_FAT, ("ranges lie within each other: a tree over all places",))


def choose_distinct(ranges: RangeFacts) -> Decision:
    """How the distinct values of ranges are counted."""
    if ranges.only_advance:
        return Decision(BY_CHANGES, ("starts and ends only advance: each value enters and leaves neighbouring ranges",))
    return Decision(ONE_BY_ONE, ("ranges lie within each other: sorted values are merged",))


def choose_reduction(form: Form, rows: int, slices: int) -> Decision:
    """How runs of neighbouring rows become partials."""
    reason = vector_reason(form) if form.commutative else "the aggregate does not commute"
    if reason is not None:
        return Decision(IN_ORDER, (f"row by row: {reason}",))
    if rows < LONG_SLICE * max(1, slices):
        return Decision(IN_ORDER, (f"row by row: slices have fewer than {LONG_SLICE} rows on average",))
    return Decision(IN_LANES, (f"in vector lanes: slices have {LONG_SLICE} rows or more on average, and the aggregate commutes",))
