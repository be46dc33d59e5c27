"""An aggregate bound for a window algorithm: its form for the type of the values, and the cells that pass rows in and results out."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.algebra import Aggregate, Form, Objects, as_objects
from sash.algebra.laws import quick_check
from sash.errors import IntegerOverflow, InvalidType
from sash.functions.call import resolve
from sash.functions.udaf import UserAggregate
from sash.kernels.cpu.compiler import lowered_type
from sash.kernels.generate import Module
from sash.types import dtype, machine_type

Array = npt.NDArray[Any]


def form_of(aggregate: Aggregate, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
    """An aggregate's form, with the result type of a user's own ``lower`` filled in."""
    form = aggregate.form(*types, nullable=nullable, rows=rows)
    return _users_form(aggregate, form) if isinstance(aggregate, UserAggregate) else form


@lru_cache(maxsize=256)
def _users_form(aggregate: UserAggregate, form: Form) -> Form:
    """A user's form, once its laws hold on a few values and the type of its result is known."""
    quick_check(form)
    return form if aggregate.output is not None else replace(form, outputs=(lowered_type(form),))


def bind_aggregate(aggregate: Any, value_type: Any, *, forced: bool) -> Binding:
    """The binding of an aggregate, as users name it, to a type of values (None: that of the first value)."""
    return Binding(resolve(aggregate, "aggregate").aggregate, value_type, forced)


class Binding:
    """An aggregate, bound to the type of its values or to Python objects; at once, or by the first value."""

    def __init__(self, aggregate: Aggregate, value_type: Any, forced: bool) -> None:
        self.aggregate, self.forced = aggregate, forced
        self.name = aggregate.label
        self.form: Form | None = None
        self.is_bound = False
        if aggregate.kind != "fields":
            self.objects: Objects = aggregate.objects()
            self.is_bound = True
        elif value_type is not None:
            several = isinstance(value_type, tuple | list)
            self._bind_types([_arrow_type(t) for t in value_type] if several else [_arrow_type(value_type)] * self.arity)

    @property
    def arity(self) -> int:
        """How many values make a row."""
        return self.aggregate.inputs if isinstance(self.aggregate, UserAggregate) else max(1, self.aggregate.arity)

    @property
    def keeps_nulls(self) -> bool:
        return bool(self.aggregate.null_aware_inputs)

    @property
    def of_nothing(self) -> Any:
        """The result over no rows."""
        if not self.aggregate.counts_rows:
            return None
        return 0 if self.aggregate.kind == "fields" else self.objects.lower(self.objects.identity())

    def bind_type(self, value: Any) -> None:
        """Bind the aggregate to the type of the first value."""
        samples = value if self.arity > 1 and isinstance(value, tuple) and len(value) == self.arity else (value,) * self.arity
        try:
            self._bind_types([pa.float64() if v is None else _arrow_type(np.asarray(v).dtype) for v in samples])
        except (InvalidType, pa.ArrowNotImplementedError, TypeError) as error:
            try:
                self.aggregate.returns(*[pa.string()] * self.arity) if not isinstance(self.aggregate, UserAggregate) else None
            except InvalidType:
                raise InvalidType(f"{self.name} does not take {value!r}") from error
            nullable = (True,) * self.arity
            self.objects = as_objects(self.aggregate.form(*[pa.string()] * self.arity, nullable=nullable))
            self.is_bound = True

    def _bind_types(self, types: list[pa.DataType]) -> None:
        for t in types:
            if machine_type(t) is None:
                raise InvalidType(f"{self.name}: values of type {t} are not supported")
        nullable = (True,) * self.arity if self.keeps_nulls else ()
        self.aggregate.returns(*types) if not isinstance(self.aggregate, UserAggregate) else None
        form = form_of(self.aggregate, *types, nullable=nullable)
        self.form = form.forced_invertible() if self.forced else form
        self.is_bound = True

    # Cells: one row in, one result out. Their order is that of the generator's columns.

    def row_buffers(self) -> list[Array]:
        assert self.form is not None
        values = [np.zeros(1, dtype(m)) for m in self.form.inputs]
        return [*values, *(np.zeros(1, np.uint8) for _ in self.form.null_aware_inputs), np.zeros(8, np.uint8)]

    def fill_row(self, row: list[Array], value: Any) -> None:
        """Put a value (or a tuple of them) into the cells; a null leaves the cell and clears its bit."""
        assert self.form is not None
        inputs = len(self.form.inputs)
        values = value if inputs > 1 and value is not None else (value,) * max(1, inputs)
        if not isinstance(values, tuple | list) or len(values) != max(1, inputs):
            raise InvalidType(f"{self.name} takes rows of {inputs} values, not {value!r}")
        for k, machine in enumerate(self.form.inputs):
            if values[k] is not None:
                self._put(row[k], machine, values[k])
        for place, k in enumerate(self.form.null_aware_inputs):
            row[inputs + place][0] = values[k] is not None
        row[-1][0] = all(v is not None for k, v in enumerate(values) if k not in self.form.null_aware_inputs)

    def _put(self, cell: Array, machine: str, value: Any) -> None:
        loses = (
            isinstance(value, float | np.floating) if machine[0] in "iu" else machine == "bool" and not isinstance(value, bool | np.bool_)
        )
        try:
            if not loses:
                cell[0] = value
                return
        except (ValueError, TypeError, OverflowError):
            pass
        raise InvalidType(f"{self.name} takes {machine} values, not {value!r}; pass dtype='float64' (or another) when creating the window")

    def result_buffers(self, module: Module) -> list[Array]:
        return [np.zeros(1, dtype(a.machine)) for a in module.arguments if a.name.startswith("r_")]

    def read_result(self, result: list[Array]) -> Any:
        assert self.form is not None
        outputs = len(self.form.outputs)
        rest = result[outputs:]
        if self.form.fits is not None and rest.pop()[0]:
            result[-1][0] = 0
            raise IntegerOverflow(f"{self.name}: the exact result of the window does not fit into 64 bits")
        if rest and not rest[0][0]:
            return None
        values = tuple(
            bool(column[0]) if machine == "bool" else column[0].item() for column, machine in zip(result, self.form.outputs, strict=False)
        )
        return values[0] if outputs == 1 else values


def _arrow_type(t: Any) -> pa.DataType:
    if isinstance(t, pa.DataType):
        return t
    try:
        return pa.from_numpy_dtype(np.dtype(t))
    except (TypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidType(f"dtype must name a type of numbers, not {t!r}") from error
