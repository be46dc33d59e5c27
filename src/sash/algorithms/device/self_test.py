"""A few small jobs whose results are compared with the CPU's: a device that gets one wrong is not used."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.aggregates.first import First
from sash.aggregates.max_by import MaxBy
from sash.aggregates.min import Min
from sash.aggregates.sum import Sum
from sash.algebra import Form
from sash.algorithms.device.runner import Limits, device_algorithms, run_on_device, shape_of
from sash.algorithms.rolling import Job, run
from sash.errors import DeviceFailed, DeviceUnavailable
from sash.kernels import store
from sash.kernels.opencl.devices import Device, device_named, devices

VERSION = 1
PASSED = b"passed"
ROWS = 200
_results: dict[str, str | None] = {}


def self_test(device: Device) -> str | None:
    """What a device got wrong; None if nothing. It is tested once for each driver, and the result is kept."""
    if device.identity not in _results:
        name = store.key("self-test", str(VERSION), device.identity) + ".test"
        known = store.get(name)
        if known is None:
            wrong = examine(device)
            store.put(name, PASSED if wrong is None else wrong.encode())
        else:
            wrong = None if known == PASSED else known.decode()
        _results[device.identity] = wrong
    return _results[device.identity]


def examine(device: Device) -> str | None:
    """Run the jobs."""
    rng = np.random.default_rng(11)
    values = rng.integers(-(2**40), 2**40, ROWS)
    known = rng.random(ROWS) < 0.5
    bits = np.concatenate([np.packbits(known, bitorder="little"), np.zeros(8, np.uint8)])
    jobs: list[tuple[Form, list[np.ndarray], bool, str]] = [
        (Sum().form(pa.int64()), [values], False, "reduced_prefix"),
        (First().form(pa.int64()), [values, bits], True, "block_scan"),
        (MaxBy().positions(pa.int64()), [values], False, "block_scan"),
        (Min().form(pa.int32()), [(values >> 12).astype(np.int32)], False, "coop_opt"),
    ]
    if device.has_doubles:
        jobs.append((Sum().form(pa.float64()), [values * 0.5], False, "block_scan"))
    for form, rows, masked, name in jobs:
        job = Job(form, rows, ROWS, 23, 5, masked)
        if device_algorithms()[name].missing(form, shape_of(form, 23, 5, masked, device, Limits.of(device))):
            continue
        try:
            got = run_on_device(device, job, name).values[0]
        except (DeviceFailed, DeviceUnavailable) as error:
            return str(error).splitlines()[0]
        wanted = run("blocks", job).values[0]
        if not np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"):
            return f"{name} of {form.name}({', '.join(form.inputs)}) gave other results than the CPU"
    return None


def usable_device(name: str) -> Device:
    """The device that ``device=name`` means, if it passes its self-test; ``"opencl"`` is the first one that does."""
    chosen = device_named(name)
    candidates = devices() if name == "opencl" else (chosen,)
    reasons = []
    for device in candidates:
        wrong = self_test(device)
        if wrong is None:
            return device
        reasons.append(f"{device.title} is not used, because it failed its self-test: {wrong}")
    raise DeviceUnavailable("; ".join(reasons))
