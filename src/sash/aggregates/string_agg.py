"""string_agg: the strings one after the other, in the order of the rows, with a separator between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sash.aggregates.collect_list import combine, lift
from sash.algebra import Aggregate, Objects
from sash.errors import InvalidArgument


@dataclass(frozen=True)
class StringAgg(Aggregate):
    """The strings that are not null, joined in order; null over nothing."""

    name = "string_agg"
    kind = "items"
    separator: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str):
            raise InvalidArgument(f"separator of string_agg must be a string, not {self.separator!r}")

    def returns(self, *types: pa.DataType) -> pa.DataType:
        (t,) = types
        if not (pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)):
            raise self.refuse(t, wants="strings")
        return pa.string()

    def objects(self) -> Objects:
        return Objects(lift=lift, combine=combine, lower=self.lower, identity=tuple)

    def lower(self, s: tuple[str, ...]) -> Any:
        return self.separator.join(s) if s else None
