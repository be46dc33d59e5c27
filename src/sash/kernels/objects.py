"""Runs an algorithm's kernel functions in Python over partials that are Python objects.

Lists, sorted runs and sketches have no flat fields to compile. The same algorithms work on them: their functions get new
globals, in which the words of the vocabulary work on lists of objects.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from sash.kernels import vocabulary


def bind(function: Callable[..., Any], words: dict[str, Any]) -> Callable[..., Any]:
    """``function`` with ``words`` among its globals, and its helpers likewise."""
    assert isinstance(function, types.FunctionType)
    names: dict[str, Any] = dict(function.__globals__)
    bound = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    for name in function.__code__.co_names:
        value = names.get(name)
        if name in words:
            names[name] = words[name]
        elif isinstance(value, types.FunctionType) and value.__module__ != vocabulary.__name__:
            names[name] = bound if value is function else bind(value, words)
    return bound


def words(combine: Callable[[Any, Any], Any], identity: Callable[[], Any]) -> dict[str, Any]:
    """The vocabulary over buffers that are lists of objects."""

    def load(S: list[Any], i: int) -> Any:
        return S[i]

    def store(S: list[Any], i: int, s: Any) -> None:
        S[i] = s

    return {"load": load, "store": store, "combine": combine, "identity": identity}
