"""Which partials an aggregate over a table has."""

from __future__ import annotations

import pyarrow as pa

from sash.kernels.opencl.devices import Device
from sash.plan.logical import Column
from sash.slicing.partials.column_partials import FieldPartials, ObjectPartials, Partials
from sash.slicing.partials.device_partials import DevicePartials
from sash.slicing.partials.distinct_counts import DistinctCounts


def partials_of(column: Column, table: pa.Table, device: Device | None = None) -> Partials:
    """The aggregate's partials over a table's rows, not yet gathered into slices."""
    aggregate = column.call.aggregate
    if device is not None:
        return DevicePartials(column, table, device)
    if aggregate.counts_values:
        return DistinctCounts(column, table)
    return FieldPartials(column, table) if aggregate.kind == "fields" else ObjectPartials(column, table)
