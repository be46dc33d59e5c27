"""``sash.devices``: what there is besides the CPU, and what each device can do."""

from __future__ import annotations

from dataclasses import dataclass

from sash.algorithms.device.measure import measure as measure_device
from sash.algorithms.device.self_test import self_test
from sash.kernels.opencl import devices as listed
from sash.kernels.opencl.measurements import measured


@dataclass(frozen=True)
class DeviceInfo:
    """An OpenCL device."""

    name: str
    """What to pass as ``device=``."""
    kind: str
    """``gpu``, ``accelerator``, ``cpu``, or ``checker`` for Oclgrind, which finds errors and is slow."""
    model: str
    platform: str
    driver: str
    units: int
    """How many groups run at once."""
    local_memory: int
    """Bytes that a group's items share."""
    memory: int
    fp64: bool
    atomics: bool
    """Whether there are atomics of 64 bits."""
    bandwidth: float | None
    """GB/s of a copy within the device's memory; None until it is measured."""
    self_test: str
    """``passed``, or what went wrong: such a device is not used."""


def devices(*, measure: bool = False) -> list[DeviceInfo]:
    """The OpenCL devices of this machine, the preferred one first; none without pyopencl (`pip install "sash[opencl]"`) or a driver.

    Args:
        measure: Measure each device, which takes a few seconds; the numbers are kept, and algorithms are chosen by them.

    Returns:
        One record for each device.

    Examples:
        >>> import sash
        >>> for d in sash.devices():
        ...     _ = d.name, d.kind, d.self_test
    """
    found = []
    for d in listed.devices():
        wrong = self_test(d)
        rates = measure_device(d) if measure and wrong is None and d.kind != "checker" else measured(d)
        found.append(
            DeviceInfo(
                d.name,
                d.kind,
                d.model,
                d.platform,
                d.driver,
                d.units,
                d.local_bytes,
                d.memory_bytes,
                d.has_doubles,
                d.has_wide_atomics,
                None if rates is None else rates.copy_gbs,
                wrong or "passed",
            )
        )
    return found
