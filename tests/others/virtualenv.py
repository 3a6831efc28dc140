"""Virtual environments of programs in Python, in the cache directory, with their packages from PyPI."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others.suite import SuiteBroken
from tests.support import kafka_jars


@dataclass(frozen=True)
class Virtualenv:
    """A virtual environment with these packages and what they need."""

    name: str
    requirements: Sequence[str]

    @property
    def _directory(self) -> Path:
        digest = hashlib.sha256("\n".join(self.requirements).encode()).hexdigest()[:12]
        return kafka_jars.cache_directory() / "virtualenvs" / f"{self.name}-{digest}"

    def python(self) -> str:
        """Return the path of its Python. The packages are installed on first use. Raises SuiteBroken."""
        target = self._directory
        complete = target / "complete"
        if not complete.exists():
            shutil.rmtree(target, ignore_errors=True)
            self._run([sys.executable, "-m", "venv", str(target)])
            program = str(target / "bin" / "python")
            self._run([program, "-m", "pip", "install", "--quiet", *self.requirements])
            complete.touch()
        return str(target / "bin" / "python")

    def _run(self, command: Sequence[str]) -> None:
        environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        run = subprocess.run(command, capture_output=True, text=True, env=environment)
        if run.returncode != 0:
            raise SuiteBroken(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
