"""A digest of users' code: its text, the functions that it calls, and the constants that it reads.

The same code has the same digest in another process, so everything that differs between processes is left out: addresses, caches, the
attributes of libraries' objects.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

import numpy as np

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
OUTSIDE = frozenset(sys.stdlib_module_names) - {"__main__"} | {"sash"}
VALUES = (
    int, float, complex, str, bytes, types.NoneType, types.EllipsisType, range, slice, date, time, timedelta, tzinfo, Decimal, Fraction,
    UUID, PurePath, re.Pattern, np.generic, np.dtype,
)  # fmt: skip
"""Types whose values are digested by their representation."""


def digest(*values: Any) -> str:
    """A short text that differs if values, or the code among them, differ."""
    reader = _Reader()
    for value in values:
        reader.read(value)
    return hashlib.sha256("\n".join(reader.parts).encode()).hexdigest()[:16]


class _Reader:
    """Collects the text of values, reading each piece of code once; of libraries' code only the name."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._read: set[int] = set()
        self._alive: list[Any] = []

    def read(self, value: Any) -> None:
        inner = _inside(value)
        if isinstance(value, VALUES):
            self.parts.append(ADDRESS.sub("", repr(value)))
        elif isinstance(value, types.ModuleType):
            self.parts.append(f"module {value.__name__}")
        elif isinstance(value, types.FunctionType | type):
            self._code(value)
        elif inner is not None:
            self.read(inner)
        elif isinstance(value, functools.partial):
            self._all([value.func, value.args, value.keywords])
        elif isinstance(value, property):
            self._all([value.fget, value.fset])
        elif isinstance(value, dict):
            self._all(item for key in sorted(value, key=repr) for item in (key, value[key]))
        elif isinstance(value, list | tuple):
            self._all(value)
        elif isinstance(value, set | frozenset):
            self._all(sorted(value, key=repr))
        elif hasattr(value, "__array__"):
            self._array(np.asarray(value))
        elif _from_outside(type(value)):
            self.read(type(value))
        else:
            self._once(value, [type(value), getattr(value, "__dict__", {})])

    def _array(self, value: Any) -> None:
        self.parts.append(f"{value.dtype} {value.shape}")
        if value.dtype.hasobject:
            self._all(value.ravel().tolist())
        else:
            self.parts.append(hashlib.sha256(value.tobytes()).hexdigest())

    def _all(self, values: Iterable[Any]) -> None:
        self.parts.append("(")
        for value in values:
            self.read(value)
        self.parts.append(")")

    def _once(self, value: Any, parts: Iterable[Any]) -> None:
        """Read the parts of a value, unless they were read before: code may be recursive."""
        if id(value) not in self._read:
            self._read.add(id(value))
            self._alive.append(value)  # so that its id is not reused
            self._all(parts)

    def _code(self, value: Any) -> None:
        self.parts.append(f"{value.__module__}.{value.__qualname__}")
        if _from_outside(value):
            return
        if id(value) not in self._read:
            self.parts.append(_text(value))
        if isinstance(value, type):
            own = [v for v in vars(value).values() if isinstance(v, staticmethod | classmethod | property | types.FunctionType)]
            self._once(value, [*value.__bases__, *own])
        else:
            self._once(value, [value.__defaults__, value.__kwdefaults__, dict(_outer(value))])


def _inside(value: Any) -> Any:
    """The function that a value wraps: a method, a cache, a function compiled by numba."""
    for name in ("__func__", "py_func", "__wrapped__"):
        attribute = inspect.getattr_static(value, name, None)
        if attribute is not None and isinstance(getattr(value, name, None), types.FunctionType):
            return getattr(value, name)
    return None


def _outer(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The names and values that a function reads from its closure and its module."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            try:
                yield name, cell.cell_contents
            except ValueError:  # not set yet
                continue
    for name in _globals(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _globals(code: types.CodeType) -> Iterator[str]:
    """The names that code reads from its module."""
    yield from (i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals(constant)


def _text(value: Any) -> str:
    """The source, where there is one; else what it was compiled to."""
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        code = getattr(value, "__code__", None)
        return _compiled(code) if isinstance(code, types.CodeType) else ""


def _compiled(code: types.CodeType) -> str:
    """Code without a source as text; empty for methods that dataclasses generate, which follow from the class's own text."""
    if code.co_filename == "<string>":
        return ""
    constants = [_compiled(c) if isinstance(c, types.CodeType) else repr(sorted(c, key=repr)) if isinstance(c, frozenset) else repr(c)
                 for c in code.co_consts]  # fmt: skip
    return " ".join([code.co_code.hex(), *code.co_names, *constants])


def _from_outside(value: Any) -> bool:
    """Whether a value belongs to a library."""
    name = value.__module__ or ""
    if name.partition(".")[0] in OUTSIDE:
        return True
    return "site-packages" in (getattr(sys.modules.get(name), "__file__", None) or "")
