"""punctuation: from one row that fulfils a condition to the next."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from sash.errors import InvalidWindow
from sash.types import Measure
from sash.windows.base import Window
from sash.windows.shapes import Marks


@dataclass(frozen=True)
class Punctuation(Window):
    """The punctuation row, and rows of the same time, belong to the window it opens; the first window starts with the first row."""

    context = "forward context free"
    never_ends = True
    when: str

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.when,)

    def check_type(self, text: str, t: pa.DataType) -> None:
        if not pa.types.is_boolean(t):
            raise InvalidWindow(f"when {text!r} must be true or false for each row; it is {t}")

    def bind(self, measure: Measure) -> Marks:
        return Marks(self.when)

    def __repr__(self) -> str:
        return f"punctuation({self.when!r})"
