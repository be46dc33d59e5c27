"""COOP-OPT: slicing by read-compress and expansion by CoopExp (Slider, section 3.3).

For aggregates of one field that commute, in one pass: slices never leave the memory of their group. For others in two: slices by teams,
then windows by their owners. On a CPU slices and windows are each the work of one item; windows are aggregated from scratch, which is the
quickest way while they have few slices.
"""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape, no_atomics
from sash.algorithms.device.coop_exp import by_owner, clear_local, few_slices, first_of, flush
from sash.algorithms.device.edges import slice_rows, slice_start
from sash.algorithms.device.read_compress import QUAD, reduce_team, slices, team_of
from sash.algorithms.device.work import Work
from sash.kernels.vocabulary import GROUP, Local, Rows, States, barrier, combine, group, groups, identity, item, lift, load, merge, store


def coop_opt(
    X: Rows,
    count: int,
    windows: int,
    per: int,
    every: int,
    first: int,
    second: int,
    span: int,
    tile: int,
    team: int,
    S: States,
    T: Local,
    L: Local,
) -> int:
    """COOP-OPT: slicing and expansion in one pass; slices never leave the memory of their group. ``T`` has a place for each item."""
    me = item() % team
    base = group() * tile
    while base < count:
        last = min(base + tile, count)
        low = first_of(base, per, span)
        wide = min((last - 1) // per, windows - 1) - low + 1
        clear_local(L, wide)
        barrier()
        at = base
        while at < last:
            k = at + item() // team
            s = identity()
            if k < last:
                start = slice_start(k, per, every, first)
                rows = slice_rows(k, per, first, second)
                p = me * QUAD
                while p < rows:
                    stop = min(p + QUAD, rows)
                    for row in range(start + p, start + stop):
                        s = combine(s, lift(X, row))
                    p += team * QUAD
            store(T, item(), s)
            barrier()
            reduce_team(T, me, team)
            if k < last:  # the windows of a slice are shared out among its team
                j = first_of(k, per, span)
                fan_out = min(k // per, windows - 1) - j + 1
                s = load(T, item() - me)
                for n in range(me, fan_out, team):
                    merge(L, j - low + n, s)
            barrier()
            at += GROUP // team
        flush(L, base, last, low, wide, per, span, S)
        barrier()
        base += groups() * tile
    return 0


def tile_slices(shape: Shape) -> int:
    """How many slices a group takes, so that their windows fit into its memory beside one partial for each item; 0 if none."""
    cut = shape.cut
    room = shape.places() - shape.group - (cut.span + cut.per - 1) // cut.per - 1
    return 0 if room < 1 else min(room * cut.per, shape.group * 64)


def tile_windows(shape: Shape) -> int:
    """How many windows a group takes, so that their slices fit into its memory; 0 if none."""
    room = shape.places() - shape.cut.span
    return 0 if room < 0 else min(room // shape.cut.per + 1, shape.group * 16)


class CoopOpt(DeviceAlgorithm):
    """Slices and windows in the memory of a group."""

    card = DeviceCard(
        name="coop_opt",
        title="COOP-OPT",
        order="kept (by owner); any (with atomics)",
        laws=(),
        needs="the slices of a window in the memory of a group",
        work="one pass over the rows; slices x fan-out updates in shared memory",
        memory="a group's slices or windows in its memory",
        paper="Slider, sections 3.2 and 3.3",
    )

    def missing(self, form: Form, shape: Shape) -> str | None:
        if shape.by_items or tile_windows(shape) or (tile_slices(shape) and no_atomics(form, shape) is None):
            return None
        return f"the {shape.cut.span:,} slices of a window do not fit into the {shape.local_bytes:,} bytes that a group shares"

    def run(self, work: Work) -> None:
        cut = work.shape.cut
        if work.shape.by_items:
            source, partials = slices(work)
            kernel = work.share_kernel(few_slices, partials=partials)
            work.launch_shares(kernel, work.windows, [*source, 0, work.windows, cut.per, cut.span, *work.results])
            return
        tile = tile_slices(work.shape)
        if tile and no_atomics(work.form, work.shape) is None:
            states = work.cleared_windows()
            team = team_of(work)
            count = cut.count(work.windows)
            local = (("T", work.shape.group), ("L", min((tile + cut.span) // cut.per + 2, work.shape.places() - work.shape.group)))
            kernel = work.group_kernel(coop_opt, local=local)
            numbers = [count, work.windows, cut.per, cut.every, cut.first, cut.second, cut.span, tile, team]
            work.launch(kernel, -(-count // tile), [*work.source, *numbers, *states])
            work.lower(states)
            return
        source, partials = slices(work)
        tile = tile_windows(work.shape)
        kernel = work.group_kernel(by_owner, partials=partials, local=(("L", (tile - 1) * cut.per + cut.span),))
        work.launch(kernel, -(-work.windows // tile), [*source, work.windows, cut.per, cut.span, tile, *work.results])
