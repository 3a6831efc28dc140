"""Test suites in Go modules: the module is downloaded, copied and compiled into the cache directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.others import commands
from tests.others.go_output import outcomes
from tests.others.suite import Outcome, Outcomes, SuiteBroken, SuiteMissing
from tests.support import kafka_jars


@dataclass(frozen=True)
class GoTests:
    """The tests of some packages of a Go module."""

    module: str
    version: str
    packages: Sequence[str]
    """Directories inside the module."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Texts to replace in the sources, such as ports that the tests do not read from anywhere."""
    tags: Sequence[str] = ()
    """Build tags."""
    directory: Path | None = None
    """Where the module is copied to and compiled. None: in the cache directory, where it is kept."""

    @property
    def sources(self) -> Path:
        """The copy of the module, which contains the compiled tests."""
        if self.directory is not None:
            return self.directory
        name = self.module.removeprefix("github.com/").replace("/", "-")
        return kafka_jars.cache_directory() / "go-tests" / f"{name}-{self.version}"

    @property
    def compiled(self) -> bool:
        """Whether the tests are compiled."""
        return all(self.program(package).is_file() for package in self.packages)

    def program(self, package: str) -> Path:
        """Return the path of the compiled tests of a package."""
        return self.sources / package / "compiled.test"

    def compile(self) -> None:
        """Download the module and compile its tests, unless this was done before.

        Raises SuiteMissing if Go is not installed, and SuiteBroken if a step fails.
        """
        if self.compiled:
            return
        _need_go()
        partial = self.sources.with_name(f"{self.sources.name}.{os.getpid()}.part")
        partial.parent.mkdir(parents=True, exist_ok=True)
        downloaded = commands.done(
            ["go", "mod", "download", "-json", f"{self.module}@{self.version}"], partial.parent
        )
        shutil.copytree(json.loads(downloaded)["Dir"], partial, copy_function=shutil.copyfile)
        try:
            for directory in (partial, *(each for each in partial.rglob("*") if each.is_dir())):
                directory.chmod(0o755)  # the module cache is read-only
            self._replace_texts(partial)
            flags = [f"-tags={','.join(self.tags)}"] if self.tags else []
            for package in self.packages:
                target = partial / package / "compiled.test"
                commands.done(
                    ["go", "test", "-mod=mod", *flags, "-vet=off", "-c", "-o", str(target), f"./{package}"],
                    partial,
                )
            shutil.rmtree(self.sources, ignore_errors=True)
            partial.rename(self.sources)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def run(
        self,
        log: Path,
        environment: Mapping[str, str],
        *,
        pattern: str = "",
        skipped: Sequence[str] = (),
        timeout_s: float,
        arguments: Sequence[str] = (),
        attempts: int = 1,
    ) -> Outcomes:
        """Run the compiled tests, and write their output to `log` as JSON lines.

        `pattern` selects tests as `go test -run` does. `skipped` are tests that must not run, because they
        end the process: of a test that contains others, name the innermost. With several `attempts`, those
        that failed or that a panic prevented run again, as with `gotestsum --rerun-fails`.
        """
        found: dict[str, Outcome] = {}
        for package in self.packages:
            prefix = f"{package}." if len(self.packages) > 1 else ""
            wanted = pattern
            for attempt in range(attempts):
                if attempt > 0:
                    names = self._names(package, pattern, environment)
                    done = {name for name in names if found.get(prefix + name) in ("passed", "skipped")}
                    wanted = f"^({'|'.join(name for name in names if name not in done)})$"
                    if len(done) == len(names):
                        break
                some = self._run_package(package, log, environment, wanted, skipped, timeout_s, arguments)
                found.update((prefix + name, outcome) for name, outcome in some.items())
        return found

    def _run_package(
        self,
        package: str,
        log: Path,
        environment: Mapping[str, str],
        pattern: str,
        skipped: Sequence[str],
        timeout_s: float,
        arguments: Sequence[str],
    ) -> Outcomes:
        command = ["go", "tool", "test2json", "-t", str(self.program(package)), "-test.v=test2json"]
        command += [f"-test.timeout={timeout_s:.0f}s", *arguments]
        command += [f"-test.run={pattern}"] if pattern else []
        command += [f"-test.skip={'|'.join(map(_exactly, skipped))}"] if skipped else []
        where = self.sources / package
        text = commands.logged(command, log, where, environment, timeout_s=timeout_s + 60)
        found = outcomes(text.splitlines())
        if not found:
            raise SuiteBroken(f"{self.module}/{package}: no test ran\n{text[-2000:]}")
        return found

    def _names(self, package: str, pattern: str, environment: Mapping[str, str]) -> list[str]:
        """Return the names of the tests that a pattern selects, without subtests."""
        command = [str(self.program(package)), f"-test.list={pattern or '.*'}"]
        run = subprocess.run(
            command,
            cwd=self.sources / package,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        return [line for line in run.stdout.splitlines() if line.startswith("Test")]

    def _replace_texts(self, directory: Path) -> None:
        for file in directory.rglob("*.go"):
            text = changed = file.read_text()
            for old, new in self.replaced.items():
                changed = changed.replace(old, new)
            if changed != text:
                file.write_text(changed)


def _exactly(test: str) -> str:
    return "/".join(f"^{part}$" for part in test.split("/"))


def installed(module: str, version: str, package: str) -> Path:
    """Return the path of a program in a Go module, which is compiled into the cache directory on first use.

    Raises SuiteMissing if Go is not installed, and SuiteBroken if compilation fails.
    """
    programs = kafka_jars.cache_directory() / "go-programs" / f"{module.replace('/', '-')}-{version}"
    found = programs / package.rsplit("/", 1)[-1]
    if not found.is_file():
        _need_go()
        programs.mkdir(parents=True, exist_ok=True)
        commands.done(["go", "install", f"{module}/{package}@{version}"], programs, {"GOBIN": str(programs)})
    return found


def _need_go() -> None:
    if shutil.which("go") is None:
        raise SuiteMissing("Go is not installed: install Go 1.26 (https://go.dev/dl)")
