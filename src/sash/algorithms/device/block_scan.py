"""BLOCK-SCAN: windows from suffix and prefix scans of blocks of the window's length; for any aggregate at any fan-out, in order.

The Slider paper falls back to GBL where an aggregate has no inverse and its fan-out exceeds shared memory. Here the slices are cut into blocks of as many
slices as a window has; a window is then the end of one block and the start of the next, or a whole one: two partials that are combined,
whatever its size. On a CPU it is two stacks, block by block (:mod:`sash.algorithms.blocks`), each item with its share of the windows.
"""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.blocks import slide, slide_by_one
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape
from sash.algorithms.device.device_scan import scan
from sash.algorithms.device.read_compress import slices
from sash.algorithms.device.work import Work
from sash.kernels.vocabulary import Results, States, combine, emit, load


def from_blocks(A: States, B: States, begin: int, end: int, step: int, span: int, R: Results) -> int:
    """BLOCK-SCAN: a window of ``span`` elements is the end of one block of that length (in ``A``) and the start of the next (in ``B``)."""
    for j in range(begin, end):
        first = j * step
        if first % span == 0:
            emit(R, j, load(B, first + span - 1))
        else:
            emit(R, j, combine(load(A, first), load(B, first + span - 1)))
    return end


class BlockScan(DeviceAlgorithm):
    """Suffixes and prefixes of blocks."""

    card = DeviceCard(
        name="block_scan",
        title="BLOCK-SCAN",
        order="kept",
        laws=(),
        needs="",
        work="one pass over the rows, five over the slices, one combine per window",
        memory="three partials per slice; on a CPU one, and the slices of a window for each item",
        paper="beyond Slider, where it falls back to GBL (section 3.3)",
    )

    def missing(self, form: Form, shape: Shape) -> str | None:
        return None

    def run(self, work: Work) -> None:
        source, partials = slices(work)
        cut = work.shape.cut
        if work.shape.by_items:
            step = [] if cut.per == 1 else [cut.per]
            kernel = work.share_kernel(slide_by_one if cut.per == 1 else slide, partials=partials, scratch=("S",))
            items = work.items(costs=cut.span // cut.per)
            scratch = work.states(items * cut.span)
            numbers = [0, work.windows, cut.span, *step]
            work.launch_shares(kernel, work.windows, [*source, *numbers, *scratch, *work.results], items=items, places_each=cut.span)
            return
        count = cut.count(work.windows)
        ends = scan(work, source, count, block=cut.span, partials=partials, reverse=True)
        starts = scan(work, source, count, block=cut.span, partials=partials)
        kernel = work.share_kernel(from_blocks, partials=True)
        work.launch_shares(kernel, work.windows, [*ends, *starts, 0, work.windows, cut.per, cut.span, *work.results])
