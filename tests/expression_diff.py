"""Compares expressions over Arrow with Spark's own, in bulk."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import SashError
from sash.expressions import parse
from tests.expression_cases import INEXACT, Generator, table

BULK = 150


@dataclass(frozen=True)
class Difference:
    text: str
    ours: Any
    spark: Any

    def __str__(self) -> str:
        return f"{self.text}\n    ours  {self.ours}\n    Spark {self.spark}"


@dataclass(frozen=True)
class Error:
    """An expression that has no value: refused before any row is seen, or undefined for some row."""

    refused: bool
    message: str

    def __str__(self) -> str:
        return f"{'refused' if self.refused else 'undefined'}: {self.message}"


def ours(text: str, rows: pa.Table) -> Any:
    try:
        expression = parse(text)
        expression.type(rows.schema)
    except SashError as error:
        return Error(True, str(error))
    try:
        return expression.evaluate(rows)
    except SashError as error:
        return Error(False, str(error))


def spark_columns(frame: Any, texts: list[str]) -> dict[str, Any]:
    """Spark's values, or its errors; those that fail are found by halving."""
    if not texts:
        return {}
    try:
        selected = frame.selectExpr(*[f"{text} as c{k}" for k, text in enumerate(texts)])
        refused = True
        try:
            assert selected.schema
            refused = False
            made = selected.toArrow()
            return {text: made.column(k).combine_chunks() for k, text in enumerate(texts)}
        except Exception as error:
            if len(texts) == 1:
                return {texts[0]: Error(refused or "AnalysisException" in type(error).__name__, str(error).split("\n")[0][:200])}
    except Exception as error:
        if len(texts) == 1:
            return {texts[0]: Error(True, str(error).split("\n")[0][:200])}
    half = len(texts) // 2
    return spark_columns(frame, texts[:half]) | spark_columns(frame, texts[half:])


KNOWN: dict[str, Callable[[str, Any, Any], bool]] = {
    "Spark rounds a decimal to 34 digits when it is negated": lambda text, a, b: (
        isinstance(b, Error) and "rounded half up from" in b.message and ("d38" in text or "12345678901234567890" in text)
    ),
    "A timestamp without a zone is cast to a number as UTC; Spark has no such cast": lambda text, a, b: (
        isinstance(b, Error) and "TIMESTAMP_NTZ" in b.message and "cast" in text
    ),
    "div of decimals raises where the quotient does not fit into 64 bits; Spark's wraps around": lambda text, a, b: (
        isinstance(a, Error) and "does not fit into 64 bits" in a.message and " div " in text
    ),
    "Text with an interval added is refused; Spark reads it as a time and writes it again": lambda text, a, b: (
        isinstance(a, Error) and a.refused and "interval" in text
    ),
    "Java's regular expressions take $ to match before a last line break, too": lambda text, a, b: "rlike" in text and "$" in text,
    "Some text that Spark's grammar refuses is read": lambda text, a, b: isinstance(b, Error) and b.refused and not b.message.strip(),
    "Intervals are not cast to numbers": lambda text, a, b: isinstance(a, Error) and "no cast from interval" in a.message,
    "Intervals are not written as text": lambda text, a, b: isinstance(a, Error) and "interval day to second to string" in a.message,
    "Spark's cast of a decimal to a timestamp wraps around; Sash refuses it": lambda text, a, b: (
        "as timestamp)" in text and ("1234567890" in text or "d38" in text)
    ),
    "Spark's try_ functions of text and times also return null for errors in their arguments": lambda text, a, b: (
        isinstance(a, Error) and not a.refused and re.search("try_(add|subtract|multiply|divide|mod)", text) is not None
    ),
    "Spark compares a null with a constant outside of its type's range as false; in Sash it is null": lambda text, a, b: (
        any(huge in text for huge in ("12345678901234567890", "99999999999999999999"))
        and any(op in text for op in ("=", "<", ">", " in ", "between"))
    ),
    "At the ends of 64 bits of microseconds Spark raises in some functions of times; Sash returns a value, or null": lambda text, a, b: (
        isinstance(b, Error) and "long overflow" in b.message and "timestamp" in text
    ),
    "Of dates after the year 32767 only sums and differences are right": lambda text, a, b: (
        "date_from_unix_date" in text and any(far in text for far in ("unix_timestamp", "unix_seconds", "i32", "2147483647"))
    ),
}
"""Differences that the documentation lists, each with its reason."""


