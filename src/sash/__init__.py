"""Sash: sliding-window aggregation, fast and general.

>>> import numpy as np, sash
>>> sash.rolling(np.arange(6.0), 3, agg="avg")
array([1., 2., 3., 4.])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sash import errors
from sash._version import __version__
from sash.errors import SashError

if TYPE_CHECKING:
    from sash import algorithms as algorithms
    from sash import functions, windows
    from sash import spark as spark
    from sash import testing as testing
    from sash.api.devices import devices
    from sash.api.explain import explain
    from sash.api.rolling import rolling
    from sash.api.sql import sql
    from sash.api.tables import aggregate, over
    from sash.functions.udaf import udaf
    from sash.plan.clock import processing_time
    from sash.slicing.stream.operator import Operator

__all__ = [
    "Operator",
    "SashError",
    "__version__",
    "aggregate",
    "devices",
    "errors",
    "explain",
    "functions",
    "over",
    "processing_time",
    "rolling",
    "sql",
    "udaf",
    "windows",
]

_LAZY = {
    "Operator": ("sash.slicing.stream.operator", "Operator"),
    "aggregate": ("sash.api.tables", "aggregate"),
    "devices": ("sash.api.devices", "devices"),
    "explain": ("sash.api.explain", "explain"),
    "over": ("sash.api.tables", "over"),
    "processing_time": ("sash.plan.clock", "processing_time"),
    "rolling": ("sash.api.rolling", "rolling"),
    "sql": ("sash.api.sql", "sql"),
    "udaf": ("sash.functions.udaf", "udaf"),
    "functions": ("sash.functions", None),
    "windows": ("sash.windows", None),
    "algorithms": ("sash.algorithms", None),
    "spark": ("sash.spark", None),
    "testing": ("sash.testing", None),
}


if not TYPE_CHECKING:  # a checker knows the names above, and refuses others

    def __getattr__(name: str) -> Any:
        # Loaded when first used, so that `import sash` is quick.
        if name not in _LAZY:
            raise AttributeError(f"module 'sash' has no attribute {name!r}")
        module, attribute = _LAZY[name]
        value = import_module(module)
        if attribute is not None:
            value = getattr(value, attribute)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY})
