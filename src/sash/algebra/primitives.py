"""The types of aggregates' functions, and the operations that have an instruction of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Value = Any
"""A scalar inside an aggregate's function: a Python number in the oracle, a register in a kernel."""
Partial = Any
"""A tuple of :data:`Value`, one for each field of the state."""
Function = Callable[..., Any]


def smaller(a: Value, b: Value) -> Value:
    """The smaller of two values, the first of equals; NaN is larger than any number.

    Kernels have an instruction for it, so aggregates call ``smaller`` rather than spell it out.
    """
    return a if b != b else a if a <= b else b


def larger(a: Value, b: Value) -> Value:
    """The larger of two values, the first of equals; NaN is larger than any number."""
    return a if a != a or a >= b else b


def ratio(a: Value, b: Value) -> Value:
    """``a / b``, right up to the last bit; in vector lanes several times as fast as the division itself."""
    return a / b


PRIMITIVES = {"smaller": smaller, "larger": larger, "ratio": ratio}
