"""Apache Kafka's jars, downloaded by Maven with tests/pom.xml into a cache directory.

`python -m tests.support.kafka_jars 3.9.1 4.1.0` downloads versions ahead of time and prints their
directories.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

BROKER_VERSIONS = ("3.9.1", "4.1.0")
"""Versions whose servers and tools are used: the last with ZooKeeper, and a KRaft-only one."""

TOOLS_VERSION = "4.3.1"
"""The newest version whose tools are published. Our commands match them."""

NEWEST_VERSION = "4.4.0"
"""The newest version. Its definitions are compared with ours, and campaigns use its servers."""

SHARE_CLIENT_VERSION = "4.2.0"
"""The oldest version whose share consumers are complete."""

CLIENT_VERSIONS = ("0.9.0.1", "0.10.2.2", "1.1.1", SHARE_CLIENT_VERSION)
"""Versions of which only kafka-clients is downloaded."""

FLINK_VERSION = "2.2.0"
"""The version of Apache Flink."""

DEBEZIUM_VERSION = "3.6.1.Final"
"""The version of Debezium."""

SPRING_VERSION = "4.1.2"
"""The version of Spring Kafka."""

_POM = Path(__file__).resolve().parent.parent / "pom.xml"


def cache_directory() -> Path:
    """Return the directory with one subdirectory of jars per version: $KAFKA_COMPAT_CACHE or
    ~/.cache/kafka-compat.
    """
    configured = os.environ.get("KAFKA_COMPAT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "kafka-compat"


def jars(version: str) -> Path:
    """Return the directory with the jars of that Kafka version, which are downloaded on first use.

    For CLIENT_VERSIONS, it contains only kafka-clients and its dependencies; for other versions, also servers
    and tools. Raises RuntimeError with Maven's output if the download fails.
    """
    if version in CLIENT_VERSIONS:
        return _fetched(version, cache_directory() / f"client-{version}", "client")
    return _fetched(version, cache_directory() / f"kafka-{version}", "broker")


def streams(version: str) -> Path:
    """Return the directory with the jars of Kafka Streams, which are downloaded on first use."""
    return _fetched(version, cache_directory() / f"streams-{version}", "streams")


def streams_tests(version: str) -> Path:
    """Return the directory with the jars of Kafka Streams and its own test programs. Downloads them on first
    use.
    """
    return _fetched(version, cache_directory() / f"streams-tests-{version}", "streams-tests")


def connect(version: str) -> Path:
    """Return the directory with the jars of Kafka Connect, its file connectors and MirrorMaker 2. Downloads
    them on first use.
    """
    return _fetched(version, cache_directory() / f"connect-{version}", "connect")


def flink() -> Path:
    """Return the directory with the jars of Apache Flink. Downloads them on first use."""
    return _fetched(FLINK_VERSION, cache_directory() / f"flink-{FLINK_VERSION}", "flink")


def debezium() -> Path:
    """Return the directory with the jars of Debezium's engine. Downloads them on first use."""
    return _fetched(DEBEZIUM_VERSION, cache_directory() / f"debezium-{DEBEZIUM_VERSION}", "debezium")


def spring() -> Path:
    """Return the directory with the jars of Spring Kafka, which are downloaded on first use."""
    return _fetched(SPRING_VERSION, cache_directory() / f"spring-kafka-{SPRING_VERSION}", "spring")


def class_path(version: str) -> str:
    """Return a class path for `java -cp` with every jar of that version."""
    return f"{jars(version)}/*"


def _fetched(version: str, folder: Path, profile: str) -> Path:
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(version, folder, profile)
    return folder


def _fetch(version: str, folder: Path, profile: str) -> None:
    if shutil.which("mvn") is None:
        raise RuntimeError(
            f"Kafka {version} is not in {folder} and there is no Maven to fetch it: run scripts/test"
        )
    partial = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(_POM), f"--activate-profiles={profile}"]
    command += [f"-Dkafka.version={version}", f"-DoutputDirectory={partial}"]
    command += ["dependency:copy-dependencies"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"Maven could not fetch Kafka {version}:\n{run.stdout}")
    partial.rename(folder)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or (*BROKER_VERSIONS, TOOLS_VERSION, NEWEST_VERSION, *CLIENT_VERSIONS):
        print(jars(wanted), flush=True)
