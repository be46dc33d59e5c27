"""Scanning a run of a ring: the vectorised scan of Hammer Slide, section 3.2(3), and one value at a time."""

from __future__ import annotations

from sash.algebra import Partial
from sash.kernels.vocabulary import LANES, States, combine, combine_lanes, fold_lanes, load, load_lanes


def scan(S: States, mask: int, first: int, last: int) -> Partial:
    """The aggregate of the positions ``first`` to ``last - 1`` of a ring, in vector lanes; for aggregates that commute."""
    p = first
    if last - first >= LANES and (p & mask) + LANES <= mask + 1:
        a = load_lanes(S, p & mask)
        p += LANES
        if last - p >= 3 * LANES and (p & mask) + 3 * LANES <= mask + 1:
            b, c, d = load_lanes(S, p & mask), load_lanes(S, (p & mask) + LANES), load_lanes(S, (p & mask) + 2 * LANES)
            p += 3 * LANES
            while p + 4 * LANES <= last and (p & mask) + 4 * LANES <= mask + 1:
                q = p & mask
                a = combine_lanes(a, load_lanes(S, q))
                b = combine_lanes(b, load_lanes(S, q + LANES))
                c = combine_lanes(c, load_lanes(S, q + 2 * LANES))
                d = combine_lanes(d, load_lanes(S, q + 3 * LANES))
                p += 4 * LANES
            a = combine_lanes(combine_lanes(a, b), combine_lanes(c, d))
        while p + LANES <= last and (p & mask) + LANES <= mask + 1:
            a = combine_lanes(a, load_lanes(S, p & mask))
            p += LANES
        s = fold_lanes(a)
    else:
        s = load(S, p & mask)
        p += 1
    while p < last:
        if p + LANES <= last and (p & mask) == 0:  # the ring has come round
            a = load_lanes(S, 0)
            p += LANES
            while p + LANES <= last:
                a = combine_lanes(a, load_lanes(S, p & mask))
                p += LANES
            s = combine(s, fold_lanes(a))
        else:
            s = combine(s, load(S, p & mask))
            p += 1
    return s


def scan_scalar(S: States, mask: int, first: int, last: int) -> Partial:
    """The same, one value at a time, in order."""
    s = load(S, first & mask)
    for p in range(first + 1, last):
        s = combine(s, load(S, p & mask))
    return s
