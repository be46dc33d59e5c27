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
from sash.kernels.compiler import Kernel, compiled
from sash.kernels.generate import generate
from sash.plan.choices.decision import Decision
from sash.plan.choices.range_choice import ONE_BY_ONE, choose_ranges
from sash.slicing.partials.column_partials import FieldPartials, answered, spread
from sash.slicing.partials.ranges import Ranges, one_by_one
from sash.slicing.partials.tree import SliceTree
from sash.slicing.rows.inputs import Fields
from sash.types import dtype

Array = npt.NDArray[Any]


class StoredPartials(FieldPartials):
    """Partials that are there already."""

    def __init__(self, column: Any, kernels: Kernels, states: list[Array], held: Array, tree: SliceTree | None) -> None:
        self.column = column
        self.inputs = kernels.inputs
        self.held = None
        self.row_count = 0
        self.states = states
        self.counts = None if held.all() else np.concatenate([[0], np.cumsum(held)])  # None: no slice is without rows
        self._prefixes = None
        self._tree = tree
        self._kernels = kernels

    def results(self, asked: Ranges) -> pa.Array:
        if self._tree is None:
            if not asked.empty and self._decision(asked, len(self.states[0])).choice == ONE_BY_ONE:
                return self._lowered(self._kernels.one_by_one(self.states, asked), answered(asked, self.counts))
            return super().results(asked)
        full, places = asked.without_empty()
        output = self._tree.answer(full)
        return self._lowered(output if places is None else spread(output, places), answered(asked, self.counts))

    def _decision(self, asked: Ranges, count: int) -> Decision:
        return choose_ranges(self.inputs.form, asked, count, are_stored=True)

    def put(self, asked: Ranges, room: Array) -> bool:
        if self._tree is not None or asked.empty:
            return False
        known = answered(asked, self.counts)
        if known is not None and not known.all():
            return False
        output = self._kernels.one_by_one(self.states, asked, room)
        return output.defined is None or bool(output.defined.all())


def stored_state(form: Form) -> tuple[str, ...]:
    """The machine types of a form's partial as it is kept."""
    return tuple(generate(reduce.segments, form, masked=True, partials=True).state)


class Kernels:
    """What a form's slices are made with."""

    def __init__(self, form: Form) -> None:
        self.gather = compiled(generate(reduce.segments, form, masked=True))
        self.join = compiled(generate(reduce.segments, form, masked=True, partials=True))
        self.state = self.join.module.state
        self.form = form
        self.inputs = Fields(form, [], True, None, None)

    def one_by_one(self, states: list[Array], asked: Ranges, room: Array | None = None) -> Output:
        """The results of a few ranges of slices; the first column of them in ``room``."""
        return one_by_one(self.form, self._ranges, states, asked, room)

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
        """The partials of no rows."""
        states = self.empty(count)
        self.clear(*states, 0, count)
        return states

    def empty(self, count: int) -> list[Array]:
        """Space for partials."""
        return [np.empty(count, dtype(m)) for m in self.state]
