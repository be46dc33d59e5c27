"""Shared settings: Hypothesis without deadlines, the same cases in every run, one Spark session, Java that starts quickly."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "default",
    deadline=None,
    max_examples=int(os.environ.get("SASH_EXAMPLES", "25")),
    derandomize="SASH_EXAMPLES" not in os.environ,  # a soak has a seed of its own
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[p for p in Phase if p is not Phase.shrink or not os.environ.get("SASH_NO_SHRINK")],
)
settings.load_profile("default")

# Java's compiler at its quickest, for the session here and for drivers and executors that tests start: none lives long enough for its best.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items):
    """All tests that need Spark run in one process, which has the one session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    import sash

    home = tmp_path_factory.mktemp("spark")
    settings = {"spark.sql.shuffle.partitions": 3, "spark.sql.warehouse.dir": home, "spark.local.dir": home}
    session = sash.spark.session(2, settings)
    yield session
    session.stop()
