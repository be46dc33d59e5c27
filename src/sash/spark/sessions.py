"""A local session for trying things."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from sash.errors import NoSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DAEMON = "spark.python.daemon.module"
"""Spark's setting for the process that Python workers are forked from (:mod:`sash.spark.daemon`)."""
BYTES_PER_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
ANY_SIZE = str((1 << 31) - 1)
"""With this, a batch is bounded by its rows alone. With less, Spark adds up all columns' sizes after every row that it sends to Python,
which takes longer than copying the row."""


def session(cores: int | None = None, settings: Mapping[str, Any] | None = None) -> SparkSession:
    """A Spark session on this machine for trying things: this interpreter for the workers, a partition per core, and no chatter.

    Any other session works as well; streams need Spark's RocksDB state store, which this one has.

    Args:
        cores: How many cores to use; by default all of this process.
        settings: Spark's settings, e.g. `{"spark.driver.memory": "4g"}`.

    Returns:
        The session.

    Examples:
        ```python
        spark = sash.spark.session()
        sash.aggregate(spark.read.parquet("events"), windows=W.tumbling("1 hour"), aggs=S.count(), time="ts").show()
        ```
    """
    import shutil

    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise NoSpark("Spark needs Java 17 or 21, and there is no java on the PATH; on Debian: apt-get install openjdk-17-jre-headless")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    count = cores or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    defaults = {
        "spark.master": f"local[{count}]",
        "spark.app.name": "sash",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(2 * count),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
        BYTES_PER_BATCH: ANY_SIZE,
        "spark.log.level": "ERROR",
        # What streams need, and what makes a micro-batch write its changes instead of whole files.
        PROVIDER: ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        **({DAEMON: "sash.spark.daemon"} if _is_installed() else {}),
    }
    builder = SparkSession.builder
    for name, value in {**defaults, **(settings or {})}.items():
        builder = builder.config(name, str(value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder.getOrCreate()


def _is_installed() -> bool:
    """Whether new processes can import Sash; one that is only on this process's path, they may not have."""
    try:
        return bool(version("sash"))
    except PackageNotFoundError:
        return False
