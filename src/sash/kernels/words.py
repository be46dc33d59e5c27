"""Writes the vocabulary out for one aggregate, one value at a time: text that :mod:`sash.kernels.generate` puts together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sash.algebra import POSITION, Form
from sash.kernels import sources
from sash.kernels.sources import Source

COUNT = "int64"
"""The type of a count that the framework adds to the state."""


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel's entry: a machine type, and whether it is a pointer to such values."""

    name: str
    machine: str
    pointer: bool
    kind: str = ""
    """The annotation of the algorithm's argument that it belongs to: Rows, States, Memory, Results, …"""
    of: str = ""
    """The name of that argument."""


def flatten(roots: list[Source]) -> list[Source]:
    """Sources with their helpers before them."""
    result: list[Source] = []
    for source in roots:
        result.extend(source.all_helpers())
        result.append(source)
    return result


class Words:
    """The vocabulary, written out for one aggregate: the parts of one module's text."""

    def __init__(
        self,
        form: Form,
        masked: bool,
        lanes: int,
        buffers: int,
        known_rows: bool,
        partials: bool,
        needs_identity: bool,
        counted_bits: bool = False,
    ) -> None:
        self.form, self.masked, self.lanes, self.buffers, self.partials = form, masked, lanes, buffers, partials
        self.known_rows = form.counted and known_rows
        self.counted_bits = form.counted and counted_bits  # a window's rows are counted in the bitmap when its result is computed
        self.carried = form.counted and not (known_rows or counted_bits)  # the state has a last field that counts rows
        self.flagged = needs_identity and form.identity is None  # the state has a last field that says "not empty"
        assert not (self.carried and self.flagged), "a counted form has an identity"
        self.state = (*form.state, *((COUNT,) if self.carried else ("bool",) if self.flagged else ()))
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

    def aggregate_functions(self) -> str:
        """The aggregate's own functions, with their helpers."""
        parts, seen = [], set()
        for source in flatten(list(self.sources.values())):
            if source.name not in seen:
                seen.add(source.name)
                parts.append(f"@njit\n{source.text}\n")
        return "\n\n".join(parts)

    # The layout of the input columns: values, then the bitmaps of null-aware inputs, then the rows' bitmap.

    def row_columns(self) -> list[tuple[str, str]]:
        if self.partials:
            return [(f"x{k}", m) for k, m in enumerate(self.state)]
        columns = [(f"x{k}", m) for k, m in enumerate(self.form.inputs) if m != POSITION]
        columns += [(f"known{k}", "uint8") for k in self.form.null_aware_inputs]
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

    def lowered(self, rows_at: str = "rows_at(R, i)") -> str:
        """The arguments of the aggregate's ``lower``; ``rows_at`` counts a window's rows where they are counted in the bitmap."""
        if self.carried:
            return f"{self._core('s')}, s[{self.fields}]"
        if self.counted_bits:
            return f"{self._core('s')}, {rows_at}"
        return f"{self._core('s')}, R[{len(self.result_columns())}]" if self.known_rows else self._core("s")

    def _rows_known_by(self) -> list[Argument]:
        """The arguments behind the result columns from which ``lower`` gets the number of a window's rows."""
        if self.known_rows:
            return [Argument("rows", "int64", False)]
        if self.counted_bits:
            return [Argument("valid", "uint8", True), Argument("before", "int64", True), Argument("size", "int64", False)]
        return []

    def definitions(self) -> dict[str, Callable[[], str]]:
        """For each word the function that writes its definition."""
        return {
            "lift": self._lift,
            "included": self._included,
            "identity": self._identity,
            "combine": self._combine,
            "invert": self._invert,
            "same": self._same,
            "load": self._load,
            "store": self._store,
            "emit": self._emit,
        }

    def needed(self, used: set[str]) -> set[str]:
        """The words in use, and those that their definitions use."""
        if "merge" in used:  # by compare-and-swap
            used = used | {"combine"}
        return used | {"identity"} if "lift" in used and self.masked else used

    def words(self, used: set[str]) -> str:
        """Definitions of the words that an algorithm uses."""
        needed = self.needed(used)
        return "\n\n".join(write() for name, write in self.definitions().items() if name in needed)

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
        arguments += [known(columns.index(f"known{k}")) for k in self.form.null_aware_inputs]
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
        if self.masked and self.sources["lift_row"].is_plain:  # a branch on nulls in no order would be wrong as often as they come
            lines.append(f"    s, known = lift_row({self._row_arguments(value, bit)}), {bit(len(self.row_columns()) - 1)}")
            last = ["known"] if self.flagged else [f"{COUNT}(1) if known else {COUNT}(0)"] if self.carried else []
            nothing = self._identity_fields()
            fields = [f"{x} if known else {none}" for x, none in zip(self._casts("s"), nothing, strict=False)]
            lines.append(f"    return {self._tuple(fields + last)}")
            return "\n".join(lines) + "\n"
        if self.masked:
            lines += [f"    if not ({bit(len(self.row_columns()) - 1)}):", "        return identity()"]
        lines.append(f"    s = lift_row({self._row_arguments(value, bit)})")
        last = ["True"] if self.flagged else [f"{COUNT}(1)"] if self.carried else []
        lines.append(f"    return {self._tuple(self._casts('s') + last)}")
        return "\n".join(lines) + "\n"

    def _included(self) -> str:
        last = len(self.row_columns()) - 1
        value = f"int64((X[{last}][i >> 3] >> (i & 7)) & 1)" if self.masked else "1"
        return f"@njit\ndef included(X, i):\n    return {value}\n"

    def _identity(self) -> str:
        return f"@njit\ndef identity():\n    return {self._tuple(self._identity_fields())}\n"

    def _identity_fields(self) -> list[str]:
        if self.form.identity is None:
            zero = ["False" if m == "bool" else f"{m}(0)" for m in self.form.state]
            return [*zero, "False"]
        fields = [self._literal(m, v) for m, v in zip(self.form.state, self.form.identity, strict=True)]
        return [*fields, f"{COUNT}(0)"] if self.carried else fields

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
        last = ["True"] if self.flagged else [f"{COUNT}(a[{f}] + b[{f}])"] if self.carried else []
        lines.append(f"    return {self._tuple(self._casts('s') + last)}")
        return "\n".join(lines) + "\n"

    def _invert(self) -> str:
        lines = ["@njit", "def invert(total, earlier):"]
        f = self.fields
        lines.append(f"    s = invert_partials({self._core('total')}, {self._core('earlier')})")
        last = [f"{COUNT}(total[{f}] - earlier[{f}])"] if self.carried else []
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
            elif kind in ("States", "Local"):
                columns = [(f"{name.lower()}{k}", m) for k, m in enumerate(self.state)]
            elif kind == "Memory":
                groups = [[(f"{name.lower()}{b}_{k}", m) for k, m in enumerate(self.state)] for b in range(self.buffers)]
                arguments += [Argument(c, m, True, kind, name) for group in groups for c, m in group]
                tuples = ["(" + ", ".join(c for c, _ in group) + ",)" for group in groups]
                passed.append(f"({', '.join(tuples)},)")
                continue
            else:
                machine = {"Bytes": "uint8", "Reals": "float64"}.get(kind or "", "int64")
                arguments.append(Argument(name, machine, kind in ("Index", "Bytes", "Reals"), kind or "", name))
                passed.append(name)
                continue
            arguments += [Argument(c, m, True, kind, name) for c, m in columns]
            values = [c for c, _ in columns]
            if kind == "Results":
                last = [Argument(f"{name.lower()}_{a.name}", a.machine, a.pointer) for a in self._rows_known_by()]
                arguments += last
                values += [a.name for a in last]
            passed.append(f"({', '.join(values)},)" if values else "()")
        names = ", ".join(a.name for a in arguments)
        text = f"def entry({names}):\n    return {function.__name__}({', '.join(passed)})\n"
        return tuple(arguments), text


def _annotations(function: Callable[..., Any]) -> dict[str, str]:
    """The names of a function's annotations, as they are written."""
    raw: dict[str, Any] = function.__annotations__
    return {name: value if isinstance(value, str) else getattr(value, "__name__", "") for name, value in raw.items()}
