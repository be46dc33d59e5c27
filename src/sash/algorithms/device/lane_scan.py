"""BLOCK-SCAN by one item in vectors: windows that slide by one element, as :mod:`sash.algorithms.lanes` has them, in one plain loop.

Each vector has neighbouring windows. Suffixes of a block go backwards and prefixes of the next forwards in strides of a vector, lane ``r``
being ``r`` elements to the right, so that order is kept in each lane.
"""

from __future__ import annotations

from sash.algorithms.blocks import slide_by_one
from sash.algorithms.lanes import directly, suffixes, widen_into
from sash.kernels.vocabulary import LANES, Local, Results, Rows, States, combine_lanes, emit_lanes, load_lanes

PIECE = 256


def slide_in_lanes(X: Rows, rows: int, begin: int, end: int, size: int, S: States, N: Local, F: Local, R: Results) -> int:
    """The windows ``begin`` to ``end - 1`` of ``size`` elements each; ``S`` has a few places more than a window has elements."""
    block = size // LANES * LANES
    rest = size - block
    i = begin
    while i + block <= end and i + block + size + 4 * LANES <= rows:
        for t in range(0, block, PIECE):
            widen_into(X, i + t, min(PIECE, block - t), N, S, t)
        suffixes(S, block)
        prefix = load_lanes(S, 0)
        if rest > 0:
            prefix = directly(X, i + block, rest)
        for t in range(0, block, PIECE):
            count = min(PIECE, block - t)
            widen_into(X, i + size + t, count, N, F, 0)
            start = 0
            if t == 0 and rest == 0:
                emit_lanes(R, i, load_lanes(S, 0))
                prefix = load_lanes(F, 0)
                start = LANES
            for j in range(start, count, LANES):
                emit_lanes(R, i + t + j, combine_lanes(load_lanes(S, t + j), prefix))
                prefix = combine_lanes(prefix, load_lanes(F, j))
        i += block
    if i < end:
        slide_by_one(X, i, end, size, S, R)
    return end
