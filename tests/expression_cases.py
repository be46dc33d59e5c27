"""Random expressions drawn from the table of functions, over columns of every type, for comparing Arrow with Spark."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal

import pyarrow as pa

from sash.expressions.library import FUNCTIONS

UTC = datetime.UTC
NAN, INF = math.nan, math.inf

# Each type twice: with its extremes, and with values that arithmetic stays within.
COLUMNS: dict[str, tuple[pa.DataType, list]] = {
    "b": (pa.bool_(), [True, False, None]),
    "i8": (pa.int8(), [0, 1, -1, 127, -128, 7, None]),
    "i16": (pa.int16(), [0, 1, -1, 32767, -32768, 300, None]),
    "i32": (pa.int32(), [0, 1, -1, 2147483647, -2147483648, 86400, None]),
    "i64": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 1_600_000_000, None]),
    "j": (pa.int32(), [1, 2, 3, -4, 5, 12, None]),
    "k": (pa.int64(), [1, 2, 3, -4, 5, 100, None]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, -2.5, 0.1, NAN, INF, -INF, 3.4028235e38, 1e-45, 16777217.0, None]),
    "f64": (
        pa.float64(),
        [0.0, -0.0, 1.5, -2.5, 2.675, 1e17, -1e-5, NAN, INF, -INF, 1.7976931348623157e308, 5e-324, 9.007199254740993e15, None],
    ),
    "g": (pa.float64(), [0.5, 1.0, -1.25, 2.0, 3.75, 100.0, None]),
    "d52": (
        pa.decimal128(5, 2),
        [Decimal("0.00"), Decimal("1.25"), Decimal("-1.25"), Decimal("999.99"), Decimal("-999.99"), Decimal("0.05"), None],
    ),
    "d10": (pa.decimal128(10, 0), [Decimal(0), Decimal(7), Decimal(-3), Decimal(9999999999), None]),
    "d38": (
        pa.decimal128(38, 18),
        [Decimal(0), Decimal("1.5"), Decimal("-0.000000000000000001"), Decimal("99999999999999999999.999999999999999999"), None],
    ),
    "d380": (pa.decimal128(38, 0), [Decimal(0), Decimal(3), Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(2**63), None]),
    "s": (
        pa.string(),
        [
            "",
            "a",
            "abc",
            "Hello World",
            "ß",
            "İstanbul",
            "a%b",
            "a_b",
            "it's",
            "  pad ",
            "日本語",
            "e\u0301",
            "😀x",
            "back\\slash",
            "a\nb",
            None,
        ],
    ),
    "t": (pa.string(), ["10", "1", "-3", "0", "7", "12", None]),
    "u": (
        pa.string(),
        ["1.5", "1e3", "nan", "-Infinity", " 7 ", "+4", "true", "2020-02-29", "0x10", "9223372036854775808", "1.", "yes", ".5", "1d", None],
    ),
    "w": (
        pa.string(),
        [
            "2020-02-29",
            "2021-12-31 23:59:59.999999",
            "1969-07-20T20:17:40Z",
            "2024-03-31 02:30:00 Europe/Berlin",
            "0001-01-01",
            "2020-1-5",
            "2020-02-29 1:2:3.5+05:30",
            None,
        ],
    ),
    "y": (pa.binary(), [b"", b"abc", b"\x00\x01", b"xyz", None]),
    "d": (
        pa.date32(),
        [
            datetime.date(1970, 1, 1),
            datetime.date(2020, 2, 29),
            datetime.date(1969, 12, 31),
            datetime.date(2021, 12, 31),
            datetime.date(1900, 3, 1),
            datetime.date(9999, 12, 31),
            datetime.date(1, 1, 1),
            None,
        ],
    ),
    "ts": (
        pa.timestamp("us", "UTC"),
        [
            datetime.datetime(1970, 1, 1, tzinfo=UTC),
            datetime.datetime(2020, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC),
            datetime.datetime(2024, 12, 30, 12, 30, tzinfo=UTC),
            datetime.datetime(1883, 11, 18, 1, 2, 3, tzinfo=UTC),
            None,
        ],
    ),
    "nt": (
        pa.timestamp("us"),
        [
            datetime.datetime(1970, 1, 1),
            datetime.datetime(2020, 2, 29, 23, 59, 59, 999999),
            datetime.datetime(1969, 12, 31, 23, 59, 59),
            datetime.datetime(2021, 1, 3, 12, 0, 0, 1),
            None,
        ],
    ),
}

NUMBERS = ["i8", "i16", "i32", "i64", "j", "j", "k", "k", "f32", "f64", "g", "g", "d52", "d10", "d38", "d380"]
KINDS: dict[str, list[str]] = {
    "B": ["b"],
    "I": ["i8", "i16", "i32", "i64", "j", "k"],
    "J": ["j", "i8"],
    "N": NUMBERS,
    "M": ["j", "k", "g", "d52", "d10", "i8"],
    "S": ["s", "s", "t", "u", "w"],
    "D": ["d", "ts", "nt", "w"],
    "T": ["ts", "nt", "d", "ts"],
    "X": ["ts", "nt"],
    "A": list(COLUMNS),
}
"""Kinds of arguments, by the columns that have them."""

LITERALS: dict[str, list[str]] = {
    "B": ["true", "false", "null"],
    "I": ["0", "1", "-1", "7", "2147483647", "-2147483648", "9223372036854775807", "-9223372036854775808"],
    "J": ["0", "1", "2", "-1", "3"],
    "N": [
        "0",
        "1",
        "-2",
        "3",
        "1.5",
        "0.05",
        "-99999999.99",
        "1e17",
        "2.5e-3",
        "0.1D",
        "99999999999999999999",
        "12345678901234567890.123",
        "null",
    ],
    "M": ["1", "2", "-3", "1.5", "0.25", "2e0"],
    "S": ["''", "'a'", "'abc'", "'it''s'", "'10'", "' 7 '", "'1.00'", "'ß'", "'a%'", r"'x\ty'", "'2020-02-29'", "null"],
    "D": ["date'2020-02-29'", "timestamp'2020-01-31 10:20:30.5'", "'2021-06-30'"],
    "T": ["timestamp'2020-01-31 10:20:30.5'", "date'1969-12-31'", "timestamp_ntz'2020-02-29 12:00:00'"],
    "X": ["timestamp'2020-01-31 10:20:30.5'", "timestamp_ntz'1969-12-31 23:59:59.999999'"],
    "A": ["null", "1", "'a'", "1.5"],
}

TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(5,0)",
    "decimal(10,2)",
    "decimal(38,18)",
    "decimal(20,0)",
    "decimal(3,2)",
    "string",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
]

COMPARE = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
TEMPLATES: dict[str, tuple[str, list[str]]] = {
    # name: the kind of its result, and texts in which a letter in braces is an argument of that kind
    **{
        op: ("N", [f"{{N}} {op} {{N}}", f"{{M}} {op} {{M}}", f"({{M}} {op} {{N}})", f"{{M}} {op} {{S}}"])
        for op in ["+", "-", "*", "/", "%"]
    },
    **{f"try_{n}": ("N", [f"try_{n}({{N}}, {{N}})", f"try_{n}({{M}}, {{M}})"]) for n in ["add", "subtract", "multiply", "divide", "mod"]},
    "mod": ("N", ["mod({N}, {M})"]),
    "div": ("I", ["{I} div {I}", "{M} div {M}", "{N} div {M}"]),
    "pmod": ("N", ["pmod({N}, {M})", "pmod({M}, {M})"]),
    "negative": ("N", ["-{M}", "-{N}", "negative({M})", "- {M} * {M}"]),
    "positive": ("N", ["positive({N})"]),
    "abs": ("N", ["abs({N})", "abs({M})"]),
    "&": ("I", ["{I} & {I}", "{I} & {I} | {I} ^ {I}"]),
    "|": ("I", ["{I} | {I}", "{M} + {J} | {J} & {J}"]),
    "^": ("I", ["{I} ^ {I}"]),
    "~": ("I", ["~({I})", "~ {J} + {J}"]),
    "shiftleft": ("I", ["shiftleft({I}, {J})", "{I} << {J}"]),
    "shiftright": ("I", ["shiftright({I}, {J})", "{I} >> 2 + 1"]),
    "bit_count": ("I", ["bit_count({I})", "bit_count({B})"]),
    **{
        op: (
            "B",
            [
                f"{{N}} {op} {{N}}",
                f"{{S}} {op} {{S}}",
                f"{{D}} {op} {{D}}",
                f"t {op} {{M}}",
                f"{{M}} {op} t",
                f"{{B}} {op} {{B}}",
                f"y {op} y",
                f"{{M}} {op} {{N}}",
                f"d52 {op} '1.00'",
                f"{{T}} {op} w",
            ],
        )
        for op in COMPARE
    },
    "in": (
        "B",
        [
            "{N} in ({N}, {N})",
            "{S} in ({S}, 'a', 'abc')",
            "{M} not in (1, {M}, null)",
            "{D} in ({D})",
            "t in (1, {J})",
            "{S} not in ('a','b','c','d','e','f','g','h','abc','')",
        ],
    ),
    "greatest": ("N", ["greatest({N}, {N})", "greatest({M}, {N}, {M})"]),
    "least": ("N", ["least({N}, {N})", "least({M}, {M}, {N})"]),
    "isnull": ("B", ["isnull({A})", "{A} is null"]),
    "isnotnull": ("B", ["isnotnull({A})", "{A} is not null"]),
    "isnan": ("B", ["isnan({N})"]),
    "nanvl": ("N", ["nanvl({N}, {N})"]),
    "nullif": ("N", ["nullif({N}, {M})", "nullif({M}, {M})"]),
    "and": ("B", ["{B} and {B}", "({B} and {B})", "{N} between {M} and {N}", "{S} not between {S} and {S}"]),
    "or": ("B", ["{B} or {B}", "{B} or {B} and {B}"]),
    "not": ("B", ["not {B}", "not ({B})", "{B} is true", "{B} is not false", "!({B})"]),
    "case": (
        "N",
        ["case when {B} then {N} when {B} then {M} else {N} end", "case {M} when {M} then {N} end", "case when {B} then {M} end"],
    ),
    "if": ("N", ["if({B}, {N}, {M})", "if({M} <> 0, 10 / {M}, null)"]),
    "coalesce": ("N", ["coalesce({N}, {N})", "coalesce({M}, {M}, 0)", "coalesce({T}, {T})"]),
    "ifnull": ("N", ["ifnull({N}, {M})", "nvl({M}, 1)"]),
    "nvl2": ("N", ["nvl2({A}, {N}, {M})"]),
    **{
        f: ("N", [f"{f}({{N}})", f"{f}({{M}})"])
        for f in [
            "sqrt",
            "exp",
            "expm1",
            "cbrt",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "degrees",
            "radians",
            "rint",
            "ln",
            "log10",
            "log2",
            "log1p",
            "sign",
        ]
    },
    "log": ("N", ["log({M})", "log(2, {M})", "log({M}, {M})"]),
    "power": ("N", ["power({M}, {M})", "pow({N}, 2)"]),
    "atan2": ("N", ["atan2({M}, {M})"]),
    "hypot": ("N", ["hypot({M}, {M})"]),
    "pi": ("N", ["pi()"]),
    "e": ("N", ["e()"]),
    "round": ("N", ["round({N})", "round({N}, 2)", "round({M}, 1)", "round({N}, -1)", "round({N}, -2)"]),
    "bround": ("N", ["bround({N})", "bround({M}, 1)"]),
    "floor": ("N", ["floor({N})", "floor({M}, 1)"]),
    "ceil": ("N", ["ceil({N})", "ceiling({M})", "ceil({M}, 1)"]),
    "lower": ("S", ["lower({S})"]),
    "upper": ("S", ["upper({S})", "ucase({A})"]),
    "initcap": ("S", ["initcap({S})"]),
    "length": ("I", ["length({S})", "length({A})", "char_length(y)"]),
    "octet_length": ("I", ["octet_length({S})"]),
    "concat": ("S", ["concat({S}, {S})", "concat({A}, '-', {A})", "concat(y, y)"]),
    "||": ("S", ["{S} || {S}", "{M} || {S}", "{S} || {J} || {S}"]),
    "concat_ws": ("S", ["concat_ws('-', {S}, {S})", "concat_ws({S}, {A}, {S})"]),
    "substring": (
        "S",
        [
            "substring({S}, {J})",
            "substring({S}, {J}, {J})",
            "substr({S}, -3, 2)",
            "substring({S} from 2 for 3)",
            "substring(y, 2)",
            "substring({S}, 0, 2)",
            "substring({S}, -2)",
        ],
    ),
    "left": ("S", ["left({S}, {J})"]),
    "right": ("S", ["right({S}, {J})"]),
    "reverse": ("S", ["reverse({S})"]),
    "repeat": ("S", ["repeat({S}, {J})"]),
    "split_part": ("S", ["split_part({S}, 'a', 1)", "split_part({S}, {S}, -1)"]),
    "lpad": ("S", ["lpad({S}, 5, 'xy')", "lpad({S}, {J})"]),
    "rpad": ("S", ["rpad({S}, 4, {S})"]),
    "trim": ("S", ["trim({S})", "trim(both 'a' from {S})", "trim('a' from {S})", "trim(trailing {S} from {S})"]),
    "btrim": ("S", ["btrim({S})", "btrim({S}, 'ab')"]),
    "ltrim": ("S", ["ltrim({S})", "ltrim('a', {S})"]),
    "rtrim": ("S", ["rtrim({S})", "rtrim('cb', {S})"]),
    "trim leading": ("S", ["trim(leading 'a' from {S})", "trim(leading from {S})"]),
    "trim trailing": ("S", ["trim(trailing 'b' from {S})"]),
    "instr": ("I", ["instr({S}, {S})", "position('a' in {S})"]),
    "locate": ("I", ["locate('a', {S})", "locate('b', {S}, {J})", "position({S}, {S})"]),
    "startswith": ("B", ["startswith({S}, {S})", "startswith({S}, 'a')"]),
    "endswith": ("B", ["endswith({S}, {S})"]),
    "contains": ("B", ["contains({S}, {S})"]),
    "replace": ("S", ["replace({S}, 'a', 'xy')", "replace({S}, {S})"]),
    "translate": ("S", ["translate({S}, 'abl', 'xy')"]),
    "ascii": ("I", ["ascii({S})"]),
    "chr": ("S", ["chr({J})", "chr(100)"]),
    "like": (
        "B",
        [
            "{S} like 'a%'",
            "{S} not like 'a%'",
            "{S} like '%b'",
            "{S} like '_b_'",
            "not {S} like '%a%'",
            "{S} like 'a/%b' escape '/'",
            r"{S} like 'a\\_b'",
            "{S} like {S}",
            "{S} like '%'",
        ],
    ),
    "ilike": ("B", ["{S} ilike 'HE%'", "{S} not ilike '%A%'"]),
    "rlike": ("B", ["{S} rlike '^a'", "{S} not rlike '[a-c]+$'", "regexp_like({S}, 'b')"]),
    **{
        f: ("I", [f"{f}({{D}})", f"{f}({{T}})"])
        for f in ["year", "quarter", "month", "dayofmonth", "dayofweek", "weekday", "dayofyear", "weekofyear", "hour", "minute", "second"]
    },
    "date_part": (
        "I",
        [
            "extract(hour from {T})",
            "extract(week from {D})",
            "extract(dow from {D})",
            "date_part('second', {T})",
            "date_part('yearofweek', {D})",
            "extract(doy from {D})",
            "date_part('dow_iso', {D})",
            "extract(minute from {T})",
        ],
    ),
    "date_trunc": (
        "T",
        [
            f"date_trunc('{u}', {{T}})"
            for u in ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "DD", "fortnight"]
        ],
    ),
    "trunc": ("D", ["trunc({D}, 'month')", "trunc({D}, 'year')", "trunc({D}, 'week')", "trunc({D}, 'quarter')", "trunc({D}, 'day')"]),
    "date_add": (
        "D",
        [
            "date_add({D}, {J})",
            "{T} + interval 1 hour",
            "{T} - interval '1 day 2 hours'",
            "d + {J}",
            "d - 1",
            "{T} + interval 1 month",
            "d + interval 13 month",
            "{X} - {X}",
            "d - d",
        ],
    ),
    "date_sub": ("D", ["date_sub({D}, 3)"]),
    "datediff": ("I", ["datediff({D}, {D})"]),
    "add_months": ("D", ["add_months({D}, {J})"]),
    "last_day": ("D", ["last_day({D})"]),
    "make_date": ("D", ["make_date(2020, {J}, {J})", "make_date(year({D}), 2, 28)"]),
    "unix_seconds": ("I", ["unix_seconds({X})"]),
    "unix_millis": ("I", ["unix_millis({X})"]),
    "unix_micros": ("I", ["unix_micros({X})"]),
    "timestamp_seconds": ("X", ["timestamp_seconds({M})", "timestamp_seconds({J})"]),
    "timestamp_millis": ("X", ["timestamp_millis({J})"]),
    "timestamp_micros": ("X", ["timestamp_micros({I})"]),
    "unix_date": ("I", ["unix_date(d)"]),
    "date_from_unix_date": ("D", ["date_from_unix_date({J})"]),
    "from_utc_timestamp": ("X", ["from_utc_timestamp({T}, 'Europe/Berlin')", "from_utc_timestamp({X}, 'America/New_York')"]),
    "to_utc_timestamp": ("X", ["to_utc_timestamp({T}, 'Asia/Kolkata')"]),
    "date_format": ("S", ["date_format({T}, 'yyyy-MM-dd HH:mm:ss.SSS')", "date_format({X}, 'yyyyMMdd')"]),
    "to_date": ("D", ["to_date({D})", "to_date({w}, 'yyyy-MM-dd')"]),
    "to_timestamp": ("X", ["to_timestamp({D})"]),
    "try_to_timestamp": ("X", ["try_to_timestamp({S}, 'yyyy-MM-dd')"]),
    "unix_timestamp": ("I", ["unix_timestamp({X})", "unix_timestamp({D})", "unix_timestamp('2020-01-02 03:04:05')"]),
    "from_unixtime": ("S", ["from_unixtime({J})", "from_unixtime({k}, 'yyyy-MM-dd')"]),
    "cast": ("N", [f"{c}({{{k}}} as {t})" for c in ("cast", "try_cast") for t in TYPES for k in "NMSABDT"]),
}

INEXACT = ["sqrt", "exp", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "degrees", "radians", "ln(", "log", "pow", "hypot"]
"""Functions whose last bits may differ from Java's."""


