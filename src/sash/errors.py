"""The errors that Sash raises.

Each is a :class:`SashError` and also the builtin that a Python user would catch. Messages name the
argument, what was passed, and what would be right.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SashError(Exception):
    """The root of all errors raised by Sash."""


class InvalidArgument(SashError, ValueError):
    """An argument has a value that cannot work."""


class InvalidWindow(SashError, ValueError):
    """A window's size, slide or other parameter cannot work."""


class InvalidType(SashError, TypeError):
    """An argument or a column has a type that is not supported here."""


class UnknownName(SashError, LookupError):
    """A name (of an aggregate, an algorithm, a column) that does not exist."""


class InvalidExpression(SashError, ValueError):
    """SQL text that cannot be parsed, or has no meaning over these columns."""


class UndefinedValue(InvalidExpression):
    """An expression has no value for some row, as a text that is no number has when it is cast to one."""


class InvalidQuery(SashError, ValueError):
    """A query as text that cannot be parsed, or has no meaning over its streams; ``line`` and ``column`` count from 1."""

    line: int | None = None
    column: int | None = None


class LateRow(SashError, ValueError):
    """A row out of order in a stream that was declared to be in order."""


class InvalidSnapshot(SashError, ValueError):
    """Bytes that are no snapshot, or one of another query, version or schema."""


class UnlawfulAlgorithm(SashError, ValueError):
    """An algorithm was forced on an aggregate that lacks a law which the algorithm needs."""


class BrokenLaw(SashError, ValueError):
    """An aggregate violates a law that it claims."""


class UncompilableFunction(SashError, TypeError):
    """A user's function uses something that cannot be compiled."""


class RefusedCache(SashError, PermissionError):
    """The folder that ``SASH_CACHE`` names could hold other people's native code."""


class UserFunctionFailed(SashError, RuntimeError):
    """A user's function raised an error: in a compiled kernel, or somewhere in a cluster."""


class StreamFailed(SashError, RuntimeError):
    """A streaming query ended with an error."""


class NoSpark(SashError, RuntimeError):
    """Spark cannot be started here."""


class MissingPackage(SashError, ImportError):
    """An optional package is needed and not installed."""


class DeviceUnavailable(SashError, RuntimeError):
    """A device that does not exist here, lacks what the work needs, or failed its self-test."""


class DeviceFailed(SashError, RuntimeError):
    """A device's driver failed: it did not build a program, or did not run it."""


class EmptyWindow(SashError, IndexError):
    """A row was evicted from a window that has none."""


class IntegerOverflow(SashError, OverflowError):
    """The exact result of a window does not fit into its type."""


def unknown(kind: str, name: object, known: Iterable[str]) -> UnknownName:
    """An :class:`UnknownName` that suggests the nearest known name.

    >>> print(unknown("aggregate", "mni", ["min", "max"]))
    unknown aggregate 'mni': did you mean 'min'? Known: max, min
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?" if near else "."
    return UnknownName(f"unknown {kind} {name!r}{hint} Known: {', '.join(names)}")
