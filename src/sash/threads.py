"""How many threads to use, and running a kernel on them.

Kernels release the GIL, so Python threads scale.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sash.errors import InvalidArgument

SMALLEST_SHARE = 1 << 18
"""Fewer rows than this are not worth another thread."""


_current = threading.local()


def available() -> int:
    """The number of threads to use: ``SASH_THREADS``, or the cores that this process may use; one in a thread of :func:`in_turn`."""
    if getattr(_current, "is_one_of_many", False):
        return 1
    setting = os.environ.get("SASH_THREADS")
    if setting:
        try:
            count = int(setting)
        except ValueError:
            count = 0
        if count < 1:
            raise InvalidArgument(f"SASH_THREADS must be a positive integer, not {setting!r}")
        return count
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def shares(begin: int, end: int, *, rows_each: int = 1, multiple: int = 1) -> list[tuple[int, int]]:
    """Cut ``[begin, end)`` into a share for each thread, none too small, at multiples of ``multiple``."""
    total = end - begin
    count = max(1, min(available(), total * max(1, rows_each) // SMALLEST_SHARE))
    size = -(-total // count)
    size = -(-size // multiple) * multiple
    return [(start, min(start + size, end)) for start in range(begin, end, size)] if total > 0 else []


def each(work: Callable[[int, int], None], parts: list[tuple[int, int]]) -> None:
    """Run ``work`` on every part, in threads if there are several."""
    if len(parts) <= 1:
        for part in parts:
            work(*part)
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        for future in [pool.submit(work, *part) for part in parts]:
            future.result()


def in_turn(work: Callable[[int], None], count: int) -> None:
    """Run ``work`` on every number below ``count``, by all threads, each with the next one that is left."""
    workers = min(available(), count)
    if workers <= 1:
        for number in range(count):
            work(number)
        return

    def alone(number: int) -> None:
        _current.is_one_of_many = True
        work(number)

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(alone, number) for number in range(count)]:
            future.result()
