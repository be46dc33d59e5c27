"""Two stacks, block by block: the form of the algorithm for data that is complete.

All windows that reach over one point of the data (the *middle*) share it: what lies before the middle is a suffix aggregate,
computed once backwards; what lies after it grows forwards. Then the next middle. Each row is combined at most three times,
whatever the size of the windows, and nothing is pushed or popped. Order is preserved.
"""

from __future__ import annotations

from sash.kernels.vocabulary import Index, Results, Rows, States, combine, emit, lift, load, store


def slide_by_one(X: Rows, begin: int, end: int, size: int, S: States, R: Results) -> int:
    """The windows ``begin`` to ``end - 1``; window ``j`` holds the rows ``j`` to ``j + size - 1``. ``S`` has ``size`` places."""
    j = begin
    while j < end:
        s = lift(X, j + size - 1)
        store(S, size - 1, s)
        for k in range(size - 2, -1, -1):
            s = combine(lift(X, j + k), s)
            store(S, k, s)
        emit(R, j, s)
        stop = min(end - j, size)
        if stop > 1:
            after = lift(X, j + size)
            emit(R, j + 1, combine(load(S, 1), after))
            for k in range(2, stop):
                after = combine(after, lift(X, j + size + k - 1))
                emit(R, j + k, combine(load(S, k), after))
        j += stop
    return end


def slide(X: Rows, begin: int, end: int, size: int, every: int, S: States, R: Results) -> int:
    """The same for windows that start every ``every`` rows, ``every < size``."""
    j = begin
    while j < end:
        start = j * every
        middle = start + size
        k = (size - 1) // every  # windows after this one that still reach over the middle
        s = lift(X, middle - 1)
        p = middle - 1
        while k >= 0:
            while p > start + k * every:
                p -= 1
                s = combine(lift(X, p), s)
            store(S, k, s)
            k -= 1
        emit(R, j, s)
        stop = min(end - j, (size - 1) // every + 1)
        if stop > 1:
            after = lift(X, middle)
            p = middle + 1
            for k in range(1, stop):
                while p < middle + k * every:
                    after = combine(after, lift(X, p))
                    p += 1
                emit(R, j + k, combine(load(S, k), after))
        j += stop
    return end


def ranges(X: Rows, lo: Index, hi: Index, begin: int, end: int, S: States, R: Results) -> int:
    """Ranges ``[lo[j], hi[j])`` that are not empty and whose ends only advance, over the data of many keys at once.

    Keys lie one after the other, so a range never reaches from one into the next. ``S`` has as many places as the longest range.
    """
    j = begin
    while j < end:
        start, middle = lo[j], hi[j]
        s = lift(X, middle - 1)
        store(S, middle - 1 - start, s)
        for p in range(middle - 2, start - 1, -1):
            s = combine(lift(X, p), s)
            store(S, p - start, s)
        while j < end and lo[j] < middle and hi[j] == middle:
            emit(R, j, load(S, lo[j] - start))
            j += 1
        if j < end and lo[j] < middle:
            after = lift(X, middle)
            p = middle + 1
            while j < end and lo[j] < middle:
                while p < hi[j]:
                    after = combine(after, lift(X, p))
                    p += 1
                emit(R, j, combine(load(S, lo[j] - start), after))
                j += 1
    return end
