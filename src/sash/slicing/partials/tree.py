"""The eager store: a FlatFAT over slices, so that a window's result is a climb of the tree (section 3.4, table 1, row 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sash.algebra import Form
from sash.algorithms import flat_fat
from sash.algorithms.rolling import Output, check, make_output
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate
from sash.slicing.partials.ranges import Ranges
from sash.types import dtype

Array = npt.NDArray[Any]


class SliceTree:
    """One aggregate's tree over the slices, in their order."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._fill = compiled(generate(flat_fat.fill, form, masked=True, partials=True))
        self._propagate = compiled(generate(flat_fat.propagate, form, masked=True, partials=True))
        self._ranges = generate(flat_fat.ranges, form, masked=True, partials=True)
        self.places = 0
        self.nodes: list[Array] = []

    def rebuild(self, states: list[Array]) -> None:
        """Build the tree anew, after slices were added, removed or merged."""
        count = len(states[0])
        places = 1 << max(1, count - 1).bit_length()
        if places != self.places:
            self.places = places
            self.nodes = [np.empty(2 * places, dtype(m)) for m in self._fill.module.state]
        self._fill(*states, count, *self.nodes, places)

    def update(self, states: list[Array], places: Array) -> None:
        """Update the tree after the partials at these places, in ascending order, have changed."""
        leaves = self.places + places
        for node, state in zip(self.nodes, states, strict=True):
            node[leaves] = state[places]
        self._propagate(*self.nodes, leaves.copy(), len(leaves))

    def answer(self, ranges: Ranges) -> Output:
        """The results of nonempty ranges."""
        output = make_output(self.form, self._ranges, len(ranges))
        compiled(self._ranges)(*self.nodes, self.places, ranges.lo, ranges.hi, 0, len(ranges), *output.arguments())
        return check(output, self.form)

    @property
    def nbytes(self) -> int:
        return sum(n.nbytes for n in self.nodes)
