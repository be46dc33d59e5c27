"""Spark's daemon for Python workers, with everything imported that our tasks need before it forks: a worker then starts at once.

Spark forks a worker for each core, and one more for each Python stage of a running query; by itself each imports pandas, pyarrow and Sash
anew, which takes seconds. ``sash.spark.session()`` uses this daemon; any other session does with
``spark.python.daemon.module=sash.spark.daemon``, if Sash is installed on all nodes.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

PRELOADED = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "llvmlite.binding",
    "datasketches",
    "pyspark.worker",
    "sash.spark.workers.batch_tasks",
    "sash.spark.workers.stream_tasks",
)
"""Modules that start no threads when they are imported, so that a fork is safe. numba is not among them: only compiling needs it."""


def preload() -> None:
    """Import what workers need; what is missing is reported by the task that needs it."""
    for module in PRELOADED:
        with suppress(ImportError):
            import_module(module)


if __name__ == "__main__":
    preload()
    import_module("pyspark.daemon").manager()