def same(text: str, a: pa.Array, b: pa.Array) -> bool:
    if a.type != b.type or len(a) != len(b):
        return False
    x, y = (
        a.to_pylist() if not pa.types.is_temporal(a.type) else _ticks(a),
        b.to_pylist() if not pa.types.is_temporal(b.type) else _ticks(b),
    )
    inexact = any(name in text for name in INEXACT)
    if inexact and any(name in text for name in MAGNIFYING):
        return True
    return all(_same_value(text, p, q, inexact) for p, q in zip(x, y, strict=True))


PARTS = ("reverse", "lpad", "rpad", "substr", "left", "right", "split_part")
"""Functions that take text apart."""
MAGNIFYING = ("%", "mod", "length(", "cos(", "sin(", "tan(", *PARTS)
"""What turns another last bit into another result: of text, that a number is written as, the last digits may be what is left."""
FLOAT = re.compile(r"-?[0-9]\.[0-9]{6,}E-?[0-9]+")
IN_PARTS = re.compile(r"[0-9]E-?[0-9]|[0-9]-?E[0-9]")


def _ticks(values: pa.Array) -> list:
    return values.view(pa.int32() if values.type == pa.date32() else pa.int64()).to_pylist()


def _same_value(text: str, p: Any, q: Any, inexact: bool) -> bool:
    if inexact and isinstance(p, str) and isinstance(q, str):
        return True
    if inexact and isinstance(p, int | Decimal) and isinstance(q, int | Decimal) and not isinstance(p, bool):
        return math.isclose(p, q, rel_tol=1e-9, abs_tol=1)
    if isinstance(p, str) and isinstance(q, str) and p != q:  # before Java 19 some doubles are written with more digits than they need
        exact = float if "float" not in text and "f32" not in text else np.float32
        return FLOAT.sub(lambda m: repr(exact(m[0])), p) == FLOAT.sub(lambda m: repr(exact(m[0])), q) or (
            all(IN_PARTS.search(v) for v in (p, q)) and any(part in text for part in PARTS)
        )
    if not isinstance(p, float) or not isinstance(q, float):
        return p == q
    if math.isnan(p) or math.isnan(q):
        return math.isnan(p) and math.isnan(q)
    if inexact:
        return math.isclose(p, q, rel_tol=1e-9, abs_tol=1e-300) or abs(p - q) < 1e-9
    return p == q and math.copysign(1, p) == math.copysign(1, q)


def frame_of(session: Any, rows: pa.Table) -> Any:
    """The rows as a frame; Spark takes timestamps without a zone for instants unless it is told."""
    return session.createDataFrame(rows).selectExpr(*[f"cast({n} as timestamp_ntz) as {n}" if n == "nt" else n for n in rows.column_names])


def compare(session: Any, seed: int, count: int) -> Iterator[Difference]:
    """Differences among ``count`` random expressions."""
    logging.getLogger("SQLQueryContextLogger").disabled = True  # errors are expected, and it prints each with all of Java's stack
    rows = table(seed)
    frame = frame_of(session, rows)
    generator = Generator(seed)
    texts = list(dict.fromkeys(generator.one() for _ in range(count)))
    for start in range(0, len(texts), BULK):
        some = texts[start : start + BULK]
        found = {text: ours(text, rows) for text in some}
        valued = [t for t in some if not isinstance(found[t], Error)]
        failed = [t for t in some if isinstance(found[t], Error)]
        theirs = spark_columns(frame, valued)
        for text in failed:
            theirs |= spark_columns(frame, [text])
        for text in some:
            if (difference := different(text, found[text], theirs[text])) is not None:
                yield difference


def different(text: str, a: Any, b: Any) -> Difference | None:
    if (isinstance(a, Error) and isinstance(b, Error)) or any(is_known(text, a, b) for is_known in KNOWN.values()):
        return None
    if isinstance(a, Error) or isinstance(b, Error):
        return Difference(text, shown(a), shown(b))
    return None if same(text, a, b) else Difference(text, shown(a), shown(b))


def shown(value: Any) -> str:
    return (
        str(value)
        if isinstance(value, Error)
        else f"{value.type} {value.to_pylist() if not pa.types.is_temporal(value.type) else _ticks(value)}"
    )
