"""Memory for kernels: results from Arrow's pool, scratch buffers aligned to cache lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.types import dtype

Array = npt.NDArray[Any]

LINE = 64
SMALLEST_POOLED = 1 << 20


def pooled(count: int, machine: str) -> Array:
    """A new array; a large one from Arrow's memory pool, which keeps pages that were freed and saves faulting them in again."""
    kind = dtype(machine)
    if count * kind.itemsize < SMALLEST_POOLED:
        return np.empty(count, kind)
    return np.frombuffer(pa.allocate_buffer(count * kind.itemsize), kind)


def aligned(count: int, machine: str, shift: int = 0) -> Array:
    """Memory that starts at a cache line, ``shift`` lines behind a page, so that buffers do not fall on top of each other."""
    kind = dtype(machine)
    raw = np.zeros(count * kind.itemsize + 4096 + LINE * shift, np.uint8)
    start = -raw.__array_interface__["data"][0] % 4096 + LINE * shift
    start -= 4096 if start >= 4096 + LINE * shift else 0
    return raw[start : start + count * kind.itemsize].view(kind)
