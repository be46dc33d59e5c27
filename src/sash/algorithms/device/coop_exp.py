"""Expansion of slices to windows in the memory that a group shares: CoopExp (Slider, section 3.2.2).

*With atomics* a group takes as many slices as that memory has room for, and its items update the windows that these slices are in.
Windows that lie within the group's slices are then stored; only the first and the last ones, which other groups update too, need atomics
in global memory. For aggregates of one field that commute; its loop is fused with slicing, in :mod:`sash.algorithms.device.coop_opt`.

*By owner* each window belongs to one item, which combines its slices in their order; a group reads the slices of its windows once, those at
its end again in the next group. For every aggregate.
"""

from __future__ import annotations

from sash.kernels.vocabulary import (
    GROUP,
    Local,
    Results,
    Rows,
    States,
    barrier,
    combine,
    emit,
    group,
    groups,
    identity,
    item,
    lift,
    load,
    merge,
    store,
)


def first_of(k: int, per: int, span: int) -> int:
    """The first window that has slice ``k``."""
    return 0 if k < span else (k - span) // per + 1


def clear_local(L: Local, count: int) -> int:
    """Windows of nothing in shared memory."""
    for j in range(item(), count, GROUP):
        store(L, j, identity())
    return 0


def flush(L: Local, base: int, last: int, low: int, count: int, per: int, span: int, S: States) -> int:
    """A group's windows into those of all: those of its slices alone are stored, the others merged."""
    for n in range(item(), count, GROUP):
        first = (low + n) * per
        if first >= base and first + span <= last:
            store(S, low + n, load(L, n))
        else:
            merge(S, low + n, load(L, n))
    return 0


def by_owner(X: Rows, windows: int, per: int, span: int, tile: int, R: Results, L: Local) -> int:
    """Windows by their owners, ``tile`` of them in a group."""
    base = group() * tile
    while base < windows:
        last = min(base + tile, windows)
        slices = (last - base - 1) * per + span
        for k in range(item(), slices, GROUP):
            store(L, k, lift(X, base * per + k))
        barrier()
        for j in range(base + item(), last, GROUP):
            at = (j - base) * per
            s = load(L, at)
            for p in range(at + 1, at + span):
                s = combine(s, load(L, p))
            emit(R, j, s)
        barrier()
        base += groups() * tile
    return 0


def few_slices(X: Rows, begin: int, end: int, per: int, span: int, R: Results) -> int:
    """Windows of a few slices each, by one item: each from scratch."""
    for j in range(begin, end):
        s = lift(X, j * per)
        for p in range(j * per + 1, j * per + span):
            s = combine(s, lift(X, p))
        emit(R, j, s)
    return end
