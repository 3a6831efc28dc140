"""Test suites in source distributions of Python packages: unpacked into the cache directory, with a virtual
environment of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others.junit_output import outcomes
from tests.others.suite import Outcomes, SuiteBroken
from tests.support import kafka_jars


@dataclass(frozen=True)
class SdistTests:
    """The tests in the source distribution of a package on PyPI."""

    package: str
    version: str
    requirements: Sequence[str]
    """What to install for the tests, such as pytest itself."""

    @property
    def sources(self) -> Path:
        """The unpacked source distribution."""
        return kafka_jars.cache_directory() / "python-tests" / f"{self.package}-{self.version}"

    @property
    def _python(self) -> Path:
        return self.sources / ".venv" / "bin" / "python"

    def install(self) -> None:
        """Download and unpack the source distribution and install its requirements, unless this was done
        before. Raises SuiteBroken if a step fails.
        """
        if self.sources.is_dir():
            return
        self.sources.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.sources.parent) as temporary:
            download = ["download", "--no-deps", f"--no-binary={self.package}", "--dest", temporary]
            _run([sys.executable, "-m", "pip", *download, f"{self.package}=={self.version}"])
            (archive,) = Path(temporary).glob("*.tar.gz")
            with tarfile.open(archive) as contents:
                contents.extractall(temporary, filter="data")
            (unpacked,) = (each for each in Path(temporary).iterdir() if each.is_dir())
            unpacked.rename(self.sources)
        try:
            _run([sys.executable, "-m", "venv", str(self.sources / ".venv")])
            _run([str(self._python), "-m", "pip", "install", "--quiet", *self.requirements])
        except SuiteBroken:
            shutil.rmtree(self.sources)
            raise

    def run(
        self, log: Path, environment: Mapping[str, str], arguments: Sequence[str], *, timeout_s: float
    ) -> Outcomes:
        """Run pytest in the sources. Its output goes to `log`, and its report to an XML file beside it."""
        report = log.with_suffix(".xml")
        command = [str(self._python), "-m", "pytest", f"--junitxml={report}", *arguments]
        with open(log, "wb") as output:
            subprocess.run(
                command,
                cwd=self.sources,
                env={**os.environ, "PYTHONPATH": str(self.sources), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
            )
        if not report.exists():
            raise SuiteBroken(f"{self.package}: no report\n{log.read_text(errors='replace')[-2000:]}")
        return outcomes(report.read_text())


def _run(command: Sequence[str]) -> None:
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise SuiteBroken(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
