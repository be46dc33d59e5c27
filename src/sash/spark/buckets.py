"""Hash buckets of keys, and the numbers by which Spark's shuffle spreads them evenly."""

from __future__ import annotations

from functools import lru_cache

SEED = 42
MASK = 0xFFFFFFFF


@lru_cache
def labels(count: int) -> tuple[int, ...]:
    """A number for each bucket such that Spark's hash of it gives each remainder by ``count`` once.

    The buckets are then spread evenly over as many partitions as ``count`` is a multiple of. Zero is always among the numbers, so that a
    checkpoint with another count of buckets is found out by the bucket of that number.
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < count:
        found.setdefault(spark_hash(number) % count, number)
        number += 1
    return tuple(found[k] for k in range(count))


def spark_hash(value: int) -> int:
    """What Spark's ``hash`` gives for an integer of 32 bits: Murmur3, as a number with a sign."""
    k = _rotated(value * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
    h = (_rotated(SEED ^ k, 13) * 5 + 0xE6546B64) & MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & MASK
