"""Test suites in source distributions of Python packages: unpacked into the cache directory, with a virtual
environment of their own.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others import commands
from tests.others.junit_output import outcomes
from tests.others.suite import Outcomes, SuiteBroken
from tests.others.virtualenv import Virtualenv
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
    def _virtualenv(self) -> Virtualenv:
        return Virtualenv(self.package, self.requirements)

    def install(self) -> None:
        """Download and unpack the source distribution and install its requirements, unless this was done
        before. Raises SuiteBroken if a step fails.
        """
        if not self.sources.is_dir():
            self._download()
        self._virtualenv.python()

    def _download(self) -> None:
        self.sources.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.sources.parent) as temporary:
            download = ["download", "--no-deps", f"--no-binary={self.package}", "--dest", temporary]
            commands.done([sys.executable, "-m", "pip", *download, f"{self.package}=={self.version}"])
            (archive,) = Path(temporary).glob("*.tar.gz")
            with tarfile.open(archive) as contents:
                contents.extractall(temporary, filter="data")
            (unpacked,) = (each for each in Path(temporary).iterdir() if each.is_dir())
            unpacked.rename(self.sources)

    def run(
        self, log: Path, environment: Mapping[str, str], arguments: Sequence[str], *, timeout_s: float
    ) -> Outcomes:
        """Run pytest in the sources. Its output goes to `log`, and its report to an XML file beside it."""
        report = log.with_suffix(".xml")
        command = [self._virtualenv.python(), "-m", "pytest", f"--junitxml={report}", *arguments]
        settings = {"PYTHONPATH": str(self.sources), **environment}
        text = commands.logged(command, log, self.sources, settings, timeout_s=timeout_s)
        if not report.exists():
            raise SuiteBroken(f"{self.package}: no report\n{text[-2000:]}")
        return outcomes(report.read_text())
