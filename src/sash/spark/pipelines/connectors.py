"""Connectors that Spark's own package lacks, by the version of Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sash.plan.locations import Location

KAFKA_FOR = {"4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.2.0"}
"""The release of Spark's Kafka connector for each Spark; for 4.3 there is none of its own yet, and that of 4.2 works."""
JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def settings_for(places: list[Location], settings: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for the connectors of these locations; none where the user's settings bring their own."""
    if not any(p.kind == "kafka" for p in places) or any(name in settings for name in JARS):
        return {}
    return {"spark.jars.packages": kafka_package()}


def kafka_package() -> str:
    """The connector's name in Maven."""
    import pyspark

    version = ".".join(pyspark.__version__.split(".")[:2])
    newest = max(KAFKA_FOR, key=lambda v: tuple(map(int, v.split("."))))
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{KAFKA_FOR.get(version, KAFKA_FOR[newest])}"
