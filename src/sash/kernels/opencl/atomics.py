"""``merge(S, j, s)``: combine a partial into a place that other items combine into as well, by an atomic of one word.

Sums and extremes of whole numbers have an atomic of their own; any other aggregate of one field that commutes is a loop of
compare-and-swap.
"""

from __future__ import annotations

from typing import Any

from sash.kernels.opencl.c_operators import Untranslatable, Value
from sash.kernels.opencl.c_types import Bundle, Pointer, Scalar, Struct, bits_of, is_float

NATIVE = {"a[0] + b[0]": "add", "smaller(a[0], b[0])": "min", "larger(a[0], b[0])": "max"}


def merge_word(writer: Any, states: Value, place: Value, partial: Value) -> Value:
    """The call of ``merge`` in C."""
    parts = states.parts or ()
    if not isinstance(states.type, Bundle) or len(parts) != 1 or not isinstance(parts[0].type, Pointer):
        raise Untranslatable("merging partials of several fields")
    pointer = parts[0]
    machine = pointer.type.machine
    if bits_of(machine) not in (32, 64):
        raise Untranslatable(f"an atomic of {machine}")
    operators = writer.t.operators
    value = operators.converted(operators.parts_of(partial)[0], Scalar(machine)).text
    address = f"{pointer.text} + {place.text}"
    native = _native(writer.t)
    wide = bits_of(machine) == 64
    if native is not None and not is_float(machine):
        return Value(f"{'atom' if wide else 'atomic'}_{native}({address}, {value})", None)
    return Value(f"{_loop(writer, pointer.type)}({address}, {value})", None)


def _native(translator: Any) -> str | None:
    """The name of the atomic that does what the aggregate's ``combine`` does, if there is one."""
    import ast

    body = translator.definitions["combine_partials"].body
    if len(body) != 1 or not isinstance(body[0], ast.Return) or not isinstance(body[0].value, ast.Tuple):
        return None
    fields = body[0].value.elts
    names = [a.arg for a in translator.definitions["combine_partials"].args.args]
    if len(fields) != 1:
        return None
    text = ast.unparse(fields[0]).replace(f"{names[0]}[", "a[").replace(f"{names[1]}[", "b[")
    return NATIVE.get(text)


def _loop(writer: Any, pointer: Pointer) -> str:
    """A function that combines by compare-and-swap."""
    t, c = Scalar(pointer.machine), Scalar(pointer.machine).c
    struct = writer.t.named(Struct((t,)))
    combine = writer.t.function("combine", (struct, struct))
    wide = bits_of(pointer.machine) == 64
    whole, swap = ("long", "atom_cmpxchg") if wide else ("int", "atomic_cmpxchg")
    space = "global" if "global" in pointer.space else "local"
    name = f"merge_{space}_{c}"
    text = (
        f"inline void {name}({pointer.space} {c} *p, {c} v) {{\n"
        f"    volatile {pointer.space} {whole} *word = (volatile {pointer.space} {whole} *)p;\n"
        f"    {whole} seen = {swap}(word, 0, 0), before;\n"
        f"    do {{\n"
        f"        before = seen;\n"
        f"        {struct.c} s = {combine.name}(({struct.c}){{as_{c}(before)}}, ({struct.c}){{v}});\n"
        f"        seen = {swap}(word, before, as_{whole}(s.f0));\n"
        f"    }} while (seen != before);\n}}"
    )
    writer.t.add_function(name, text)
    return name
