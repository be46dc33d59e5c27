"""Where an array's elements are: kernels take addresses, and are called often with little."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_HEAD = object.__basicsize__
_at = ctypes.c_void_p.from_address


def documented(array: Array) -> int:
    """The address, from NumPy's array interface."""
    address: int = array.__array_interface__["data"][0]
    return address


def direct(array: Array) -> int:
    """The address, read from the array object itself, where it follows the object's head: seven times as fast."""
    return _at(id(array) + _HEAD).value or 0


def _directly(arguments: Iterable[Array | int | None]) -> list[int | None]:
    """:func:`direct` written out, since it is needed some thirty times for each small batch."""
    return [_at(id(a) + _HEAD).value if isinstance(a, np.ndarray) else a for a in arguments]


def _as_documented(arguments: Iterable[Array | int | None]) -> list[int | None]:
    return [documented(a) if isinstance(a, np.ndarray) else a for a in arguments]


def _is_direct() -> bool:
    """Whether arrays of this interpreter and NumPy look as their headers say."""
    import sys

    if sys.implementation.name != "cpython":
        return False
    probe = np.arange(8)
    arrays: list[Array] = [probe, probe[3:], probe[::2], np.empty(3, np.uint8)]
    return [direct(a) for a in arrays] == _directly(arrays) == _as_documented(arrays)


IS_DIRECT = _is_direct()
pointer = direct if IS_DIRECT else documented
"""An array's address."""
flat = _directly if IS_DIRECT else _as_documented
"""A kernel's arguments with addresses in place of arrays."""
