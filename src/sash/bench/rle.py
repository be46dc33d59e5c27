"""Two stacks with run-length encoded stacks: Hammer Slide's optimisation (4), which does not pay.

Equal neighbours on the old stack become one entry with a count. It saves memory accesses and adds branches that depend on data.
It is here, and not among the algorithms, to reproduce the paper's negative result.
"""

from __future__ import annotations

from sash.algebra import Partial
from sash.kernels.vocabulary import Index, Results, Rows, States, combine, emit, lift, load, same, store


def roll(X: Rows, begin: int, end: int, size: int, every: int, V: States, S: States, F: States, counts: Index, R: Results) -> int:
    """Windows of ``size`` rows that slide by ``every``: ``V`` holds the new rows, ``S`` and ``counts`` the old stack."""
    row = begin * every
    new = entries = 0  # rows on the new stack; entries on the old one
    for j in range(begin, end):
        start = j * every
        if j > begin:
            left = every
            while left > 0:
                if entries == 0:
                    entries = flip(V, new, S, counts)
                    new = 0
                taken = min(left, counts[entries - 1])
                counts[entries - 1] -= taken
                left -= taken
                if counts[entries - 1] == 0:
                    entries -= 1
        while row < start + size:
            s = lift(X, row)
            store(V, new, s)
            store(F, 0, s if new == 0 else combine(load(F, 0), s))
            new += 1
            row += 1
        emit(R, j, answer(S, entries, F, new))
    return end


def answer(S: States, entries: int, F: States, new: int) -> Partial:
    if entries == 0:
        return load(F, 0)
    if new == 0:
        return load(S, entries - 1)
    return combine(load(S, entries - 1), load(F, 0))


def flip(V: States, new: int, S: States, counts: Index) -> int:
    """The new stack onto the old one; runs of equal aggregates share an entry."""
    entries = 0
    s = load(V, new - 1)
    for k in range(new - 1, -1, -1):
        if k < new - 1:
            s = combine(load(V, k), s)
        if entries > 0 and same(load(S, entries - 1), s):
            counts[entries - 1] += 1
        else:
            store(S, entries, s)
            counts[entries] = 1
            entries += 1
    return entries
