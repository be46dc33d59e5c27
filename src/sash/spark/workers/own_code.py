"""Users' code that is sent to the workers with a request: functions of aggregates, classes of windows, and their source text."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from sash.functions.call import Call
from sash.functions.udaf import UserAggregate
from sash.plan.request import Request

Code = Callable[..., Any]
"""A function or a class of the user's."""


def own_code(request: Request) -> list[Code]:
    """The functions of users' own aggregates, and the classes of their own windows."""
    windows = [type(w) for w in request.windows.values() if not type(w).__module__.startswith("sash.")]
    return [*own_functions(request.aggs), *windows]


def own_functions(calls: Iterable[Call]) -> list[Code]:
    """The functions of users' own aggregates."""
    aggregates = [call.aggregate for call in calls]
    functions = [(a.lift, a.combine, a.lower, a.invert) for a in aggregates if isinstance(a, UserAggregate)]
    return [f for group in functions for f in group if f is not None]


def own_sources(own: Sequence[Code]) -> dict[str, str]:
    """The text of the files that define users' functions: kernels are generated from text, and a worker may not have the file."""
    import linecache

    sources: dict[str, str] = {}
    seen: set[int] = set()
    waiting = [f for f in own if isinstance(f, FunctionType)]
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        name = function.__code__.co_filename
        lines = linecache.getlines(name, function.__globals__)
        if lines:
            sources[name] = "".join(lines)
        used = [function.__globals__.get(n) for n in function.__code__.co_names]
        waiting += [f for f in used if isinstance(f, FunctionType) and not (f.__module__ or "").startswith("sash.")]
    return sources


@contextmanager
def by_value(own: Sequence[Code]) -> Iterator[None]:
    """Inside, the modules that define users' functions and windows are pickled by value: workers need not have them."""
    cloudpickle: Any = import_module("pyspark.cloudpickle")
    names = {thing.__module__ for thing in own}
    with ExitStack() as stack:
        for module in (sys.modules.get(name) for name in sorted(filter(None, names))):
            if module is not None and module.__name__ != "__main__" and not _is_installed(module):
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    homes = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(Path(file).is_relative_to(home) for home in homes)
