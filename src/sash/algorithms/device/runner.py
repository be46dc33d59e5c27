"""Runs a job over one array on a device: in pieces with a halo where it does not fit into the device's memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy.typing as npt

from sash.algebra import POSITION, Form
from sash.algorithms.device.algorithm import DeviceAlgorithm, Shape
from sash.algorithms.device.block_scan import BlockScan
from sash.algorithms.device.coop_opt import CoopOpt
from sash.algorithms.device.direct_prefix import DirectPrefix
from sash.algorithms.device.gbl import Gbl
from sash.algorithms.device.reduced_prefix import ReducedPrefix
from sash.algorithms.device.sh import Sh
from sash.algorithms.device.work import NoMemory, Work, bytes_of, lower_all, state_of
from sash.algorithms.rolling import Job, Output, check, make_output
from sash.errors import DeviceUnavailable
from sash.kernels.generate import generate
from sash.kernels.opencl.device_memory import DeviceMemory
from sash.kernels.opencl.device_module import DeviceModule
from sash.kernels.opencl.devices import Device

Array = npt.NDArray[Any]

GROUP_ITEMS = 128
BYTES_PER_ROW = 4
"""How many times the rows' own bytes a job may need, scratch and results included."""


@dataclass(frozen=True)
class Limits:
    """How much of a device is used; tests make these small, so that every path is taken on small data."""

    group: int
    local_bytes: int
    by_items: bool
    units: int
    memory_bytes: int

    @staticmethod
    def of(device: Device) -> Limits:
        """What the device has. A CPU's groups have one item."""
        group = 1 << (min(GROUP_ITEMS, device.largest_group).bit_length() - 1)
        return Limits(group, device.local_bytes, device.kind == "cpu", device.units, min(device.memory_bytes // 2, device.largest_buffer))


@lru_cache(maxsize=1)
def device_algorithms() -> dict[str, DeviceAlgorithm]:
    """The algorithms of devices, by name."""
    known: tuple[DeviceAlgorithm, ...] = (Gbl(), Sh(), CoopOpt(), DirectPrefix(), ReducedPrefix(), BlockScan())
    return {a.card.name: a for a in known}


def shape_of(form: Form, size: int, every: int, masked: bool, device: Device, limits: Limits | None = None) -> Shape:
    """A job's windows, and what bounds them on a device."""
    limits = limits or Limits.of(device)
    fields = state_of(form, masked=masked, by_items=limits.by_items)
    return Shape(
        size, every, limits.group, limits.local_bytes, limits.by_items, limits.units, bytes_of(fields), device.has_wide_atomics, fields
    )


def check_types(form: Form, device: Device) -> None:
    """Raise if the device lacks a type that the aggregate needs."""
    if not device.has_doubles and "float64" in (*form.inputs, *form.state, *form.outputs):
        raise DeviceUnavailable(f"{form.name} over {', '.join(form.inputs)} needs double floats, which {device.title} has not; use the CPU")


def run_on_device(
    device: Device, job: Job, choice: str, out: Array | None = None, limits: Limits | None = None, circular: bool = True
) -> Output:
    """All windows of a job; ``out`` is written once all of them are computed."""
    check_types(job.form, device)
    limits = limits or Limits.of(device)
    module = generate(lower_all, job.form, masked=job.masked, known_rows=not job.masked, partials=True)
    output = make_output(job.form, module, job.windows, None)
    algorithm = device_algorithms()[choice]
    for first, windows in pieces(job, limits.memory_bytes, device):
        _piece(device, job, algorithm, first, windows, output, limits, circular)
    check(output, job.form)
    if out is not None and job.windows:
        out[:] = output.values[0]
        output.values[0] = out
    return output


def device_modules(device: Device, job: Job, choice: str) -> list[DeviceModule]:
    """The kernels that :func:`run_on_device` would run, in their order; nothing is built."""
    check_types(job.form, device)
    shape = shape_of(job.form, job.size, job.every, job.masked, device)
    work = Work(NoMemory(device), job.form, shape, masked=job.masked, rows=job.count, windows=job.windows)
    module = generate(lower_all, job.form, masked=job.masked, known_rows=not job.masked, partials=True)
    work.source = [None] * len(job.rows)
    work.outputs = [None] * len(module.result_names)
    device_algorithms()[choice].run(work)
    return work.modules


def pieces(job: Job, memory_bytes: int, device: Device) -> Iterator[tuple[int, int]]:
    """Runs of windows whose rows, scratch and results fit into a device's memory: the first window and how many."""
    partial = 2 * bytes_of(job.form.state) + bytes_of(job.form.outputs) + 2
    row = sum(a.dtype.itemsize for a in job.rows) + BYTES_PER_ROW
    each = row * job.every + 3 * partial
    halo = (row + 3 * partial) * max(0, job.size - job.every)
    if halo + each > memory_bytes:
        raise DeviceUnavailable(
            f"one window of {job.size:,} rows needs about {halo + each:,} bytes on {device.title}, which has {memory_bytes:,} to spare; "
            "use the CPU"
        )
    most = max(8, (memory_bytes - halo) // each // 8 * 8)  # bitmaps are cut at whole bytes
    for first in range(0, job.windows, most):
        yield first, min(most, job.windows - first)


def _piece(
    device: Device, job: Job, algorithm: DeviceAlgorithm, first: int, windows: int, output: Output, limits: Limits, circular: bool
) -> None:
    shape = shape_of(job.form, job.size, job.every, job.masked, device, limits)
    start, stop = first * job.every, (first + windows - 1) * job.every + job.size
    with DeviceMemory(device) as memory:
        work = Work(memory, job.form, shape, masked=job.masked, rows=stop - start, windows=windows, circular=circular)
        work.source = [memory.copied(_part(a, m, start, stop)) for a, m in zip(job.rows, _machines(job), strict=True)]
        columns = [(a, _dtype_name(a)) for a in output.arguments()]
        work.outputs = [memory.copied(a) if a is output.misfit else memory.empty(windows, m) for a, m in columns]
        algorithm.run(work)
        memory.finish()
        for (array, _), buffer in zip(columns, work.outputs, strict=True):
            memory.into(array if array is output.misfit else array[first : first + windows], buffer)
    if POSITION in job.form.inputs and first:
        output.values[0][first : first + windows] += start


def _machines(job: Job) -> list[str]:
    """What each of a job's columns is: a machine type, or bits."""
    values = [m for m in job.form.inputs if m != POSITION]
    return [*values, *(["bits"] * (len(job.rows) - len(values)))]


def _part(column: Array, machine: str, start: int, stop: int) -> Array:
    return column[start >> 3 : (stop + 7) // 8 + 8] if machine == "bits" else column[start:stop]


def _dtype_name(array: Array) -> str:
    return str(array.dtype)
