"""Starts and runs Kafka's own Java programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support import kafka_jars

DEFAULT_VERSION = "3.9.1"

TOOL_CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
    "kafka-storage": "kafka.tools.StorageTool",
}
"""The classes started by the scripts in Kafka's bin directory, by script name."""

_CLASSES_MOVED_IN_4 = {
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
}
_CLASSES_MOVED_IN_4_3 = {"kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments"}
_CLASSES_MOVED_IN_4_4 = {"kafka-configs": "org.apache.kafka.tools.ConfigCommand"}

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Flags for a JVM that runs only for a short time."""
QUICK_COMPILER = ("javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")

_LOG4J = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.Target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka=WARN
log4j.logger.kafka.server.KafkaServer=INFO
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.logger.org.apache.zookeeper.server.PrepRequestProcessor=INFO
"""


class ClassArchive:
    """Archive of the classes that a server loads (class data sharing), with which programs of the same Kafka
    version start in about half of the CPU time. The first server that ends normally writes it.
    """

    def __init__(self, version: str, mode: str) -> None:
        self._file = _archives(version) / f"{mode}.jsa"
        self._partial = self._file.with_suffix(f".{os.getpid()}.part")

    def options(self) -> list[str]:
        """Return the JVM's options to read the archive, or to write it."""
        if self._file.exists():
            return _shared(self._file)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        return [f"-XX:ArchiveClassesAtExit={self._partial}", "-Xlog:disable"]

    def keep(self) -> None:
        """Keep the archive, if the broker has written one and has ended."""
        if self._partial.exists():
            self._partial.rename(self._file)


def shared_classes(version: str) -> list[str]:
    """Return the JVM's options to read an archive, if there is one for these jars."""
    found = (_archives(version) / f"{mode}.jsa" for mode in ("kraft", "zookeeper"))
    return next((_shared(archive) for archive in found if archive.exists()), [])


def quick_options(version: str = DEFAULT_VERSION) -> list[str]:
    """Return the options of a JVM that runs a program of that Kafka version for a short time."""
    return [*QUICK_START, *shared_classes(version)]


def _archives(version: str) -> Path:
    jars = kafka_jars.jars(version)
    return jars.with_name(f"{jars.name}-classes")


def _shared(archive: Path) -> list[str]:
    # The JVM ignores an archive that does not fit, for example after an update of Java, without a warning.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"]


def tool_class(name: str, version: str = DEFAULT_VERSION) -> str:
    """Return the class behind one of Kafka's script names ("kafka-topics"). A class name is returned
    unchanged.
    """
    known = tuple(map(int, version.split(".")))
    for since, moved in (
        ((4, 4), _CLASSES_MOVED_IN_4_4),
        ((4, 3), _CLASSES_MOVED_IN_4_3),
        ((4,), _CLASSES_MOVED_IN_4),
    ):
        if known >= since and name in moved:
            return moved[name]
    return TOOL_CLASSES.get(name, name)


def command(
    program: str,
    *arguments: str,
    version: str = DEFAULT_VERSION,
    heap: str = "256M",
    extra_class_path: Sequence[str | Path] = (),
    jvm_options: Sequence[str] | None = None,
) -> list[str]:
    """Return the command line that runs a tool (script name or class) of that Kafka version. Without
    `jvm_options`, the JVM has the options for a short time.
    """
    # An archive of classes fits only if the jars come first.
    class_path = ":".join([kafka_jars.class_path(version), *map(str, extra_class_path)])
    return [
        "java",
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-Djava.awt.headless=true",
        log_option(),
        *(quick_options(version) if jvm_options is None else jvm_options),
        "-cp",
        class_path,
        tool_class(program, version),
        *arguments,
    ]


def run(
    program: str,
    *arguments: str,
    version: str = DEFAULT_VERSION,
    stdin: str | None = None,
    timeout_s: float = 90,
    check: bool = True,
    heap: str = "256M",
    extra_class_path: Sequence[str | Path] = (),
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools: `run("kafka-topics", "--bootstrap-server", address, "--list")`.

    With `check`, an exit code other than 0 raises AssertionError with the whole output.
    """
    line = command(program, *arguments, version=version, heap=heap, extra_class_path=extra_class_path)
    done = subprocess.run(line, input=stdin or "", capture_output=True, text=True, timeout=timeout_s)
    if check and done.returncode != 0:
        shown = f"{program} {' '.join(arguments)}"
        raise AssertionError(f"{shown}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def log_option() -> str:
    """Return the JVM's option with which programs that use log4j write warnings to stderr."""
    return f"-Dlog4j.configuration={_log4j_file().as_uri()}"


def _log4j_file() -> Path:
    file = kafka_jars.cache_directory() / "log4j.properties"
    if not file.exists() or file.read_text() != _LOG4J:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f"{file.name}.{os.getpid()}.part")
        partial.write_text(_LOG4J)
        partial.rename(file)
    return file
