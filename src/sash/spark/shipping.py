"""Sash for executors that lack it."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from sash import errors
from sash._version import __version__
from sash.spark.language.spark_frames import is_connect

_archives: list[bytes] = []


def archive() -> bytes | None:
    """The zip that this process shipped, if any. It is part of every task, since stateful operators on Connect do not see artifacts."""
    return _archives[-1] if _archives else None


def ship(session: Any) -> str:
    """Send this version of Sash to the executors of a session, as a zip of its Python files.

    Everything else that it needs (numpy, pyarrow, numba, datasketches, sqlglot) has to be installed there; a job says which is missing.
    Kernels are compiled on the executors, once for each machine that has its own `SASH_CACHE`.

    Args:
        session: A Spark session, classic or Connect.

    Returns:
        The path of the zip.

    Examples:
        ```python
        sash.spark.ship(spark)
        sash.aggregate(spark.read.parquet("events"), ...).show()
        ```
    """
    path = Path(tempfile.mkdtemp(prefix="sash-")) / f"sash-{__version__}.zip"
    root = Path(errors.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            archive.write(file, Path("sash") / file.relative_to(root))
    _archives.append(path.read_bytes())
    if is_connect(session):
        session.addArtifacts(str(path), pyfile=True)
    else:
        session.sparkContext.addPyFile(str(path))
    return str(path)
