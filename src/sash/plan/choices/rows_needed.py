"""The rule that every engine shares: whether partials can replace rows, or the rows themselves are needed in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sash.algebra import Form
from sash.plan.logical import Column


def can_be_added_in_any_order(forms: Iterable[Form | None]) -> bool:
    """Whether every aggregate has a partial of fixed size and commutes. None stands for an aggregate without such a partial."""
    return all(form is not None and form.commutative for form in forms)


def why_rows_are_needed(columns: Sequence[Column], forms: Sequence[Form | None]) -> str | None:
    """The reason why some aggregate needs its rows in order; None if partials do."""
    for column, form in zip(columns, forms, strict=True):
        if form is None:
            return f"{column.call!r} has no partial of fixed size: its rows are its partial"
        if not form.commutative:
            return f"{column.call!r} does not commute: its rows must be in order"
    return None
