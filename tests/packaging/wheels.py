"""Wheels built by scripts/build-wheel, and their installation."""

from __future__ import annotations

import os
import subprocess
import sys
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
    """Run a command in a directory without packages, and return its output."""
    result = subprocess.run(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env=_environment(environment or {}),
        timeout=timeout_s,
    )
    assert result.returncode == exit_code, result.stdout
    return result.stdout


def build(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> list[Path]:
    """Run the script, and return the wheels in the directory by name, so a compiled wheel comes first."""
    run([str(PROJECT / "scripts" / "build-wheel"), *options, str(folder)], environment)
    return sorted(folder.glob("*.whl"))


def contents(wheel: Path) -> set[str]:
    """Return the files in the wheel, except its metadata."""
    with zipfile.ZipFile(wheel) as packed:
        return {name for name in packed.namelist() if ".dist-info/" not in name}


def sources() -> set[str]:
    """Return the project's modules and data files, at their paths when installed."""
    rooms = {Path("kafka_compat", room): PROJECT / room for room in ("storage", "coordination")}
    package = PROJECT / "kafka_compat"
    kinds = ("*.py", "tools/**/*.txt", "page/templates/*")
    found = {path.relative_to(PROJECT) for kind in kinds for path in package.rglob(kind)}
    for inside, folder in rooms.items():
        found |= {inside / path.relative_to(folder) for path in folder.rglob("*.py")}
    return {path.as_posix() for path in found}


class Installed:
    """A virtual environment with the wheel and any extras, or without the wheel."""

    def __init__(self, folder: Path, *requirements: str) -> None:
        venv.create(folder)
        self.python = str(folder / "bin" / "python")
        self.program = str(folder / "bin" / "kafka-compat")
        if requirements:
            quiet = ("-q", "--no-compile", "--disable-pip-version-check")
            self.run(sys.executable, "-m", "pip", "--python", self.python, "install", *quiet, *requirements)

    def run(self, *line: str, exit_code: int = 0, environment: Mapping[str, str] | None = None) -> str:
        return run(line, environment, exit_code)

    def serve(self, data: Path) -> str:
        """Run a broker until it is ready, and return its output."""
        options = ("--verbose", "--port", "0", f"--override=log.dirs={data}")
        with subprocess.Popen(
            [self.program, "serve", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env=_environment({}),
        ) as broker:
            assert broker.stdout is not None
            said = ""
            while "Broker 1 ready on PLAINTEXT://127.0.0.1:" not in said:
                line = broker.stdout.readline()
                said += line
                assert line, said
            broker.terminate()
            said += broker.stdout.read()
        assert broker.returncode == 0
        assert "Traceback" not in said
        return said


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | dict(added)
