"""What was asked for, in a form that goes to the workers and becomes the same plan there."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pyarrow as pa

from sash.functions.call import Call
from sash.functions.udaf import UserAggregate
from sash.plan.logical import WINDOW, Plan, make_plan
from sash.windows.base import Window


@dataclass(frozen=True)
class Request:
    """The arguments of ``sash.aggregate`` or ``sash.over``."""

    windows: Any
    aggs: Any
    by: Any = None
    time: Any = None
    order_by: Any = None
    empty: bool = False
    trailing: bool = False

    @property
    def specs(self) -> dict[str, Window]:
        """The windows by their names; a single one has the name that Spark's have."""
        return dict(self.windows) if isinstance(self.windows, dict) else {WINDOW: self.windows}

    def plan(self, schema: pa.Schema) -> Plan:
        """The plan over these columns; expressions whose text is a column's name are that column."""
        return make_plan(schema, self.windows, self.aggs, self.by, self.time, self.order_by, self.empty, trailing=self.trailing)

    def own_functions(self) -> list[Callable[..., Any]]:
        """The functions of users' own aggregates."""
        aggs = self.aggs if isinstance(self.aggs, list | tuple) else [self.aggs]
        aggregates = [a.aggregate if isinstance(a, Call) else a for a in aggs]
        found = [(a.lift, a.combine, a.lower, a.invert) for a in aggregates if isinstance(a, UserAggregate)]
        return [f for group in found for f in group if f is not None]

    def own_windows(self) -> list[type]:
        """The classes of users' own windows."""
        return [type(w) for w in self.specs.values() if isinstance(w, Window) and not type(w).__module__.startswith("sash.")]


def own_sources(functions: list[Callable[..., Any]]) -> dict[str, str]:
    """The text of the files that users' functions stand in: kernels are made from text, and a worker may not have the file."""
    import linecache

    found: dict[str, str] = {}
    seen: set[int] = set()
    waiting = [f for f in functions if isinstance(f, FunctionType)]
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        name = function.__code__.co_filename
        lines = linecache.getlines(name, function.__globals__)
        if lines:
            found[name] = "".join(lines)
        used = [function.__globals__.get(n) for n in function.__code__.co_names]
        waiting += [f for f in used if isinstance(f, FunctionType) and not (f.__module__ or "").startswith("sash.")]
    return found


@contextmanager
def by_value(request: Request) -> Iterator[None]:
    """While it lasts, the modules that users' functions and windows stand in are pickled with them: workers need not have them."""
    cloudpickle: Any = import_module("pyspark.cloudpickle")
    names = {f.__module__ for f in request.own_functions()} | {c.__module__ for c in request.own_windows()}
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
