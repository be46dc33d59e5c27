"""SQL text over the row: parsed once, evaluated over Arrow here, handed on as Spark SQL elsewhere."""

from __future__ import annotations

from sash.expressions.expression import Expression, parse

__all__ = ["Expression", "parse"]
