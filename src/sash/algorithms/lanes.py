"""Two stacks in vector lanes: windows that slide by one row, at a good part of the speed of copying memory.

Neighbouring windows sit in neighbouring lanes. A window of ``size`` rows is a *block* of ``B`` rows, the largest multiple of
LANES in it, and ``b`` more. First every row gets the aggregate of the LANES rows from it on (by doubling: 1, 4, 16). From those,
in strides of LANES, a suffix pass runs backwards over a block and a prefix pass forwards over the next, as in
:mod:`sash.algorithms.blocks`, except that lane ``r`` works ``r`` rows to the right: all lanes do the same thing, and order is
kept in each. Nothing needs to be idempotent or invertible, and no size is special.

Work goes in tiles that stay in the nearest caches. The windows' partials wait in a buffer; they are lowered, and their results
written past the caches, while the next block's are made.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.kernels.vocabulary import (
    LANES,
    Memory,
    Results,
    Rows,
    States,
    address,
    combine_lanes,
    emit,
    emit_lanes,
    emit_past_caches,
    lift_lanes,
    load,
    load_lanes,
    prefetch,
    store_lanes,
)

PIECE = 256
TILE = 1024
LONGEST_BLOCK = 4096
LONG_BLOCK = 3072
AHEAD = 2048
LIFT_ONCE = 0

SUFFIXES, NEAR, FAR, TOTALS = 0, 1, 2, 3  # the buffers


def widen(X: Rows, first: int, count: int, S: States, place: int) -> None:
    """``S[place + j]`` becomes the aggregate of the LANES rows from ``first + j`` on, for ``j < count``, a multiple of LANES."""
    for t in range(0, count, PIECE):
        stop = min(t + PIECE, count)
        fours(X, first, t, stop + LANES, S, place)
        for j in range(t, stop, LANES):
            store_lanes(S, place + j, from_fours(S, place + j))
            prefetch(X, first + j + AHEAD)


def widen_into(X: Rows, first: int, count: int, near: States, S: States, place: int) -> None:
    """:func:`widen` of one piece that writes nothing behind it: the aggregates of four rows lie in ``near``."""
    fours(X, first, 0, count + LANES, near, 0)
    for j in range(0, count, LANES):
        store_lanes(S, place + j, from_fours(near, j))
        prefetch(X, first + j + AHEAD)


def widen_and_drain(X: Rows, first: int, count: int, S: States, R: Results, target: int, T: States, place: int, waiting: int) -> None:
    """:func:`widen`, while ``waiting`` windows in ``T`` give their results from ``target`` on: reading and writing at once."""
    fours(X, first, 0, count + LANES, S, 0)
    both = min(count, waiting)
    for j in range(0, both, LANES):
        store_lanes(S, j, from_fours(S, j))
        emit_past_caches(R, target + j, load_lanes(T, place + j))
        prefetch(X, first + j + AHEAD)
    for j in range(both, count, LANES):
        store_lanes(S, j, from_fours(S, j))
    for j in range(both, waiting, LANES):
        emit_past_caches(R, target + j, load_lanes(T, place + j))


def fours(X: Rows, first: int, start: int, stop: int, S: States, place: int) -> None:
    """The aggregates of four rows each. Where a lift is dear (a bitmap to ask), each row is lifted once and its partial read four times."""
    if LIFT_ONCE == 1:
        for j in range(start, stop + LANES, LANES):
            store_lanes(S, place + j, lift_lanes(X, first + j))
        for j in range(start, stop, LANES):
            q = place + j
            a = combine_lanes(load_lanes(S, q), load_lanes(S, q + 1))
            c = combine_lanes(load_lanes(S, q + 2), load_lanes(S, q + 3))
            store_lanes(S, q, combine_lanes(a, c))
        return
    for j in range(start, stop, LANES):
        i = first + j
        a = combine_lanes(lift_lanes(X, i), lift_lanes(X, i + 1))
        c = combine_lanes(lift_lanes(X, i + 2), lift_lanes(X, i + 3))
        store_lanes(S, place + j, combine_lanes(a, c))


def from_fours(S: States, q: int) -> Partial:
    """The aggregate of LANES rows from those of four rows each."""
    a = combine_lanes(load_lanes(S, q), load_lanes(S, q + 4))
    if LANES == 8:
        return a
    return combine_lanes(a, combine_lanes(load_lanes(S, q + 8), load_lanes(S, q + 12)))


def suffixes(S: States, block: int) -> None:
    """Turn a block of lane aggregates into suffix aggregates, in place.

    Two at a time, so that the chain of dependent combines is half as long as the block.
    """
    s = load_lanes(S, block - LANES)
    q = block - 3 * LANES
    while q >= 0:
        a, b = load_lanes(S, q), load_lanes(S, q + LANES)
        store_lanes(S, q + LANES, combine_lanes(b, s))
        s = combine_lanes(combine_lanes(a, b), s)
        store_lanes(S, q, s)
        q -= 2 * LANES
    if q == -LANES:
        store_lanes(S, 0, combine_lanes(load_lanes(S, 0), s))


def first_suffixes(X: Rows, begin: int, block: int, S: States, near: States) -> None:
    """The suffixes of the first block."""
    for t in range(0, block, PIECE):
        widen_into(X, begin + t, min(PIECE, block - t), near, S, t)
    suffixes(S, block)


def directly(X: Rows, j: int, size: int) -> Partial:
    """LANES neighbouring windows, row by row."""
    s = lift_lanes(X, j)
    for k in range(1, size):
        s = combine_lanes(s, lift_lanes(X, j + k))
    return s


def short(X: Rows, begin: int, end: int, size: int, R: Results) -> int:
    """Windows shorter than two vectors."""
    for j in range(begin, end - LANES + 1, LANES):
        emit_lanes(R, j, directly(X, j, size))
    return begin + max(0, end - begin) // LANES * LANES


def tiled(X: Rows, rows: int, begin: int, end: int, size: int, M: Memory, T: States, R: Results) -> int:
    """Windows of one short block and ``rest`` rows, several blocks at a time."""
    before, S, after = M[SUFFIXES], M[NEAR], M[FAR]
    block = size // LANES * LANES
    rest = size - block
    blocks = max(1, TILE // block)
    tile = blocks * block
    head = (rest + block + LANES - 1) // LANES * LANES  # what a tile needs of the rows behind it
    limit = rows - 4 * LANES
    if begin + tile > end or begin + tile + head + 2 * LANES > limit:
        return begin
    widen(X, begin, head, S, 0)
    for j in range(0, block, LANES):
        store_lanes(before, j, load_lanes(S, j))
    suffixes(before, block)
    done, i = begin, begin
    place, other = 0, block  # where in T this block's windows go, and where the last block's are
    some = directly(X, begin, size)  # before the first block nothing waits: windows stand in that are written over
    for j in range(0, block, LANES):
        store_lanes(T, other + j, some)
    while i + tile <= end and i + tile + head + 2 * LANES <= limit:
        widen(X, i + head, tile, S, head)
        for k in range(blocks):
            ahead = (k + 1) * block
            if rest > 0:
                prefix = directly(X, i + ahead, rest)
                store_lanes(T, place, combine_lanes(load_lanes(before, 0), prefix))
                prefix = combine_lanes(prefix, load_lanes(S, ahead + rest))
            else:
                store_lanes(T, place, load_lanes(before, 0))
                prefix = load_lanes(S, ahead)
            suffix = load_lanes(S, ahead + block - LANES)
            store_lanes(after, block - LANES, suffix)
            emit_past_caches(R, done, load_lanes(T, other))
            back = ahead + block - 2 * LANES
            # The prefix of the next block runs forwards, its suffix backwards, and the last block's results leave: none of
            # the three waits for another.
            for j in range(LANES, block, LANES):
                suffix = combine_lanes(load_lanes(S, back), suffix)
                store_lanes(after, back - ahead, suffix)
                back -= LANES
                store_lanes(T, place + j, combine_lanes(load_lanes(before, j), prefix))
                prefix = combine_lanes(prefix, load_lanes(S, ahead + rest + j))
                emit_past_caches(R, done + j, load_lanes(T, other + j))
            before, after = after, before
            place, other = other, place
            done = i + k * block
        for j in range(0, head, LANES):
            store_lanes(S, j, load_lanes(S, tile + j))
        i += tile
    give_out(R, done, T, other, block)
    return i


def medium(X: Rows, rows: int, begin: int, end: int, size: int, M: Memory, T: States, R: Results) -> int:
    """Windows of one block and ``rest`` rows.

    While the windows of a block are given out, from its suffixes and a growing prefix of the next block, the next block's
    aggregates take the places of the suffixes that are done with.
    """
    S, near = M[SUFFIXES], M[NEAR]
    block = size // LANES * LANES
    rest = size - block
    needed = block + size + 4 * LANES  # how far the windows of one block reach
    if begin + block > end or begin + needed > rows:
        return begin
    first_suffixes(X, begin, block, S, near)
    i = done = begin
    place, other = 0, PIECE  # where in T this piece's windows go, and where the last piece's are
    waiting = 0
    while i + block <= end and i + needed <= rows:
        prefix = load_lanes(S, 0)
        if rest > 0:
            prefix = directly(X, i + block, rest)
        for t in range(0, block, PIECE):
            count = min(PIECE, block - t)
            widen_and_drain(X, i + block + t, count + LANES, near, R, done, T, other, waiting)
            start = 0
            if t == 0 and rest == 0:
                store_lanes(T, place, load_lanes(S, 0))
                prefix = load_lanes(near, 0)
                store_lanes(S, 0, prefix)
                start = LANES
            prefix = emit_piece(S, t, start, count, near, rest, prefix, T, place)
            for j in range(start, count, LANES):
                store_lanes(S, t + j, load_lanes(near, j))
            done, waiting = i + t, count
            place, other = other, place
        suffixes(S, block)
        i += block
    give_out(R, done, T, other, waiting)
    return i


def emit_piece(S: States, at: int, start: int, count: int, ahead: States, rest: int, prefix: Partial, T: States, place: int) -> Partial:
    """The windows of one piece: their suffixes joined with a prefix that grows by two vectors at a time."""
    j = start
    while j + 2 * LANES <= count:
        a, b = load_lanes(ahead, j + rest), load_lanes(ahead, j + rest + LANES)
        store_lanes(T, place + j, combine_lanes(load_lanes(S, at + j), prefix))
        store_lanes(T, place + j + LANES, combine_lanes(load_lanes(S, at + j + LANES), combine_lanes(prefix, a)))
        prefix = combine_lanes(prefix, combine_lanes(a, b))
        j += 2 * LANES
    if j < count:
        store_lanes(T, place + j, combine_lanes(load_lanes(S, at + j), prefix))
        prefix = combine_lanes(prefix, load_lanes(ahead, j + rest))
    return prefix


def long(X: Rows, rows: int, begin: int, end: int, size: int, M: Memory, T: States, R: Results) -> int:
    """Windows of several blocks: what lies between the first and the last block comes from totals per block."""
    S, near, far, G = M[SUFFIXES], M[NEAR], M[FAR], M[TOTALS]
    blocks = blocks_in(size)
    block = size // blocks // LANES * LANES
    rest = size - blocks * block
    needed = block + size + 4 * LANES
    if begin + block > end or begin + needed > rows:
        return begin
    first_suffixes(X, begin, block, S, near)
    for k in range(1, blocks):
        total(X, begin + k * block + rest, block, near, G, k)
    i = done = begin
    k = 0
    place, other = 0, PIECE
    waiting = 0
    while i + block <= end and i + needed <= rows:
        prefix = load_lanes(G, (k + 1) % blocks * LANES)
        g = k + 2
        while g + 1 < k + blocks:
            two = combine_lanes(load_lanes(G, g % blocks * LANES), load_lanes(G, (g + 1) % blocks * LANES))
            prefix = combine_lanes(prefix, two)
            g += 2
        if g < k + blocks:
            prefix = combine_lanes(prefix, load_lanes(G, g % blocks * LANES))
        for r in range(rest - 1, -1, -1):
            prefix = combine_lanes(lift_lanes(X, i + block + r), prefix)
        whole = prefix
        for t in range(0, block, PIECE):
            count = min(PIECE, block - t)
            widen_and_drain(X, i + size + t, count, far, R, done, T, other, waiting)
            prefix = emit_piece(S, t, 0, count, far, 0, prefix, T, place)
            whole = piece_total(far, count) if t == 0 else combine_lanes(whole, piece_total(far, count))
            widen_into(X, i + block + t, count, near, S, t)
            done, waiting = i + t, count
            place, other = other, place
        store_lanes(G, k % blocks * LANES, whole)
        suffixes(S, block)
        i += block
        k += 1
    give_out(R, done, T, other, waiting)
    return i


def blocks_in(size: int) -> int:
    """How many blocks a long window has: a number that leaves few rows over, which each block has to take one by one."""
    fewest = (size + LONG_BLOCK - 1) // LONG_BLOCK
    best = fewest
    for blocks in range(fewest + 1, fewest + fewest // 4 + 2):
        if size % (blocks * LANES) < size % (best * LANES):
            best = blocks
    return best


def total(X: Rows, first: int, block: int, near: States, G: States, k: int) -> None:
    """The aggregate of a block, that of lane ``r`` being ``r`` rows to the right."""
    s = load_lanes(near, 0)
    for t in range(0, block, PIECE):
        count = min(PIECE, block - t)
        widen(X, first + t, count, near, 0)
        s = piece_total(near, count) if t == 0 else combine_lanes(s, piece_total(near, count))
    store_lanes(G, k * LANES, s)


def piece_total(S: States, count: int) -> Partial:
    """The aggregate of a piece from those of LANES rows each: two at a time, so that the chain is half as long."""
    s = load_lanes(S, 0)
    j = LANES
    while j + 2 * LANES <= count:
        s = combine_lanes(s, combine_lanes(load_lanes(S, j), load_lanes(S, j + LANES)))
        j += 2 * LANES
    if j < count:
        s = combine_lanes(s, load_lanes(S, j))
    return s


def give_out(R: Results, first: int, T: States, place: int, count: int) -> None:
    """The results of the last block."""
    for j in range(0, count, LANES):
        emit_lanes(R, first + j, load_lanes(T, place + j))


def slide(X: Rows, rows: int, begin: int, end: int, size: int, M: Memory, T: States, R: Results) -> int:
    """As many as possible of the windows ``begin`` to ``end - 1``; returns where it stopped.

    The last windows are left to a kernel of single values, because lanes read a little past the rows that they use.
    """
    if size < 2 * LANES:
        return short(X, begin, min(end, rows - size - LANES), size, R)
    aligned = begin + (LANES - (address(R) + begin) % LANES) % LANES  # draining needs aligned places
    if size <= TILE // 2:
        stopped = tiled(X, rows, aligned, end, size, M, T, R)
    elif size <= LONGEST_BLOCK:
        stopped = medium(X, rows, aligned, end, size, M, T, R)
    else:
        stopped = long(X, rows, aligned, end, size, M, T, R)
    if stopped == aligned:
        return begin
    if aligned > begin:
        directly_before(X, begin, aligned, size, T, R)
    return stopped


def directly_before(X: Rows, begin: int, aligned: int, size: int, T: States, R: Results) -> None:
    """The few windows before the first aligned place."""
    store_lanes(T, 0, directly(X, begin, size))
    for j in range(aligned - begin):
        emit(R, begin + j, load(T, j))


def memory_places(size: int, lanes: int, sizes: dict[str, int]) -> tuple[tuple[int, ...], int]:
    """How many places the buffers and the one for windows that wait need, for the constants that a kernel was made with."""
    piece, tile, longest, long_block = sizes["PIECE"], sizes["TILE"], sizes["LONGEST_BLOCK"], sizes["LONG_BLOCK"]
    near = (piece if size > tile // 2 else 2 * tile) + 6 * lanes
    fewest = -(-size // long_block)
    blocks = fewest + fewest // 4 + 2
    return (min(size, longest) + lanes, near, near, (blocks + 1) * lanes), max(2 * piece, tile) + lanes
