"""Test suites in Rust crates: the crate is downloaded, copied and compiled in the cache directory."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.others import commands
from tests.others.cargo_output import outcomes
from tests.others.suite import Outcomes, SuiteBroken, SuiteMissing
from tests.support import kafka_jars

_DEPENDENT = """\
[package]
name = "dependent"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{crate} = "={version}"
"""


@dataclass(frozen=True)
class CrateTests:
    """The tests in a crate."""

    crate: str
    version: str
    updated: Sequence[str] = ()
    """Dependencies to update, because their versions in the crate's Cargo.lock are no longer available."""

    @property
    def sources(self) -> Path:
        """The copy of the crate, which contains the compiled tests."""
        return kafka_jars.cache_directory() / "crate-tests" / f"{self.crate}-{self.version}"

    def download(self) -> None:
        """Download the crate unless the cache directory contains it.

        Raises SuiteMissing if Rust is not installed, and SuiteBroken if a step fails.
        """
        if self.sources.is_dir():
            return
        if shutil.which("cargo") is None:
            raise SuiteMissing("Rust is not installed: install cargo 1.85 or newer (https://rustup.rs)")
        self._download()

    def compile(self) -> None:
        """Compile the tests of the crate, which is downloaded first if necessary. Raises the same errors as
        `download`.
        """
        self.download()
        commands.done(["cargo", "test", "--lib", "--tests", "--no-run"], self.sources)

    def run(self, log: Path, environment: Mapping[str, str], *, timeout_s: float) -> Outcomes:
        """Run the tests, whose output goes to `log`."""
        command = ["cargo", "test", "--lib", "--tests", "--no-fail-fast"]
        text = commands.logged(command, log, self.sources, environment, timeout_s=timeout_s)
        found = outcomes(text.splitlines())
        if not found:
            raise SuiteBroken(f"{self.crate}: no test ran\n{text[-2000:]}")
        return found

    def _download(self) -> None:
        """Cargo downloads a crate only as a dependency of another one."""
        self.sources.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.sources.parent) as temporary:
            dependent = Path(temporary, "dependent")
            dependent.mkdir()
            (dependent / "lib.rs").touch()
            text = _DEPENDENT.format(crate=self.crate, version=self.version)
            (dependent / "Cargo.toml").write_text(text)
            metadata = commands.done(["cargo", "metadata", "--format-version=1"], dependent)
            packages = json.loads(metadata)["packages"]
            (manifest,) = (each["manifest_path"] for each in packages if each["name"] == self.crate)
            copy = Path(temporary, "copy")
            shutil.copytree(Path(manifest).parent, copy)
            (copy / "rust-toolchain.toml").unlink(missing_ok=True)  # the newest version works too
            for name in self.updated:
                commands.done(["cargo", "update", "-p", name], copy)
            copy.rename(self.sources)
