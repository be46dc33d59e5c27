"""What an aggregate is: ``identity``, ``lift``, ``combine``, ``lower``, perhaps ``invert``, and the laws it keeps.

The Reactive Aggregator's section 3 is the source of the interface: ``lift`` turns a row into a *partial* (a flat tuple of
scalars), ``combine`` joins two neighbouring partials and is associative, ``lower`` turns a partial into a result.
``combine(a, b)`` is only ever called with ``a`` earlier than ``b``.

Two records matter. An :class:`Aggregate` knows names, laws and types; a :class:`Form` is an aggregate bound to the machine
types of its inputs, which is all that the kernel generator needs to know.
"""

from __future__ import annotations

from sash.algebra.aggregate import Aggregate, Kind, columns_of, reinterpreted, struct_of
from sash.algebra.form import NOTHING, POSITION, Form, Nothing, Objects, as_objects
from sash.algebra.primitives import PRIMITIVES, Function, Partial, Value, larger, ratio, smaller

__all__ = [
    "NOTHING",
    "POSITION",
    "PRIMITIVES",
    "Aggregate",
    "Form",
    "Function",
    "Kind",
    "Nothing",
    "Objects",
    "Partial",
    "Value",
    "as_objects",
    "columns_of",
    "larger",
    "ratio",
    "reinterpreted",
    "smaller",
    "struct_of",
]
