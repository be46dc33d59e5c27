"""A digest of what users' code means: its text, the functions that it calls, and the constants that it reads."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
OUTSIDE = frozenset(sys.stdlib_module_names) | {"sash"}


def digest(*values: Any) -> str:
    """A short text that differs where values, and the code among them, do."""
    reader = _Reader()
    for value in values:
        reader.read(value)
    return hashlib.sha256("\n".join(reader.parts).encode()).hexdigest()[:16]


class _Reader:
    """Reads each piece of code once; of what comes from libraries, the name."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._read: set[int] = set()
        self._alive: list[Any] = []

    def read(self, value: Any) -> None:
        if isinstance(value, types.ModuleType):
            self.parts.append(f"module {value.__name__}")
        elif isinstance(value, functools.partial):
            self._all([value.func, value.args, value.keywords])
        elif isinstance(value, staticmethod | classmethod | types.MethodType):
            self.read(value.__func__)
        elif isinstance(value, property):
            self._all([value.fget, value.fset])
        elif isinstance(value, types.FunctionType | type):
            self._code(value)
        elif isinstance(value, dict):
            self._all(item for key in sorted(value, key=repr) for item in (key, value[key]))
        elif isinstance(value, list | tuple):
            self._all(value)
        elif isinstance(value, set | frozenset):
            self._all(sorted(value, key=repr))
        elif isinstance(value, np.ndarray):
            self.parts.append(f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
        elif isinstance(getattr(value, "__dict__", None), dict):
            self._once(value, [type(value), vars(value)])
        else:
            self.parts.append(ADDRESS.sub("", repr(value)))

    def _all(self, values: Iterable[Any]) -> None:
        self.parts.append("(")
        for value in values:
            self.read(value)
        self.parts.append(")")

    def _once(self, value: Any, parts: Iterable[Any]) -> None:
        """Read the parts of something, unless that was done: code may call itself."""
        if id(value) not in self._read:
            self._read.add(id(value))
            self._alive.append(value)  # so that no other takes its identity
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


def _outer(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function reads from around it."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            try:
                yield name, cell.cell_contents
            except ValueError:  # not set yet
                continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _text(value: Any) -> str:
    """The source, where there is one; else what it was compiled to."""
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        code = getattr(value, "__code__", None)
        return "" if code is None else f"{code.co_code.hex()} {ADDRESS.sub('', repr(code.co_consts))}"


def _from_outside(value: Any) -> bool:
    """Whether it belongs to a library: of that only the name counts."""
    module = sys.modules.get(value.__module__ or "")
    if (value.__module__ or "").partition(".")[0] in OUTSIDE - {"__main__"}:
        return True
    return "site-packages" in (getattr(module, "__file__", None) or "")
