"""Every function and operator of expressions, by what they work on; importing this package fills the table."""

from __future__ import annotations

from sash.expressions.library import arithmetic, bits, calendar, comparisons, conditions, formats, instants, mathematics, rounding, strings
from sash.expressions.table import ALIASES, FUNCTIONS

__all__ = [
    "ALIASES",
    "FUNCTIONS",
    "arithmetic",
    "bits",
    "calendar",
    "comparisons",
    "conditions",
    "formats",
    "instants",
    "mathematics",
    "rounding",
    "strings",
]
