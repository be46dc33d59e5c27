"""Calls in C: casts, Python's own functions, ``math`` and NumPy, the primitives, and the words of lanes and of groups of items."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from sash.kernels.opencl.c_operators import Operators, Untranslatable, Value
from sash.kernels.opencl.c_types import (
    BOOL,
    DOUBLE,
    INT,
    MASKS,
    Bundle,
    Pointer,
    Scalar,
    Vector,
    bits_of,
    is_float,
    is_integer,
)
from sash.types import MACHINE_TYPES

CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
OF_FLOATS = {
    **{n: n for n in ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan")},
    **{n: n for n in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "cbrt", "exp2", "erf", "erfc", "atan2", "hypot")},
    **{n: n for n in ("copysign", "fmod", "pow")},
    "gamma": "tgamma",
    "lgamma": "lgamma",
}
TESTS = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
TO_WHOLE = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}
NUMPY = {"absolute": "abs", "arctan": "atan", "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "power": "pow", "float_power": "pow"}


def literal(value: float | int | bool) -> Value:
    """A number as C writes it."""
    if isinstance(value, bool):
        return Value("true" if value else "false", BOOL, None, value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise Untranslatable(f"{value} needs more than 64 bits")
        if value == -(2**63):
            return Value("LONG_MIN", INT, None, value)
        return Value(f"{value}L" if value < 2**63 else f"{value}UL", INT if value < 2**63 else Scalar("uint64"), None, value)
    if math.isnan(value):
        return Value("(double)NAN", DOUBLE, None, value)
    if math.isinf(value):
        return Value("(double)INFINITY" if value > 0 else "(-(double)INFINITY)", DOUBLE, None, value)
    return Value(float(value).hex() if value != int(value) or abs(value) > 1e15 else repr(float(value)), DOUBLE, None, value)


class Functions:
    """The functions that generated text may call besides those that it defines."""

    def __init__(self, operators: Operators, lanes: int) -> None:
        self.operators, self.lanes = operators, lanes
        self.words: dict[str, Callable[..., Value]] = {
            "where": operators.chosen,
            "both": lambda a, b: operators.both("&", a, b),
            "either": lambda a, b: operators.both("|", a, b),
            "negate": operators.negated,
            "smaller": lambda a, b: self._extreme(ast.LtE(), a, b),
            "larger": lambda a, b: self._extreme(ast.GtE(), a, b),
            "ratio": lambda a, b: operators.binary(ast.Div(), a, b, wraps=True),
            "abs": self._abs,
            "lane_abs": self._abs,
            "min": lambda *v: self._first_of(ast.Lt(), v),
            "max": lambda *v: self._first_of(ast.Gt(), v),
            "bool": operators.truth,
            "lane_bool": operators.truth,
            "float": lambda a: self._cast("float64", a),
            "lane_float": lambda a: self._cast("float64", a),
            "int": lambda a: self._cast("int64", a),
            "round": self._round,
            "lane_sqrt": lambda a: self._of_floats("sqrt", a),
            "lane_fabs": lambda a: self._of_floats("fabs", a),
            "lane_floor": lambda a: self._of_floats("floor", a),
            "lane_ceil": lambda a: self._of_floats("ceil", a),
            "like": self._like,
            "evens": lambda v: self._half(v, "even"),
            "odds": lambda v: self._half(v, "odd"),
            "evens_of_two": lambda a, b: Value(f"({a.type.c})({a.text}.even, {b.text}.even)", a.type),
            "odds_of_two": lambda a, b: Value(f"({a.type.c})({a.text}.odd, {b.text}.odd)", a.type),
            "first_lane": lambda v: v if isinstance(v.type, Scalar) else self._lane(v, f"{v.text}.s0"),
            "lane": self._any_lane_of,
            "any_lane": lambda m: Value(f"any({m.text})", BOOL) if isinstance(m.type, Vector) else m,
            "positions": self._positions,
            "bits": self._bits,
            "put": self._put,
            "put_past_caches": self._put,
            "fetch": lambda pointer, i: Value("", None),
            "place_in_line": lambda pointer: literal(0),
            "ones": lambda x: Value(operators.helpers.call("ones_of", x.text), INT),
            "trailing_zeros": lambda x: Value(operators.helpers.call("trailing_zeros_of", x.text), INT),
            "leading_zeros": lambda x: Value(operators.helpers.call("leading_zeros_of", x.text), INT),
            "item": lambda: Value("(long)get_local_id(0)", INT),
            "group": lambda: Value("(long)get_group_id(0)", INT),
            "groups": lambda: Value("(long)get_num_groups(0)", INT),
            "barrier": lambda: Value("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)", None),
        }

    def call(self, name: str, arguments: list[Value]) -> Value | None:
        """A call of a function without a module; None if there is none of this name."""
        if name in MACHINE_TYPES:
            return self._cast(name, *arguments)
        for prefix, apply in (("lanes_", self._lanes), ("load_", self._loaded)):
            if name.startswith(prefix) and name.removeprefix(prefix) in MACHINE_TYPES:
                return apply(name.removeprefix(prefix), *arguments)
        word = self.words.get(name)
        if word is None:
            return None
        try:
            return word(*arguments)
        except TypeError as error:
            raise Untranslatable(f"{name} with {len(arguments)} arguments") from error

    def of_module(self, module: str, name: str, arguments: list[Value]) -> Value:
        """A call of ``math.name`` or ``numpy.name``."""
        if module == "numpy":
            name = NUMPY.get(name, name)
            if name in ("minimum", "maximum") and len(arguments) == 2:
                return self._propagating(name, *arguments)
            if name == "where" and len(arguments) == 3:
                return self.operators.chosen(*arguments)
            if name == "abs":
                return self._abs(*arguments)
            if name in ("bool_", *MACHINE_TYPES):
                return self._cast(name.rstrip("_"), *arguments)
            if name in TO_WHOLE and len(arguments) == 1:
                return self._of_floats(TO_WHOLE[name], *arguments)
        if name in TESTS and len(arguments) == 1:
            x = arguments[0]
            return Value(f"{TESTS[name]}({x.text})", BOOL) if is_float(x.type.machine) else literal(name == "isfinite")
        if name in TO_WHOLE and len(arguments) == 1:
            x = arguments[0]
            return x if is_integer(x.type.machine) else self._cast("int64", Value(f"{TO_WHOLE[name]}({x.text})", x.type))
        if name in OF_FLOATS:
            return self._of_floats(OF_FLOATS[name], *arguments)
        raise Untranslatable(f"{'np' if module == 'numpy' else module}.{name}")

    # Functions of numbers.

    def _cast(self, machine: str, a: Value) -> Value:
        to = Vector(machine, a.type.count) if isinstance(a.type, Vector) else Scalar(machine)
        return self.operators.truth(a) if machine == "bool" else self.operators.converted(a, to)

    def _abs(self, a: Value) -> Value:
        if is_float(a.type.machine):
            return Value(f"fabs({a.text})", a.type)
        wide = a if a.type.machine == "uint64" else self._cast("int64", a)
        zero = literal(0)
        return self.operators.chosen(self.operators.compared(ast.Lt(), wide, zero), self.operators.negative(wide, wraps=True), wide)

    def _extreme(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        """The smaller or larger, the first of equals; NaN is larger than any number."""
        holds = self.operators.compared(op, a, b)
        if is_float(a.type.machine) or is_float(b.type.machine):
            nan = b if isinstance(op, ast.LtE) else a
            holds = self.operators.both("|", self.operators.compared(ast.NotEq(), nan, nan), holds)
        return self.operators.chosen(holds, a, b)

    def _first_of(self, op: ast.cmpop, values: tuple[Value, ...]) -> Value:
        if len(values) < 2:
            raise Untranslatable("min or max of one value")
        best = values[0]
        for other in values[1:]:
            best = self.operators.chosen(self.operators.compared(op, other, best), other, best)
        return best

    def _propagating(self, name: str, a: Value, b: Value) -> Value:
        op = ast.LtE() if name == "minimum" else ast.GtE()
        holds = self.operators.compared(op, a, b)
        if is_float(a.type.machine):
            holds = self.operators.both("|", self.operators.compared(ast.NotEq(), a, a), holds)
        return self.operators.chosen(holds, a, b)

    def _round(self, a: Value) -> Value:
        return a if is_integer(a.type.machine) else self._cast("int64", Value(f"rint({a.text})", a.type))

    def _of_floats(self, name: str, *arguments: Value) -> Value:
        machine = "float32" if all(a.type.machine == "float32" for a in arguments) else "float64"
        texts = [self._cast(machine, a) for a in arguments]
        return Value(f"{name}({', '.join(t.text for t in texts)})", texts[0].type)

    # Words of lanes.

    def _lanes(self, machine: str, value: Value) -> Value:
        count = value.type.count if isinstance(value.type, Vector) else self.lanes
        if machine == "bool":
            if isinstance(value.type, Vector):
                return self.operators.mask(value)
            return self.operators.converted(value, Vector("bool", count, 32))
        return self.operators.converted(value, Vector(machine, count))

    def _loaded(self, machine: str, pointer: Value, i: Value) -> Value:
        n = self.lanes
        raw = Value(
            f"vload{n}(0, {pointer.text} + {i.text})", Vector("uint8" if pointer.type.machine == "bool" else pointer.type.machine, n)
        )
        if machine == "bool":
            mask = self.operators.mask(raw)
            return Value(mask.text, Vector("bool", n, 8))
        return self.operators.converted(raw, Vector(machine, n))

    def _put(self, pointer: Value, i: Value, value: Value) -> Value:
        """A store in parts of 32 bytes at most: some drivers do not return from longer ones."""
        n, machine = self.lanes, pointer.type.machine
        if machine == "bool":
            mask = self.operators.mask(value) if isinstance(value.type, Vector) else self._lanes("bool", value)
            value = Value(f"(convert_uchar{n}(-({mask.text})))", Vector("uint8", n))
        else:
            value = self.operators.converted(value, Vector(machine, n))
        if n * bits_of(machine) <= 256:
            return Value(f"vstore{n}({value.text}, 0, {pointer.text} + {i.text})", None)
        name = self.operators.helpers
        space = "global" if "global" in pointer.type.space else "local"
        function = f"store_{space}_{value.type.c}"
        element = Scalar(machine).in_memory
        half = n // 2
        name.define(
            function,
            f"inline void {function}({pointer.type.space} {element} *p, {value.type.c} v) {{\n"
            f"    vstore{half}(v.lo, 0, p);\n    vstore{half}(v.hi, 0, p + {half});\n}}",
        )
        return Value(f"{function}({pointer.text} + {i.text}, {value.text})", None)

    def _like(self, model: Value, value: Value) -> Value:
        if isinstance(model.type, Vector) and model.type.machine == "bool":
            return self.operators.mask(value) if isinstance(value.type, Vector) else self.operators.converted(value, model.type)
        return self.operators.converted(value, model.type)

    def _lane(self, v: Value, text: str) -> Value:
        return Value(f"({text} != 0)", BOOL) if v.type.machine == "bool" else Value(text, Scalar(v.type.machine))

    def _half(self, v: Value, which: str) -> Value:
        if isinstance(v.type, Scalar):
            return v
        if v.type.count == 2:
            return self._lane(v, f"{v.text}.{which}")
        return Value(f"{v.text}.{which}", Vector(v.type.machine, v.type.count // 2, v.type.bits))

    def _any_lane_of(self, v: Value, k: Value) -> Value:
        element = MASKS[v.type.bits] if v.type.machine == "bool" else Scalar(v.type.machine).c
        return self._lane(v, f"((const {element} *)&{v.text})[{k.text}]")

    def _positions(self, i: Value) -> Value:
        n = self.lanes
        return Value(f"((long{n})({i.text}) + (long{n})({', '.join(map(str, range(n)))}))", Vector("int64", n))

    def _bits(self, pointer: Value, i: Value) -> Value:
        n = self.lanes
        name = f"bits_{n}"
        ones = ", ".join(str(1 << k) for k in range(n))
        more = " | (uint)p[(i >> 3) + 2] << 16" if n > 9 else ""
        self.operators.helpers.define(
            name,
            f"inline int{n} {name}(__global const uchar *p, long i) {{\n"
            f"    uint word = ((uint)p[i >> 3] | (uint)p[(i >> 3) + 1] << 8{more}) >> (i & 7);\n"
            f"    return ((int{n})((int)word) & (int{n})({ones})) != 0;\n}}",
        )
        return Value(f"{name}({pointer.text}, {i.text})", Vector("bool", n, 32))


def type_of_parts(parts: tuple[Value, ...]) -> Any:
    """The type of a tuple of columns."""
    return Bundle(tuple(p.type if p.parts is None or isinstance(p.type, Bundle) else type_of_parts(p.parts) for p in parts))


def is_columns(value: Value) -> bool:
    """Whether a tuple holds arrays, so that it is passed on and never stored."""
    if isinstance(value.type, Bundle):
        return True
    return value.parts is not None and any(isinstance(p.type, Pointer) or is_columns(p) for p in value.parts)
