"""The client programs under test. Each is a process behind the line protocol of drivers/channel.py."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.go_driver import go_driver
from tests.support import java, kafka_jars, node_modules

PROJECT = Path(__file__).resolve().parent.parent.parent
_JAVA_SOURCES = Path(__file__).resolve().parent / "java"
_NODE_SOURCES = Path(__file__).resolve().parent / "node"


@dataclass(frozen=True)
class ClientKind:
    """A version of a client library, and its features.

    `features` contains some of: headers, null_headers (header values may be null), timestamps, idempotent,
    topic_admin, group_admin, delete_group, static (group.instance.id), cooperative (assignor), max_timestamp,
    transactions.
    """

    name: str
    codecs: tuple[str, ...]
    features: frozenset[str]
    python_module: str | None = None
    java_version: str | None = None
    java_sources: tuple[str, ...] = ()
    go_library: str | None = None
    node_program: str | None = None
    everyday: bool = True
    """Whether the client runs every scenario daily. Other clients run most scenarios in campaigns only."""
    patience_s: float = 40
    """Maximum time in seconds for a rebalance."""
    attempts: int = 1
    """Maximum number of attempts for a scenario."""

    def command(self) -> list[str]:
        """Return the command line of the program. On first use, compiles Java and Go, and downloads Node
        packages.
        """
        if self.python_module is not None:
            return [sys.executable, "-m", self.python_module]
        if self.go_library is not None:
            return [str(go_driver()), self.go_library]
        if self.node_program is not None:
            if (lacking := node_modules.missing()) is not None:
                pytest.skip(f"{self.name}: {lacking}")
            return node_modules.command(_NODE_SOURCES / self.node_program)
        assert self.java_version is not None
        return java_command("Driver", self.java_version, self.java_sources)


_OLD_CODECS = ("none", "gzip", "snappy", "lz4")
_ALL_CODECS = (*_OLD_CODECS, "zstd")
_RECORDS_OF_TODAY = frozenset({"headers", "null_headers", "timestamps"})
_EXACTLY_ONCE = frozenset({"idempotent", "transactions"})
_TOPIC_ADMIN = frozenset({"topic_admin"})
_FULL_ADMIN = _TOPIC_ADMIN | {"group_admin", "delete_group", "max_timestamp"}

CLIENTS = {
    kind.name: kind
    for kind in (
        ClientKind(
            "kafka-python",
            _ALL_CODECS,
            (_RECORDS_OF_TODAY - {"null_headers"}) | _FULL_ADMIN | {"static", "cooperative"} | _EXACTLY_ONCE,
            python_module="tests.clients.drivers.kafka_python",
            # In about one rebalance in twenty, also with Apache Kafka, its poll() never returns after the
            # SyncGroup response has arrived: a wake-up between its I/O loop and the caller's thread is lost.
            # Over TLS, group_life stalled in 4 of 20 runs with this broker and in 3 of 20 with Apache Kafka;
            # neither side's sockets had unsent or unread data.
            patience_s=12,
            attempts=3,
        ),
        ClientKind(
            "aiokafka",
            _ALL_CODECS,
            _RECORDS_OF_TODAY | _TOPIC_ADMIN | {"group_admin", "static"} | _EXACTLY_ONCE,
            python_module="tests.clients.drivers.aiokafka",
        ),
        ClientKind(
            "confluent-kafka",
            _ALL_CODECS,
            _RECORDS_OF_TODAY | _FULL_ADMIN | {"static", "cooperative"} | _EXACTLY_ONCE,
            python_module="tests.clients.drivers.confluent",
        ),
        ClientKind(
            "java-0.9.0.1",
            _OLD_CODECS,
            frozenset(),
            java_version="0.9.0.1",
            java_sources=("common", "v0_9"),
            everyday=False,
        ),
        ClientKind(
            "java-0.10.2.2",
            _OLD_CODECS,
            frozenset({"timestamps"}),
            java_version="0.10.2.2",
            java_sources=("common", "v0_10"),
        ),
        ClientKind(
            "java-1.1.1",
            _OLD_CODECS,
            _RECORDS_OF_TODAY | _TOPIC_ADMIN | _EXACTLY_ONCE,
            java_version="1.1.1",
            java_sources=("common", "modern", "v1"),
            everyday=False,
        ),
        ClientKind(
            "java-3.9.1",
            _ALL_CODECS,
            _RECORDS_OF_TODAY | _FULL_ADMIN | {"static", "cooperative"} | _EXACTLY_ONCE,
            java_version="3.9.1",
            java_sources=("common", "modern", "v3"),
        ),
        ClientKind(
            "java-4.1.0",
            _ALL_CODECS,
            _RECORDS_OF_TODAY | _FULL_ADMIN | {"static", "cooperative"} | _EXACTLY_ONCE,
            java_version="4.1.0",
            java_sources=("common", "modern", "v3"),
            everyday=False,
        ),
        ClientKind(
            "franz-go",
            _ALL_CODECS,
            _RECORDS_OF_TODAY | _FULL_ADMIN | {"static", "cooperative"} | _EXACTLY_ONCE,
            go_library="franz-go",
            everyday=False,
        ),
        ClientKind(
            "sarama",
            _ALL_CODECS,
            # It supports ListOffsets up to version 6, which has no max timestamp.
            _RECORDS_OF_TODAY | (_FULL_ADMIN - {"max_timestamp"}) | {"static", "cooperative"} | _EXACTLY_ONCE,
            go_library="sarama",
            everyday=False,
            # Its cooperative rebalances take up to half a minute, with Apache Kafka too.
            patience_s=60,
        ),
        ClientKind(
            "java-4.4.0",
            _ALL_CODECS,
            _RECORDS_OF_TODAY | _FULL_ADMIN | {"static", "cooperative"} | _EXACTLY_ONCE,
            java_version="4.4.0",
            java_sources=("common", "modern", "v3"),
            everyday=False,
        ),
        ClientKind(
            "kafkajs",
            # lz4 and zstd need native third-party modules that do not support current versions of Node.js.
            ("none", "gzip", "snappy"),
            # It has no null header values, no static members and no timestamp -3. Its only assignor is
            # roundrobin, which replaces "range" in the scenarios.
            (_RECORDS_OF_TODAY - {"null_headers"}) | (_FULL_ADMIN - {"max_timestamp"}) | _EXACTLY_ONCE,
            node_program="main.js",
            everyday=False,
        ),
    )
}


class ClientError(AssertionError):
    """A failure reported by the client. `code` is Kafka's error code, or -1000 if the client failed without
    one.
    """

    def __init__(self, verb: str, code: int, message: str) -> None:
        super().__init__(f"{verb}: error {code}: {message}")
        self.code = code


class ClientProgram:
    """A running client process, connected to one broker. Calls block until the client responds."""

    def __init__(
        self, kind: ClientKind, bootstrap: str, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` contains additional environment variables for the program."""
        self.kind = kind
        self._bootstrap = bootstrap
        self._log = open(log, "ab")  # noqa: SIM115 - closed with the process
        self._child = subprocess.Popen(
            kind.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            cwd=PROJECT,
            env={**os.environ, **(environment or {})},
        )

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Return the client's response, including error responses."""
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None and stdout is not None
        request = {"do": verb, "bootstrap": self._bootstrap, **arguments}
        if verb in ("member_state", "member_commit", "member_stop", "transaction_end"):
            del request["bootstrap"]
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise AssertionError(f"{self.kind.name} exited unexpectedly; its output is in {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def call(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Return the client's response. Raises ClientError if the client reports a failure."""
        answer = self.ask(verb, **arguments)
        if "error" in answer:
            raise ClientError(verb, answer["error"], answer.get("message", ""))
        return answer

    def code(self, verb: str, **arguments: Any) -> int:
        """Return Kafka's error code of a call that is expected to fail, or 0 if it succeeded."""
        return int(self.ask(verb, **arguments).get("error", 0))

    def kill(self) -> None:
        """Kill the process with kill -9, so that its members do not leave the group."""
        self._child.kill()
        self._end()

    def close(self) -> None:
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
        self._end()

    def _end(self) -> None:
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None and not stream.closed:
                stream.close()
        self._log.close()


def java_command(program: str, version: str, folders: tuple[str, ...]) -> list[str]:
    """Return the command line of a program in tests/clients/java, compiled against this version of Kafka's
    jars.
    """
    class_path = f"{kafka_jars.class_path(version)}:{_compiled(version, folders)}"
    log4j = f"-Dlog4j.configuration={java._log4j_file().as_uri()}"
    return [
        "java",
        "-Xmx256m",
        *java.quick_options(version),
        log4j,
        "-cp",
        class_path,
        program,
    ]


def _sources(place: str) -> list[Path]:
    path = _JAVA_SOURCES / place
    return [path] if path.suffix == ".java" else list(path.glob("*.java"))


@functools.cache
def _compiled(version: str, folders: tuple[str, ...]) -> Path:
    """Compile the driver against this version's jars. Return the cached directory with its classes."""
    sources = sorted(source for folder in folders for source in _sources(folder))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = kafka_jars.cache_directory() / "client-drivers" / f"{version}-{digest}"
    if not classes.is_dir():
        partial = classes.with_name(f"{classes.name}.{os.getpid()}")
        command = [
            *java.QUICK_COMPILER,
            "-nowarn",
            "-Xlint:none",
            "-d",
            str(partial),
            "-cp",
            kafka_jars.class_path(version),
        ]
        subprocess.run([*command, *map(str, sources)], check=True, capture_output=True)
        try:
            partial.rename(classes)
        except OSError:
            # A concurrent test run has created the directory.
            shutil.rmtree(partial)
            if not classes.is_dir():
                raise
    return classes
