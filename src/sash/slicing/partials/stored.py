"""Partials that are stored from batch to batch: the kernels that make, join and clear them, and their results over ranges."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algebra import Form
from sash.algorithms import reduce
from sash.algorithms.pipe import merging, scattering
from sash.algorithms.rolling import Output
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.choices.decision import Decision
from sash.plan.choices.range_choice import ONE_BY_ONE, choose_ranges
from sash.slicing.partials.column_partials import FieldPartials, has_rows, spread
from sash.slicing.partials.ranges import Ranges, one_by_one
from sash.slicing.partials.tree import SliceTree
from sash.slicing.rows.inputs import Fields
from sash.types import dtype

Array = npt.NDArray[Any]


class StoredPartials(FieldPartials):
    """Partials that were computed in earlier batches."""

    def __init__(self, column: Any, kernels: Kernels, states: list[Array], included_counts: Array, tree: SliceTree | None) -> None:
        self.column = column
        self.inputs = kernels.inputs
        self.row_count = 0
        self.states = states
        # None: the aggregate includes a row of every slice.
        self.counts = None if included_counts.all() else np.concatenate([[0], np.cumsum(included_counts)])
        self._prefixes = None
        self._tree = tree
        self._kernels = kernels

    def results(self, ranges: Ranges) -> pa.Array:
        if self._tree is None:
            if not ranges.empty and self._decision(ranges, len(self.states[0])).choice == ONE_BY_ONE:
                return self._lowered(self._kernels.one_by_one(self.states, ranges), has_rows(ranges, self.counts))
            return super().results(ranges)
        full, places = ranges.without_empty()
        output = self._tree.answer(full)
        return self._lowered(output if places is None else spread(output, places), has_rows(ranges, self.counts))

    def _decision(self, ranges: Ranges, count: int) -> Decision:
        return choose_ranges(self.inputs.form, ranges, count, are_stored=True)

    def put(self, ranges: Ranges, out: Array) -> bool:
        if self._tree is not None or ranges.empty:
            return False
        known = has_rows(ranges, self.counts)
        if known is not None and not known.all():
            return False
        output = self._kernels.one_by_one(self.states, ranges, out)
        return output.defined is None or bool(output.defined.all())


def stored_state(form: Form) -> tuple[str, ...]:
    """The machine types of a form's partial as it is stored."""
    return tuple(generate(reduce.segments, form, masked=True, partials=True).state)


class Kernels:
    """The compiled kernels that make and join the partials of a form."""

    def __init__(self, form: Form) -> None:
        self.gather = compiled(generate(reduce.segments, form, masked=True))
        self.join = compiled(generate(reduce.segments, form, masked=True, partials=True))
        self.state = self.join.module.state
        self.form = form
        self.inputs = Fields(form, [], True, None, 0, None)

    def one_by_one(self, states: list[Array], ranges: Ranges, out: Array | None = None) -> Output:
        """The results of a few ranges of slices; their first column is written into ``out``."""
        return one_by_one(self.form, self._ranges, states, ranges, out)

    @cached_property
    def _ranges(self) -> Kernel:
        return compiled(generate(reduce.ranges, self.form, masked=True, partials=True))

    @cached_property
    def scatter(self) -> Kernel:
        return compiled(generate(scattering.scatter_any, self.form, masked=True))

    @cached_property
    def add_at(self) -> Kernel:
        return compiled(generate(scattering.add_at, self.form, masked=True, partials=True))

    @cached_property
    def join_slices(self) -> Kernel:
        return compiled(generate(merging.join_slices, self.form, masked=True, partials=True))

    @cached_property
    def write_slices(self) -> Kernel:
        return compiled(generate(merging.write_slices, self.form, masked=True, partials=True))

    @cached_property
    def clear(self) -> Kernel:
        return compiled(generate(scattering.clear, self.form, masked=True))

    @cached_property
    def locate(self) -> Kernel:
        return compiled(generate(scattering.locate, self.form, masked=True))

    @cached_property
    def put_in_place(self) -> Kernel:
        return compiled(generate(merging.put_in_place, self.form, masked=True))

    def nothing(self, count: int) -> list[Array]:
        """The partials of ``count`` slices without rows."""
        states = self.empty(count)
        self.clear(*states, 0, count)
        return states

    def empty(self, count: int) -> list[Array]:
        """Arrays for the partials of ``count`` slices, not initialised."""
        return [np.empty(count, dtype(m)) for m in self.state]
