"""How the pipe runs on Spark: public PySpark APIs only, classic and Connect alike."""

from __future__ import annotations

from sash.spark.sessions import session
from sash.spark.shipping import ship
from sash.spark.streams.checkpoints import check
from sash.spark.streams.progress import progress

__all__ = ["check", "progress", "session", "ship"]
