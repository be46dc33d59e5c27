"""Writes a kernel: an algorithm's function with an aggregate's own functions put under the words it uses.

The result is the text of a small module, as one would write it by hand, and the list of arguments that its entry takes.
:mod:`sash.kernels.compiler` compiles the text; :func:`interpret` runs it as plain Python, for tests.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sash.algebra import POSITION, PRIMITIVES, Form
from sash.kernels import sources, vocabulary
from sash.kernels.sources import NotBranchFree, Source
from sash.types import dtype

WORDS = frozenset(
    name for name, value in vars(vocabulary).items() if callable(value) and getattr(value, "__module__", "") == vocabulary.__name__
)
LANE_WORDS = frozenset({"lift_lanes", "combine_lanes", "load_lanes", "store_lanes", "emit_lanes", "fold_lanes"})


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel's entry: a machine type, and whether it is a pointer to such values."""

    name: str
    machine: str
    pointer: bool


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
    bindings: tuple[tuple[str, Callable[..., Any]], ...] = (),
    constants: tuple[tuple[str, int | float], ...] = (),
) -> Module:
    """The module for one (algorithm, aggregate, types).

    ``masked`` kernels take a bitmap and lift a null row to the identity. ``lanes`` is the number of rows per vector, 0 for a
    kernel of single values; ``buffers`` how many make up its memory. With ``known_rows`` the number of rows in every window is
    an argument; otherwise a form that asks for it carries a count. With ``partials`` the rows are partials already.
    ``bindings`` are functions under names that the algorithm's function leaves open; ``constants`` override its module's.
    """
    given: dict[str, Any] = {"LANES": lanes, **dict(constants)}
    bound = [sources.read(f, name, given, WORDS | {n for n, _ in bindings}) for name, f in bindings]
    words = WORDS | {name for name, _ in bindings}
    kernel = sources.read(function, function.__name__, given, words)
    used = {n.id for s in _flatten([*bound, kernel]) for n in ast.walk(s.definition) if isinstance(n, ast.Name)}
    needs_identity = masked or "identity" in used
    writer = _Writer(form, masked, lanes, buffers, known_rows, partials, needs_identity)
    parts = [writer.aggregate_functions(), writer.words(used)]
    seen: set[str] = set()
    for source in _flatten([*bound, kernel]):
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


def _flatten(given: list[Source]) -> list[Source]:
    result: list[Source] = []
    for source in given:
        result.extend(source.all_helpers())
        result.append(source)
    return result


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
    """The module's entry as plain Python over NumPy arrays: slow, and an oracle for the compiled one."""
    names: dict[str, Any] = {"njit": lambda f: f, **PRIMITIVES}
    names.update({name: getattr(vocabulary, name) for name in ("trailing_zeros", "leading_zeros")})
    names.update(dict.fromkeys(("float32", "float64"), float))
    names.update({f"{u}int{b}": int for u in ("", "u") for b in (8, 16, 32, 64)})
    exec(compile(module.text, f"<{module.title}>", "exec"), names)
    entry: Callable[..., Any] = names["entry"]
    return entry


