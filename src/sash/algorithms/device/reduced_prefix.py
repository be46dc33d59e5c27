"""REDUCED-PREFIX: windows from the prefixes of slices (Slider, section 3.3).

The paper's slices have the greatest common divisor of window and slide; ours lie between the edges of windows, at most two in a slide.
"""

from __future__ import annotations

from sash.algebra import Form
from sash.algorithms.device.algorithm import DeviceAlgorithm, DeviceCard, Shape, no_inverse
from sash.algorithms.device.prefix_exp import expand
from sash.algorithms.device.read_compress import slices
from sash.algorithms.device.work import Work


class ReducedPrefix(DeviceAlgorithm):
    """Prefixes of slices."""

    card = DeviceCard(
        name="reduced_prefix",
        title="REDUCED-PREFIX",
        order="kept",
        laws=("invertible",),
        needs="",
        work="one pass over the rows, three over the slices, one subtraction per window",
        memory="two partials per slice; one on a CPU",
        paper="Slider, section 3.3",
    )

    def missing(self, form: Form, shape: Shape) -> str | None:
        return no_inverse(form)

    def run(self, work: Work) -> None:
        source, partials = slices(work)
        cut = work.shape.cut
        expand(work, source, cut.count(work.windows), cut.per, cut.span, partials=partials)
