"""Where the work is done: here, or on a device."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from sash.algorithms.device.self_test import usable_device
from sash.algorithms.rolling import Job
from sash.errors import InvalidArgument
from sash.kernels.opencl.devices import Device, devices
from sash.plan.choices.device_choice import FEWEST_ROWS, worth_the_way

DeviceName = Literal["auto", "cpu", "opencl"] | str
"""``"auto"``, ``"cpu"``, ``"opencl"``, or a name in ``sash.devices()``."""
CPU_NS_PER_ROW = 1.0
"""What a row costs here, for the choice of a device."""


def place_of(device_name: str, algorithm: str, job: Job) -> tuple[Device | None, tuple[str, ...]]:
    """The device that runs a request, None for the CPU; and why."""
    if device_name == "cpu":
        return None, ()
    if device_name != "auto":
        return usable_device(device_name), ("requested",)
    if algorithm != "auto" or job.count < FEWEST_ROWS or not any(d.kind in ("gpu", "accelerator") for d in devices()):
        return None, ()
    device = usable_device("opencl")
    decision = worth_the_way(device, job.count, sum(a.nbytes for a in job.rows), job.windows * 8, CPU_NS_PER_ROW)
    return (None if decision.choice == "cpu" else device), decision.reasons


def device_for_table(device_name: str, table: pa.Table) -> Device | None:
    """The device that aggregates a table, None for the CPU."""
    if not isinstance(device_name, str):
        raise InvalidArgument(f"device must be a name, not {device_name!r}")
    if device_name == "cpu":
        return None
    if device_name != "auto":
        return usable_device(device_name)
    if table.num_rows < FEWEST_ROWS or not any(d.kind in ("gpu", "accelerator") for d in devices()):
        return None
    device = usable_device("opencl")
    decision = worth_the_way(device, table.num_rows, table.nbytes, table.num_rows * 8, CPU_NS_PER_ROW)
    return None if decision.choice == "cpu" else device
