"""What users' functions mean: their text, that of the functions which they call, and the constants which they read."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

CONSTANTS = (bool, int, float)
"""What kernels know as constants."""


def with_helpers(functions: Iterable[Callable[..., Any]]) -> list[FunctionType]:
    """The functions, and all that they reach by name, but sash's own."""
    found: list[FunctionType] = []
    waiting = [f for f in map(_plain, functions) if f is not None]
    while waiting:
        function = waiting.pop()
        if function not in found:
            found.append(function)
            reached = (_plain(value) for value in _names(function).values())
            waiting += [f for f in reached if f is not None and not (f.__module__ or "").startswith("sash.")]
    return found


def meaning(functions: Iterable[Callable[..., Any]]) -> str:
    """A text that changes when what the functions do may have changed."""
    parts = []
    for function in with_helpers(functions):
        constants = {name: value for name, value in sorted(_names(function).items()) if isinstance(value, CONSTANTS)}
        parts += [_source(function), repr(constants)]
    return "\n".join(parts)


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except OSError:  # made without a file: its instructions stand for it
        return function.__code__.co_code.hex()


def _plain(value: Any) -> FunctionType | None:
    """A function as it was written: numba's have it inside."""
    inner = getattr(value, "py_func", value)
    return inner if isinstance(inner, FunctionType) else None


def _names(function: FunctionType) -> dict[str, Any]:
    """The globals and the variables around it that a function reads."""
    around = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    filled = {name: cell.cell_contents for name, cell in around if _is_filled(cell)}
    return {**{n: function.__globals__[n] for n in _globals(function.__code__) if n in function.__globals__}, **filled}


def _globals(code: CodeType) -> list[str]:
    """The names that code, and code inside it, reads as globals; names of attributes are not among them."""
    own = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return [*own, *(n for c in code.co_consts if isinstance(c, CodeType) for n in _globals(c))]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
