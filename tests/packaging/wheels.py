"""Wheels as scripts/build-wheel makes them, and what they are once installed."""

from __future__ import annotations

import os
import subprocess
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.servers import PROJECT


def run(
    line: Sequence[str],
    environment: Mapping[str, str] | None = None,
    exit_code: int = 0,
    *,
    timeout_s: float = 1200,
) -> str:
    """Standard output and errors. The folder is none with packages in it."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    result = subprocess.run(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={**known, **(environment or {})},
        timeout=timeout_s,
    )
    assert result.returncode == exit_code, result.stdout
    return result.stdout


def build(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> list[Path]:
    """The wheels that the script leaves in the folder, by name: a compiled one comes first."""
    run([str(PROJECT / "scripts" / "build-wheel"), *options, str(folder)], environment)
    return sorted(folder.glob("*.whl"))


def contents(wheel: Path) -> set[str]:
    """The files in it, without those that tell of it."""
    with zipfile.ZipFile(wheel) as packed:
        return {name for name in packed.namelist() if ".dist-info/" not in name}


def sources() -> set[str]:
    """The modules of the project and the texts beside them, where they are when installed."""
    rooms = {Path("kafka_compat", room): PROJECT / room for room in ("storage", "coordination")}
    package = PROJECT / "kafka_compat"
    kinds = ("*.py", "tools/**/*.txt", "page/templates/*")
    found = {path.relative_to(PROJECT) for kind in kinds for path in package.rglob(kind)}
    for inside, folder in rooms.items():
        found |= {inside / path.relative_to(folder) for path in folder.rglob("*.py")}
    return {path.as_posix() for path in found}


class Installed:
    """A virtual environment with the wheel, and perhaps an extra or others, in it; or with nothing."""

    def __init__(self, folder: Path, *requirements: str) -> None:
        venv.create(folder, with_pip=True)
        self.python = str(folder / "bin" / "python")
        self.program = str(folder / "bin" / "kafka-compat")
        if requirements:
            quiet = ("-q", "--no-compile", "--disable-pip-version-check")
            self.run(self.python, "-m", "pip", "install", *quiet, *requirements)

    def run(self, *line: str, exit_code: int = 0, environment: Mapping[str, str] | None = None) -> str:
        return run(line, environment, exit_code)

    def serve(self, data: Path) -> str:
        """What a broker told in its first five seconds, after which it was stopped."""
        options = ("--verbose", "--port", "0", f"--override=log.dirs={data}")
        said = self.run("timeout", "-s", "TERM", "5", self.program, "serve", *options, exit_code=124)
        assert "Broker 1 ready on PLAINTEXT://127.0.0.1:" in said
        assert "Traceback" not in said
        return said
