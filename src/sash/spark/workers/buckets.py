"""Hash buckets of keys, and the numbers by which Spark's shuffle spreads them evenly."""

from __future__ import annotations

from functools import lru_cache

SEED = 42
MASK = 0xFFFFFFFF


@lru_cache
def labels(count: int) -> tuple[int, ...]:
    """A number for each bucket, such that Spark's hashes of these numbers have each remainder modulo ``count`` once.

    Buckets are then spread evenly over any number of partitions that divides ``count``. Zero is always among the numbers, so the bucket
    with that number notices a checkpoint that has another count of buckets.
    """
    number_of: dict[int, int] = {}
    number = 0
    while len(number_of) < count:
        number_of.setdefault(spark_hash(number) % count, number)
        number += 1
    return tuple(number_of[k] for k in range(count))


def spark_hash(value: int) -> int:
    """What Spark's ``hash`` returns for a 32-bit integer: Murmur3, signed."""
    k = _rotated(value * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
    h = (_rotated(SEED ^ k, 13) * 5 + 0xE6546B64) & MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & MASK
