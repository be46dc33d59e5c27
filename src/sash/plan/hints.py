"""What to write instead, for values of other libraries that people reach for first."""

from __future__ import annotations

import re
from typing import Any


def is_spark_column(given: Any) -> bool:
    """Whether a value is a PySpark Column; Spark is not imported to find out."""
    return any(kind.__name__ == "Column" and kind.__module__.startswith("pyspark.") for kind in type(given).__mro__)


def hint(given: Any) -> str:
    """How to say with Sash what a PySpark Column says; nothing for all other values."""
    if not is_spark_column(given):
        return ""
    shown = re.sub(r"^Column<'(.*)'>$", r"\1", str(given), flags=re.DOTALL)
    if shown.startswith(("window(", "session_window(", "timewindow(", "sessionwindow(")):
        return (
            "; that is a PySpark Column: write W.tumbling('10 minutes'), W.sliding('1 hour', every='5 minutes') or W.session('30 minutes')"
        )
    match = re.match(r"(\w+)\((.*?)(?:, .*)?\)$", shown)
    if match:
        return f'; that is a PySpark Column: write S.{match[1]}("{match[2]}") with sash.functions as S, or the SQL text {shown!r}'
    return f"; that is a PySpark Column: write the column's name or SQL text, {shown!r}"
