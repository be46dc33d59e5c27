"""Scans of blocks: for each element the aggregate from its block's start to it, or from it to the block's end; for any aggregate, in order.

Blocks have ``block`` elements each, and are cut into tiles. Three passes: the total of each tile; within each block, what precedes each
tile; and the elements of each tile behind that. (Merrill and Garland's single pass looks back at tiles that other groups are working on;
OpenCL does not promise that those go on meanwhile.) With ``REVERSE`` everything runs from the end of a block to its start.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.algorithms.device.work import Buffers, Work
from sash.kernels.vocabulary import GROUP, Local, Rows, States, barrier, combine, group, identity, item, lift, load, store

REVERSE = 0
SHIFT = 0
"""An element's result is stored so many places behind the element."""


def joined(a: Partial, b: Partial) -> Partial:
    """``a`` and what the scan meets after it."""
    return combine(b, a) if REVERSE else combine(a, b)


def element(n: int, start: int, end: int) -> int:
    """The ``n``-th element that a scan meets in the block from ``start`` to ``end - 1``."""
    return end - 1 - n if REVERSE else start + n


def scan_group(L: Local) -> int:
    """Each place of the group's memory becomes the aggregate of all up to it."""
    step = 1
    while step < GROUP:
        s = load(L, item())
        if item() >= step:
            s = joined(load(L, item() - step), s)
        barrier()
        store(L, item(), s)
        barrier()
        step *= 2
    return 0


def run_total(X: Rows, first: int, last: int, start: int, end: int) -> Partial:
    """The elements ``first`` to ``last - 1`` of a block, as the scan meets them."""
    s = identity()
    for n in range(first, last):
        s = joined(s, lift(X, element(n, start, end)))
    return s


def totals(X: Rows, count: int, block: int, tile: int, tiles: int, T: States, L: Local) -> int:
    """``T[t]`` becomes the total of tile ``t``, one tile a group; a block has ``tiles`` tiles."""
    start = group() // tiles * block
    end = min(start + block, count)
    first = group() % tiles * tile
    run = tile // GROUP
    mine = min(first + item() * run, end - start)
    store(L, item(), run_total(X, mine, min(mine + run, end - start), start, end))
    barrier()
    scan_group(L)
    if item() == 0:
        store(T, group(), load(L, GROUP - 1))
    return 0


def before(T: States, tiles: int, L: Local) -> int:
    """Within each block, one a group: ``T[t]`` becomes the total of the tiles before tile ``t``."""
    carry = identity()
    at = 0
    while at < tiles:
        place = group() * tiles + at + item()
        s = identity()
        if at + item() < tiles:
            s = load(T, place)
        store(L, item(), s)
        barrier()
        scan_group(L)
        mine = carry
        if item() > 0:
            mine = joined(carry, load(L, item() - 1))
        if at + item() < tiles:
            store(T, place, mine)
        carry = joined(carry, load(L, GROUP - 1))
        barrier()
        at += GROUP
    return 0


def scans(X: Rows, count: int, block: int, tile: int, tiles: int, T: States, P: States, L: Local) -> int:
    """``P`` becomes the scan of each block, one tile a group; ``T`` has what precedes each tile."""
    start = group() // tiles * block
    end = min(start + block, count)
    first = group() % tiles * tile
    run = tile // GROUP
    mine = min(first + item() * run, end - start)
    stop = min(mine + run, end - start)
    store(L, item(), run_total(X, mine, stop, start, end))
    barrier()
    scan_group(L)
    s = load(T, group())
    if item() > 0:
        s = joined(s, load(L, item() - 1))
    for n in range(mine, stop):
        place = element(n, start, end)
        s = joined(s, lift(X, place))
        store(P, place + SHIFT, s)
    return 0


def scan(work: Work, source: Buffers, count: int, *, block: int, partials: bool, reverse: bool = False, shift: int = 0) -> Buffers:
    """The scan of each block of ``count`` elements; with ``shift=1`` the place before the first has the partial of nothing."""
    constants = (("REVERSE", int(reverse)), ("SHIFT", shift))
    group_size = work.shape.group
    tile = group_size * work.shape.run
    tiles = max(1, -(-min(block, count) // tile))
    blocks = -(-count // block)
    sums, result = work.states(blocks * tiles), work.states(count + shift)
    local = (("L", group_size),)
    numbers = [count, block, tile, tiles]
    work.launch(work.group_kernel(totals, partials=partials, local=local, constants=constants), blocks * tiles, [*source, *numbers, *sums])
    work.launch(work.group_kernel(before, partials=True, local=local, constants=constants), blocks, [*sums, tiles])
    if shift:
        work.clear(result, shift)
    kernel = work.group_kernel(scans, partials=partials, local=local, constants=constants)
    work.launch(kernel, blocks * tiles, [*source, *numbers, *sums, *result])
    return result
