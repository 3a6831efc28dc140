"""What a job needs of the machine: Java, pyspark, pyarrow, pandas. Each missing thing has its own message."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from kafka_compat.pipelines.errors import NotStarted

SPARK_VERSION = "4.0.0"
JAVA_VERSION_MIN = 17
INSTALL = "pip install 'kafka-compat[spark]'"
_JAVA_HINT = (
    f"Install Java {JAVA_VERSION_MIN} or newer (apt install openjdk-17-jre-headless), or set JAVA_HOME."
)


def require_spark() -> None:
    """NotStarted unless pyspark, pyarrow, pandas and a Java are here, as far as that is told without starting
    one; `java_command` runs it.
    """
    _java()
    pyspark_home()
    for package in ("pyarrow", "pandas"):
        # Spark hands rows to Python in Arrow's columns, for which it wants both, and says so only in mid-run.
        _require(package)


def require_matplotlib() -> None:
    """NotStarted unless what draws pictures is here."""
    _require("matplotlib")


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise NotStarted(f"{package} is not installed.", f"Install it with: {INSTALL}")


def pyspark_home() -> Path:
    """The folder of the installed pyspark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NotStarted("pyspark is not installed.", f"Install it with: {INSTALL}")
    home = Path(spec.origin).parent
    if not home.is_dir():
        # spark-submit brings pyspark in an archive, and says where Spark is.
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
    """Path of a Java that runs Spark: JAVA_HOME's when set, else the one on PATH."""
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
        raise NotStarted("Spark needs Java, and there is no java on PATH.", _JAVA_HINT)
    return java
