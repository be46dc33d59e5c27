"""A value and the place of its row in a window packed into one number, so that the first of the rows with an extreme value wins.

Spark aggregates numbers by hashing, and structs by sorting, which is two to three times slower. 64 bits are enough for a place and a
value that is small or has few digits; any other value is packed into a decimal with its place, which is slower. The value alone decides
which of the two is used, so the extreme value says in which of them to look for its first row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from sash.spark.language import sql
from sash.spark.language.sql import where

LONGEST = 1 << 40
"""The longest windows whose places are packed, in ticks."""
MOST_DIGITS = 4
"""Doubles with at most this many digits behind the point are packed as whole numbers."""
COMMON = 10**6
"""Doubles up to this size should fit, at the price of digits."""
NEAR = 1 << 50
"""Times are packed by their distance from their window, if it is less than this."""


LOW = 22
"""How many bits of a large number are packed beside its row's place."""
STEPS = range(-3, 6)
"""The magnitudes, by ``2**10``, that most doubles have."""


@dataclass(frozen=True)
class Packing:
    """How a column becomes numbers in the order of its values; ``{}`` in a text stands for a value."""

    value: str
    """The column as values that can be compared."""
    small: str
    """A value's number where it is small, null elsewhere."""
    high: str
    """Any value's number but for its last bits."""
    low: str
    """Its last bits; those of a negative number may be negative."""
    is_always_small: bool = False
    """Whether the type has no other values."""

    def small_of(self, value: str) -> str:
        return f"({self.small.replace('{}', value)})"

    def large_of(self, value: str, bits: int, place: str) -> str:
        """Any value's number and a place of ``bits`` bits, as a decimal."""
        high, low = (part.replace("{}", value) for part in (self.high, self.low))
        return f"(cast({high} as decimal(18,0)) * {1 << LOW + bits}BD + cast({low} * {1 << bits}L + {place} as decimal(20,0)))"


def packing(column: str, t: pa.DataType, start: str, size: int) -> Packing | None:
    """How a column is packed beside places in windows of ``size`` ticks that begin at ``start``; None if it cannot be."""
    if not 0 < size < LONGEST:
        return None
    limit = 1 << 62 - place_bits(size)
    if pa.types.is_floating(t):
        return Packing(f"cast({column} as double)", _with_few_digits(limit), *_by_magnitude())
    high, low = f"shiftright({{}}, {LOW})", f"({{}} & {(1 << LOW) - 1}L)"
    if pa.types.is_timestamp(t):
        near = f"case when {{}} > {start} - {min(limit, NEAR)}L and {{}} < {start} + {min(limit, NEAR)}L then {{}} - {start} end"
        return Packing(sql.micros(column, t), near, high, low)
    value = _whole(column, t)
    if not value:
        return None
    if _largest(t) < limit:
        return Packing(value, "{}", high, low, is_always_small=True)
    return Packing(value, f"case when {{}} > -{limit}L and {{}} < {limit}L then {{}} end", high, low)


def place_bits(size: int) -> int:
    """The bits of a place among ``size``."""
    return (size - 1).bit_length()


def _largest(t: pa.DataType) -> int:
    """A bound on the numbers that represent values of a type."""
    if pa.types.is_decimal(t):
        return int(10**t.precision)
    return 1 if pa.types.is_boolean(t) else int(1 << t.bit_width - 1)


def _whole(column: str, t: pa.DataType) -> str:
    """A column as 64-bit numbers; empty if it has none."""
    if pa.types.is_decimal(t) and t.precision <= 18:
        return f"cast({column} * 1{'0' * t.scale}BD as bigint)"
    if pa.types.is_date(t):
        return f"cast(unix_date({column}) as bigint)"
    return f"cast({column} as bigint)" if pa.types.is_integer(t) or pa.types.is_boolean(t) else ""


def _with_few_digits(limit: int) -> str:
    """SQL for doubles that a few digits behind the point identify, like 21.5 and 1999.99; null for others."""
    digits = next((d for d in range(MOST_DIGITS, 0, -1) if limit >= COMMON * 10**d), 0)
    scale = f"{10**digits}D"
    number = f"rint({{}} * {scale})"
    return f"case when {number} / {scale} = {{}} and abs({number}) < {limit}D then cast({number} as bigint) end"


def _by_magnitude() -> tuple[str, str]:
    """Any double but zero as a whole number: its magnitude by ``2**10``, then all of its bits.

    Numbers between ``2**10j`` and ``2**(10j + 10)``, times ``2**(52 - 10j)``, are whole and below ``2**62``. Common magnitudes are
    written out; rare ones use a lambda, which Spark does not compile: if the generated code is too long, all of it runs slowly.
    """
    size, sign = "abs({})", "if({} < 0, -1L, 1L)"

    def chosen(of: Callable[[int], str]) -> str:
        return f"case {' '.join(f'when {size} < {2.0 ** (10 * j + 10)!r}D then {of(j)}' for j in STEPS)} end"

    is_common = f"{size} >= {2.0 ** (10 * STEPS.start)!r}D and {size} < {2.0 ** (10 * STEPS.stop)!r}D"
    bits = f"cast({size} * {chosen(lambda j: f'{2.0 ** (52 - 10 * j)!r}D')} as bigint)"
    high, low = f"{chosen(lambda j: f'{j + 110 << 62 - LOW}L')} + shiftright({bits}, {LOW})", f"({bits} & {(1 << LOW) - 1}L)"
    return (f"({sign} * if({is_common}, {high}, {_rare(0)}))", f"({sign} * if({is_common}, {low}, {_rare(1)}))")


def _rare(part: int) -> str:
    """The high or the low part of a double of any magnitude."""
    step = "floor(log2(a) / 10D)"  # rounding may put it one too high or too low
    step = f"transform(array({step}), j -> j + if(a >= pow(2D, 10 * j + 10), 1L, 0L) - if(a < pow(2D, 10 * j), 1L, 0L))[0]"
    bits = "cast(a * pow(2D, 26 - 5 * k) * pow(2D, 26 - 5 * k) as bigint)"  # in two steps, since one may be too large for a double
    value = (f"(k + 110) * {1 << 62 - LOW}L + shiftright({bits}, {LOW})", f"({bits} & {(1 << LOW) - 1}L)")[part]
    special = f"when isnan(a) then {(2 << 50, 0)[part]}L when a = double('inf') then {(1 << 50, 0)[part]}L"
    return f"transform(array(abs({{}})), a -> case {special} else transform(array({step}), k -> {value})[0] end)[0]"


def first_extreme(x: str, by: Packing, condition: str, place: str, size: int, *, largest: bool) -> str:
    """The value of ``x`` in the first row whose ``by`` is extreme; places count from the start of the window."""
    bits = place_bits(size)
    function, place = ("max", f"({place} ^ {(1 << bits) - 1}L)") if largest else ("min", place)
    value, small = by.value, by.small_of(by.value)
    of_small = f"{function}_by({x}, {where(f'(shiftleft({small}, {bits}) | {place})', condition)})"
    if by.is_always_small:
        return of_small
    of_large = f"{function}_by({x}, {where(by.large_of(value, bits, place), condition, f'{value} is not null', f'{small} is null')})"
    return f"if({by.small_of(f'{function}({where(value, condition)})')} is not null, {of_small}, {of_large})"
