"""Python's operators in C: on numbers and, lane by lane, on vectors. Meaning is that of the CPU's kernels, without undefined behaviour.

Integers wrap at 64 bits, as machine code does. Divisions by zero return 0 for integers and the float that IEEE has for floats.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from sash.kernels.opencl.c_types import BOOL, MASKS, Scalar, Struct, Vector, bits_of, is_float, is_unsigned, joined, meeting
from sash.kernels.opencl.prelude import Helpers


class Untranslatable(Exception):
    """Why something has no form in OpenCL C."""


@dataclass(frozen=True)
class Value:
    """An expression in C and its type; a tuple has ``parts`` instead of a text."""

    text: str
    type: Any
    parts: tuple[Value, ...] | None = None
    constant: Any = None
    """The number, where it is known."""


ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
BITWISE = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class Operators:
    """Operators over values; ``helpers`` collects the functions that their texts call."""

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers

    # Conversions.

    def converted(self, value: Value, to: Any) -> Value:
        """A value in another type."""
        if value.type == to:
            return value
        if isinstance(to, Struct):
            parts = tuple(self.converted(p, f) for p, f in zip(self.parts_of(value), to.fields, strict=True))
            return Value("", to, parts)
        if isinstance(to, Vector):
            return self._as_vector(value, to)
        if not isinstance(value.type, Scalar) or not isinstance(to, Scalar):
            raise Untranslatable(f"a {_shown(value.type)} where a {_shown(to)} is needed")
        return Value(self._scalar(value.text, value.type.machine, to.machine), to, None, value.constant)

    def _scalar(self, text: str, have: str, want: str) -> str:
        if want == "bool":
            return f"({text} != 0)"
        if is_float(have) and not is_float(want):
            wide = self.helpers.call("to_ulong" if want == "uint64" else "to_long", f"(double)({text})")
            return wide if want in ("int64", "uint64") else f"({Scalar(want).c})({wide})"
        return f"({Scalar(want).c})({text})"

    def _as_vector(self, value: Value, to: Vector) -> Value:
        n = to.count
        if isinstance(value.type, Scalar):
            if to.machine == "bool":
                return Value(f"({to.c})({self.truth(value).text} ? -1 : 0)", to)
            return Value(f"({to.c})({self.converted(value, Scalar(to.machine)).text})", to)
        if not isinstance(value.type, Vector) or value.type.count != n:
            raise Untranslatable(f"a {_shown(value.type)} where a {_shown(to)} is needed")
        have = value.type
        if to.machine == "bool":
            mask = self.mask(value)
            return mask if mask.type == to else Value(f"convert_{to.c}({mask.text})", to)
        if have.machine == "bool":
            wide = MASKS[bits_of(to.machine)] + str(n)
            ones = f"-convert_{wide}({value.text})" if have.bits != bits_of(to.machine) else f"-({value.text})"
            return Value(f"convert_{to.c}({ones})", to)
        return Value(f"convert_{to.c}({value.text})", to)

    def mask(self, value: Value) -> Value:
        """A vector of numbers as the truth of each."""
        if value.type.machine == "bool":
            return value
        zero = f"({value.type.c})(0)"
        return Value(f"({value.text} != {zero})", Vector("bool", value.type.count, bits_of(value.type.machine)))

    def truth(self, value: Value) -> Value:
        """Whether a number counts as true."""
        if isinstance(value.type, Vector):
            return self.mask(value)
        if not isinstance(value.type, Scalar):
            raise Untranslatable(f"a {_shown(value.type)} has no truth value")
        return value if value.type == BOOL else Value(f"({value.text} != 0)", BOOL)

    def parts_of(self, value: Value) -> tuple[Value, ...]:
        """The values in a tuple."""
        if value.parts is not None:
            return value.parts
        if isinstance(value.type, Struct):
            return tuple(Value(f"{value.text}.f{k}", f) for k, f in enumerate(value.type.fields))
        raise Untranslatable(f"a {_shown(value.type)} is not a tuple")

    # Operators.

    def binary(self, op: ast.operator, a: Value, b: Value, *, wraps: bool) -> Value:
        """``a op b``; integers that do not wrap are indices, which compilers know to stay in range."""
        for v in (a, b):
            if not isinstance(v.type, Scalar | Vector):
                raise Untranslatable(f"arithmetic on a {_shown(v.type)}")
        kind = type(op)
        if kind in BITWISE:
            return self._bitwise(BITWISE[kind], a, b)
        if kind in (ast.LShift, ast.RShift):
            return self._shifted(kind is ast.LShift, a, b)
        if kind is ast.Pow:
            return self._power(a, b)
        machine = self._machine(a, b)
        if kind is ast.Div:
            machine = machine if is_float(machine) else "float64"
        to = self._wide(a, b, machine)
        x, y = self.converted(a, to).text, self.converted(b, to).text
        if kind is ast.Div or (kind in ARITHMETIC and is_float(machine)):
            return Value(f"({x} {'/' if kind is ast.Div else ARITHMETIC[kind]} {y})", to)
        if kind in ARITHMETIC:
            return Value(self._whole(ARITHMETIC[kind], x, y, to, wraps), to)
        if kind in (ast.FloorDiv, ast.Mod):
            name = "floor_div" if kind is ast.FloorDiv else "floor_mod"
            if isinstance(to, Scalar) and not wraps and b.constant:
                return Value(f"({x} {'/' if kind is ast.FloorDiv else '%'} {y})", to)
            return Value(self.helpers.call(f"{name}_{to.c}", x, y), to)
        raise Untranslatable("this operator")

    def _machine(self, a: Value, b: Value) -> str:
        return meeting(a.type.machine, b.type.machine)

    def _wide(self, a: Value, b: Value, machine: str) -> Any:
        counts = {v.type.count for v in (a, b) if isinstance(v.type, Vector)}
        if len(counts) > 1:
            raise Untranslatable("vectors of different lengths")
        return Vector(machine, counts.pop()) if counts else Scalar(machine)

    def _whole(self, symbol: str, x: str, y: str, to: Any, wraps: bool) -> str:
        if is_unsigned(to.machine) or not wraps:
            return f"({x} {symbol} {y})"
        if isinstance(to, Vector):
            return f"as_{to.c}(as_u{to.c}({x}) {symbol} as_u{to.c}({y}))"
        return f"(long)((ulong)({x}) {symbol} (ulong)({y}))"

    def _bitwise(self, symbol: str, a: Value, b: Value) -> Value:
        if any(is_float(v.type.machine) for v in (a, b)):
            raise Untranslatable(f"{symbol} of floats")
        if a.type.machine == b.type.machine == "bool":
            to = joined(a.type, b.type)
        else:
            to = self._wide(a, b, "uint64" if "uint64" in (a.type.machine, b.type.machine) else "int64")
        return Value(f"({self.converted(a, to).text} {symbol} {self.converted(b, to).text})", to)

    def _shifted(self, left: bool, a: Value, b: Value) -> Value:
        if any(is_float(v.type.machine) for v in (a, b)):
            raise Untranslatable("shifts of floats")
        to = self._wide(a, b, "uint64" if a.type.machine == "uint64" else "int64")
        x, y = self.converted(a, to).text, self.converted(b, to).text
        if b.constant is None and isinstance(to, Scalar):
            return Value(self.helpers.call(f"shift_{'left' if left else 'right'}_{to.c}", x, y), to)
        if b.constant is not None and not 0 <= b.constant < 64:
            if b.constant < 0:
                raise Untranslatable("a shift by a negative number")
            y = "63" if not left else y
            x = x if not left else "0"
        if not left:
            return Value(f"({x} >> {y})", to)
        unsigned = to.c if to.machine == "uint64" else f"u{to.c}"
        return Value(f"as_{to.c}(as_{unsigned}({x}) << as_{unsigned}({y}))", to)

    def _power(self, a: Value, b: Value) -> Value:
        if any(isinstance(v.type, Vector) for v in (a, b)):
            raise Untranslatable("** in vector lanes")
        machine = self._machine(a, b)
        if is_float(machine):
            to = Scalar(machine)
            return Value(f"pow({self.converted(a, to).text}, {self.converted(b, to).text})", to)
        whole = Scalar("int64")
        return Value(self.helpers.call("power_long", self.converted(a, whole).text, self.converted(b, whole).text), whole)

    def compared(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """``a op b`` as a truth, or a mask."""
        symbol = COMPARISONS.get(type(op))
        if symbol is None:
            raise Untranslatable("this comparison")
        if isinstance(a.constant, int) and isinstance(b.constant, int):
            holds = {"<": a.constant < b.constant, "==": a.constant == b.constant}
            holds |= {">": not (holds["<"] or holds["=="]), "!=": not holds["=="], "<=": holds["<"] or holds["=="], ">=": not holds["<"]}
            return Value("true" if holds[symbol] else "false", BOOL, None, holds[symbol])
        for v in (a, b):
            if not isinstance(v.type, Scalar | Vector):
                raise Untranslatable(f"a comparison of a {_shown(v.type)}")
        machines = {a.type.machine, b.type.machine}
        if isinstance(a.type, Scalar) and isinstance(b.type, Scalar):
            if "uint64" in machines and any(m.startswith("int") for m in machines):
                return Value(self._mixed_signs(symbol, a, b), BOOL)
            to = a.type if a.type == b.type else Scalar(self._machine(a, b))
            return Value(f"({self.converted(a, to).text} {symbol} {self.converted(b, to).text})", BOOL)
        machine = a.type.machine if len(machines) == 1 else self._machine(a, b)
        if machine == "bool":
            machine = "int64"
        to = self._wide(a, b, machine)
        mask = Vector("bool", to.count, bits_of(machine))
        return Value(f"({self.converted(a, to).text} {symbol} {self.converted(b, to).text})", mask)

    def _mixed_signs(self, symbol: str, a: Value, b: Value) -> str:
        signed, _ = (a, b) if b.type.machine == "uint64" else (b, a)
        negative = f"({signed.text} < 0)"
        plain = f"((ulong)({a.text}) {symbol} (ulong)({b.text}))"
        when = {"==": "false", "!=": "true"}.get(symbol) or ("true" if (symbol[0] == "<") == (signed is a) else "false")
        return f"({negative} ? {when} : {plain})"

    def negative(self, a: Value, *, wraps: bool) -> Value:
        """``-a``."""
        if a.type.machine == "bool" or (not is_float(a.type.machine) and bits_of(a.type.machine) < 64):
            a = self.converted(a, self._wide(a, a, "int64"))
        if is_float(a.type.machine) or not wraps:
            return Value(f"(-{a.text})", a.type, None, None if a.constant is None else -a.constant)
        if isinstance(a.type, Vector):
            return Value(f"as_{a.type.c}(-as_u{a.type.c.removeprefix('u')}({a.text}))", a.type)
        return Value(f"({a.type.c})(0 - (ulong)({a.text}))", a.type, None, None if a.constant is None else -a.constant)

    def negated(self, a: Value) -> Value:
        """``not a``."""
        t = self.truth(a)
        return Value(f"(~{t.text})" if isinstance(t.type, Vector) else f"(!{t.text})", t.type)

    def both(self, symbol: str, a: Value, b: Value) -> Value:
        """``a and b`` or ``a or b`` of truths, without short circuit in vectors."""
        x, y = self.truth(a), self.truth(b)
        if isinstance(x.type, Scalar) and isinstance(y.type, Scalar):
            return Value(f"({x.text} {symbol * 2} {y.text})", BOOL)
        to = joined(x.type, y.type)
        return Value(f"({self.converted(x, to).text} {symbol} {self.converted(y, to).text})", to)

    def chosen(self, condition: Value, a: Value, b: Value) -> Value:
        """``a if condition else b``; of tuples field by field."""
        if a.parts is not None or b.parts is not None or isinstance(a.type, Struct) or isinstance(b.type, Struct):
            first, second = self.parts_of(a), self.parts_of(b)
            if len(first) != len(second):
                raise Untranslatable("a choice between tuples of different lengths")
            parts = tuple(self.chosen(condition, x, y) for x, y in zip(first, second, strict=True))
            return Value("", Struct(tuple(p.type for p in parts)), parts)
        c = self.truth(condition)
        to = joined(a.type, b.type)
        if to is None:
            raise Untranslatable(f"a choice between a {_shown(a.type)} and a {_shown(b.type)}")
        if isinstance(c.type, Scalar):
            return Value(f"({c.text} ? {self.converted(a, to).text} : {self.converted(b, to).text})", to)
        if isinstance(to, Scalar):
            to = Vector(to.machine, c.type.count, c.type.bits if to.machine == "bool" else 0)
        bits = to.bits if to.machine == "bool" else bits_of(to.machine)
        m = self.converted(c, Vector("bool", to.count, bits))
        return Value(f"select({self.converted(b, to).text}, {self.converted(a, to).text}, {m.text})", to)


def _shown(t: Any) -> str:
    if isinstance(t, Struct):
        return f"tuple of {len(t.fields)}"
    return "vector" if isinstance(t, Vector) else "number" if isinstance(t, Scalar) else "column"
