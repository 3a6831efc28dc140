"""Spark's Kafka connector: its coordinates, and how its four jars reach a folder.

The version is pinned together with pyspark's: the connector is compiled against that Spark. Its transitive
dependencies beyond these four jars (Scala, Hadoop, compression) are already in pyspark.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kafka_compat.pipelines.environment import SPARK_VERSION, java_command, pyspark_home
from kafka_compat.pipelines.errors import NotStarted

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"
JARS = {
    f"spark-sql-kafka-0-10_2.13-{SPARK_VERSION}.jar": CONNECTOR,
    f"spark-token-provider-kafka-0-10_2.13-{SPARK_VERSION}.jar": (
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{SPARK_VERSION}"
    ),
    "kafka-clients-3.9.0.jar": "org.apache.kafka:kafka-clients:3.9.0",
    "commons-pool2-2.12.0.jar": "org.apache.commons:commons-pool2:2.12.0",
}


def missing_jars(directory: Path) -> list[str]:
    """Names of the connector's jars that `directory` lacks."""
    return [name for name in JARS if not (directory / name).is_file()]


def jars_in(directory: Path) -> list[Path]:
    """The connector's four jars in `directory`; NotStarted when one is missing."""
    missing = missing_jars(directory)
    if missing:
        raise NotStarted(
            f"{directory} lacks {', '.join(missing)}.",
            f"Copy them there: kafka-compat spark jars {directory}",
        )
    return [directory / name for name in JARS]


def copy_jars(directory: Path) -> str:
    """Put the four jars into `directory` and say which tool brought them ("", when all were there).

    Maven is asked first, since it follows the mirrors of the user's settings.xml; Ivy, which is in pyspark
    and needs only Java, is the other way.
    """
    missing = missing_jars(directory)
    if not missing:
        return ""
    directory.mkdir(parents=True, exist_ok=True)
    complaints: list[str] = []
    for tool, fetch in (("Maven", _fetch_with_maven), ("Ivy", _fetch_with_ivy)):
        with tempfile.TemporaryDirectory(prefix=".jars-", dir=directory) as scratch:
            complaint = fetch(Path(scratch))
            if not complaint:
                for jar in _find_jars(Path(scratch), missing):
                    os.replace(jar, directory / jar.name)
                if not missing_jars(directory):
                    return tool
                complaint = f"brought no {', '.join(missing_jars(directory))}"
            complaints.append(f"{tool}: {complaint}")
    raise NotStarted(
        "The connector's jars could not be fetched.\n" + "\n".join(complaints),
        "Maven follows the mirrors in ~/.m2/settings.xml; or copy the jars by hand: "
        + ", ".join(JARS.values()),
    )


def _find_jars(root: Path, names: list[str]) -> Iterator[Path]:
    for name in names:
        yield from list(root.rglob(name))[:1]


def _fetch_with_maven(scratch: Path) -> str:
    """Resolve into `scratch`; "" or why not."""
    maven = shutil.which("mvn")
    if maven is None:
        return "mvn is not installed"
    wanted = "".join(_pom_dependency(coordinates) for coordinates in JARS.values())
    pom = scratch / "pom.xml"
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kafka-compat</groupId><artifactId>spark-jars</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
    return _run(
        [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={scratch}"]
    )


def _pom_dependency(coordinates: str) -> str:
    group, artifact, version = coordinates.split(":")
    everything = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<exclusions>{everything}</exclusions></dependency>"
    )


def _fetch_with_ivy(scratch: Path) -> str:
    """Resolve into `scratch` with the Ivy that pyspark carries; "" or why not."""
    classpath = str(pyspark_home() / "jars" / "*")
    pattern = f"{scratch}/[artifact]-[revision].[ext]"
    for coordinates in JARS.values():
        group, artifact, version = coordinates.split(":")
        complaint = _run(
            [
                *(java_command(), "-cp", classpath, "org.apache.ivy.Main", "-error", "-notransitive"),
                *("-dependency", group, artifact, version, "-confs", "default,master", "-retrieve", pattern),
            ]
        )
        if complaint:
            return complaint
    return ""


def _run(command: list[str]) -> str:
    """Run to the end; "" or the end of what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "\n".join(lines[-5:]) or f"exit code {done.returncode}"
