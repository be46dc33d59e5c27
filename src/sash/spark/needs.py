"""Packages that are needed besides Spark itself, checked before a job starts."""

from __future__ import annotations

from importlib.util import find_spec

from sash.errors import MissingPackage

SPARK = {"pyspark": "pyspark"}
BATCH = {"pandas": "pandas", "pyarrow": "pyarrow"}
STREAM = {**BATCH, "google.protobuf": "protobuf"}


def check(needed: dict[str, str], what: str) -> None:
    """Raise if a package is missing, and say how to install it.

    >>> check(BATCH, "a batch on Spark")
    """
    missing = [package for module, package in needed.items() if not _is_installed(module)]
    if missing:
        names = " and ".join(missing)
        raise MissingPackage(
            f"{what} needs {names}, which {'is' if len(missing) == 1 else 'are'} not installed here: pip install 'sash[spark]', "
            "on the driver and on all workers"
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False
