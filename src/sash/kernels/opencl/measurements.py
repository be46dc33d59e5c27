"""How fast a device is: measured once for each device and driver, and kept; until then the usual numbers for its kind."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from sash.kernels import store
from sash.kernels.opencl.devices import Device

VERSION = 1


@dataclass(frozen=True)
class Rates:
    """Bandwidths in GB/s, and what steps cost in ns."""

    copy_gbs: float
    """Within the device's memory, as bytes copied."""
    transfer_gbs: float
    """Between this process and the device."""
    direct_ns: float
    """To add a row to a window and subtract it again, by items that work alone."""
    slice_ns: float
    """To read a row into a slice."""
    store_ns: float
    """To store a slice and read it again."""
    source: str = "usual for its kind; sash devices --measure"


USUAL = {
    "cpu": Rates(15, 15, 0.4, 0.08, 1.2),
    "gpu": Rates(300, 12, 0.05, 0.01, 0.1),
    "accelerator": Rates(100, 8, 0.1, 0.02, 0.2),
    "checker": Rates(0.01, 0.01, 100, 100, 100),
}


def rates_of(device: Device) -> Rates:
    """What was measured, or what is usual."""
    return measured(device) or USUAL[device.kind]


def measured(device: Device) -> Rates | None:
    """What was measured before; None if nothing was."""
    body = store.get(_name(device))
    return None if body is None else Rates(**json.loads(body))


def keep(device: Device, rates: Rates) -> Rates:
    """Keep what was measured for later processes."""
    rates = replace(rates, source="measured")
    store.put(_name(device), json.dumps(asdict(rates)).encode())
    return rates


def _name(device: Device) -> str:
    return store.key("rates", str(VERSION), device.identity) + ".rates"
