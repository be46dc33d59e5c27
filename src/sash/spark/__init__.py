"""How the pipe runs on Spark: public PySpark APIs only, classic and Connect alike."""

from __future__ import annotations

from sash.spark import needs

needs.check(needs.SPARK, "sash.spark")

from sash.spark.sessions import session  # noqa: E402
from sash.spark.shipping import ship  # noqa: E402
from sash.spark.streams.checkpoints import check  # noqa: E402
from sash.spark.streams.diagnose import diagnose  # noqa: E402
from sash.spark.streams.progress import progress  # noqa: E402

__all__ = ["check", "diagnose", "progress", "session", "ship"]
