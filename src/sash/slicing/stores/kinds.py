"""Makes slice stores by the names of their kinds, which plans and stored state use."""

from __future__ import annotations

from sash.plan.logical import Plan
from sash.plan.options import StreamOptions
from sash.slicing.stores.in_order import InOrderStore
from sash.slicing.stores.partials_only import Home, PartialsOnly
from sash.slicing.stores.slice_store import SliceStore
from sash.slicing.stores.sorted_rows import SortedRowStore
from sash.slicing.stores.with_rows import SlicesWithRows

__all__ = ["Home", "make_store"]


def make_store(kind: str, plan: Plan, since: int, options: StreamOptions, home: Home | None = None) -> SliceStore:
    """A new store of a kind; with ``home``, its slices are stored there."""
    if kind == PartialsOnly.kind:
        return PartialsOnly(plan, since, store=options.store, ordered=options.ordered, home=home)
    if kind == SlicesWithRows.kind:
        return SlicesWithRows(plan, since, store=options.store, ordered=options.ordered)
    return SortedRowStore(plan, since) if kind == SortedRowStore.kind else InOrderStore(plan, since)
