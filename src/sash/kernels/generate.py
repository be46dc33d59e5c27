"""Generates a kernel: an algorithm's function, with an aggregate's own functions under the names that it calls.

The result is the text of a small module, as one would write it by hand, and the list of its entry's arguments.
:mod:`sash.kernels.cpu.compiler` compiles the text; :func:`interpret` runs it as Python, for tests.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from sash.algebra import POSITION, PRIMITIVES, Form
from sash.kernels import sources, vocabulary
from sash.kernels.lane_words import LaneWords
from sash.kernels.sources import NotBranchFree
from sash.kernels.words import Argument, Words, flatten
from sash.types import dtype

WORDS = frozenset(
    name for name, value in vars(vocabulary).items() if callable(value) and getattr(value, "__module__", "") == vocabulary.__name__
)


@dataclass(frozen=True)
class Module:
    """A generated kernel."""

    title: str
    text: str
    arguments: tuple[Argument, ...]
    lanes: int
    state: tuple[str, ...]
    origins: tuple[tuple[str, str], ...] = ()
    """Which function of the aggregate each of the module's functions comes from, for error messages."""

    @cached_property
    def result_names(self) -> frozenset[str]:
        """The names of the columns that it writes results to."""
        return frozenset(a.name.removeprefix("r_") for a in self.arguments if a.name.startswith("r_"))


@lru_cache(maxsize=1024)
def generate(
    function: Callable[..., Any],
    form: Form,
    *,
    masked: bool = False,
    lanes: int = 0,
    buffers: int = 0,
    known_rows: bool = False,
    partials: bool = False,
    counted_bits: bool = False,
    with_identity: bool = False,
    bindings: tuple[tuple[str, Callable[..., Any]], ...] = (),
    constants: tuple[tuple[str, int | float], ...] = (),
) -> Module:
    """The module for one (algorithm, aggregate, types).

    ``masked`` kernels take a bitmap and lift a null row to the identity. ``lanes`` is the number of rows per vector, 0 for a
    kernel of single values; ``buffers`` how many make up its memory. With ``known_rows`` the number of rows in every window is
    an argument, with ``counted_bits`` it is counted in the bitmap for each window (of a known size, place ``i`` being that from row
    ``i`` on); otherwise a form that needs it carries a count. With ``partials`` the rows are partials already.
    ``with_identity``, partials have an identity even if this kernel does not use it: others that share them do.
    ``bindings`` are the functions for names that the algorithm's function leaves unbound; ``constants`` override its module's.
    """
    known_constants: dict[str, Any] = {"LANES": lanes, **dict(constants)}
    bound = [sources.read(f, name, known_constants, WORDS | {n for n, _ in bindings}) for name, f in bindings]
    words = WORDS | {name for name, _ in bindings}
    kernel = sources.read(function, function.__name__, known_constants, words)
    used = {n.id for s in flatten([*bound, kernel]) for n in ast.walk(s.definition) if isinstance(n, ast.Name)}
    needs_identity = masked or with_identity or "identity" in used
    writer = (LaneWords if lanes else Words)(form, masked, lanes, buffers, known_rows, partials, needs_identity, counted_bits)
    parts = [writer.aggregate_functions(), writer.words(used)]
    seen: set[str] = set()
    for source in flatten([*bound, kernel]):
        if source.name not in seen:
            seen.add(source.name)
            parts.append(f"@njit\n{source.text}\n")
    arguments, entry = writer.entry(function)
    parts.append(entry)
    kind = (" with nulls" if masked else "") + (" from partials" if partials else "")
    vector = f", {lanes} lanes" if lanes else ""
    title = f"{function.__module__.rpartition('.')[2]}.{function.__name__} of {form.name}({', '.join(form.inputs)}){kind}{vector}"
    imports = "import math\n\nimport numpy as np\n" if any("np." in p for p in parts) else "import math\n"
    text = f"# {title}\n{imports}\n\n" + "\n\n".join(part for part in parts if part)
    origins = tuple((name, source.origin) for name, source in writer.sources.items())
    return Module(title, text, arguments, lanes, writer.state, origins)


@lru_cache(maxsize=256)
def vector_reason(form: Form) -> str | None:
    """Why a form has no vector kernel, or None if it has one."""
    if not form.selective and "uint64" in (*form.inputs, *form.state):
        return "64-bit unsigned arithmetic stays in single values"
    try:
        for name in ("lift", "combine"):
            sources.branch_free(sources.read(getattr(form, name), name, dict(form.constants)), name)
    except NotBranchFree as error:
        return f"{name} has no branch-free form: {error}"
    return None


def vector_width(form: Form) -> int:
    """How many rows to put into one vector: 16 of four bytes, 8 of eight."""
    widest = max((dtype(m).itemsize for m in form.inputs if m != POSITION), default=8)
    return 16 if widest <= 4 else 8


def interpret(module: Module) -> Callable[..., Any]:
    """The module's entry as a Python function over NumPy arrays: slow, and an oracle for the compiled one."""
    names: dict[str, Any] = {"njit": lambda f: f, **PRIMITIVES}
    names.update({name: getattr(vocabulary, name) for name in ("trailing_zeros", "leading_zeros", "ones")})
    names.update(dict.fromkeys(("float32", "float64"), float))
    names.update({f"{u}int{b}": int for u in ("", "u") for b in (8, 16, 32, 64)})
    exec(compile(module.text, f"<{module.title}>", "exec"), names)
    entry: Callable[..., Any] = names["entry"]
    return entry
