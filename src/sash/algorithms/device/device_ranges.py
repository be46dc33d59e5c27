"""Slices and windows of tables on a device: runs of rows of any length, and ranges of slices of any shape, of many keys at once.

Keys lie one after the other, so neither runs nor ranges reach from one into the next. On a CPU each item works through its share, ranges
whose ends only advance by two stacks. On a GPU each slice and each range is one item's, ranges over a tree (FlatFAT) that is built level
by level.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from sash.algebra import Form
from sash.algorithms import blocks, flat_fat, reduce
from sash.algorithms.device.algorithm import Shape
from sash.algorithms.device.runner import Limits, check_types
from sash.algorithms.device.work import Buffers, Work
from sash.algorithms.memory import pooled
from sash.algorithms.rolling import Output, check, make_output
from sash.kernels.generate import generate
from sash.kernels.opencl.device_memory import DeviceMemory
from sash.kernels.opencl.devices import Device
from sash.kernels.vocabulary import Rows, States, combine, identity, lift, load, store

Array = npt.NDArray[Any]
BY_TWO_STACKS, BY_TREE = "two stacks", "FlatFAT"


def leaves(X: Rows, count: int, places: int, T: States, begin: int, end: int) -> int:
    """The leaves of a tree: elements, and behind them nothing."""
    for i in range(begin, end):
        s = identity()
        if i < count:
            s = lift(X, i)
        store(T, places + i, s)
    return end


def level(T: States, begin: int, end: int) -> int:
    """Inner nodes whose children are complete."""
    for v in range(begin, end):
        store(T, v, combine(load(T, 2 * v), load(T, 2 * v + 1)))
    return end


def _work(memory: DeviceMemory, form: Form, masked: bool, limits: Limits | None) -> Work:
    device = memory.device
    limits = limits or Limits.of(device)
    shape = Shape(1, 1, limits.group, limits.local_bytes, limits.by_items, limits.units, 8)
    return Work(memory, form, shape, masked=masked, rows=0, windows=0, of_table=True)


def slices_on_device(
    device: Device, form: Form, rows: list[Array], masked: bool, offsets: Array, limits: Limits | None = None
) -> list[Array]:
    """The partials of runs of rows: slice ``j`` has the rows ``offsets[j]`` to ``offsets[j + 1] - 1``."""
    check_types(form, device)
    count = len(offsets) - 1
    with DeviceMemory(device) as memory:
        work = _work(memory, form, masked, limits)
        states = [memory.empty(count, m) for m in work.state]
        kernel = work.share_kernel(reduce.segments)
        if count:
            source = [memory.copied(a) for a in rows]
            work.launch_shares(kernel, count, [*source, memory.copied(offsets), 0, count, *states], items=work.many_items(count))
        memory.finish()
        results = [pooled(count, m) for m in work.state]
        for array, buffer in zip(results, states, strict=True):
            memory.into(array, buffer)
    return results


def ranges_on_device(
    device: Device, form: Form, source: list[Array], count: int, lo: Array, hi: Array, masked: bool, how: str, limits: Limits | None = None
) -> Output:
    """The results of ranges of partials, none of them empty, by two stacks or a tree."""
    with DeviceMemory(device) as memory:
        work = _work(memory, form, masked, limits)
        module = generate(blocks.ranges, form, masked=True, partials=True)
        output = make_output(form, module, len(lo))
        work.outputs = [memory.copied(a) if a is output.misfit else memory.empty(len(lo), str(a.dtype)) for a in output.arguments()]
        if len(lo):
            elements = [memory.copied(a) for a in source]
            bounds = [memory.copied(lo), memory.copied(hi)]
            (_two_stacks if how == BY_TWO_STACKS else _tree)(work, elements, count, bounds, int((hi - lo).max()), len(lo))
        memory.finish()
        for array, buffer in zip(output.arguments(), work.outputs, strict=True):
            memory.into(array, buffer)
    return check(output, form)


def _two_stacks(work: Work, elements: Buffers, count: int, bounds: Buffers, longest: int, ranges: int) -> None:
    kernel = work.share_kernel(blocks.ranges, partials=True, scratch=("S",))
    items = work.many_items(ranges)
    scratch = work.states(items * longest)
    work.launch_shares(kernel, ranges, [*elements, *bounds, 0, ranges, *scratch, *work.outputs], items=items, places_each=longest)


def _tree(work: Work, elements: Buffers, count: int, bounds: Buffers, longest: int, ranges: int) -> None:
    places = 1 << max(1, count - 1).bit_length()
    tree = work.states(2 * places)
    work.launch_shares(work.share_kernel(leaves, partials=True), places, [*elements, count, places, *tree, 0, places])
    kernel = work.share_kernel(level, partials=True)
    width = places // 2
    while width:
        work.launch_level(kernel, tree, width)
        width //= 2
    kernel = work.share_kernel(flat_fat.ranges, partials=True)
    work.launch_shares(kernel, ranges, [*tree, places, *bounds, 0, ranges, *work.outputs], items=work.many_items(ranges))
