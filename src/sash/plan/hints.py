"""Hints for error messages, where a PySpark Column is passed instead of a Sash spec."""

from __future__ import annotations

import re
from typing import Any


def is_spark_column(value: Any) -> bool:
    """Whether a value is a PySpark Column; Spark is not imported to find out."""
    return any(kind.__name__ == "Column" and kind.__module__.startswith("pyspark.") for kind in type(value).__mro__)


def hint(value: Any) -> str:
    """The tail of an error message that says how to write a PySpark Column with Sash; empty for other values."""
    if not is_spark_column(value):
        return ""
    shown = re.sub(r"^Column<'(.*)'>$", r"\1", str(value), flags=re.DOTALL)
    if shown.startswith(("window(", "session_window(", "timewindow(", "sessionwindow(")):
        return (
            "; that is a PySpark Column: write W.tumbling('10 minutes'), W.sliding('1 hour', every='5 minutes') or W.session('30 minutes')"
        )
    match = re.match(r"(\w+)\((.*?)(?:, .*)?\)$", shown)
    if match:
        return f'; that is a PySpark Column: write S.{match[1]}("{match[2]}") with sash.functions as S, or the SQL text {shown!r}'
    return f"; that is a PySpark Column: write the column's name or SQL text, {shown!r}"
