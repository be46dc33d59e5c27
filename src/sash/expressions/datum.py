"""What expressions compute with, below all functions."""

from __future__ import annotations

from typing import Any

from sash.errors import InvalidExpression

Datum = Any
"""An Arrow array or scalar."""

DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""How many decimal digits hold every integer of so many bits."""


class Undefined(InvalidExpression):
    """An expression has no value for some row."""
