"""Turns the functions of a generated module into OpenCL C.

Types are inferred from the arguments of the first call: each function is written once for each combination of argument types. A pass over
a function's body infers the types of its variables and writes its text; passes are repeated until no type changes, and the last text
stands.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from sash.errors import UncompilableFunction
from sash.kernels.opencl.c_functions import Functions
from sash.kernels.opencl.c_operators import Operators, Value
from sash.kernels.opencl.c_types import Bundle, Struct
from sash.kernels.opencl.function_writer import FunctionState, FunctionWriter, c_name, flat_arguments, variable_name
from sash.kernels.opencl.prelude import Helpers

PASSES = 12


@dataclass
class Written:
    """A function in C."""

    name: str
    text: str
    returns: Any


class Translator:
    """The functions of one module, written on demand."""

    def __init__(self, definitions: dict[str, ast.FunctionDef], lanes: int, origins: dict[str, str], *, in_order: bool) -> None:
        self.definitions, self.origins, self.in_order = definitions, origins, in_order
        self.helpers = Helpers()
        self.operators = Operators(self.helpers)
        self.functions = Functions(self.operators, lanes)
        self.written: dict[tuple[Any, ...], Written] = {}
        self.structs: dict[str, Struct] = {}
        self._order: list[Written] = []
        self._names: set[str] = set()
        self._active: list[tuple[Any, ...]] = []
        self.extra_words: dict[str, Any] = {}

    def text(self) -> str:
        """Everything that was written, callees first."""
        structs = [s.definition for s in self.structs.values()]
        return "\n\n".join([*structs, *self.helpers.used.values(), *(w.text for w in self._order)])

    def add_function(self, name: str, text: str) -> None:
        """A function whose text is written elsewhere, behind those that it calls."""
        if name not in self._names:
            self._names.add(name)
            self._order.append(Written(name, text, None))

    def function(self, name: str, types: tuple[Any, ...]) -> Written:
        """A function for these types of arguments."""
        key = (name, types)
        if key in self.written:
            return self.written[key]
        if key in self._active:
            raise UncompilableFunction(f"{self.origin(name)} calls itself, which devices cannot")
        self._active.append(key)
        try:
            result = self._write(name, types)
        finally:
            self._active.pop()
        self.written[key] = result
        self._order.append(result)
        return result

    def origin(self, name: str) -> str:
        return self.origins.get(name) or next((self.origins[n] for n in self.origins if name.startswith(f"{n}_")), name)

    def _write(self, name: str, types: tuple[Any, ...]) -> Written:
        definition = self.definitions[name]
        names = [a.arg for a in definition.args.args]
        defaults = definition.args.defaults
        wraps = not any(isinstance(t, Bundle) for t in types)
        writer = FunctionWriter(self, name, FunctionState(definition, wraps))
        for parameter, t in zip(names, types, strict=False):
            writer.f.parameters[parameter] = _parameter(c_name(parameter), t)
        for parameter, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            if parameter not in writer.f.parameters:
                writer.f.parameters[parameter] = writer.expression(default)
        body = self._settled(writer)
        unique, k = f"{name}_", 1
        while unique in self._names:
            unique, k = f"{name}_{k}_", k + 1
        self._names.add(unique)
        returns = writer.f.returns
        arguments = ", ".join(f"{t.c} {n}" for p in names if p in writer.f.parameters for n, t in flat_arguments(writer.f.parameters[p]))
        head = f"inline {'void' if returns is None else self.named(returns).c} {unique}({arguments}) {{"
        return Written(unique, "\n".join([head, *(f"    {line}" for line in body), "}"]), returns)

    def _settled(self, writer: FunctionWriter) -> list[str]:
        f = writer.f
        for _ in range(PASSES):
            f.lines, f.temporaries, f.changed = [], 0, False
            writer.statements(f.definition.body)
            if not f.changed:
                declared = []
                for variable, t in f.variables.items():
                    start = f.parameters.get(variable)
                    value = f" = {self.operators.converted(start, t).text}" if start is not None and not isinstance(t, Struct) else ""
                    declared.append(f"{self.named(t).c} {variable_name(variable)}{value or _zero(t)};")
                    if start is not None and isinstance(t, Struct):
                        declared += [
                            f"{variable_name(variable)}.f{k} = {self.operators.converted(p, t.fields[k]).text};"
                            for k, p in enumerate(self.operators.parts_of(start))
                        ]
                return [*declared, *f.lines]
        raise UncompilableFunction(f"{self.origin(f.definition.name)}: the types of its variables do not settle")

    def named(self, t: Any) -> Any:
        """A type, defined if it is a tuple."""
        if isinstance(t, Struct):
            self.structs.setdefault(t.c, t)
        return t


def _zero(t: Any) -> str:
    return " = {0}" if isinstance(t, Struct) else " = 0"


def _parameter(name: str, t: Any) -> Value:
    if isinstance(t, Bundle):
        return Value("", t, tuple(_parameter(f"{name}_{k}", part) for k, part in enumerate(t.parts)))
    return Value(name, t)
