"""Every function and operator of expressions, by what they work on; importing this package fills the table."""

from __future__ import annotations

from sash.expressions.library import arithmetic, bits, calendar, comparisons, conditions, formats, instants, mathematics, rounding, strings
from sash.expressions.table import ALIASES, FUNCTIONS

MODULES = (arithmetic, bits, comparisons, conditions, mathematics, rounding, strings, calendar, instants, formats)

__all__ = [
    "ALIASES",
    "FUNCTIONS",
    "MODULES",
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
