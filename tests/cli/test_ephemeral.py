"""The options `--ephemeral`, `--stop-at-eof` and `--json` of serve, for short-lived brokers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_compat.cli.ephemeral import PREFIX, EphemeralFolder, remove_left_over
from tests.conformance.wire import Connection
from tests.support.process import wait_until
from tests.testing.left_over import put_temporary_files_in

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_temporary_files_in(tmp_path, monkeypatch)
    return tmp_path


def serve(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kafka_compat", "serve", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )


def told(process: subprocess.Popen[str]) -> list[dict[str, object]]:
    """Return the brokers listed in its line of JSON."""
    assert process.stdout is not None
    found: list[dict[str, object]] = json.loads(process.stdout.readline())["brokers"]
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_data_is_deleted_at_shutdown(temporary: Path, number: int) -> None:
    with serve("--port", "0", "--ephemeral", "--json") as process:
        (broker,) = told(process)
        (folder,) = temporary.iterdir()
        assert folder.name.startswith(PREFIX)
        assert broker["log_dirs"] == [str(folder)]
        process.send_signal(number)
        assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == 0
    assert list(temporary.iterdir()) == []


_NOTES_FLUSHES = """
import sys
from kafka_compat.cli import main
from kafka_compat.storage.directories.log_dirs import LogDirs
LogDirs.close = lambda *_: print("flushed", flush=True)
main(["serve", "--port", "0", "--ephemeral", "--json", *sys.argv[1:]])
"""


@pytest.mark.parametrize(("arguments", "output"), [((), ""), (("--stop-at-eof",), "flushed\n")])
def test_data_that_is_deleted_at_shutdown_is_not_flushed(arguments: tuple[str, ...], output: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _NOTES_FLUSHES, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    ) as process:
        told(process)
        process.send_signal(signal.SIGTERM)
        # Unlike communicate, this does not close standard input.
        assert process.wait(20) == 0
        assert process.stdout is not None
        assert process.stdout.read() == output


@pytest.mark.parametrize("arguments", [(), ("--brokers", "3"), ("--processes", "2")])
def test_the_end_of_standard_input_stops_the_broker(temporary: Path, arguments: tuple[str, ...]) -> None:
    as_json = [] if "--processes" in arguments else ["--json"]
    with serve("--port", "0", "--ephemeral", "--stop-at-eof", *arguments, *as_json) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        process.stdin.close()
        assert process.wait(20) == 0
    # The child processes of --processes exit on their own, and may still be writing.
    wait_until(lambda: list(temporary.iterdir()) == [], 20, "deletion of the temporary directory")


_FAILS_DURING_REMOVAL = """
import threading
from pathlib import Path
from kafka_compat.cli import ephemeral, main, serve

removing, failing = threading.Event(), threading.Event()
remove = ephemeral._remove

def remove_later(path):
    for number in range(1_000):
        (Path(path) / str(number)).touch()
    removing.set()
    failing.wait()
    remove(path)

def fail(*_, **options):
    removing.wait()
    failing.set()
    return 1

ephemeral._remove = remove_later
serve._serve_all = fail
raise SystemExit(main(["serve", "--port", "0", "--ephemeral", "--stop-at-eof"]))
"""


def test_a_broker_that_fails_during_the_removal_of_its_data_removes_it_completely(temporary: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FAILS_DURING_REMOVAL], stdin=subprocess.DEVNULL, cwd=PROJECT, timeout=60
    )
    assert done.returncode == 0
    assert list(temporary.iterdir()) == []


def test_a_signal_does_not_delete_the_data_of_a_broker_with_stop_at_eof(temporary: Path) -> None:
    with serve("--port", "0", "--ephemeral", "--stop-at-eof", "--json") as process:
        (broker,) = told(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    (folder,) = temporary.iterdir()
    again = ("--override", f"log.dirs={folder}", "--port", "0", "--ephemeral", "--json")
    with serve(*again) as process:
        assert told(process)[0]["log_dirs"] == broker["log_dirs"]
        process.send_signal(signal.SIGTERM)
    assert list(temporary.iterdir()) == []


def test_the_address_of_each_broker_is_printed() -> None:
    with serve("--port", "0", "--ephemeral", "--brokers", "3", "--json") as process:
        brokers = told(process)
        assert [broker["broker_id"] for broker in brokers] == [1, 2, 3]
        for broker in brokers:
            at = broker["listeners"]["PLAINTEXT"]  # type: ignore[index]
            Connection(f"{at['host']}:{at['port']}").close()
        process.send_signal(signal.SIGTERM)


def test_a_data_directory_that_is_not_temporary_is_rejected(tmp_path: Path) -> None:
    with serve("--ephemeral", "--override", f"log.dirs={tmp_path}/data") as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert (
        f"--ephemeral deletes its data, but log.dirs={tmp_path}/data is not an ephemeral directory" in errors
    )


def test_json_output_requires_a_single_process() -> None:
    with serve("--processes", "2", "--json") as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "use --brokers instead of --processes" in errors


def test_only_directories_without_a_running_owner_are_deleted(temporary: Path) -> None:
    held, left = EphemeralFolder(), EphemeralFolder()
    Path(left.path, "file").touch()
    left.let_go()
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "other")
    remove_left_over()
    names = {path.name for path in temporary.iterdir()}
    assert names == {Path(held.path).name, "other", f"{PREFIX}link"}
    held.remove()
    assert not Path(held.path).exists()
