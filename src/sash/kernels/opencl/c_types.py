"""Types of values in generated C, and what they are called there.

Numbers meet as numba lets them meet: integers in 64 bits, anything with a float in double, two single floats in single. Vectors of numbers
follow the same rules, lane by lane; a vector of truths is a *mask*, with as many bits per lane as what was compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sash.types import FLOATS, INTEGERS, UNSIGNED

MASKS = {8: "char", 16: "short", 32: "int", 64: "long"}
_C = {
    "bool": "int",  # structs with truths of one byte are miscompiled by one driver
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
    "float32": "float",
    "float64": "double",
}


@dataclass(frozen=True)
class Scalar:
    """One number or truth."""

    machine: str

    @property
    def c(self) -> str:
        return _C[self.machine]

    @property
    def in_memory(self) -> str:
        """The type of an array's elements."""
        return "uchar" if self.machine == "bool" else self.c


@dataclass(frozen=True)
class Vector:
    """``count`` numbers of one type; of truths with ``bits`` each."""

    machine: str
    count: int
    bits: int = 0

    @property
    def c(self) -> str:
        return f"{MASKS[self.bits] if self.machine == 'bool' else _C[self.machine]}{self.count}"


@dataclass(frozen=True)
class Struct:
    """Several values: a partial, or a function's results."""

    fields: tuple[Any, ...]

    @property
    def c(self) -> str:
        return "struct_" + "_".join(f.c for f in self.fields)

    @property
    def definition(self) -> str:
        fields = " ".join(f"{f.c} f{k};" for k, f in enumerate(self.fields))
        return f"typedef struct {{ {fields} }} {self.c};"


@dataclass(frozen=True)
class Pointer:
    """An array in a device's memory."""

    machine: str
    space: str = "__global"
    read_only: bool = False

    @property
    def c(self) -> str:
        return f"{self.space}{' const' if self.read_only else ''} {Scalar(self.machine).in_memory} *"


@dataclass(frozen=True)
class Bundle:
    """Arrays and numbers that are passed together: the columns of rows, partials or results."""

    parts: tuple[Any, ...]


BOOL, INT, DOUBLE = Scalar("bool"), Scalar("int64"), Scalar("float64")


def bits_of(machine: str) -> int:
    """The width of a number in a register."""
    return 8 if machine == "bool" else int("".join(c for c in machine if c.isdigit()))


def is_float(machine: str) -> bool:
    return machine in FLOATS


def is_integer(machine: str) -> bool:
    return machine in INTEGERS


def is_unsigned(machine: str) -> bool:
    return machine in UNSIGNED


def meeting(a: str, b: str) -> str:
    """The machine type in which two numbers are added."""
    if is_float(a) or is_float(b):
        return "float32" if a == b == "float32" else "float64"
    if a == b == "uint64":
        return "uint64"
    return "float64" if "uint64" in (a, b) and is_integer(a) and is_integer(b) and not (is_unsigned(a) and is_unsigned(b)) else _whole(a, b)


def _whole(a: str, b: str) -> str:
    return "uint64" if is_unsigned(a) and is_unsigned(b) else "int64"


def joined(a: Any, b: Any) -> Any:
    """The type of a variable that is assigned both; None if there is none."""
    if a == b:
        return a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return Scalar(meeting(a.machine, b.machine))
    if isinstance(a, Vector) or isinstance(b, Vector):
        count = a.count if isinstance(a, Vector) else b.count
        if isinstance(a, Vector) and isinstance(b, Vector) and (a.count != b.count):
            return None
        if not isinstance(a, Vector | Scalar) or not isinstance(b, Vector | Scalar):
            return None
        if a.machine == b.machine == "bool":
            return Vector("bool", count, max(getattr(a, "bits", 0), getattr(b, "bits", 0)))
        return Vector(meeting(a.machine, b.machine), count)
    if isinstance(a, Struct) and isinstance(b, Struct) and len(a.fields) == len(b.fields):
        fields = tuple(joined(x, y) for x, y in zip(a.fields, b.fields, strict=True))
        return None if None in fields else Struct(fields)
    return None
