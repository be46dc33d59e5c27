"""Windows by doubling: the aggregates of 1, 2, 4, 8, … neighbours, combined into windows of the requested length.

O(log n) combines per window, but all of them in vector lanes and without any dependence between windows; order is preserved. For windows
of few partials, such as slices, it is the quickest way, and quick to compile.
"""

from __future__ import annotations

from sash.kernels.vocabulary import (
    LANES,
    Results,
    Rows,
    States,
    combine_lanes,
    emit,
    emit_lanes,
    lift_lanes,
    load,
    load_lanes,
    store_lanes,
)


def slide_by_one(X: Rows, count: int, size: int, A: States, B: States, R: Results) -> int:
    """The windows 0 to ``count - 1`` of ``size`` rows each.

    ``X`` may be read, and ``A`` and ``B`` must have capacity, for ``count + size`` places and two vectors more.
    """
    for j in range(0, count + size, LANES):
        store_lanes(A, j, lift_lanes(X, j))
    have, width, rest = 0, 1, size
    while True:
        if rest & 1 == 1:  # append `width` rows to what each window has
            if have == 0:
                for j in range(0, count, LANES):
                    store_lanes(B, j, load_lanes(A, j))
            else:
                for j in range(0, count, LANES):
                    store_lanes(B, j, combine_lanes(load_lanes(B, j), load_lanes(A, j + have)))
            have += width
        rest >>= 1
        if rest == 0:
            break
        for j in range(0, count + size - 2 * width + 1, LANES):
            store_lanes(A, j, combine_lanes(load_lanes(A, j), load_lanes(A, j + width)))
        width *= 2
    whole = count // LANES * LANES
    for j in range(0, whole, LANES):
        emit_lanes(R, j, load_lanes(B, j))
    for j in range(whole, count):
        emit(R, j, load(B, j))
    return count
