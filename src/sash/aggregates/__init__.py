"""The built-in aggregates, one file each.

A new aggregate is a new file here with a subclass of :class:`sash.algebra.Aggregate`; it is registered by itself. Files that begin
with an underscore are what several aggregates share.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from sash.algebra import Aggregate
from sash.errors import unknown


@lru_cache(maxsize=1)
def registry() -> dict[str, type[Aggregate]]:
    """Every built-in aggregate by its name."""
    aggregates: dict[str, type[Aggregate]] = {}
    for info in iter_modules(__path__):
        if not info.name.startswith("_"):
            module = import_module(f"{__name__}.{info.name}")
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, Aggregate) and value.__module__ == module.__name__:
                    aggregates[value.name] = value
    return dict(sorted(aggregates.items()))


def named(name: str) -> type[Aggregate]:
    """The aggregate called ``name``."""
    if name not in registry():
        raise unknown("aggregate", name, registry())
    return registry()[name]
