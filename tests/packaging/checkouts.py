"""A clean checkout of the project, like one created by `git clone`, with an empty home directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.packaging import wheels
from tests.support.ports import free_port
from tests.support.process import Process
from tests.support.servers import PROJECT


class Checkout:
    """The current content of all files that git tracks or would add, without build products."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.python = str(self.folder / ".venv" / "bin" / "python")
        home = folder / "home"
        home.mkdir(parents=True)
        self.environment = {
            "HOME": str(home),
            "KAFKA_COMPAT_CACHE": str(home / "cache"),
            "PYTEST_ADDOPTS": "",
        }
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, cwd=PROJECT, check=True, capture_output=True, timeout=60).stdout
        for name in map(os.fsdecode, filter(None, listed.split(b"\0"))):
            if (PROJECT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, self.folder / name)
        # scripts/test needs a repository, because some tests check which files git tracks.
        for line in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *line], cwd=self.folder, check=True, timeout=60)

    def run(
        self, script: str, *arguments: str, environment: Mapping[str, str] | None = None, exit_code: int = 0
    ) -> str:
        """Run scripts/SCRIPT, and return its output."""
        line = [str(self.folder / "scripts" / script), *arguments]
        return wheels.run(line, {**self.environment, **(environment or {})}, exit_code, timeout_s=3600)

    def serve(self, log: Path) -> None:
        """Run scripts/run until the broker is ready, and stop it with SIGTERM."""
        port = free_port()
        line = [str(self.folder / "scripts" / "run"), "--ephemeral", "--port", str(port)]
        known = {name: value for name, value in self.environment.items() if not name.startswith("PYTHON")}
        process = Process(line, log, rf"ready on .*:{port}\b", environment=known, directory=Path("/"))
        process.start(timeout_s=300)
        assert process.stop() == 0
