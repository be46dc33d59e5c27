"""How the pipe runs on Spark: public PySpark APIs only, classic and Connect alike."""

from __future__ import annotations

from sash.spark.checkpoints import check
from sash.spark.progress import progress
from sash.spark.sessions import session
from sash.spark.shipping import ship

__all__ = ["check", "progress", "session", "ship"]
