"""The words that algorithms are written in.

An algorithm's kernel is an ordinary Python function that uses these names. The generator takes the function's text, puts an
aggregate's own functions under these names beside it, and compiles the whole. Nothing here runs: the bodies exist so that
editors, type checkers and readers know what each word means.

Annotations say what an argument is: :data:`Rows` (the input columns), :data:`States` (one buffer per field of the partial),
:data:`Memory` (several such buffers), :data:`Results` (the output columns), :data:`Index` (a buffer of 64-bit integers), :data:`Bytes`,
:data:`Reals` (doubles), :data:`Local` (as :data:`States`, in the memory that a group of items on a device shares), or ``int``.
"""

from __future__ import annotations

from typing import Any

from sash.algebra import Partial

Rows = Any
States = Any
Memory = Any
Results = Any
Local = Any
Index = Any
Bytes = Any
Reals = Any

LANES = 16
"""How many neighbouring rows one vector register (or a pair of them) holds; fixed per kernel."""


def lift(X: Rows, i: int) -> Partial:
    """The partial of row ``i``; the identity where the row is null."""


def included(X: Rows, i: int) -> int:
    """1 if row ``i`` is not null, else 0."""
    return 1


def identity() -> Partial:
    """The partial of no rows."""


def combine(a: Partial, b: Partial) -> Partial:
    """The partial of ``a``'s rows followed by ``b``'s."""


def invert(total: Partial, earlier: Partial) -> Partial:
    """What remains of ``total`` without its ``earlier`` part."""


def same(a: Partial, b: Partial) -> bool:
    """Whether two partials are equal, field by field."""
    return bool(a == b)


def load(S: States, i: int) -> Partial:
    """The partial at place ``i``."""


def store(S: States, i: int, s: Partial) -> None:
    """Put a partial at place ``i``."""


def emit(R: Results, i: int, s: Partial) -> None:
    """Lower a partial and put the result at place ``i``."""


# The same words over LANES neighbouring places at once, each lane on its own.


def lift_lanes(X: Rows, i: int) -> Partial:
    """The partials of rows ``i`` to ``i + LANES - 1``."""


def combine_lanes(a: Partial, b: Partial) -> Partial:
    """:func:`combine`, lane by lane."""


def load_lanes(S: States, i: int) -> Partial:
    """The partials at places ``i`` to ``i + LANES - 1``."""


def store_lanes(S: States, i: int, s: Partial) -> None:
    """Put partials at places ``i`` to ``i + LANES - 1``."""


def emit_lanes(R: Results, i: int, s: Partial) -> None:
    """Lower partials and put the results at places ``i`` to ``i + LANES - 1``."""


def fold_lanes(s: Partial) -> Partial:
    """One partial from all lanes, joined in lane order."""


def neighbours(a: Partial, b: Partial) -> Partial:
    """Lane ``k`` is the aggregate of the places ``2 k`` and ``2 k + 1`` of both registers, one behind the other."""


def fold_segments(X: Rows, i: int, size: int, stride: int) -> Partial:
    """One partial per lane: lane ``k`` is the aggregate of ``size`` rows from row ``i + k * stride`` on.

    ``size`` must be a multiple of LANES, and equal to LANES unless the aggregate commutes.
    """


def emit_past_caches(R: Results, i: int, s: Partial) -> None:
    """:func:`emit_lanes`, the results written past the caches; ``R[i]`` must be aligned."""


def address(R: Results) -> int:
    """Where the first result column begins in memory, in elements of its type modulo LANES."""
    return 0


def prefetch(X: Rows, i: int) -> None:
    """Ask for row ``i`` ahead of its use."""


# Words of groups of items, on devices only.

GROUP = 1
"""How many items a group has; fixed per kernel."""


def item() -> int:
    """The number of this item in its group."""
    return 0


def group() -> int:
    """The number of this group."""
    return 0


def groups() -> int:
    """How many groups there are."""
    return 1


def barrier() -> None:
    """Wait until all items of the group are here; what they wrote can then be read."""


def merge(S: States, i: int, s: Partial) -> None:
    """Combine a partial into the one at place ``i``, which other items combine into at the same time; for aggregates that commute."""


# Words on the bits of a 64-bit integer.


def trailing_zeros(x: int) -> int:
    """The place of the lowest bit that is set; 64 if none is."""
    return 64 if x == 0 else (x & -x).bit_length() - 1


def leading_zeros(x: int) -> int:
    """63 minus the place of the highest bit that is set; 64 if none is."""
    return 64 - (x & 0xFFFFFFFFFFFFFFFF).bit_length()


def ones(x: int) -> int:
    """How many bits are set."""
    return (x & 0xFFFFFFFFFFFFFFFF).bit_count()
