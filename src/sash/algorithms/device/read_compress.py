"""Slicing by read-compress: rows to the partials of slices (Slider, section 3.2.1).

*By teams*: a slice is the work of a team of neighbouring items. Each reads runs of four neighbouring rows, as wide loads do, and keeps one
partial; the team then reduces its partials in the memory that its group shares, halving at each step. (The paper shuffles registers
between the threads of a warp; OpenCL 1.2 has no shuffle, so that memory takes its place.) A group has as many teams as fit, so no item
waits for rows; where slices are few, teams are as large as the group, which bounds the rows per item. Where order matters, each item
reads one run of neighbouring rows instead.

*By one item*: the CPU's way, a slice after the other, in vectors where the aggregate allows them.
"""

from __future__ import annotations

from collections.abc import Callable

from sash.algebra import Partial
from sash.algorithms.device.edges import slice_rows, slice_start
from sash.algorithms.device.work import Buffers, Work
from sash.algorithms.reduce import in_lanes
from sash.kernels.vocabulary import (
    GROUP,
    LANES,
    Local,
    Rows,
    States,
    barrier,
    combine,
    fold_segments,
    group,
    groups,
    identity,
    item,
    lift,
    lift_lanes,
    load,
    neighbours,
    store,
    store_lanes,
)

QUAD = 4


def by_one(X: Rows, begin: int, end: int, per: int, every: int, first: int, second: int, S: States) -> int:
    """The slices ``begin`` to ``end - 1``, in order."""
    for k in range(begin, end):
        p = slice_start(k, per, every, first)
        last = p + slice_rows(k, per, first, second)
        s = lift(X, p)
        for row in range(p + 1, last):
            s = combine(s, lift(X, row))
        store(S, k, s)
    return end


def by_one_in_lanes(X: Rows, begin: int, end: int, per: int, every: int, first: int, second: int, S: States) -> int:
    """:func:`by_one` for aggregates that commute, in vectors."""
    k = begin
    if per == 1 and first % LANES == 0:
        while k + LANES <= end:
            store_lanes(S, k, fold_segments(X, k * every, first, every))
            k += LANES
    while k < end:
        p = slice_start(k, per, every, first)
        store(S, k, in_lanes(X, p, p + slice_rows(k, per, first, second)))
        k += 1
    return end


def by_one_in_short_lanes(X: Rows, begin: int, end: int, per: int, every: int, first: int, second: int, S: States) -> int:
    """:func:`by_one` for neighbouring slices of 2, 4 or 8 rows: pairs of neighbours, two or three times; in order."""
    k = begin
    while k + LANES <= end:
        i = k * every
        if first == 2:
            s = neighbours(lift_lanes(X, i), lift_lanes(X, i + LANES))
        elif first == 4:
            s = four_each(X, i)
        else:
            s = neighbours(four_each(X, i), four_each(X, i + 4 * LANES))
        store_lanes(S, k, s)
        k += LANES
    return by_one(X, k, end, per, every, first, second, S)


def four_each(X: Rows, i: int) -> Partial:
    """The slices of four rows each from row ``i`` on."""
    a = neighbours(lift_lanes(X, i), lift_lanes(X, i + LANES))
    b = neighbours(lift_lanes(X, i + 2 * LANES), lift_lanes(X, i + 3 * LANES))
    return neighbours(a, b)


def reduce_team(L: Local, me: int, team: int) -> int:
    """The partials of a team's items, from the first one's place on, become one partial at that place; in order."""
    step = 1
    while step < team:
        if me % (2 * step) == 0:
            store(L, item(), combine(load(L, item()), load(L, item() + step)))
        barrier()
        step *= 2
    return 0


def by_teams(X: Rows, count: int, per: int, every: int, first: int, second: int, team: int, S: States, L: Local) -> int:
    """Slices by teams of ``team`` items, for aggregates that commute: neighbouring items read neighbouring runs of four rows."""
    me = item() % team
    base = group() * (GROUP // team)
    while base < count:
        k = base + item() // team
        s = identity()
        if k < count:
            start = slice_start(k, per, every, first)
            rows = slice_rows(k, per, first, second)
            p = me * QUAD
            while p < rows:
                stop = min(p + QUAD, rows)
                for row in range(start + p, start + stop):
                    s = combine(s, lift(X, row))
                p += team * QUAD
        store(L, item(), s)
        barrier()
        reduce_team(L, me, team)
        if me == 0 and k < count:
            store(S, k, load(L, item()))
        barrier()
        base += groups() * (GROUP // team)
    return 0


def by_teams_in_order(X: Rows, count: int, per: int, every: int, first: int, second: int, team: int, S: States, L: Local) -> int:
    """:func:`by_teams` where order matters: each item reads one run of neighbouring rows."""
    me = item() % team
    base = group() * (GROUP // team)
    while base < count:
        k = base + item() // team
        s = identity()
        if k < count:
            start = slice_start(k, per, every, first)
            rows = slice_rows(k, per, first, second)
            run = (rows + team - 1) // team
            stop = min((me + 1) * run, rows)
            for row in range(start + me * run, start + stop):
                s = combine(s, lift(X, row))
        store(L, item(), s)
        barrier()
        reduce_team(L, me, team)
        if me == 0 and k < count:
            store(S, k, load(L, item()))
        barrier()
        base += groups() * (GROUP // team)
    return 0


def team_of(work: Work) -> int:
    """How many items reduce a slice: as many as have a run of four rows, a power of two, and at most a group."""
    rows = max(work.shape.cut.first, work.shape.cut.second)
    team = 1
    while team < work.shape.group and team * QUAD < rows:
        team *= 2
    return team


def kernel_by_one(work: Work) -> tuple[Callable[..., int], int]:
    """The kernel for slices by one item, and how many lanes it has."""
    cut = work.shape.cut
    if cut.per == 1 and cut.first == cut.every and cut.first in (2, 4, 8):
        width = work.lanes()
        return (by_one_in_short_lanes, width) if width else (by_one, 0)
    width = work.lanes() if work.form.commutative else 0
    return (by_one_in_lanes, width) if width and max(cut.first, cut.second) >= width else (by_one, 0)


def slices(work: Work) -> tuple[Buffers, bool]:
    """The slices of a job's rows, and whether they are partials: where windows slide by one row, the rows are the slices."""
    cut = work.shape.cut
    if cut.every == 1 and cut.first == 1:
        return work.source, False
    count = cut.count(work.windows)
    states = work.states(count)
    numbers = [cut.per, cut.every, cut.first, cut.second]
    if work.shape.by_items:
        function, lanes = kernel_by_one(work)
        kernel = work.share_kernel(function, lanes=lanes)
        work.launch_shares(kernel, count, [*work.source, 0, count, *numbers, *states], multiple=16)
        return states, True
    team = team_of(work)
    function = by_teams if work.form.commutative else by_teams_in_order
    kernel = work.group_kernel(function, local=(("L", work.shape.group),))
    groups = -(-count // (work.shape.group // team))
    work.launch(kernel, groups, [*work.source, count, *numbers, team, *states])
    return states, True
