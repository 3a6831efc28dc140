"""Check a job's requirements: Java, pyspark, pyarrow, pandas, and the jars of Spark's Kafka connector. Each
missing requirement, and each pair of versions that do not fit together, has its own message.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.spark_releases import (
    SUPPORTED,
    SparkRelease,
    other_connector,
    release_of,
    series_on,
    spark_of,
)

INSTALL = "pip install 'kafka-compat[spark]'"
_JAVA_HINT = "Install Java 17 or 21 (apt install openjdk-17-jre-headless), or set JAVA_HOME to it."


def require_spark() -> None:
    """Raise NotStarted unless a supported pyspark, pyarrow, pandas and any Java are installed."""
    _java()
    spark_release()
    for package in ("pyarrow", "pandas"):
        # Check both packages now: Spark needs them for Arrow columns in Python, but reports a missing package
        # only during the run.
        _require(package)


def require_matplotlib() -> None:
    """Raise NotStarted unless matplotlib is installed."""
    _require("matplotlib")


def require_deltalake() -> None:
    """Raise NotStarted unless deltalake is installed."""
    _require("deltalake", "pip install 'kafka-compat[delta]'")


def _require(package: str, install: str = INSTALL) -> None:
    if importlib.util.find_spec(package) is None:
        raise NotStarted(f"{package} is not installed.", f"Install it with: {install}")


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
    return home


def spark_release() -> SparkRelease:
    """Return the release of the installed pyspark. Raises NotStarted if pyspark is missing, if the jobs do
    not support it, or if SPARK_HOME is another version of Spark.
    """
    home = pyspark_home()
    found = re.search(r"""__version__[^=]*=\s*['"]([^'"]+)""", (home / "version.py").read_text())
    version = found[1] if found else "?"
    release = release_of(version)
    if release is None:
        raise NotStarted(
            f"pyspark {version} is installed; the jobs need pyspark {SUPPORTED}.",
            f"Install it with: {INSTALL}",
        )
    elsewhere = os.environ.get("SPARK_HOME")
    started, name = spark_of(_names_in(Path(elsewhere) / "jars")) if elsewhere else ("", "")
    if started not in ("", version):
        same = f" or install the same version: pip install pyspark=={started}" if release_of(started) else ""
        raise NotStarted(
            f"SPARK_HOME={elsewhere} is {name}, but pyspark {version} is installed.",
            f"Unset SPARK_HOME{same}.",
        )
    return release


def named_release(version: str | None) -> SparkRelease:
    """Return the release of a version, or that of the installed pyspark. Raises NotStarted if the jobs do not
    support it.
    """
    if version is None:
        return spark_release()
    release = release_of(version)
    if release is None:
        raise NotStarted(f"Spark {version} is not supported; the jobs need Spark {SUPPORTED}.")
    return release


def require_iceberg(release: SparkRelease) -> None:
    """Raise NotStarted if Iceberg has no package for this Spark."""
    if not release.iceberg:
        raise NotStarted(
            f"Iceberg has no package for Spark {release.version}.",
            "Install a version that it supports: pip install 'pyspark==4.1.1', or choose --format delta.",
        )


def java_command() -> str:
    """Return the path to Java, from JAVA_HOME or PATH. Raises NotStarted if the installed pyspark does not
    run on it.
    """
    java, release = _java(), spark_release()
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        ).stderr
    except OSError as error:
        raise NotStarted(f"Java does not run: {error}.", _JAVA_HINT) from None
    found = re.search(r'version "(\d+)', said)
    version = int(found[1]) if found else 0
    oldest, newest = release.java
    if not oldest <= version <= newest:
        other = series_on(version)
        instead = f" Or install pyspark {other}: pip install 'pyspark=={other}.*'" if other else ""
        raise NotStarted(
            f"pyspark {release.version} runs on Java {oldest} to {newest}; {java} says: "
            f"{said.strip()[:100]}.",
            _JAVA_HINT + instead,
        )
    return java


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise NotStarted("Spark needs Java, but java is not on the PATH.", _JAVA_HINT)
    return java


def missing_jars(directory: Path, release: SparkRelease, *, iceberg: bool = False) -> list[str]:
    """Return the names of the connector's jars, and of Iceberg's, that are missing from `directory`."""
    return [name for name in release.jars(iceberg=iceberg) if not (directory / name).is_file()]


def jars_in(directory: Path, *, iceberg: bool = False) -> list[Path]:
    """Return the jars of the connector for the installed pyspark, and of Iceberg, in `directory`. Raises
    NotStarted if a jar is missing, or if the connector there belongs to another version of Spark.
    """
    release = spark_release()
    require_connector(release, _names_in(directory), str(directory))
    missing = missing_jars(directory, release, iceberg=iceberg)
    if missing:
        more = " --format iceberg" if iceberg else ""
        raise NotStarted(
            f"{directory} lacks {', '.join(missing)}.",
            f"Copy them there: kafka-compat spark jars {directory}{more}",
        )
    return [directory / name for name in release.jars(iceberg=iceberg)]


def require_connector(release: SparkRelease, jars: Iterable[str], place: str) -> None:
    """Raise NotStarted if the only connector among the jars (file names) is for another version of Spark."""
    other = other_connector(release, jars)
    if other:
        raise NotStarted(
            f"{place} holds the Kafka connector of {other}, but pyspark {release.version} is installed.",
            f"The connector of the same version is {release.connector}; "
            "this command fetches it: kafka-compat spark jars DIR",
        )


def _names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*.jar"))


def copy_jars(directory: Path, release: SparkRelease, *, iceberg: bool = False) -> str:
    """Download the missing jars of the connector, and of Iceberg, to `directory`. Return the tool used, or ""
    if no jar was missing.

    Maven is tried first, because it uses the mirrors in the user's settings.xml, then Ivy, which is part of
    pyspark and requires only Java. Raises NotStarted if both fail.
    """
    missing = missing_jars(directory, release, iceberg=iceberg)
    if not missing:
        return ""
    wanted = release.jars(iceberg=iceberg)
    directory.mkdir(parents=True, exist_ok=True)
    complaints: list[str] = []
    for tool, fetch in (("Maven", _fetch_with_maven), ("Ivy", _fetch_with_ivy)):
        with tempfile.TemporaryDirectory(prefix=".jars-", dir=directory) as scratch:
            complaint = fetch(Path(scratch), list(wanted.values()))
            if not complaint:
                for name in missing:
                    for jar in list(Path(scratch).rglob(name))[:1]:
                        os.replace(jar, directory / name)
                left = missing_jars(directory, release, iceberg=iceberg)
                if not left:
                    return tool
                complaint = f"did not download {', '.join(left)}"
            complaints.append(f"{tool}: {complaint}")
    raise NotStarted(
        "The jars could not be fetched.\n" + "\n".join(complaints),
        "Maven uses the mirrors in ~/.m2/settings.xml; or copy the jars by hand: "
        + ", ".join(wanted.values()),
    )


def _fetch_with_maven(scratch: Path, jars: Sequence[str]) -> str:
    """Download jars to `scratch` with Maven. Return "" or an error message."""
    maven = shutil.which("mvn")
    if maven is None:
        return "mvn is not installed"
    wanted = "".join(_pom_dependency(coordinates) for coordinates in jars)
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


def _fetch_with_ivy(scratch: Path, jars: Sequence[str]) -> str:
    """Download jars to `scratch` with pyspark's Ivy. Return "" or an error message."""
    classpath = str(pyspark_home() / "jars" / "*")
    pattern = f"{scratch}/[artifact]-[revision].[ext]"
    for coordinates in jars:
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
