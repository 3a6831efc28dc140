"""The comparison with kfake, and whole tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import sides, whole_test
from tests.bench.sides import Side
from tests.support.servers import PROJECT

_needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")


def test_an_unknown_peer_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--peer", "redpanda"])
    assert "--peer: invalid choice: 'redpanda' (choose from 'kfake')" in capsys.readouterr().err


def test_without_go_the_benchmark_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--peer", "kfake", "--only", "start"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={"PATH": str(tmp_path), "KAFKA_COMPAT_CACHE": str(tmp_path)},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("scripts/bench --peer kfake: ")
    assert "Go is not installed: install Go 1.26 (https://go.dev/dl)" in done.stderr
    assert done.stdout == ""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", whole_test.CLIENTS)
@pytest.mark.parametrize("make", [sides.ours, pytest.param(sides.kfake, marks=_needs_go)])
def test_a_whole_test_starts_and_stops_its_broker(
    make: Callable[[Path], Side], client: str, tmp_path: Path
) -> None:
    side = make(tmp_path)
    try:
        seconds = whole_test.measure(side, client)
        assert not side.servers[0].running
    finally:
        side.stop()
    assert seconds.keys() == whole_test.STEPS.keys()
    assert seconds["whole_s"] >= sum(seconds.values()) / 2
