"""BLOCK-SCAN: windows from suffix and prefix scans of blocks of the window's length; for any aggregate at any fan-out, in order.

The Slider paper falls back to GBL where an aggregate has no inverse and its fan-out exceeds shared memory. Here the slices are cut into
blocks of as many slices as a window has; a window is then the end of one block and the start of the next, or a whole one: two partials
that are combined, whatever its size. On a CPU it is two stacks, block by block (:mod:`sash.algorithms.blocks`), each item with its share
of the windows.
"""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.blocks import slide, slide_by_one
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape
from sash.algorithms.device.device_scan import scan
from sash.algorithms.device.lane_scan import PIECE, slide_in_lanes
from sash.algorithms.device.read_compress import slices
from sash.algorithms.device.work import Buffers, Work
from sash.kernels.vocabulary import Results, States, combine, emit, load

FEWEST_FOR_LANES = 1 << 12
"""Fewer windows are computed one at a time: kernels of vectors take long to build."""
SHORT_SLICE = 4
"""Slides of fewer rows are not sliced on a CPU: slices would cost as much to store as rows to read again."""


def from_blocks(A: States, B: States, begin: int, end: int, step: int, span: int, R: Results) -> int:
    """BLOCK-SCAN: a window of ``span`` elements is the end of one block of that length (in ``A``) and the start of the next (in ``B``)."""
    for j in range(begin, end):
        first = j * step
        if first % span == 0:
            emit(R, j, load(B, first + span - 1))
        else:
            emit(R, j, combine(load(A, first), load(B, first + span - 1)))
    return end


def two_stacks(work: Work, source: Buffers, step: int, span: int, *, partials: bool) -> None:
    """The results of windows of ``span`` elements that start every ``step``, each item with its share of them."""
    width = work.lanes()
    if step == 1 and width and span >= 2 * width and work.windows >= FEWEST_FOR_LANES:
        in_lanes(work, source, span, width, partials=partials)
        return
    kernel = work.share_kernel(slide_by_one if step == 1 else slide, partials=partials, scratch=("S",))
    places = -(-span // step) if step > 1 else span
    items = work.items(costs=span // step)
    numbers = [0, work.windows, span, *([] if step == 1 else [step])]
    work.launch_shares(
        kernel, work.windows, [*source, *numbers, *work.states(items * places), *work.results], items=items, places_each=places
    )


def in_lanes(work: Work, source: Buffers, span: int, width: int, *, partials: bool) -> None:
    """:func:`two_stacks` of windows that slide by one element, in vectors."""
    elements = work.windows + span - 1
    near = PIECE + 4 * width
    local = (("N", near), ("F", near))
    constants = (("PIECE", PIECE), ("LIFT_ONCE", int(work.masked and not partials)))
    kernel = work.share_kernel(slide_in_lanes, partials=partials, lanes=width, scratch=("S",), local=local, constants=constants)
    items, places = work.items(costs=span), span + 4 * width
    numbers = [elements, 0, work.windows, span]
    arguments = [*source, *numbers, *work.states(items * places), *work.results]
    work.launch_shares(kernel, work.windows, arguments, items=items, places_each=places)


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
        cut = work.shape.cut
        if work.shape.by_items and work.every < SHORT_SLICE:
            two_stacks(work, work.source, work.every, work.size, partials=False)
            return
        source, partials = slices(work)
        if work.shape.by_items:
            two_stacks(work, source, cut.per, cut.span, partials=partials)
            return
        count = cut.count(work.windows)
        ends = scan(work, source, count, block=cut.span, partials=partials, reverse=True)
        starts = scan(work, source, count, block=cut.span, partials=partials)
        kernel = work.share_kernel(from_blocks, partials=True)
        work.launch_shares(kernel, work.windows, [*ends, *starts, 0, work.windows, cut.per, cut.span, *work.results])
