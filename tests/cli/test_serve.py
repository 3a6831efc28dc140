"""`kafka-compat serve` in a terminal: one line when the broker is ready, one message if startup fails."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kafka_compat import cli
from tests.cli.startup_errors import PROJECT, api_versions_error, refusal


class Running:
    """A broker running in the foreground of a process, after its ready line."""

    def __init__(
        self, *arguments: str, launcher: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "kafka_compat", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **(environment or {})},
        )
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline().strip()

    @property
    def port(self) -> int:
        return int(self.ready_line.partition(", data in")[0].rpartition(":")[2])

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Stop the process, and return its exit code and stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors


@pytest.fixture
def running(tmp_path: Path) -> Iterator[list[Running]]:
    brokers: list[Running] = []
    yield brokers
    for broker in brokers:
        if broker.process.poll() is None:
            broker.process.kill()
            broker.process.communicate()


def on(folder: Path, port: int = 0) -> list[str]:
    return [f"--override=listeners=PLAINTEXT://127.0.0.1:{port}", f"--override=log.dirs={folder}"]


def test_the_process_exits_without_the_interpreters_cleanup(tmp_path: Path) -> None:
    """The cleanup takes a quarter of the CPU time of a shutdown."""
    program = "import atexit; atexit.register(print, 'cleaned up'); from kafka_compat.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "serve", *on(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=20)[0] == ""
    assert process.returncode == 0
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_prints_its_address_and_stops_on_sigterm(
    tmp_path: Path, running: list[Running], number: int
) -> None:
    folder = tmp_path / "data"
    broker = Running(*on(folder))
    running.append(broker)
    assert broker.ready_line == f"Broker 1 ready on PLAINTEXT://127.0.0.1:{broker.port}, data in {folder}"
    assert api_versions_error(broker.port) == 0
    started = time.monotonic()
    assert broker.stop(number) == (0, "")
    assert time.monotonic() - started < 5
    assert (folder / ".kafka_cleanshutdown").exists()
    again = Running(*on(folder))
    running.append(again)
    assert again.stop() == (0, "")


def test_by_default_data_is_stored_in_the_users_data_directory(
    tmp_path: Path, running: list[Running]
) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    broker = Running("--override=listeners=PLAINTEXT://127.0.0.1:0", environment=home)
    running.append(broker)
    assert broker.ready_line.endswith(f"data in {tmp_path}/.local/share/kafka-compat/logs")
    assert (tmp_path / ".local/share/kafka-compat/logs/meta.properties").exists()


def test_a_second_broker_in_the_same_directory_does_not_affect_the_first(
    tmp_path: Path, running: list[Running]
) -> None:
    folder = tmp_path / "data"
    broker = Running(*on(folder))
    running.append(broker)
    message = refusal(*on(folder))
    assert str(folder) in message
    assert api_versions_error(broker.port) == 0
    assert broker.stop() == (0, "")


def test_a_port_in_use_is_reported_without_creating_a_directory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refusal(*on(tmp_path / "data", port))
    assert f"127.0.0.1:{port}" in message
    assert "Is another broker running? " in message and "--override listeners=" in message
    assert not (tmp_path / "data").exists()


def test_a_host_name_that_does_not_resolve_is_reported_without_a_hint_at_another_broker(
    tmp_path: Path,
) -> None:
    said = refusal(f"--override=log.dirs={tmp_path}", "--override=listeners=PLAINTEXT://none.invalid:9092")
    assert "cannot listen on PLAINTEXT://none.invalid:9092: " in said
    assert "another broker" not in said and "--override listeners=" in said


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("num.partitions=none", "Invalid value none for configuration num.partitions"),
        ("listeners=SSL://127.0.0.1:0", "has no certificate"),
        ("num.partitions", "expected name=value"),
    ],
)
def test_an_invalid_value_is_reported_without_creating_a_directory(
    tmp_path: Path, setting: str, said: str
) -> None:
    assert said in refusal(*on(tmp_path / "data"), "--override", setting)
    assert not (tmp_path / "data").exists()


def test_a_missing_settings_file_is_reported(tmp_path: Path) -> None:
    assert refusal(str(tmp_path / "server.properties")) == (
        f"kafka-compat serve: cannot read {tmp_path}/server.properties: No such file or directory"
    )


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert str(tmp_path / "file") in refusal(*on(tmp_path / "file" / "data"))
    assert refusal(*on(Path("/proc/data"))).endswith(
        "log directory /proc/data is offline: open: [Errno 2] No such file or directory: /proc/data"
    )


def test_an_unreachable_zookeeper_is_reported(tmp_path: Path) -> None:
    waits = "--override=zookeeper.connection.timeout.ms=500"
    assert refusal(*on(tmp_path), "--override=zookeeper.connect=127.0.0.1:1", waits).endswith(
        "Check zookeeper.connect. Without zookeeper.connect, the broker runs standalone."
    )


def test_kafkas_own_server_properties_file_starts_a_broker(tmp_path: Path, running: list[Running]) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "broker.id=0\nnum.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\n"
        "socket.receive.buffer.bytes=102400\nsocket.request.max.bytes=104857600\n"
        f"log.dirs={tmp_path}/kafka-logs\nnum.partitions=1\nnum.recovery.threads.per.data.dir=1\n"
        "offsets.topic.replication.factor=1\ntransaction.state.log.replication.factor=1\n"
        "transaction.state.log.min.isr=1\nlog.retention.hours=168\nlog.retention.check.interval.ms=300000\n"
        "zookeeper.connect=localhost:2181\nzookeeper.connection.timeout.ms=18000\n"
        "group.initial.rebalance.delay.ms=0\nnum.partitons=3\n"
    )
    alone = "--override=zookeeper.connect="
    broker = Running(str(path), "--override=listeners=PLAINTEXT://127.0.0.1:0", alone)
    running.append(broker)
    assert broker.ready_line.startswith("Broker 0 ready on PLAINTEXT://127.0.0.1:")
    code, errors = broker.stop()
    assert code == 0
    assert "Ignored unknown settings: num.partitons" in errors
    assert "num.io.threads" not in errors


def test_the_env_flag_enables_settings_and_topics_from_environment_variables(
    tmp_path: Path, running: list[Running]
) -> None:
    environment = {
        "KAFKA_BROKER_ID": "7",
        "KAFKA_CREATE_TOPICS": "orders:3:1,users:1:1:compact",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
    }
    broker = Running(*on(tmp_path / "data"), "--env", environment=environment)
    running.append(broker)
    assert broker.ready_line.startswith("Broker 7 ready")
    folders = {path.name for path in (tmp_path / "data").iterdir() if path.is_dir()}
    assert folders == {"orders-0", "orders-1", "orders-2", "users-0"}
    broker.stop()
    other = Running(*on(tmp_path / "other"), environment=environment)
    running.append(other)
    assert other.ready_line.startswith("Broker 1 ready")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux has prlimit")
def test_a_low_soft_limit_for_open_files_is_raised(tmp_path: Path, running: list[Running]) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = ("sh", "-c", 'ulimit -S -n 100 && exec "$@"', "sh")
    broker = Running(*on(tmp_path / "data"), launcher=low)
    running.append(broker)
    assert resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    assert broker.stop() == (0, "")


def test_packages_with_the_same_names_as_ours_do_not_interfere(tmp_path: Path) -> None:
    for name in ("storage", "coordination"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("print('a stranger ran')")
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import storage, coordination, kafka_compat.broker, kafka_compat.storage as ours;"
            "print(ours.__name__)",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', PROJECT)}"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:2] == ["a stranger ran"] * 2
    assert result.stdout.splitlines()[2] == "kafka_compat.storage"


def test_a_port_is_a_shorthand_for_a_listener(tmp_path: Path, running: list[Running]) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://localhost:9092\n")
    broker = Running(str(file), "--port", "0", f"--override=log.dirs={tmp_path / 'data'}")
    running.append(broker)
    assert broker.ready_line.startswith("Broker 1 ready on PLAINTEXT://127.0.0.1:")
    assert broker.port != 9092
    assert broker.stop() == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--brokers", "0"], "0 is not a valid number of brokers; expected 1 or more"),
        (["--brokers", "many"], "many is not a valid number of brokers"),
        (["--port", "99999"], "99999 is not a port; expected a number from 0 to 65535"),
    ],
)
def test_an_invalid_number_is_rejected(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["serve", *arguments])
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_a_misspelled_setting_is_reported_with_a_suggestion(tmp_path: Path, running: list[Running]) -> None:
    broker = Running(*on(tmp_path / "data"), "--override=log.retention.hour=1", "--override=zzz=1")
    running.append(broker)
    _, errors = broker.stop()
    assert "log.retention.hour (did you mean log.retention.hours?), zzz" in errors


def test_version_and_help_list_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kafka-compat 0.")
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert all(command in text for command in cli.COMMANDS)
    with pytest.raises(SystemExit) as left:
        cli.main([])
    assert left.value.code == 2


def test_serve_does_not_import_modules_of_other_commands() -> None:
    heavy = {"rich", "aiohttp", "kazoo", "pyspark", "aiofiles", "hypothesis", "lz4"}
    program = (
        "from kafka_compat import cli; import kafka_compat.cli.serve, kafka_compat.broker; "
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {[str(PROJECT), *sys.path]!r}; {program}"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_a_directory_of_several_brokers_is_not_used_by_a_single_one_and_the_reverse(tmp_path: Path) -> None:
    of_several, of_one = tmp_path / "several", tmp_path / "one"
    for directory in (of_several / "broker-1", of_one):
        directory.mkdir(parents=True)
        (directory / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    assert refusal(f"--override=log.dirs={of_several}").endswith(
        f"log.dirs={of_several} belongs to several brokers (it contains {of_several}/broker-1): start them "
        "with --processes or --brokers, as before, or choose other log.dirs"
    )
    for option in ("--processes", "--brokers"):
        assert refusal(option, "3", f"--override=log.dirs={of_one}").endswith(
            f"log.dirs={of_one} belongs to a single broker: start it without --processes and --brokers, as "
            "before, or choose other log.dirs"
        )
    assert [path.name for path in of_several.iterdir() if path.is_dir()] == ["broker-1"]
