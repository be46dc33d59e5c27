"""Kernels that place new slices among existing ones, and join neighbours."""

from __future__ import annotations

from sash.algorithms.pipe.scattering import locate
from sash.algorithms.pipe.window_bounds import place_of
from sash.kernels.vocabulary import Index, Rows, States, combine, load, store

ELSEWHERE = -1
"""New slices do not all join existing ones or follow them."""
WITH_GAPS = -2
"""A new slice may contain a gap that separates sessions."""


def find_slices(
    cell: Index, first: Index, last: Index, count: int,
    new_cell: Index, new_first: Index, new_last: Index, new_count: int, gap: int, commutes: int, places: Index,
) -> int:  # fmt: skip
    """The places of newer slices of a key among its older ones: each joins the one of its cell, or follows them all.

    ``places`` gets the place of each. Returns how many join older ones, or ``ELSEWHERE`` if one belongs there, would bridge a gap or, where
    order matters, has rows between older ones. Both are in the order of time.
    """
    joined, place = new_count, -1
    for i in range(new_count):
        c = new_cell[i]
        if i > 0 and (new_cell[i - 1] == c or new_first[i] <= new_first[i - 1]):
            return ELSEWHERE
        following = place + 1
        place = following
        if place < count and cell[place] != c:  # usually it is the next one
            place = place_of(first, place, count, new_first[i] + 1)
            if place > following and cell[place - 1] == c:
                place -= 1
        if (0 < place <= count and cell[place - 1] == c) or (place + 1 < count and cell[place + 1] == c):
            return ELSEWHERE
        if place >= count:
            if new_first[i] <= last[count - 1]:
                return ELSEWHERE
            joined = min(joined, i)
        else:
            spans = max(last[place], new_last[i]) - min(first[place], new_first[i])
            if cell[place] != c or spans > gap or (commutes == 0 and last[place] > new_first[i]):
                return ELSEWHERE
        places[i] = place
    return joined


def place_slices(
    key: Index, cell: Index, first: Index, last: Index, counts: Index,
    new_cell: Index, new_first: Index, new_last: Index, new_counts: Index, new_count: int, joined: int, places: Index,
) -> int:  # fmt: skip
    """Write newer slices among older ones, whose arrays have the capacity for them, at the places from :func:`find_slices`."""
    for i in range(joined):
        p = places[i]
        first[p], last[p] = min(first[p], new_first[i]), max(last[p], new_last[i])
        counts[p] += new_counts[i]
    for i in range(joined, new_count):
        p = places[i]
        key[p], cell[p], first[p], last[p], counts[p] = key[0], new_cell[i], new_first[i], new_last[i], new_counts[i]
    return joined


def join_slices(S: States, T: States, joined: int, places: Index) -> int:
    """Combine older slices with the newer ones that join them. The newer are written to, so a ``combine`` that raises changes nothing."""
    for i in range(joined):
        store(T, i, combine(load(S, places[i]), load(T, i)))
    return joined


def write_slices(S: States, held: Index, T: States, new_held: Index, joined: int, count: int, places: Index) -> int:
    """An aggregate's part of :func:`place_slices`, after :func:`join_slices`; ``held`` counts the rows in each slice's partial."""
    for i in range(count):
        store(S, places[i], load(T, i))
    for i in range(joined):
        held[places[i]] += new_held[i]
    for i in range(joined, count):
        held[places[i]] = new_held[i]
    return count


def put_in_place(
    X: Rows, ticks: Index, keys: Index, count: int, edges: Index, skip: int, edge_count: int, lookup: Index, base: int, shift: int,
    many: int, row_places: Index, new_first: Index, new_last: Index, new_counts: Index, new_held: Index, filled: Index, T: States,
    new_cell: Index, places: Index, key: Index, cell: Index, first: Index, last: Index, counts: Index, held: Index, S: States, there: int,
    gap: int, found: Index,
) -> int:  # fmt: skip
    """Add rows of a single key to the ``there`` existing slices, for aggregates that commute: :func:`locate`, :func:`find_slices`,
    :func:`join_slices`, and only then :func:`place_slices` and :func:`write_slices`, so that a function that raises changes nothing.

    ``found`` gets how many new slices the rows make. Returns how many of them joined older ones; ``ELSEWHERE`` if they cannot all be
    placed, or ``WITH_GAPS``: then nothing was changed, and the new slices are in ``T`` and the arrays called new.
    """
    new_count = locate(
        X, ticks, keys, 1, count, edges, skip, edge_count, lookup, base, shift, many, row_places, new_first, new_last, new_counts,
        new_held, filled, T,
    )  # fmt: skip
    found[0] = new_count
    for i in range(new_count):
        new_cell[i] = edges[skip + filled[i]]
        if new_last[i] - new_first[i] > gap:
            return WITH_GAPS
    joined = find_slices(cell, first, last, there, new_cell, new_first, new_last, new_count, gap, 1, places)
    if joined != ELSEWHERE:
        join_slices(S, T, joined, places)
        place_slices(key, cell, first, last, counts, new_cell, new_first, new_last, new_counts, new_count, joined, places)
        write_slices(S, held, T, new_held, joined, new_count, places)
    return joined


def group_slices(
    keys: Index, cells: Index, first: Index, last: Index, count: int, gap: int, settled: int, offsets: Index
) -> int:  # fmt: skip
    """Slices that belong together, sorted by key and first row: one key, one cell, no gap (gaps do not matter in the cell ``settled``).

    ``offsets`` gets where each group starts, and the end; the number of groups is returned.
    """
    groups, reach = 0, 0
    for j in range(count):
        together = j > 0 and keys[j] == keys[j - 1] and cells[j] == cells[j - 1]
        if together and (cells[j] == settled or first[j] - reach <= gap):
            reach = max(reach, last[j])
        else:
            offsets[groups] = j
            groups += 1
            reach = last[j]
    offsets[groups] = count
    return groups
