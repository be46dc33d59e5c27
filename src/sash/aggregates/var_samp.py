"""var_samp: the sample variance; null over a single value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.aggregates._moments import Moment
from sash.algebra import Form, Partial, Value


def lower(s: Partial) -> Value:
    return s[2] / (s[0] - 1) if s[0] > 1 else None


@dataclass(frozen=True)
class VarSamp(Moment):
    """The sample variance; null over a single value."""

    name = "var_samp"

    def form(self, *types: pa.DataType, nullable: tuple[bool, ...] = (), rows: int | None = None) -> Form:
        return self.moments_form(types[0], lower)
