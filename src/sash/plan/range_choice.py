"""How ranges over slices or rows are answered, and why: :mod:`sash.slicing.partials.ranges` follows, and ``sash.explain`` shows it."""

from __future__ import annotations

from typing import Protocol

from sash.algebra import Form
from sash.plan.choose import Choice

PREFIXES_PAY = 4
"""Prefixes are made where there are at least a quarter as many ranges as places."""
FROM_SCRATCH = 4
"""Ranges in no order that have no more places together than this many times all places are aggregated one by one."""
FEW_RANGES = 4
"""So few are aggregated one by one, whatever they are."""

PREFIXES, TWO_STACKS, ONE_BY_ONE, FLAT_FAT = "prefixes", "two stacks", "one by one", "FlatFAT"


class RangeFacts(Protocol):
    """What decides how ranges are answered."""

    @property
    def only_advance(self) -> bool: ...

    @property
    def total(self) -> int:
        """How many places all ranges have together."""

    def __len__(self) -> int: ...


def choose_ranges(form: Form | None, ranges: RangeFacts, places: int) -> Choice:
    """The algorithm for these ranges; without a form, partials are Python objects."""
    if form is not None and form.invertible and form.identity is not None and len(ranges) * PREFIXES_PAY >= places:
        return Choice(PREFIXES, ("the inverse is exact: what comes before a range's end less what comes before its start",))
    return choose_without_inverse(ranges, places, are_objects=form is None)


def choose_without_inverse(ranges: RangeFacts, places: int, *, are_objects: bool = False) -> Choice:
    """The algorithm for aggregates that nothing can be taken away from."""
    if ranges.only_advance and (are_objects or len(ranges) > FEW_RANGES):
        return Choice(TWO_STACKS, ("ends only advance: two stacks, block by block",))
    if are_objects or len(ranges) <= FEW_RANGES or ranges.total <= FROM_SCRATCH * places:
        return Choice(ONE_BY_ONE, ("few or short ranges: each from scratch",))
    return Choice(FLAT_FAT, ("ranges lie within each other: a tree over all places",))
