"""Programs built for a device, and their cache on disk: by device, driver and text, in the private folder of all compiled kernels."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sash.errors import DeviceFailed
from sash.kernels import store
from sash.kernels.opencl.device_module import NAME, DeviceModule
from sash.kernels.opencl.devices import Device, opencl, session

OPTIONS = ["-cl-std=CL1.2", "-w"]
UNOPTIMISED = ["-cl-opt-disable"]

_built: dict[tuple[str, str], DeviceKernel] = {}
_lock = threading.RLock()


class DeviceKernel:
    """A kernel on a device. Call it with the number of groups and one buffer or integer for each of ``module.arguments``."""

    def __init__(self, device: Device, module: DeviceModule, program: Any) -> None:
        self.device, self.module = device, module
        self._kernel = getattr(program, NAME)
        self._lock = threading.Lock()

    def __call__(self, groups: int, arguments: Sequence[Any]) -> Any:
        """Put the kernel into the device's queue; returns its event."""
        cl = opencl()
        passed = [a if given.pointer else np.int64(a) for a, given in zip(arguments, self.module.arguments, strict=True)]
        with self._lock:  # arguments belong to the kernel until it is in the queue
            self._kernel.set_args(*passed)
            size = self.module.group
            try:
                return cl.enqueue_nd_range_kernel(session(self.device).queue, self._kernel, (groups * size,), (size,))
            except cl.Error as error:
                raise DeviceFailed(f"{self.module.title} on {self.device.title}: {error}") from error


def built(device: Device, module: DeviceModule) -> DeviceKernel:
    """The kernel of a module on a device: from this process, from disk, or built now."""
    key = (device.name, module.text)
    kernel = _built.get(key)
    if kernel is None:
        with _lock:
            kernel = _built.get(key)
            if kernel is None:
                kernel = _built[key] = DeviceKernel(device, module, _program(device, module))
    return kernel


def is_built(device: Device, module: DeviceModule) -> bool:
    """Whether the kernel is in this process or on disk."""
    return (device.name, module.text) in _built or store.has(_file_name(device, module))


def forget() -> None:
    """Forget the programs of this process, as a new one would."""
    _built.clear()


def _file_name(device: Device, module: DeviceModule) -> str:
    return store.key(module.text, device.identity, " ".join(_options(device))) + ".program"


def _options(device: Device) -> list[str]:
    return OPTIONS + (UNOPTIMISED if device.kind == "checker" else [])


def _program(device: Device, module: DeviceModule) -> Any:
    name = _file_name(device, module)
    stored = store.get(name)
    program = _from_binary(device, stored) if stored is not None else None
    if program is not None:
        return program
    with store.locked(name):
        stored = store.get(name)  # another process may have built it meanwhile
        program = _from_binary(device, stored) if stored is not None else None
        if program is not None:
            return program
        program = _from_text(device, module)
        binary = program.binaries[0] if device.kind != "checker" else b""
        if binary:
            store.put(name, binary)
        return program


def _from_binary(device: Device, binary: bytes) -> Any:
    """A stored program; None if the driver does not take it."""
    cl = opencl()
    try:
        with _quietly():
            program = cl.Program(session(device).context, [device.handle], [binary]).build(options=_options(device))
        return program if _has_kernel(program) else None
    except cl.Error:
        return None


def _from_text(device: Device, module: DeviceModule) -> Any:
    cl = opencl()
    try:
        with _quietly():
            program = cl.Program(session(device).context, module.text).build(options=_options(device), cache_dir=False)
    except cl.Error as error:
        raise DeviceFailed(f"{module.title} cannot be built for {device.title}: {error}") from error
    if not _has_kernel(program):
        raise DeviceFailed(f"{module.title} cannot be built for {device.title}: the driver returns a program without its kernel")
    return program


def _has_kernel(program: Any) -> bool:
    return NAME in str(program.kernel_names).split(";")


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the build logs of drivers that succeeded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
