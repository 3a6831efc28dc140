"""Check a job's requirements: Java, pyspark, pyarrow, pandas, and the jars of Spark's Kafka connector. Each
missing requirement has its own message.

The connector's version is pinned to pyspark's, because the connector is compiled for that version of Spark.
The connector consists of four jars; its dependencies (Scala, Hadoop, compression) are part of pyspark.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from kafka_compat.pipelines.errors import NotStarted

SPARK_VERSION = "4.0.0"
JAVA_VERSION_MIN = 17
INSTALL = "pip install 'kafka-compat[spark]'"
_JAVA_HINT = (
    f"Install Java {JAVA_VERSION_MIN} or newer (apt install openjdk-17-jre-headless), or set JAVA_HOME."
)


def require_spark() -> None:
    """Raise NotStarted unless pyspark, pyarrow, pandas and Java (of any version) are installed."""
    _java()
    pyspark_home()
    for package in ("pyarrow", "pandas"):
        # Check both packages now: Spark needs them for Arrow columns in Python, but reports a missing package
        # only during the run.
        _require(package)


def require_matplotlib() -> None:
    """Raise NotStarted unless matplotlib is installed."""
    _require("matplotlib")


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise NotStarted(f"{package} is not installed.", f"Install it with: {INSTALL}")


def pyspark_home() -> Path:
    """Return the directory of pyspark, without importing it. Raises NotStarted if pyspark is missing."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NotStarted("pyspark is not installed.", f"Install it with: {INSTALL}")
    home = Path(spec.origin).parent
    if not home.is_dir():
        # Use SPARK_HOME, which spark-submit sets, because spark-submit provides pyspark in an archive.
        home = Path(os.environ.get("SPARK_HOME", home))
        home = home if (home / "version.py").exists() else home / "python" / "pyspark"
    found = re.search(r"""__version__[^=]*=\s*['"]([^'"]+)""", (home / "version.py").read_text())
    if found is None or found[1] != SPARK_VERSION:
        raise NotStarted(
            f"pyspark {found[1] if found else '?'} is installed; the jobs are built for {SPARK_VERSION}.",
            f"Install it with: {INSTALL}",
        )
    return home


def java_command() -> str:
    """Return the path to Java, from JAVA_HOME or PATH. Raises NotStarted if Spark does not support it."""
    java = _java()
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except OSError as error:
        raise NotStarted(f"Java does not run: {error}.", _JAVA_HINT) from None
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA_VERSION_MIN:
        raise NotStarted(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer; {java} says: {said.strip()[:100]}.", _JAVA_HINT
        )
    return java


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise NotStarted("Spark needs Java, but java is not on the PATH.", _JAVA_HINT)
    return java


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
    """Return the names of the connector's jars that are missing from `directory`."""
    return [name for name in JARS if not (directory / name).is_file()]


def jars_in(directory: Path) -> list[Path]:
    """Return the connector's four jars in `directory`. Raises NotStarted if a jar is missing."""
    missing = missing_jars(directory)
    if missing:
        raise NotStarted(
            f"{directory} lacks {', '.join(missing)}.",
            f"Copy them there: kafka-compat spark jars {directory}",
        )
    return [directory / name for name in JARS]


def copy_jars(directory: Path) -> str:
    """Download the connector's missing jars to `directory`. Return the tool used, or "" if no jar was
    missing.

    Maven is tried first, because it uses the mirrors in the user's settings.xml, then Ivy, which is part of
    pyspark and requires only Java. Raises NotStarted if both fail.
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
                for name in missing:
                    for jar in list(Path(scratch).rglob(name))[:1]:
                        os.replace(jar, directory / name)
                if not missing_jars(directory):
                    return tool
                complaint = f"did not download {', '.join(missing_jars(directory))}"
            complaints.append(f"{tool}: {complaint}")
    raise NotStarted(
        "The connector's jars could not be fetched.\n" + "\n".join(complaints),
        "Maven uses the mirrors in ~/.m2/settings.xml; or copy the jars by hand: " + ", ".join(JARS.values()),
    )


def _fetch_with_maven(scratch: Path) -> str:
    """Download the jars to `scratch` with Maven. Return "" or an error message."""
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
    """Download the jars to `scratch` with pyspark's Ivy. Return "" or an error message."""
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
    """Run a command. Return "" if it succeeds, or the end of its output if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "\n".join(lines[-5:]) or f"exit code {done.returncode}"
