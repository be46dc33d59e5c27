"""Functions in C that generated text calls: what Python's operators and functions mean, where C has no operator of the same meaning."""

from __future__ import annotations

TEXTS: dict[str, str] = {
    "to_long": """inline long to_long(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (long)x : LONG_MIN;
}""",
    "to_ulong": """inline ulong to_ulong(double x) {
    return x >= 0x1p63 && x < 0x1p64 ? (ulong)x : x >= -0x1p63 && x < 0x1p63 ? (ulong)(long)x : (ulong)LONG_MIN;
}""",
    "floor_div_long": """inline long floor_div_long(long a, long b) {
    if (b == 0) return 0;
    if (b == -1) return (long)(0 - (ulong)a);
    long q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}""",
    "floor_mod_long": """inline long floor_mod_long(long a, long b) {
    if (b == 0 || b == -1) return 0;
    long r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
    "floor_div_ulong": "inline ulong floor_div_ulong(ulong a, ulong b) {\n    return b == 0 ? 0 : a / b;\n}",
    "floor_mod_ulong": "inline ulong floor_mod_ulong(ulong a, ulong b) {\n    return b == 0 ? 0 : a % b;\n}",
    "shift_left_long": "inline long shift_left_long(long a, long n) {\n    return (ulong)n < 64 ? (long)((ulong)a << (ulong)n) : 0;\n}",
    "shift_right_long": "inline long shift_right_long(long a, long n) {\n    return a >> ((ulong)n < 64 ? (ulong)n : 63);\n}",
    "shift_left_ulong": "inline ulong shift_left_ulong(ulong a, ulong n) {\n    return n < 64 ? a << n : 0;\n}",
    "shift_right_ulong": "inline ulong shift_right_ulong(ulong a, ulong n) {\n    return n < 64 ? a >> n : 0;\n}",
    "power_long": """inline long power_long(long a, long n) {
    if (n < 0) return a == 1 ? 1 : a == -1 ? ((n & 1) ? -1 : 1) : 0;
    ulong result = 1, base = (ulong)a;
    for (; n; n >>= 1, base *= base)
        if (n & 1) result *= base;
    return (long)result;
}""",
    "ones_of": "inline long ones_of(long x) {\n    return (long)popcount((ulong)x);\n}",
    "trailing_zeros_of": """inline long trailing_zeros_of(long x) {
    return x == 0 ? 64 : (long)popcount(((ulong)x & (0 - (ulong)x)) - 1);
}""",
    "leading_zeros_of": "inline long leading_zeros_of(long x) {\n    return (long)clz((ulong)x);\n}",
}

# The same for single and double floats, and for vectors, by the name of the type.

FLOAT_MOD = """inline {T} floor_mod_{T}({T} a, {T} b) {{
    {T} r = fmod(a, b);
    return r == 0 ? copysign(({T})0, b) : (r < 0) != (b < 0) ? r + b : r;
}}"""
FLOAT_DIV = """inline {T} floor_div_{T}({T} a, {T} b) {{
    if (b == 0) return a / b;
    {T} r = fmod(a, b);
    {T} q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    if (q == 0) return copysign(({T})0, a / b);
    {T} whole = floor(q);
    return q - whole > ({T})0.5 ? whole + 1 : whole;
}}"""
VECTOR_DIV = """inline {T} floor_div_{T}({T} a, {T} b) {{
    {T} safe = select(b, ({T})1, (b == ({T})0) | (b == ({T})-1));
    {T} q = a / safe, r = a - q * safe;
    q = select(q, q - ({T})1, (r != ({T})0) & ((r ^ safe) < ({T})0));
    q = select(q, as_{T}(-as_u{T}(a)), b == ({T})-1);
    return select(q, ({T})0, b == ({T})0);
}}"""
VECTOR_MOD = """inline {T} floor_mod_{T}({T} a, {T} b) {{
    {T} safe = select(b, ({T})1, (b == ({T})0) | (b == ({T})-1));
    {T} r = a - (a / safe) * safe;
    return select(r, r + safe, (r != ({T})0) & ((r ^ safe) < ({T})0));
}}"""


class Helpers:
    """The functions that a program calls, in the order of their first use."""

    def __init__(self) -> None:
        self.used: dict[str, str] = {}

    def call(self, name: str, *arguments: str) -> str:
        """A call of a function of the prelude."""
        self.used.setdefault(name, _text(name))
        return f"{name}({', '.join(arguments)})"

    def define(self, name: str, text: str) -> None:
        """Add a function of a caller's own."""
        self.used.setdefault(name, text)


def _text(name: str) -> str:
    if name in TEXTS:
        return TEXTS[name]
    what, _, t = name.rpartition("_")
    template = {
        ("floor_div", True): FLOAT_DIV,
        ("floor_mod", True): FLOAT_MOD,
        ("floor_div", False): VECTOR_DIV,
        ("floor_mod", False): VECTOR_MOD,
    }[what, t in ("float", "double")]
    return template.replace("{T}", t).replace("{{", "{").replace("}}", "}")
