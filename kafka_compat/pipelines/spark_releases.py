"""The Spark releases that the jobs support, with their Java versions, connector jars and Iceberg package.

A connector is compiled for one version of Spark, and for Scala 2.13 since Spark 4.0. It consists of four
jars; its dependencies (Scala, Hadoop, compression) are part of pyspark.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_GROUP = "org.apache.spark"
_CONNECTOR = "spark-sql-kafka-0-10_2.13"
_TOKENS = "spark-token-provider-kafka-0-10_2.13"
_CONNECTOR_JAR = re.compile(r"spark-sql-kafka-0-10_(?P<scala>[\d.]+)-(?P<version>\d[\w.]*?)\.jar")
_CORE_JAR = re.compile(r"spark-core_(?P<scala>[\d.]+)-(?P<version>\d[\w.]*?)\.jar")


@dataclass(frozen=True, slots=True)
class SparkRelease:
    """A version of Spark. `java` is the range of Java versions that it runs on, and `iceberg` is the Maven
    coordinates of Iceberg's package for this Spark, or "" if there is none.
    """

    version: str
    java: tuple[int, int]
    kafka_clients: str
    commons_pool: str
    iceberg: str

    @property
    def connector(self) -> str:
        """Maven coordinates of the Kafka connector."""
        return f"{_GROUP}:{_CONNECTOR}:{self.version}"

    def jars(self, *, iceberg: bool = False) -> dict[str, str]:
        """Map the file names of the connector's jars, and of Iceberg's, to their Maven coordinates."""
        coordinates = [
            self.connector,
            f"{_GROUP}:{_TOKENS}:{self.version}",
            f"org.apache.kafka:kafka-clients:{self.kafka_clients}",
            f"org.apache.commons:commons-pool2:{self.commons_pool}",
            *([self.iceberg] if iceberg else []),
        ]
        return {f"{'-'.join(each.split(':')[1:])}.jar": each for each in coordinates}


_SERIES = {
    "4.0": ((17, 21), "3.9.0", "2.12.0", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"),
    "4.1": ((17, 21), "3.9.1", "2.12.1", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"),
    "4.2": ((17, 25), "3.9.2", "2.13.1", ""),
}
SUPPORTED = "4.0, 4.1 or 4.2"


def release_of(version: str) -> SparkRelease | None:
    """Return the release of a version such as 4.1.1, or None if the jobs do not support it."""
    series = _SERIES.get(".".join(version.split(".")[:2]))
    return None if series is None else SparkRelease(version, *series)


def series_on(java: int) -> str:
    """Return the series of Spark, such as 4.2, that runs on this version of Java, or "" if there is none."""
    return next((name for name, (range, *_) in _SERIES.items() if range[0] <= java <= range[1]), "")


def other_connector(release: SparkRelease, jars: Iterable[str]) -> str:
    """Return which other Spark a connector among the jars (file names) belongs to, as "Spark 4.0.0", or "".

    The result is empty if the connector of `release` is among the jars, or if none of them is a connector.
    """
    found = [match for match in map(_CONNECTOR_JAR.fullmatch, jars) if match]
    if not found or any(match["version"] == release.version and match["scala"] == "2.13" for match in found):
        return ""
    return _named(found[0])


def spark_of(jars: Iterable[str]) -> tuple[str, str]:
    """Return the version of a Spark installation, and its name for messages, from the names of its jars. Both
    are "" if Spark's own jar is not among them.
    """
    for match in map(_CORE_JAR.fullmatch, jars):
        if match:
            return match["version"], _named(match)
    return "", ""


def _named(jar: re.Match[str]) -> str:
    scala = "" if jar["scala"] == "2.13" else f" (Scala {jar['scala']})"
    return f"Spark {jar['version']}{scala}"