def check_templates() -> None:
    """Every function of the table is drawn from."""
    missing = set(FUNCTIONS) - set(TEMPLATES)
    assert not missing, missing


class Generator:
    """Expressions by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.by_kind: dict[str, list[str]] = {}
        for name, (kind, _) in TEMPLATES.items():
            self.by_kind.setdefault(kind, []).append(name)
        self.by_kind["M"] = ["+", "-", "*", "case", "coalesce", "abs", "round", "length", "cast"]
        self.by_kind["J"] = ["length"]
        self.by_kind["A"] = list(TEMPLATES)

    def one(self, depth: int = 3) -> str:
        return self._from(self.random.choice(list(TEMPLATES)), depth)

    def _from(self, name: str, depth: int) -> str:
        text = self.random.choice(TEMPLATES[name][1])
        out, place = "", 0
        while (start := text.find("{", place)) >= 0:
            end = text.index("}", start)
            out += text[place:start] + self._argument(text[start + 1 : end], depth - 1)
            place = end + 1
        return out + text[place:]

    def _argument(self, kind: str, depth: int) -> str:
        draw = self.random.random()
        if kind in COLUMNS:
            return kind
        if draw < 0.03:
            kind = self.random.choice("BINSDT")
        if depth > 0 and draw < 0.3 and self.by_kind.get(kind):
            inner = self._from(self.random.choice(self.by_kind[kind]), depth)
            return f"({inner})" if self.random.random() < 0.9 or (" " in inner and kind == "B") else inner
        return self.random.choice(LITERALS[kind] if draw > 0.85 else KINDS[kind])


def table(seed: int, rows: int = 20) -> pa.Table:
    """Rows of values drawn from those of each column."""
    draw = random.Random(seed)
    return pa.table({name: pa.array([draw.choice(values) for _ in range(rows)], t) for name, (t, values) in COLUMNS.items()})
