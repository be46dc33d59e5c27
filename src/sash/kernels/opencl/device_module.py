"""A generated module as an OpenCL program with one kernel.

Algorithms of one item run in *shares*: item ``k`` gets the ``k``-th part of the places ``begin`` to ``end - 1``, and its own part of the
scratch memory, and groups have a single item. Algorithms of groups get their arguments as they are; their local memory is declared in the
kernel.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache

from sash.kernels.generate import Module
from sash.kernels.opencl.atomics import merge_word
from sash.kernels.opencl.c_operators import Value
from sash.kernels.opencl.c_types import Bundle, Pointer, Scalar
from sash.kernels.opencl.translator import Translator
from sash.kernels.words import Argument

NAME = "sash_kernel"
HEAD = """// {title}
#pragma OPENCL FP_CONTRACT OFF
{extensions}"""
SHARE, PLACES = "share", "scratch_places"


@dataclass(frozen=True)
class DeviceModule:
    """A program in OpenCL C, and the arguments of its kernel."""

    title: str
    text: str
    arguments: tuple[Argument, ...]
    group: int
    """How many items a group has."""
    shares: bool
    local_bytes: int = 0
    module: Module = field(repr=False, default=None)  # type: ignore[assignment]


@lru_cache(maxsize=1024)
def device_module(
    module: Module, *, group: int = 1, local: tuple[tuple[str, int], ...] = (), scratch: tuple[str, ...] = (), in_order: bool = True
) -> DeviceModule:
    """The program of a module; ``local`` is how many places its local arrays have, ``scratch`` the arguments that each item has for
    itself. Loops of an aggregate that commutes (not ``in_order``) are left to the compiler's vectors."""
    tree = ast.parse(module.text)
    definitions = {d.name: d for d in tree.body if isinstance(d, ast.FunctionDef)}
    entry = definitions.pop("entry")
    returned = entry.body[0]
    assert isinstance(returned, ast.Return)
    assert isinstance(returned.value, ast.Call)
    translator = Translator(definitions, module.lanes, dict(module.origins), in_order=in_order)
    translator.extra_words["merge"] = merge_word
    shares = {"begin", "end"} <= {a.name for a in module.arguments}
    places = dict(local)
    spaces = {a.name: "__local" if a.kind == "Local" else "__global" for a in module.arguments}
    values = {a.name: _value(a, spaces[a.name], scratch, shares) for a in module.arguments}
    call = _call(translator, returned.value, values)
    passed = [a for a in module.arguments if a.kind != "Local"]
    more = [Argument(SHARE, "int64", False)] if shares else []
    more += [Argument(PLACES, "int64", False)] if scratch else []
    arguments = (*passed, *more)
    lines = [f"    __local {_memory(a)} {a.name}[{places[a.of]}];" for a in module.arguments if a.kind == "Local"]
    lines.append("    const long at = get_global_id(0);") if shares or scratch else None
    if shares:
        lines.append(f"    const long share_begin = begin + at * {SHARE};")
        lines.append(f"    const long share_end = share_begin + {SHARE} < end ? share_begin + {SHARE} : end;")
        lines.append(f"    if (share_begin < share_end) {call};")
    else:
        lines.append(f"    {call};")
    parameters = ", ".join(_parameter(a) for a in arguments)
    kernel = f"__kernel __attribute__((reqd_work_group_size({group}, 1, 1)))\nvoid {NAME}({parameters}) {{\n" + "\n".join(lines) + "\n}\n"
    body = translator.text()
    head = HEAD.format(title=module.title, extensions=_extensions(body + kernel))
    local_bytes = sum(places[a.of] * _size(a.machine) for a in module.arguments if a.kind == "Local")
    return DeviceModule(module.title, f"{head}\n{body}\n\n{kernel}", arguments, group, shares, local_bytes, module)


def _size(machine: str) -> int:
    return 1 if machine == "bool" else int("".join(c for c in machine if c.isdigit())) // 8


def _memory(a: Argument) -> str:
    return Scalar(a.machine).in_memory


def _parameter(a: Argument) -> str:
    return f"__global {_memory(a)} *restrict {a.name}" if a.pointer else f"const long {a.name}"


def _value(a: Argument, space: str, scratch: tuple[str, ...], shares: bool) -> Value:
    if not a.pointer:
        text = {"begin": "share_begin", "end": "share_end"}.get(a.name, a.name) if shares else a.name
        return Value(text, Scalar("int64"))
    text = f"({a.name} + at * {PLACES})" if a.of in scratch else a.name
    return Value(text, Pointer(a.machine, space))


def _call(translator: Translator, call: ast.Call, values: dict[str, Value]) -> str:
    """The entry's call of the algorithm, in C."""

    def value(node: ast.expr) -> Value:
        if isinstance(node, ast.Tuple):
            parts = tuple(value(e) for e in node.elts)
            return Value("", Bundle(tuple(p.type for p in parts)), parts)
        assert isinstance(node, ast.Name)
        return values[node.id]

    def texts(v: Value) -> list[str]:
        return [t for p in v.parts for t in texts(p)] if v.parts is not None else [v.text]

    assert isinstance(call.func, ast.Name)
    arguments = [value(a) for a in call.args]
    function = translator.function(call.func.id, tuple(a.type for a in arguments))
    return f"{function.name}({', '.join(t for a in arguments for t in texts(a))})"


def _extensions(text: str) -> str:
    wanted = []
    if "double" in text:
        wanted.append("cl_khr_fp64")
    if "atom_" in text:
        wanted += ["cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"]
    return "".join(f"#pragma OPENCL EXTENSION {name} : enable\n" for name in wanted)
