"""One aggregate's partials over slices, computed by an OpenCL device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algorithms.device.device_ranges import ranges_on_device, slices_on_device
from sash.errors import DeviceUnavailable
from sash.kernels.opencl.devices import Device
from sash.plan.choices.device_choice import choose_ranges_on_device
from sash.plan.logical import Column
from sash.slicing.partials.column_partials import FieldPartials, has_rows, spread
from sash.slicing.partials.ranges import Ranges

Array = npt.NDArray[Any]


class DevicePartials(FieldPartials):
    """Partials of flat fields: slices and windows are the device's work, their order and their keys are not."""

    def __init__(self, column: Column, table: pa.Table, device: Device) -> None:
        aggregate = column.call.aggregate
        if aggregate.kind != "fields":
            raise DeviceUnavailable(
                f"device={device.name!r}: {aggregate.label} keeps {aggregate.kind}, and devices run aggregates of flat fields; "
                "use device='cpu'"
            )
        super().__init__(column, table)
        self.device = device

    @property
    def scatters(self) -> bool:
        return False

    def gather(self, offsets: Array) -> None:
        inputs = self.inputs
        self.states = slices_on_device(self.device, inputs.form, inputs.rows, inputs.masked, offsets)
        if inputs.included is not None:
            self.counts = np.concatenate([[0], np.cumsum(inputs.included, dtype=np.int64)])[offsets]

    def row_results(self, ranges: Ranges) -> pa.Array:
        self.gather(np.arange(self.row_count + 1, dtype=np.int64))
        return self.results(ranges)

    def results(self, ranges: Ranges) -> pa.Array:
        full, places = ranges.without_empty()
        how = choose_ranges_on_device(self.device, full).choice
        count = len(self.states[0])
        output = ranges_on_device(self.device, self.inputs.form, self.states, count, full.lo, full.hi, self.inputs.masked, how)
        return self._lowered(output if places is None else spread(output, places), has_rows(ranges, self.counts))
