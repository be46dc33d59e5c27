"""One aggregate's partials over slices, and its results over ranges of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash import columns, threads
from sash.algebra import Objects, struct_of
from sash.algorithms import reduce
from sash.algorithms.memory import pooled
from sash.algorithms.pipe import kernel as plain_kernel
from sash.algorithms.pipe import scattering
from sash.algorithms.rolling import Output
from sash.functions.udaf import UserAggregate
from sash.kernels.cpu.compiler import compiled
from sash.kernels.generate import generate, vector_width
from sash.plan.choices.decision import Decision
from sash.plan.choices.range_choice import IN_LANES, PREFIXES, choose_ranges, choose_reduction
from sash.plan.logical import Column, output_type
from sash.slicing.partials.ranges import Ranges, of_fields, of_objects, of_prefixes, prefixes
from sash.slicing.rows.inputs import Fields, evaluated, fields, unpacked

Array = npt.NDArray[Any]


class Partials(ABC):
    """An aggregate over rows, then over slices of them."""

    column: Column

    @property
    def scatters(self) -> bool:
        """Whether rows may be added to their slices in any order."""
        return False

    @abstractmethod
    def gather(self, offsets: Array) -> None:
        """Make slices of neighbouring rows: slice ``j`` has the rows ``offsets[j]`` to ``offsets[j + 1] - 1``."""

    @abstractmethod
    def results(self, ranges: Ranges) -> pa.Array:
        """The result of every range of slices; ranges may be empty."""

    def put(self, ranges: Ranges, out: Array) -> bool:
        """Write the results of a few ranges into ``out``; False if they are not all numbers."""
        return False

    def row_results(self, ranges: Ranges) -> pa.Array:
        """The result of every range of rows."""
        self.gather(np.arange(self.row_count + 1, dtype=np.int64))
        return self.results(ranges)

    row_count: int


def counts_at(bits: Array, places: Array, place_count: int) -> Array:
    """How many of the rows at each place are set in a bitmap."""
    counts = np.empty(place_count, np.int64)
    plain_kernel(scattering.count_included)(bits, places, len(places), place_count, counts)
    return counts


def has_rows(ranges: Ranges, counts: Array | None) -> Array | None:
    """For each range whether the aggregate includes a row of it (None: all); ``counts`` are how many rows it includes before each slice."""
    if counts is not None:
        some: Array = counts[ranges.hi] > counts[ranges.lo]
        return some
    return ranges.hi > ranges.lo if ranges.empty else None


class FieldPartials(Partials):
    """Partials of flat fields, in compiled kernels."""

    def __init__(self, column: Column, table: pa.Table, inputs: Fields | None = None) -> None:
        self.column = column
        self.inputs = inputs or fields(column, table)
        self.row_count = table.num_rows
        self.states: list[Array] = []
        self.counts: Array | None = None
        self._prefixes: tuple[bool, list[Array]] | None = None

    @property
    def scatters(self) -> bool:
        return self.inputs.form.commutative

    def gather(self, offsets: Array) -> None:
        form, count = self.inputs.form, len(offsets) - 1
        vector = choose_reduction(form, self.row_count, count).choice == IN_LANES
        function = reduce.segments_in_lanes if vector else reduce.segments
        module = generate(function, form, masked=self.inputs.masked, lanes=vector_width(form) if vector else 0)
        kernel = compiled(module)
        self.states = [pooled(count, m) for m in module.state]

        def work(begin: int, end: int) -> None:
            kernel(*self.inputs.rows, offsets, begin, end, *self.states)

        threads.each(work, threads.shares(0, count, rows_each=self.row_count // max(1, count)))
        if self.inputs.included is not None:
            totals = np.concatenate([[0], np.cumsum(self.inputs.included, dtype=np.int64)])
            self.counts = totals[offsets]

    def scatter(self, places: Array, place_count: int, nonempty: Array | None) -> None:
        """Make slices of rows, each added to its place; with ``nonempty``, only the slices at these places are retained."""
        form = self.inputs.form
        module = generate(scattering.scatter, form, masked=self.inputs.masked)
        kernel, clear = compiled(module), compiled(generate(scattering.clear, form, masked=True))
        parts = threads.shares(0, len(places)) if place_count * 8 <= len(places) else [(0, len(places))]
        copies: list[list[Array]] = []

        def fresh() -> list[Array]:
            states = [pooled(place_count, m) for m in module.state]
            clear(*states, 0, place_count)
            copies.append(states)
            return states

        threads.each(lambda begin, end: _ignored(kernel(*self.inputs.rows, places, begin, end, *fresh())), parts or [(0, 0)])
        add_up = compiled(generate(scattering.add_up, form, masked=True, partials=True)) if len(copies) > 1 else None
        for other in copies[1:]:
            assert add_up is not None
            add_up(*copies[0], *other, 0, place_count)
        self.states = copies[0] if nonempty is None else [s[nonempty] for s in copies[0]]
        if self.inputs.bits is not None:
            counts = counts_at(self.inputs.bits, places, place_count)
            counts = counts if nonempty is None else counts[nonempty]
            self.counts = np.concatenate([[0], np.cumsum(counts)])

    def results(self, ranges: Ranges) -> pa.Array:
        return self._compute(self.states, len(self.states[0]), ranges, self.counts, partials=True)

    def row_results(self, ranges: Ranges) -> pa.Array:
        included = self.inputs.included
        counts = None if included is None else np.concatenate([[0], np.cumsum(included, dtype=np.int64)])
        return self._compute(self.inputs.rows, self.row_count, ranges, counts, partials=False)

    def _compute(self, source: list[Array], count: int, ranges: Ranges, counts: Array | None, *, partials: bool) -> pa.Array:
        form = self.inputs.form
        decision = self._decision(ranges, count)
        if decision.choice == PREFIXES:
            if self._prefixes is None or self._prefixes[0] != partials:
                self._prefixes = (partials, prefixes(form, source, count, partials=partials, masked=partials or self.inputs.masked))
            return self._lowered(of_prefixes(form, self._prefixes[1], ranges), has_rows(ranges, counts))
        full, places = ranges.without_empty()
        output = of_fields(decision, form, source, count, full, partials=partials, masked=partials or self.inputs.masked)
        return self._lowered(output if places is None else spread(output, places), has_rows(ranges, counts))

    def _decision(self, ranges: Ranges, count: int) -> Decision:
        return choose_ranges(self.inputs.form, ranges, count)

    def _lowered(self, output: Output, filled: Array | None) -> pa.Array:
        aggregate = self.column.call.aggregate
        logical = output_type(self.column)
        known = filled
        if aggregate.counts_rows:
            known = None
            if filled is not None:
                for values in output.values:
                    values[~filled] = 0
        elif output.defined is not None:
            known = output.defined.astype(bool) if filled is None else output.defined.astype(bool) & filled
        machines = self.inputs.form.outputs
        raw = [
            columns.to_arrow(v, m, None if known is None else known.view(np.uint8)) for v, m in zip(output.values, machines, strict=True)
        ]
        if self.inputs.ranked is not None and (logical == self.column.types[0] or pa.types.is_struct(logical)):
            taken = [columns.restored(self.inputs.ranked.take(r), _member(logical, k)) for k, r in enumerate(raw)]
            return taken[0] if not pa.types.is_struct(logical) else struct_of(taken, logical)
        if isinstance(aggregate, UserAggregate):
            return raw[0]
        return columns.restored(aggregate.lower_logical(raw, *self.column.types), logical)


def _ignored(_: int) -> None:
    return None


def _member(logical: pa.DataType, k: int) -> pa.DataType:
    return logical.field(k).type if pa.types.is_struct(logical) else logical


def spread(output: Output, full: Array) -> Output:
    """Results of the nonempty ranges, at their places among all ranges; ``full`` says which those are."""

    def wide(column: Array) -> Array:
        result = np.zeros(len(full), column.dtype)
        result[full] = column
        return result

    return Output([wide(v) for v in output.values], None if output.defined is None else wide(output.defined), output.misfit)


class ObjectPartials(Partials):
    """Partials that are Python objects: sorted runs, rows in order, sketches."""

    def __init__(self, column: Column, table: pa.Table) -> None:
        self.column = column
        self.values, bits = evaluated(column, table)
        self.row_count = table.num_rows
        self.included = None if bits is None else unpacked(bits, self.row_count)
        self.definition = column.call.aggregate.objects()
        self.states: list[Any] = []
        self.counts: Array | None = None

    @classmethod
    def of_states(cls, column: Column, states: list[Any], counts: Array | None) -> ObjectPartials:
        """Partials that were computed before; ``counts`` are how many rows the aggregate includes before each slice."""
        partials = cls.__new__(cls)
        partials.column, partials.states, partials.counts = column, states, counts
        partials.definition = column.call.aggregate.objects()
        return partials

    def gather(self, offsets: Array) -> None:
        self.states = [self.of_rows(int(a), int(b)) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        if self.included is not None:
            self.counts = np.concatenate([[0], np.cumsum(self.included, dtype=np.int64)])[offsets]

    def of_rows(self, first: int, last: int) -> Any:
        """The partial of neighbouring rows."""
        places = None if self.included is None else np.flatnonzero(self.included[first:last])
        columns_ = [v.slice(first, last - first) for v in self.values]
        if places is not None:
            columns_ = [c.take(pa.array(places)) for c in columns_]
        return bulk_lift(self.column, self.definition, columns_, last - first if places is None else len(places))

    def results(self, ranges: Ranges) -> pa.Array:
        full, places = ranges.without_empty()
        computed = of_objects(choose_ranges(None, ranges, len(self.states)), self.definition, self.states, full)
        empty = self.definition.lower(self.definition.identity()) if self.column.call.aggregate.counts_rows else None
        results: list[Any] = [empty] * len(ranges)
        known = has_rows(ranges, self.counts)
        at = range(len(ranges)) if places is None else np.flatnonzero(places).tolist()
        for place, result in zip(at, computed, strict=True):
            results[place] = result if known is None or known[place] else empty
        return object_array(results, output_type(self.column))


def bulk_lift(column: Column, definition: Objects, values: list[pa.Array], count: int) -> Any:
    """The partial of rows that the aggregate includes, in their order."""
    from sash.aggregates import _runs

    aggregate = column.call.aggregate
    if count == 0:
        return definition.identity()
    if aggregate.kind == "runs":
        (one,) = values
        numbers = one.cast(pa.float64(), safe=False) if aggregate.reads == "double" else one
        is_native = pa.types.is_floating(numbers.type) or pa.types.is_integer(numbers.type) or pa.types.is_boolean(numbers.type)
        return _runs.from_rows(numbers.to_numpy(zero_copy_only=False) if is_native else np.array(numbers.to_pylist(), object))
    rows = (
        values[0].to_pylist() if len(values) == 1 else list(zip(*[v.to_pylist() for v in values], strict=True)) if values else [()] * count
    )
    states = [definition.lift(row) for row in rows]
    while len(states) > 1:  # pairs of neighbours, so that no partial is copied more often than its share
        pairs = [definition.combine(a, b) for a, b in zip(states[::2], states[1::2], strict=False)]
        states = pairs + states[len(pairs) * 2 :]
    return states[0]


def object_array(results: list[Any], logical: pa.DataType) -> pa.Array:
    """Lowered objects as a column."""
    if pa.types.is_integer(logical):
        limits = np.iinfo(logical.to_pandas_dtype())  # doubles near the ends of the type round beyond them
        results = [None if r is None else max(int(limits.min), min(round(r), int(limits.max))) for r in results]
    if pa.types.is_struct(logical):
        names = [f.name for f in logical]
        results = [None if r is None else dict(zip(names, r, strict=True)) for r in results]
    return pa.array(results, logical)
