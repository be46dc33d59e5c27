"""The OpenCL devices of this machine, and the one context and queue that each has in this process."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from sash.errors import DeviceUnavailable
from sash.errors import unknown as unknown_name

Kind = Literal["gpu", "accelerator", "cpu", "checker"]
INSTALL = 'pip install "sash[opencl]"'
CPU_DRIVER = "pip install pocl-binary-distribution"
KNOWN_PLATFORMS = {
    "portable computing language": "pocl",
    "oclgrind": "oclgrind",
    "intel": "intel",
    "nvidia": "nvidia",
    "amd": "amd",
    "apple": "apple",
    "rusticl": "rusticl",
}
PREFERENCE: tuple[Kind, ...] = ("gpu", "accelerator", "cpu", "checker")
_started_in: list[int] = []
_lock = threading.RLock()


@dataclass(frozen=True)
class Device:
    """An OpenCL device, and what it can do."""

    name: str
    """What to pass as ``device=``."""
    kind: Kind
    model: str
    platform: str
    driver: str
    units: int
    local_bytes: int
    """The memory that a group's items share."""
    memory_bytes: int
    largest_buffer: int
    largest_group: int
    has_doubles: bool
    has_wide_atomics: bool
    handle: Any = field(repr=False, compare=False, default=None)

    @property
    def title(self) -> str:
        return f"{self.name} ({self.model}, {self.platform})"

    @property
    def identity(self) -> str:
        """What programs and measurements are kept under: the model and its driver."""
        return f"{self.platform} {self.model} {self.driver}"


def devices() -> tuple[Device, ...]:
    """All devices, the preferred one first; none without pyopencl or a driver."""
    return _devices() if _pyopencl() is not None else ()


def device_named(name: str) -> Device:
    """The device that ``device=name`` means; ``"opencl"`` is the preferred one."""
    if _pyopencl() is None:
        raise DeviceUnavailable(f"device={name!r} needs pyopencl: {INSTALL}; and for a CPU, {CPU_DRIVER}")
    known = devices()
    if not known:
        raise DeviceUnavailable(
            f"device={name!r}: there is no OpenCL driver; install that of your GPU (docs/devices.md), or for a CPU: {CPU_DRIVER}"
        )
    if name == "opencl":
        return known[0]
    for device in known:
        if device.name == name:
            return device
    raise unknown_name("device", name, ("auto", "cpu", "opencl", *(d.name for d in known)))


@lru_cache(maxsize=1)
def _pyopencl() -> Any:
    """The library, or None if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _show_intel()
            import pyopencl
        except ImportError:
            return None
    return pyopencl


def opencl() -> Any:
    """pyopencl, in the process that may use it: drivers do not survive a fork."""
    library = _pyopencl()
    if not _started_in:
        _started_in.append(os.getpid())
    elif _started_in[0] != os.getpid():
        raise DeviceUnavailable(
            "OpenCL was used before this process was forked, and its drivers do not survive that; start processes with the "
            "'spawn' method, or use device= in the child only"
        )
    return library


@lru_cache(maxsize=1)
def _devices() -> tuple[Device, ...]:
    cl = opencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return ()
    found: list[Device] = []
    seen: set[str] = set()
    for platform in platforms:
        try:
            handles = platform.get_devices()
        except cl.Error:
            continue
        for handle in handles:
            device = _described(cl, platform, handle)
            if device.identity not in seen:  # several loaders may list one driver
                seen.add(device.identity)
                found.append(device)
    found.sort(key=lambda d: (PREFERENCE.index(d.kind), d.name))
    return tuple(_numbered(found))


def _described(cl: Any, platform: Any, handle: Any) -> Device:
    name = platform.name.strip()
    short = next((short for text, short in KNOWN_PLATFORMS.items() if text in name.lower()), None)
    short = short or re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    kind: Kind = "cpu" if handle.type & cl.device_type.CPU else "gpu" if handle.type & cl.device_type.GPU else "accelerator"
    extensions = handle.extensions.split()
    return Device(
        name=short,
        kind="checker" if short == "oclgrind" else kind,  # it calls itself every kind of device
        model=handle.name.strip(),
        platform=name,
        driver=f"{platform.version.strip()} {handle.driver_version.strip()}",
        units=int(handle.max_compute_units),
        local_bytes=int(handle.local_mem_size),
        memory_bytes=int(handle.global_mem_size),
        largest_buffer=int(handle.max_mem_alloc_size),
        largest_group=int(handle.max_work_group_size),
        has_doubles="cl_khr_fp64" in extensions or bool(handle.double_fp_config),
        has_wide_atomics={"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"} <= set(extensions),
        handle=handle,
    )


def _numbered(found: list[Device]) -> list[Device]:
    """Devices of one platform are ``nvidia``, ``nvidia:1``, …"""
    from dataclasses import replace

    counts: dict[str, int] = {}
    result = []
    for device in found:
        k = counts.get(device.name, 0)
        counts[device.name] = k + 1
        result.append(replace(device, name=f"{device.name}:{k}") if k else device)
    return result


def _show_intel() -> None:
    """Let the loader see Intel's CPU driver where pip has put it: its own registration names a path that does not exist."""
    library = Path(sys.prefix) / "lib" / "libintelocl.so"
    if not library.exists() or "OCL_ICD_VENDORS" in os.environ or "pyopencl" in sys.modules:
        return
    from importlib.util import find_spec

    from sash.kernels import store

    spec = find_spec("pyopencl")
    home = store.folder()
    if spec is None or spec.origin is None or home is None:
        return
    bundled = Path(spec.origin).parent / ".libs"
    folder = home / "opencl-vendors"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for listed in (*bundled.glob("*.icd"), *Path("/etc/OpenCL/vendors").glob("*.icd")):
            text = listed.read_text().strip()
            target = str(bundled / text) if (bundled / text).exists() else text
            _write(folder / listed.name, target)
        _write(folder / "intel-from-pip.icd", str(library))
    except OSError:
        return
    os.environ["OCL_ICD_VENDORS"] = str(folder)


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


@dataclass
class Session:
    """A device's context and queue in this process."""

    device: Device
    context: Any
    queue: Any
    pool: Any
    """Memory that jobs have given back, for the next: the first touch of fresh memory costs as much as a pass over it."""


_sessions: dict[str, Session] = {}


def session(device: Device) -> Session:
    """The context and the queue of a device."""
    cl = opencl()
    with _lock:
        known = _sessions.get(device.name)
        if known is None:
            context = cl.Context([device.handle])
            queue = cl.CommandQueue(context)
            from pyopencl.tools import ImmediateAllocator, MemoryPool

            known = _sessions[device.name] = Session(device, context, queue, MemoryPool(ImmediateAllocator(queue)))
        return known
