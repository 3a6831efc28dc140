"""Brokers started with closed or broken standard streams, unusual encodings, and settings that a template
left empty."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.startup_errors import api_versions_error, refusal
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import PROJECT

_NO_READER = "a pipe without a reader"
_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


class Started:
    """A `serve` process started by a shell, with the test's streams and environment."""

    def __init__(
        self,
        folder: Path,
        streams: str = "",
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        log_dir: str | None = None,
        stdout: int = subprocess.PIPE,
        prefix: str = "",
    ) -> None:
        self.port = free_port()
        self.log_dir = str(folder / "data") if log_dir is None else log_dir
        line = [sys.executable, "-m", "kafka_compat", "serve", "--port", str(self.port), *arguments]
        if log_dir != "":
            line.append(f"--override=log.dirs={self.log_dir}")
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'{prefix} exec "$@" {streams}', "sh", *line],
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            env={**os.environ, **(environment or {})},
            # The tests may run with nohup.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )

    def serves(self) -> None:
        """Wait until the broker serves requests."""
        wait_until(self._answers, 30, "a response from the broker")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        try:
            return api_versions_error(self.port) == 0
        except OSError:
            return False

    def open_on(self, descriptor: int) -> str:
        """Return the file that the process has open as `descriptor`."""
        return os.readlink(f"/proc/{self.process.pid}/fd/{descriptor}")

    def stop(self) -> tuple[int, str, str]:
        """Stop the process, and return its exit code, stdout and stderr."""
        self.process.terminate()
        out, errors = self.process.communicate(timeout=20)
        return self.process.returncode, os.fsdecode(out or b""), os.fsdecode(errors)


@pytest.fixture
def started() -> Iterator[list[Started]]:
    found: list[Started] = []
    yield found
    for each in found:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


@pytest.mark.parametrize(
    "streams", [">&-", ">/dev/full", _NO_READER, ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full", "2>&-"]
)
@pytest.mark.parametrize("arguments", [[], ["--json"], ["--kafka-lines"]], ids=["text", "json", "kafka"])
def test_a_broker_serves_clients_even_if_its_output_streams_are_closed_or_unwritable(
    tmp_path: Path, started: list[Started], streams: str, arguments: list[str]
) -> None:
    if streams == _NO_READER:
        read, write = os.pipe()
        os.close(read)
        broker = Started(tmp_path, stdout=write, arguments=arguments)
        os.close(write)
    else:
        broker = Started(tmp_path, streams, arguments=arguments)
    started.append(broker)
    broker.serves()
    for descriptor in (0, 1, 2):
        opened = broker.open_on(descriptor)
        assert not opened.startswith(str(tmp_path)) and "socket" not in opened and "eventpoll" not in opened
    code, _, errors = broker.stop()
    assert code == 0
    assert "Traceback" not in errors and "Exception ignored" not in errors
    if streams in (">/dev/full", _NO_READER):
        assert errors.count("Closed standard output because a write to it failed") == 1


@pytest.mark.parametrize("environment", [_ASCII, {"PYTHONIOENCODING": "ascii"}], ids=["locale", "streams"])
@pytest.mark.parametrize("by", ["argument", "file"])
def test_non_ascii_names_are_accepted_and_shown_escaped(
    tmp_path: Path, started: list[Started], environment: dict[str, str], by: str
) -> None:
    folder = tmp_path / "dönées"
    if by == "file":
        properties = tmp_path / "server.properties"
        properties.write_text(f"log.dirs={tmp_path}/d\\u00f6n\\u00e9es\n", encoding="ascii")
        broker = Started(tmp_path, environment=environment, arguments=[str(properties)], log_dir="")
    else:
        broker = Started(tmp_path, environment=environment, log_dir=str(folder))
    started.append(broker)
    broker.serves()
    assert (folder / "meta.properties").exists()
    code, out, _ = broker.stop()
    assert code == 0
    assert f"data in {folder}" in out or "d\\xf6n\\xe9es" in out


def test_a_name_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    """No response to a client could contain the name, and Java cannot represent such a path."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/d\xe9")
    assert f"--override: log.dirs={tmp_path}/d\\udce9 is not UTF-8" in refusal(f"--override=log.dirs={name}")
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={tmp_path}/\\ud800\n")
    assert "line 1: log.dirs=" in refusal(str(properties))


@pytest.mark.parametrize("given", ["log.dirs=", "log.dirs= , ", "log.dir="])
def test_empty_log_directories_are_rejected(given: str) -> None:
    """The broker does not use the default directory instead, because it may hold the data of a different
    broker. Apache Kafka behaves the same way.
    """
    said = refusal(f"--override={given}", "--port", "0")
    name = given.partition("=")[0]
    assert f"configuration {name}: At least one log directory must be defined via log.dirs or log.dir" in said


def test_a_utf_8_file_is_read_as_in_kafka_with_a_warning(tmp_path: Path, started: list[Started]) -> None:
    properties = tmp_path / "server.properties"
    text = f"# Größe\nlog.dirs={tmp_path}/données\nbroker.rack=é\nnum.partitions=2\n"
    properties.write_text(text, encoding="utf-8")
    over = ["--override=broker.rack=a"]
    broker = Started(tmp_path, arguments=[str(properties), *over], log_dir="")
    started.append(broker)
    broker.serves()
    assert (tmp_path / "données".encode().decode("iso-8859-1") / "meta.properties").exists()
    code, _, errors = broker.stop()
    assert code == 0
    (line,) = [line for line in errors.splitlines() if "ISO-8859-1" in line]
    assert f"log.dirs ({properties}, line 2)" in line and "broker.rack" not in line


def test_a_broker_stops_cleanly_when_its_terminal_is_closed(tmp_path: Path) -> None:
    started = Started(tmp_path)
    started.serves()
    started.process.send_signal(signal.SIGHUP)
    assert started.process.wait(20) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_a_broker_started_with_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    started = Started(tmp_path, prefix="trap '' HUP;")
    started.serves()
    started.process.send_signal(signal.SIGHUP)
    started.serves()
    assert started.stop()[0] == 0


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_a_listener_on_all_addresses_of_ipv6_also_accepts_ipv4(tmp_path: Path) -> None:
    port = free_port()
    started = Started(tmp_path, arguments=[f"--override=listeners=PLAINTEXT://[::]:{port}"])
    started.port = port
    started.serves()
    assert started.stop()[0] == 0
