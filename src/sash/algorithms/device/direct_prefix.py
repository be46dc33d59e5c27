"""DIRECT-PREFIX: windows from the prefixes of rows, without slicing (Slider, section 3.3)."""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape, no_inverse
from sash.algorithms.device.prefix_exp import expand
from sash.algorithms.device.work import Work


class DirectPrefix(DeviceAlgorithm):
    """Prefixes of rows."""

    card = DeviceCard(
        name="direct_prefix",
        title="DIRECT-PREFIX",
        order="kept",
        laws=("invertible",),
        needs="",
        work="three passes over the rows, one subtraction per window",
        memory="one partial per row; none on a CPU",
        paper="Slider, section 3.3",
    )

    def missing(self, form: Form, shape: Shape) -> str | None:
        return no_inverse(form)

    def run(self, work: Work) -> None:
        expand(work, work.source, work.rows, work.every, work.size, partials=False)
