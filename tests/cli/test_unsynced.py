"""A broker with --ephemeral never waits for a disk; any other broker syncs what it acknowledges."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import os, sys

synced = []
os.fsync = os.fdatasync = synced.append
from kafka_compat import cli
from kafka_compat.cli import foreground

def tell_ready(*arguments, **options):
    os.kill(os.getpid(), 15)

foreground.tell_ready = tell_ready
code = cli.main(sys.argv[1:])
print(len(synced))
sys.exit(code)
"""


@pytest.mark.parametrize("brokers", [1, 2])
@pytest.mark.parametrize("ephemeral", [True, False])
def test_only_data_that_is_kept_is_synced(brokers: int, ephemeral: bool, tmp_path: Path) -> None:
    data = ["--ephemeral"] if ephemeral else [f"--override=log.dirs={tmp_path}"]
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "serve", "--port=0", f"--brokers={brokers}", *data],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert (int(result.stdout) == 0) == ephemeral
