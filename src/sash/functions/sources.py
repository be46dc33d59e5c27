"""What users' functions mean: their text, that of the functions which they call, and the constants which they read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

CONSTANTS = (int, float, complex, str, bytes, bool, tuple, type(None))


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
        parts += [inspect.getsource(function), repr(constants) if constants else ""]
    return "\n".join(parts)


def _plain(value: Any) -> FunctionType | None:
    """A function as it was written: numba's have it inside."""
    inner = getattr(value, "py_func", value)
    return inner if isinstance(inner, FunctionType) else None


def _names(function: FunctionType) -> dict[str, Any]:
    """The globals and the variables around it that a function reads."""
    code = function.__code__
    around = zip(code.co_freevars, function.__closure__ or (), strict=True)
    filled = {name: cell.cell_contents for name, cell in around if _is_filled(cell)}
    return {**{n: function.__globals__[n] for n in code.co_names if n in function.__globals__}, **filled}


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
