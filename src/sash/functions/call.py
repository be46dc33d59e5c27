"""An aggregate as a user names it: with its inputs, an alias and a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sash.aggregates import named, registry
from sash.algebra import Aggregate
from sash.errors import InvalidArgument, InvalidType, unknown


@dataclass(frozen=True)
class Call:
    """``S.sum("cpu")``: an aggregate over columns or SQL expressions of the row.

    >>> from sash import functions as S
    >>> S.sum("cpu").alias("total").where("cpu > 0")
    sum(cpu) where cpu > 0 as total
    """

    aggregate: Aggregate
    inputs: tuple[str, ...] = ()
    alias_name: str | None = None
    condition: str | None = None

    def alias(self, name: str) -> Call:
        """The same under another name."""
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"alias must be a name, not {name!r}")
        return replace(self, alias_name=name)

    def where(self, condition: str) -> Call:
        """The same over the rows that fulfil a condition, which is SQL text."""
        if not isinstance(condition, str) or not condition.strip():
            raise InvalidArgument(f"where takes a condition as SQL text, not {condition!r}")
        return replace(self, condition=condition)

    @property
    def name(self) -> str:
        """The column's name: the alias, or Spark's name for the call."""
        return self.alias_name or self._spark_name()

    def _spark_name(self) -> str:
        if self.aggregate.name == "count_distinct":
            return f"count(DISTINCT {', '.join(self.inputs)})"
        inputs = self.inputs or (("1",) if self.aggregate.name == "count" else ())
        parameters = [str(value) for value in vars(self.aggregate).values() if not isinstance(value, bool) and not callable(value)]
        if self.aggregate.name in ("percentile", "approx_percentile"):
            return f"{self.aggregate.name}({', '.join([*inputs, *parameters])})"
        return f"{self.aggregate.label}({', '.join(inputs)})"

    def __repr__(self) -> str:
        condition = f" where {self.condition}" if self.condition else ""
        alias = f" as {self.alias_name}" if self.alias_name else ""
        return f"{self._spark_name()}{condition}{alias}"


Agg = str | Call | Aggregate | type | Callable[[], Call]
"""An aggregate without columns, as users pass it: a name, a call, a function of ``sash.functions``, or a user's own, which mypy takes
for a class."""


def call(aggregate: Aggregate, *inputs: str | None) -> Call:
    """A call of ``aggregate``; inputs that are None are left out."""
    columns = [i for i in inputs if i is not None]
    for i in columns:
        if not isinstance(i, str) or not i.strip():
            raise InvalidType(f"{aggregate.name} takes column names or SQL text, not {i!r}")
    if columns and len(columns) != len(inputs):
        raise InvalidArgument(f"{aggregate.name} takes {len(inputs)} columns, not {len(columns)}")
    return Call(aggregate, tuple(columns))


def resolve(agg: Any, argument: str = "agg") -> Call:
    """The call that an :data:`Agg` stands for."""
    if isinstance(agg, Call):
        return agg
    if isinstance(agg, Aggregate):
        return Call(agg)
    if isinstance(agg, str):
        if agg not in registry():
            raise unknown(f"{argument}", agg, registry())
        return Call(named(agg)())
    if isinstance(agg, Callable):  # type: ignore[arg-type]
        result = agg()
        if isinstance(result, Call):
            return result
    raise InvalidType(f"{argument} must be the name of an aggregate, one of sash.functions, or a class made with @sash.udaf, not {agg!r}")