class _Writer:
    """The parts of one module's text."""

    def __init__(
        self,
        form: Form,
        masked: bool,
        lanes: int,
        buffers: int,
        known_rows: bool,
        partials: bool,
        needs_identity: bool,
    ) -> None:
        self.form, self.masked, self.lanes, self.buffers, self.partials = form, masked, lanes, buffers, partials
        self.known_rows = form.counted and known_rows
        self.carried = form.counted and not known_rows  # the state has a last field that counts rows
        self.flagged = needs_identity and form.identity is None  # the state has a last field that says "not empty"
        assert not (self.carried and self.flagged), "a counted form has an identity"
        self.state = (*form.state, *(("int64",) if self.carried else ("bool",) if self.flagged else ()))
        self.fields = len(form.state)
        self.extra = len(self.state) > self.fields
        constants = dict(form.constants)
        self.sources = {"lift_row": sources.read(form.lift, "lift_row", constants)}
        self.sources["combine_partials"] = sources.read(form.combine, "combine_partials", constants)
        lower = sources.read(form.lower, "lower", constants)
        self.partial = sources.may_return_none(lower)
        if self.partial:
            lower, defined = sources.split_none(lower, "lower", "is_defined")
            self.sources["is_defined"] = defined
        self.sources["lower"] = lower
        if form.invert is not None:
            self.sources["invert_partials"] = sources.read(form.invert, "invert_partials", constants)
        if form.fits is not None:
            self.sources["fits"] = sources.read(form.fits, "fits", constants)
        self.vector_lower = True
        if lanes:
            self._make_branch_free()

    def _make_branch_free(self) -> None:
        for name in ("lift_row", "combine_partials"):
            self.sources[name] = sources.branch_free(self.sources[name], name)
        try:
            for name in ("lower", "is_defined", "fits"):
                if name in self.sources:
                    self.sources[name] = sources.branch_free(self.sources[name], name)
        except NotBranchFree:
            self.vector_lower = False

    def aggregate_functions(self) -> str:
        """The aggregate's own functions, with their helpers."""
        parts, seen = [], set()
        for source in _flatten(list(self.sources.values())):
            if source.name not in seen:
                seen.add(source.name)
                parts.append(f"@njit\n{source.text}\n")
        return "\n\n".join(parts)

    # The layout of the input columns: values, then the bitmaps of kept inputs, then the rows' bitmap.

    def row_columns(self) -> list[tuple[str, str]]:
        if self.partials:
            return [(f"x{k}", m) for k, m in enumerate(self.state)]
        columns = [(f"x{k}", m) for k, m in enumerate(self.form.inputs) if m != POSITION]
        columns += [(f"known{k}", "uint8") for k in self.form.kept]
        if self.masked:
            columns.append(("valid", "uint8"))
        return columns

    def result_columns(self) -> list[tuple[str, str]]:
        columns = [(f"out{k}", m) for k, m in enumerate(self.form.outputs)]
        if self.partial:
            columns.append(("defined", "bool"))
        if self.form.fits is not None:
            columns.append(("misfit", "bool"))
        return columns

    def lowered(self) -> str:
        """The arguments of the aggregate's ``lower``."""
        if self.carried:
            return f"{self._core('s')}, s[{self.fields}]"
        return f"{self._core('s')}, R[{len(self.result_columns())}]" if self.known_rows else self._core("s")

    def words(self, used: set[str]) -> str:
        """Definitions of the vocabulary for this aggregate."""
        every = {
            "lift": self._lift,
            "identity": self._identity,
            "combine": self._combine,
            "invert": self._invert,
            "same": self._same,
            "load": self._load,
            "store": self._store,
            "emit": self._emit,
            "lift_lanes": self._lift_lanes,
            "combine_lanes": self._combine_lanes,
            "load_lanes": self._load_lanes,
            "store_lanes": self._store_lanes,
            "emit_lanes": self._emit_lanes,
            "fold_lanes": self._fold_lanes,
            "fold_segments": self._fold_segments,
            "drain": self._drain,
            "move_lanes": self._move_lanes,
            "move": self._move,
            "address": self._address,
            "prefetch": self._prefetch,
        }
        used = set(used)
        if used & {"fold_lanes"}:
            used |= {"combine_lanes", "combine"}
        if "fold_segments" in used:
            used |= {"combine_lanes", "lift_lanes"}
        if "emit_lanes" in used and not self.vector_lower:
            used.add("emit")
        if "lift" in used and self.masked:
            used.add("identity")
        return "\n\n".join(make() for name, make in every.items() if name in used)

    def _cast(self, machine: str, text: str) -> str:
        return f"bool({text})" if machine == "bool" else f"{machine}({text})"

    def _tuple(self, parts: list[str]) -> str:
        return f"({', '.join(parts)},)"

    def _casts(self, name: str) -> list[str]:
        return [self._cast(m, f"{name}[{k}]") for k, m in enumerate(self.form.state)]

    def _core(self, name: str) -> str:
        """The aggregate's own fields of a partial."""
        return self._tuple([f"{name}[{k}]" for k in range(self.fields)]) if self.extra else name

    def _row_arguments(self, value: Callable[[int, str], str], known: Callable[[int], str], position: str = "i") -> str:
        columns = [name for name, _ in self.row_columns()]
        arguments = []
        for k, machine in enumerate(self.form.inputs):
            arguments.append(position if machine == POSITION else value(columns.index(f"x{k}"), machine))
        arguments += [known(columns.index(f"known{k}")) for k in self.form.kept]
        return ", ".join(arguments)

    def _lift(self) -> str:
        def value(place: int, machine: str) -> str:
            if machine == "bool":
                return f"X[{place}][i] != 0"
            wide = machine in ("uint8", "uint16", "uint32")
            return f"int64(X[{place}][i])" if wide else f"X[{place}][i]"

        def bit(place: int) -> str:
            return f"(X[{place}][i >> 3] >> (i & 7)) & 1 != 0"

        if self.partials:
            return f"@njit\ndef lift(X, i):\n    return {self._tuple(self._loaded('X'))}\n"
        lines = ["@njit", "def lift(X, i):"]
        if self.masked:
            lines += [f"    if not ({bit(len(self.row_columns()) - 1)}):", "        return identity()"]
        lines.append(f"    s = lift_row({self._row_arguments(value, bit)})")
        last = ["True"] if self.flagged else ["int64(1)"] if self.carried else []
        lines.append(f"    return {self._tuple(self._casts('s') + last)}")
        return "\n".join(lines) + "\n"

    def _identity(self) -> str:
        return f"@njit\ndef identity():\n    return {self._tuple(self._identity_fields())}\n"

    def _identity_fields(self) -> list[str]:
        if self.form.identity is None:
            zero = ["False" if m == "bool" else f"{m}(0)" for m in self.form.state]
            return [*zero, "False"]
        fields = [self._literal(m, v) for m, v in zip(self.form.state, self.form.identity, strict=True)]
        return [*fields, "int64(0)"] if self.carried else fields

    def _literal(self, machine: str, value: float | int | bool) -> str:
        if machine == "bool":
            return str(bool(value))
        if isinstance(value, float) and not math.isfinite(value):
            return f"{machine}({'math.nan' if math.isnan(value) else 'math.inf' if value > 0 else '-math.inf'})"
        return f"{machine}({value!r})"

    def _combine(self) -> str:
        lines = ["@njit", "def combine(a, b):"]
        if self.flagged:
            lines += ["    if not a[-1]:", "        return b", "    if not b[-1]:", "        return a"]
        lines.append(f"    s = combine_partials({self._core('a')}, {self._core('b')})")
        f = self.fields
        last = ["True"] if self.flagged else [f"a[{f}] + b[{f}]"] if self.carried else []
        lines.append(f"    return {self._tuple(self._casts('s') + last)}")
        return "\n".join(lines) + "\n"

    def _invert(self) -> str:
        lines = ["@njit", "def invert(total, earlier):"]
        f = self.fields
        lines.append(f"    s = invert_partials({self._core('total')}, {self._core('earlier')})")
        last = [f"total[{f}] - earlier[{f}]"] if self.carried else []
        lines.append(f"    return {self._tuple(self._casts('s') + last)}")
        return "\n".join(lines) + "\n"

    def _same(self) -> str:
        equal = [f"(a[{k}] == b[{k}] or a[{k}] != a[{k}] and b[{k}] != b[{k}])" for k in range(len(self.state))]
        return f"@njit\ndef same(a, b):\n    return {' and '.join(equal)}\n"

    def _load(self) -> str:
        return f"@njit\ndef load(S, i):\n    return {self._tuple(self._loaded('S'))}\n"

    def _loaded(self, name: str) -> list[str]:
        return [f"{name}[{k}][i] != 0" if m == "bool" else f"{name}[{k}][i]" for k, m in enumerate(self.state)]

    def _store(self) -> str:
        lines = [f"    S[{k}][i] = s[{k}]" for k in range(len(self.state))]
        return "@njit\ndef store(S, i, s):\n" + "\n".join(lines) + "\n"

    def _result_places(self) -> dict[str, int]:
        return {name: k for k, (name, _) in enumerate(self.result_columns())}

    def _emit(self) -> str:
        places = self._result_places()
        lines = ["@njit", "def emit(R, i, s):"]
        if len(self.form.outputs) == 1:
            lines.append(f"    R[0][i] = {self._stored(self.form.outputs[0], f'lower({self.lowered()})')}")
        else:
            lines.append(f"    r = lower({self.lowered()})")
            lines += [f"    R[{k}][i] = {self._stored(m, f'r[{k}]')}" for k, m in enumerate(self.form.outputs)]
        if self.partial:
            lines.append(f"    R[{places['defined']}][i] = is_defined({self.lowered()})")
        if self.form.fits is not None:
            lines += [f"    if not fits({self._core('s')}):", f"        R[{places['misfit']}][0] = 1"]
        return "\n".join(lines) + "\n"

    def _stored(self, machine: str, text: str) -> str:
        return text if machine == "bool" else self._cast(machine, text)

    # Lanes. `load_x0`, `like`, `bits`, … come from sash.kernels.lanes through the compiler.

    def _lift_lanes(self) -> str:
        def value(place: int, machine: str) -> str:
            wide = "int64" if machine in ("uint8", "uint16", "uint32") else machine
            return f"load_{wide}(X[{place}], i)"

        if self.partials:
            fields = [f"load_{m}(X[{k}], i)" for k, m in enumerate(self.state)]
            return f"@njit\ndef lift_lanes(X, i):\n    return {self._tuple(fields)}\n"
        arguments = self._row_arguments(value, lambda place: f"bits(X[{place}], i)", "positions(i)")
        lines = ["@njit", "def lift_lanes(X, i):", f"    s = lift_row({arguments})"]
        fields = [f"lanes_{m}(s[{k}])" for k, m in enumerate(self.form.state)]
        if self.carried:
            fields.append("lanes_int64(1)")
        if self.masked:
            lines.append(f"    m = bits(X[{len(self.row_columns()) - 1}], i)")
            if self.flagged:
                fields.append("m")
            else:
                empty = self._identity_fields()
                fields = [f"where(m, {f}, {e})" for f, e in zip(fields, empty, strict=True)]
        elif self.flagged:
            fields.append("lanes_bool(True)")
        lines.append(f"    return {self._tuple(fields)}")
        return "\n".join(lines) + "\n"

    def _combine_lanes(self) -> str:
        lines = ["@njit", "def combine_lanes(a, b):"]
        lines.append(f"    s = combine_partials({self._core('a')}, {self._core('b')})")
        fields = [f"like(a[{k}], s[{k}])" for k in range(self.fields)]
        if self.flagged:
            f = self.fields
            lines.append(f"    m = both(a[{f}], b[{f}])")
            fields = [f"where(m, {text}, where(a[{f}], a[{k}], b[{k}]))" for k, text in enumerate(fields)]
            fields.append(f"either(a[{f}], b[{f}])")
        if self.carried:
            fields.append(f"a[{self.fields}] + b[{self.fields}]")
        lines.append(f"    return {self._tuple(fields)}")
        return "\n".join(lines) + "\n"

    def _load_lanes(self) -> str:
        fields = [f"load_{m}(S[{k}], i)" for k, m in enumerate(self.state)]
        return f"@njit\ndef load_lanes(S, i):\n    return {self._tuple(fields)}\n"

    def _store_lanes(self) -> str:
        lines = [f"    put(S[{k}], i, s[{k}])" for k in range(len(self.state))]
        return "@njit\ndef store_lanes(S, i, s):\n" + "\n".join(lines) + "\n"

    def _emit_lanes(self) -> str:
        places = self._result_places()
        lines = ["@njit", "def emit_lanes(R, i, s):"]
        if not self.vector_lower:
            fields = self._tuple([f"lane(s[{k}], k)" for k in range(len(self.state))])
            return "\n".join([*lines, f"    for k in range({self.lanes}):", f"        emit(R, i + k, {fields})"]) + "\n"
        if len(self.form.outputs) == 1:
            lines.append(f"    put(R[0], i, lower({self.lowered()}))")
        else:
            lines.append(f"    r = lower({self.lowered()})")
            lines += [f"    put(R[{k}], i, r[{k}])" for k in range(len(self.form.outputs))]
        if self.partial:
            lines.append(f"    put(R[{places['defined']}], i, is_defined({self.lowered()}))")
        if self.form.fits is not None:
            lines += [f"    if any_lane(negate(fits({self._core('s')}))):", f"        R[{places['misfit']}][0] = 1"]
        return "\n".join(lines) + "\n"

    def _fold_lanes(self) -> str:
        lines, width, name = ["@njit", "def fold_lanes(s):"], self.lanes, "s"
        fields = range(len(self.state))
        while width > 1:
            left = self._tuple([f"evens({name}[{k}])" for k in fields])
            right = self._tuple([f"odds({name}[{k}])" for k in fields])
            width //= 2
            lines.append(f"    s{width} = combine_lanes({left}, {right})")
            name = f"s{width}"
        lines.append(f"    return {self._tuple([f'first_lane({name}[{k}])' for k in fields])}")
        return "\n".join(lines) + "\n"

    def _fold_segments(self) -> str:
        fields = range(len(self.state))
        left = self._tuple([f"evens_of_two(a[{k}], b[{k}])" for k in fields])
        right = self._tuple([f"odds_of_two(a[{k}], b[{k}])" for k in fields])

        def folded(first: int, count: int) -> str:
            if count == 1:
                return f"segment(X, i + {first} * stride, size)" if first else "segment(X, i, size)"
            return f"neighbours({folded(first, count // 2)}, {folded(first + count // 2, count // 2)})"

        return (
            f"@njit\ndef neighbours(a, b):\n    return combine_lanes({left}, {right})\n\n\n"
            f"@njit\ndef segment(X, i, size):\n"
            f"    a = lift_lanes(X, i)\n"
            f"    if size < {4 * self.lanes}:\n"
            f"        for p in range(i + {self.lanes}, i + size, {self.lanes}):\n"
            f"            a = combine_lanes(a, lift_lanes(X, p))\n"
            f"        return a\n"
            f"    b = lift_lanes(X, i + {self.lanes})\n"
            f"    c = lift_lanes(X, i + {2 * self.lanes})\n"
            f"    d = lift_lanes(X, i + {3 * self.lanes})\n"
            f"    p = i + {4 * self.lanes}\n"
            f"    while p + {4 * self.lanes} <= i + size:\n"
            f"        a = combine_lanes(a, lift_lanes(X, p))\n"
            f"        b = combine_lanes(b, lift_lanes(X, p + {self.lanes}))\n"
            f"        c = combine_lanes(c, lift_lanes(X, p + {2 * self.lanes}))\n"
            f"        d = combine_lanes(d, lift_lanes(X, p + {3 * self.lanes}))\n"
            f"        p += {4 * self.lanes}\n"
            f"    while p < i + size:\n"
            f"        a = combine_lanes(a, lift_lanes(X, p))\n"
            f"        p += {self.lanes}\n"
            f"    return combine_lanes(combine_lanes(a, b), combine_lanes(c, d))\n\n\n"
            f"@njit\ndef fold_segments(X, i, size, stride):\n    return {folded(0, self.lanes)}\n"
        )

    def _moved(self) -> list[tuple[int, str]]:
        return [(k, m) for k, (name, m) in enumerate(self.result_columns()) if name != "misfit"]

    def _drain(self) -> str:
        puts = ["put_past_caches", *["put"] * len(self.result_columns())]  # only the first column's place is known to be aligned
        lines = [f"    {puts[k]}(R[{k}], i, load_{m}(T[{k}], j))" for k, m in self._moved()]
        return "@njit\ndef drain(R, i, T, j):\n" + "\n".join(lines) + "\n"

    def _move_lanes(self) -> str:
        lines = [f"    put(R[{k}], i, load_{m}(T[{k}], j))" for k, m in self._moved()]
        return "@njit\ndef move_lanes(R, i, T, j):\n" + "\n".join(lines) + "\n"

    def _move(self) -> str:
        lines = [f"    R[{k}][i] = T[{k}][j]" for k, m in self._moved()]
        return "@njit\ndef move(R, i, T, j):\n" + "\n".join(lines) + "\n"

    def _address(self) -> str:
        return "@njit\ndef address(R):\n    return place_in_line(R[0])\n"

    def _prefetch(self) -> str:
        places = [k for k, (name, _) in enumerate(self.row_columns()) if name.startswith("x")]
        lines = [f"    fetch(X[{k}], i)" for k in places] or ["    pass"]
        return "@njit\ndef prefetch(X, i):\n" + "\n".join(lines) + "\n"

    def entry(self, function: Callable[..., Any]) -> tuple[tuple[Argument, ...], str]:
        """The flat function that is called from outside, and its arguments."""
        hints = _annotations(function)
        arguments: list[Argument] = []
        passed: list[str] = []
        for name in function.__code__.co_varnames[: function.__code__.co_argcount]:
            kind = hints.get(name)
            if kind == "Rows":
                columns = self.row_columns()
            elif kind == "Results":
                columns = [(f"{name.lower()}_{c}", m) for c, m in self.result_columns()]
            elif kind == "States":
                columns = [(f"{name.lower()}{k}", m) for k, m in enumerate(self.state)]
            elif kind == "Memory":
                groups = [[(f"{name.lower()}{b}_{k}", m) for k, m in enumerate(self.state)] for b in range(self.buffers)]
                arguments += [Argument(c, m, True) for group in groups for c, m in group]
                tuples = ["(" + ", ".join(c for c, _ in group) + ",)" for group in groups]
                passed.append(f"({', '.join(tuples)},)")
                continue
            else:
                machine = {"Bytes": "uint8", "Reals": "float64"}.get(kind or "", "int64")
                arguments.append(Argument(name, machine, kind in ("Index", "Bytes", "Reals")))
                passed.append(name)
                continue
            arguments += [Argument(c, m, True) for c, m in columns]
            values = [c for c, _ in columns]
            if kind == "Results" and self.known_rows:
                arguments.append(Argument(f"{name.lower()}_rows", "int64", False))
                values.append(f"{name.lower()}_rows")
            passed.append(f"({', '.join(values)},)" if values else "()")
        names = ", ".join(a.name for a in arguments)
        text = f"def entry({names}):\n    return {function.__name__}({', '.join(passed)})\n"
        return tuple(arguments), text


def _annotations(function: Callable[..., Any]) -> dict[str, str]:
    """The names of a function's annotations, as they are written."""
    raw: dict[str, Any] = function.__annotations__
    return {name: value if isinstance(value, str) else getattr(value, "__name__", "") for name, value in raw.items()}
