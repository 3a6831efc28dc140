"""Virtual environments of programs in Python, in the cache directory, with their packages from PyPI."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others import commands
from tests.support import kafka_jars

_QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


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
            commands.done([sys.executable, "-m", "venv", str(target)])
            install = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            commands.done([*install, *self.requirements], environment=_QUIET)
            complete.touch()
        return str(target / "bin" / "python")
