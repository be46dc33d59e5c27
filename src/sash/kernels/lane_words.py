"""Writes the vocabulary out for one aggregate in vector lanes.

``load_float64``, ``like``, ``bits``, … in the text are functions of :mod:`sash.kernels.cpu.vector_values`, put beside it by the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.kernels import sources
from sash.kernels.sources import NotBranchFree
from sash.kernels.words import COUNT, Words


class LaneWords(Words):
    """:class:`Words`, and the words that work on many neighbouring places at once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.vector_lower = True
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

    def definitions(self) -> dict[str, Callable[[], str]]:
        return {
            **super().definitions(),
            "rows_at": self._rows_at,
            "lift_lanes": self._lift_lanes,
            "combine_lanes": self._combine_lanes,
            "load_lanes": self._load_lanes,
            "store_lanes": self._store_lanes,
            "emit_lanes": self._emit_lanes,
            "fold_lanes": self._fold_lanes,
            "neighbours": self._neighbours,
            "fold_segments": self._fold_segments,
            "emit_past_caches": self._emit_past_caches,
            "address": self._address,
            "prefetch": self._prefetch,
        }

    def needed(self, used: set[str]) -> set[str]:
        used = super().needed(used)
        if "fold_lanes" in used:
            used = used | {"combine_lanes", "combine"}
        if "fold_segments" in used:
            used = used | {"combine_lanes", "lift_lanes", "neighbours"}
        if "neighbours" in used:
            used = used | {"combine_lanes"}
        if used & {"emit_lanes", "emit_past_caches"} and not self.vector_lower:
            used = used | {"emit"}
        if self.counted_bits:
            used = used | {"rows_at"}
        return used

    def _rows_at(self) -> str:
        first = len(self.result_columns())
        valid, before, size = (f"R[{first + k}]" for k in range(3))
        return (
            f"@njit\ndef rows_at(R, i):\n    return count_bits({valid}, {before}, i, i + {size})\n\n\n"
            f"@njit\ndef lane_rows_at(R, i):\n    return count_bits_in_lanes({valid}, {before}, i, i + {size})\n"
        )

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
            fields.append(f"lanes_{COUNT}(1)")
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
            fields.append(f"like(a[{self.fields}], a[{self.fields}] + b[{self.fields}])")
        lines.append(f"    return {self._tuple(fields)}")
        return "\n".join(lines) + "\n"

    def _load_lanes(self) -> str:
        fields = [f"load_{m}(S[{k}], i)" for k, m in enumerate(self.state)]
        return f"@njit\ndef load_lanes(S, i):\n    return {self._tuple(fields)}\n"

    def _store_lanes(self) -> str:
        lines = [f"    put(S[{k}], i, s[{k}])" for k in range(len(self.state))]
        return "@njit\ndef store_lanes(S, i, s):\n" + "\n".join(lines) + "\n"

    def _emit_lanes(self) -> str:
        return self._emit_word("emit_lanes", "put")

    def _emit_past_caches(self) -> str:
        return self._emit_word("emit_past_caches", "put_past_caches")

    def _emit_word(self, name: str, first: str) -> str:
        """``first`` puts the first column, whose place alone is known to be aligned."""
        places = self._result_places()
        lines = ["@njit", f"def {name}(R, i, s):"]
        if not self.vector_lower:
            fields = self._tuple([f"lane(s[{k}], k)" for k in range(len(self.state))])
            return "\n".join([*lines, f"    for k in range({self.lanes}):", f"        emit(R, i + k, {fields})"]) + "\n"
        lowered = self.lowered("lane_rows_at(R, i)")
        if len(self.form.outputs) == 1:
            lines.append(f"    {first}(R[0], i, lower({lowered}))")
        else:
            lines.append(f"    r = lower({lowered})")
            lines += [f"    {'put' if k else first}(R[{k}], i, r[{k}])" for k in range(len(self.form.outputs))]
        if self.partial:
            lines.append(f"    put(R[{places['defined']}], i, is_defined({lowered}))")
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

    def _neighbours(self) -> str:
        fields = range(len(self.state))
        left = self._tuple([f"evens_of_two(a[{k}], b[{k}])" for k in fields])
        right = self._tuple([f"odds_of_two(a[{k}], b[{k}])" for k in fields])
        return f"@njit\ndef neighbours(a, b):\n    return combine_lanes({left}, {right})\n"

    def _fold_segments(self) -> str:
        def folded(first: int, count: int) -> str:
            if count == 1:
                return f"segment(X, i + {first} * stride, size)" if first else "segment(X, i, size)"
            return f"neighbours({folded(first, count // 2)}, {folded(first + count // 2, count // 2)})"

        return (
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

    def _address(self) -> str:
        return "@njit\ndef address(R):\n    return place_in_line(R[0])\n"

    def _prefetch(self) -> str:
        places = [k for k, (name, _) in enumerate(self.row_columns()) if name.startswith("x")]
        lines = [f"    fetch(X[{k}], i)" for k in places] or ["    pass"]
        return "@njit\ndef prefetch(X, i):\n" + "\n".join(lines) + "\n"
