"""PrefixExp: windows as differences of prefixes (Slider, section 3.2.2), for aggregates with an exact inverse.

A window costs one subtraction, whatever its fan-out. On a CPU the prefixes are not stored: each item slides along its share of the windows.
"""

from __future__ import annotations

from sash.algorithms.device.device_scan import scan
from sash.algorithms.device.work import Buffers, Work
from sash.algorithms.running import slide_by_one
from sash.kernels.vocabulary import Results, Rows, States, combine, emit, invert, lift, load


def from_prefixes(P: States, begin: int, end: int, step: int, span: int, R: Results) -> int:
    """PrefixExp: what comes before a window's end without what comes before its start. ``P[i]`` is the aggregate of the first ``i``
    elements."""
    for j in range(begin, end):
        emit(R, j, invert(load(P, j * step + span), load(P, j * step)))
    return end


def running(X: Rows, begin: int, end: int, step: int, span: int, R: Results) -> int:
    """PrefixExp without prefixes in memory, by one item: a window is the one before it, with what enters and without what leaves."""
    first = begin * step
    s = lift(X, first)
    for p in range(first + 1, first + span):
        s = combine(s, lift(X, p))
    emit(R, begin, s)
    for j in range(begin + 1, end):
        for p in range(j * step + span - step, j * step + span):
            s = combine(s, lift(X, p))
        for p in range(j * step - step, j * step):
            s = invert(s, lift(X, p))
        emit(R, j, s)
    return end


def expand(work: Work, source: Buffers, count: int, step: int, span: int, *, partials: bool) -> None:
    """The results of windows of ``span`` elements that start every ``step``."""
    if work.shape.by_items:
        numbers = [span] if step == 1 else [step, span]
        kernel = work.share_kernel(slide_by_one if step == 1 else running, partials=partials)
        work.launch_shares(kernel, work.windows, [*source, 0, work.windows, *numbers, *work.results], costs=span // step)
        return
    prefixes = scan(work, source, count, block=count, partials=partials, shift=1)
    kernel = work.share_kernel(from_prefixes, partials=True)
    work.launch_shares(kernel, work.windows, [*prefixes, 0, work.windows, step, span, *work.results])
