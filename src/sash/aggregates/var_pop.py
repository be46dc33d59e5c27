"""var_pop: the population variance."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.aggregates._moments import Moment
from sash.algebra import Form, Partial, Value


def lower(s: Partial) -> Value:
    return s[2] / s[0]


@dataclass(frozen=True)
class VarPop(Moment):
    """The population variance."""

    name = "var_pop"

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return self.moments_form(types[0], lower)
