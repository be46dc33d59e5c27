"""Arrays in a device's memory, for one job."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.errors import DeviceFailed
from sash.kernels.opencl.devices import Device, opencl, session
from sash.types import dtype

Array = npt.NDArray[Any]
MOST_HELD = 1 << 29
"""How many bytes are kept for the next job."""
PADDING = 128
"""Bytes behind each array: vectors read past the last row."""


class DeviceMemory:
    """Allocates, copies, and waits; frees everything at its end."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.cl = opencl()
        self.session = session(device)
        self._buffers: list[Any] = []
        self.events: list[Any] = []

    def __enter__(self) -> DeviceMemory:
        return self

    def __exit__(self, *error: object) -> None:
        self.free()

    def empty(self, count: int, machine: str) -> Any:
        """An array of so many elements."""
        size = max(1, count) * dtype(machine).itemsize + PADDING
        if size > self.device.largest_buffer:
            raise DeviceFailed(f"{self.device.title} has no buffers of {size:,} bytes, only of {self.device.largest_buffer:,}")
        try:
            if self.device.kind == "checker":  # it has to see each array begin
                buffer = self.cl.Buffer(self.session.context, self.cl.mem_flags.READ_WRITE, size)
            else:
                buffer = self.session.pool.allocate(size)
        except self.cl.Error as error:
            raise DeviceFailed(f"{self.device.title} has no {size:,} bytes left: {error}") from error
        self._buffers.append(buffer)
        return buffer

    def copied(self, array: Array) -> Any:
        """A copy of an array of this process."""
        flat = np.ascontiguousarray(array)
        buffer = self.empty(len(flat), str(flat.dtype))
        if len(flat):
            self._copy(buffer, flat)
        return buffer

    def into(self, array: Array, buffer: Any) -> None:
        """Copy the start of a device's array into one of this process."""
        if len(array):
            self._copy(array, buffer)

    def _copy(self, to: Any, source: Any) -> None:
        try:
            self.cl.enqueue_copy(self.session.queue, to, source, is_blocking=True)
        except self.cl.Error as error:
            raise DeviceFailed(f"a copy to or from {self.device.title} failed: {error}") from error

    def ran(self, event: Any) -> None:
        """Note a kernel that was queued."""
        self.events.append(event)

    def finish(self) -> None:
        """Wait for all that was queued."""
        try:
            self.session.queue.finish()
            failed = [e for e in self.events if e.command_execution_status < 0]
        except self.cl.Error as error:
            raise DeviceFailed(f"a kernel on {self.device.title} failed: {error}") from error
        self.events.clear()
        if failed:
            raise DeviceFailed(f"a kernel on {self.device.title} failed")

    def free(self) -> None:
        """Give all memory back."""
        for buffer in self._buffers:
            buffer.release()
        self._buffers.clear()
        pool = self.session.pool
        if pool.managed_bytes - pool.active_bytes > MOST_HELD:
            pool.free_held()
