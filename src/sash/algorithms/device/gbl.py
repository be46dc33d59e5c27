"""GBL: each row updates every window that holds it, by atomics in global memory (Slider, section 3.1). A baseline.

Updates are *sequential*, from a row's first window to its last, or *circular*, each item from a window of its own on, so that
neighbouring items seldom meet at one.
"""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape, no_atomics
from sash.algorithms.device.work import Work
from sash.kernels.vocabulary import GROUP, Rows, States, group, groups, item, lift, merge

CIRCULAR = 1


def first_window(row: int, size: int, every: int) -> int:
    """The first window that holds a row."""
    return 0 if row < size else (row - size) // every + 1


def gbl(X: Rows, rows: int, windows: int, size: int, every: int, S: States) -> int:
    """Every row into all of its windows, in global memory."""
    row = group() * GROUP + item()
    while row < rows:
        j = first_window(row, size, every)
        fan_out = min(row // every, windows - 1) - j + 1
        s = lift(X, row)
        for n in range(fan_out):
            at = (n + item()) % fan_out if CIRCULAR else n
            merge(S, j + at, s)
        row += groups() * GROUP
    return 0


class Gbl(DeviceAlgorithm):
    """Atomics in global memory."""

    card = DeviceCard(
        name="gbl",
        title="GBL",
        order="any",
        laws=("commutative",),
        needs="one field of 32 or 64 bits, and atomics of that width",
        work="rows x fan-out atomics in global memory",
        memory="one partial per window",
        paper="Slider, section 3.1",
    )

    def missing(self, form: Form, shape: Shape) -> str | None:
        return no_atomics(form, shape)

    def run(self, work: Work) -> None:
        states = work.cleared_windows()
        kernel = work.group_kernel(gbl, constants=(("CIRCULAR", int(work.circular)),))
        work.launch(kernel, work.many_groups(work.rows), [*work.source, work.rows, work.windows, work.size, work.every, *states])
        work.lower(states)
