"""kfake, franz-go's in-memory broker in Go, as a process (tests/bench/kfake)."""

from __future__ import annotations

from pathlib import Path

from tests.support import go_programs
from tests.support.process import Process
from tests.support.servers import Server


def program() -> Path:
    """Return the path of the program, which is compiled on first use.

    Raises GoMissing if Go is not installed, and RuntimeError if compilation fails.
    """
    return go_programs.compiled(Path(__file__).resolve().parent / "kfake")


class Kfake(Server):
    """One broker of kfake with its default settings. It keeps records in memory only."""

    name = "kfake"

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        super().__init__(directory, port=port)
        self.log_dir = directory / "logs"
        """A directory that is always missing, because kfake has no files."""

    def _new_process(self) -> Process:
        return Process([program(), str(self.port)], self.log, rf"127\.0\.0\.1:{self.port}\b")
