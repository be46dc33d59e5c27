"""SH: each row updates every window that holds it, in the memory that its group shares (Slider, section 3.1). A baseline.

A group collects the updates of its rows, and then merges its windows into those of all. Where the windows of even a few rows do not fit
into that memory, it cannot run.
"""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape, no_atomics
from sash.algorithms.device.gbl import first_window
from sash.algorithms.device.work import Work
from sash.kernels.vocabulary import GROUP, Local, Rows, States, barrier, group, groups, identity, item, lift, load, merge, store

CIRCULAR = 1


def sh(X: Rows, rows: int, windows: int, size: int, every: int, tile: int, S: States, L: Local) -> int:
    """Every row into all of its windows, in the memory of its group; then the group's windows into those of all."""
    base = group() * tile
    while base < rows:
        last = min(base + tile, rows)
        low = first_window(base, size, every)
        high = min((last - 1) // every, windows - 1)
        for j in range(item(), high - low + 1, GROUP):
            store(L, j, identity())
        barrier()
        for row in range(base + item(), last, GROUP):
            j = first_window(row, size, every)
            fan_out = min(row // every, windows - 1) - j + 1
            s = lift(X, row)
            for n in range(fan_out):
                at = (n + item()) % fan_out if CIRCULAR else n
                merge(L, j - low + at, s)
        barrier()
        for j in range(item(), high - low + 1, GROUP):
            merge(S, low + j, load(L, j))
        barrier()
        base += groups() * tile
    return 0


def tile_rows(shape: Shape) -> int:
    """How many rows a group takes, so that their windows fit into its memory; 0 if not even one row's do."""
    room = shape.places() - (shape.size + shape.every - 1) // shape.every - 1
    return 0 if room < 1 else min(room * shape.every, shape.group * 64)


class Sh(DeviceAlgorithm):
    """Atomics in the memory of a group."""

    card = DeviceCard(
        name="sh",
        title="SH",
        order="any",
        laws=("commutative",),
        needs="one field of 32 or 64 bits, atomics of that width, and a row's windows in the memory of a group",
        work="rows x fan-out atomics in shared memory",
        memory="one partial per window, and those of a group's rows in its memory",
        paper="Slider, section 3.1",
    )

    def missing(self, form: Form, shape: Shape) -> str | None:
        reason = no_atomics(form, shape)
        if reason is None and not tile_rows(shape):
            return f"a row's {shape.fan_out:,} windows do not fit into the {shape.local_bytes:,} bytes that a group shares"
        return reason

    def run(self, work: Work) -> None:
        states = work.cleared_windows()
        tile = tile_rows(work.shape)
        local = (tile + work.size) // work.every + 2
        kernel = work.group_kernel(sh, local=(("L", min(local, work.shape.places())),), constants=(("CIRCULAR", int(work.circular)),))
        groups = -(-work.rows // tile)
        work.launch(kernel, groups, [*work.source, work.rows, work.windows, work.size, work.every, tile, *states])
        work.lower(states)
