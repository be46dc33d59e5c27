"""Kernels over the rows and slices of many keys at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sash.aggregates.count import Count
from sash.kernels.cpu.compiler import Kernel, compiled
from sash.kernels.generate import generate


@lru_cache(maxsize=64)
def kernel(function: Callable[..., Any]) -> Kernel:
    """The kernel of a function that uses no aggregate."""
    return compiled(generate(function, Count().form()))
