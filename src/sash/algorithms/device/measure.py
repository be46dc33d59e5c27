"""Measures a device: its memory, the way to it, and the steps that its algorithms are chosen by."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from sash.aggregates.sum import Sum
from sash.algorithms.device.runner import Limits, device_algorithms, shape_of
from sash.algorithms.device.work import Work
from sash.kernels.opencl.device_memory import DeviceMemory
from sash.kernels.opencl.devices import Device
from sash.kernels.opencl.measurements import Rates, keep

ROWS = 1 << 23
REPEATS = 5


def measure(device: Device) -> Rates:
    """Measure a device, which takes a few seconds, and keep the result."""
    rows = ROWS if device.kind != "checker" else 1 << 10
    values = np.arange(rows, dtype=np.int32)
    with DeviceMemory(device) as memory:
        source, target = memory.copied(values), memory.empty(rows, "int32")
        queue, cl = memory.session.queue, memory.cl
        copy = _seconds(lambda: cl.enqueue_copy(queue, target, source, byte_count=values.nbytes), memory)
        back = np.empty_like(values)
        transfer = _seconds(lambda: cl.enqueue_copy(queue, back, source, is_blocking=True), memory)
        direct = _algorithm(memory, "direct_prefix", rows, 256, 4, source) / rows
        long, short = (_algorithm(memory, "reduced_prefix", rows, 1024, every, source) for every in (256, 16))
    slices = rows / 16 - rows / 256
    store = max(0.01, (short - long) / slices * 1e9)
    slice_ns = max(0.001, long / rows * 1e9 - store / 256)
    return keep(device, Rates(values.nbytes / copy / 1e9, values.nbytes / transfer / 1e9, direct * 1e9, slice_ns, store))


def _algorithm(memory: DeviceMemory, name: str, rows: int, size: int, every: int, source: object) -> float:
    """The seconds of an algorithm over rows that are on the device."""
    form = Sum().form(pa.int32(), rows=size)
    shape = shape_of(form, size, every, False, memory.device, Limits.of(memory.device))
    windows = (rows - size) // every + 1
    work = Work(memory, form, shape, masked=False, rows=rows, windows=windows)
    work.source, work.outputs = [source], [memory.empty(windows, "int64")]
    return _seconds(lambda: device_algorithms()[name].run(work), memory)


def _seconds(call: Callable[[], object], memory: DeviceMemory) -> float:
    times = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        call()
        memory.finish()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])
