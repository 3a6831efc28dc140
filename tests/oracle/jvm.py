"""A Java program in this directory that answers queries on stdin and stdout with Kafka's classes."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.clients.programs import java_command


class OracleJvm:
    """The program, compiled for Kafka `release`. A context manager, which ends the JVM."""

    def __init__(self, program: str, release: str) -> None:
        source = Path(__file__).with_name(f"{program}.java")
        self._jvm = subprocess.Popen(
            java_command(program, release, (str(source),)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        self._jvm.wait(timeout=30)
        assert self._jvm.stdout is not None
        self._jvm.stdout.close()

    def say(self, question: bytes) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.write(question)
        self._jvm.stdin.flush()

    def read_sized(self) -> bytes:
        (size_bytes,) = struct.unpack(">i", self.read(4))
        return self.read(size_bytes)

    def read(self, size_bytes: int) -> bytes:
        assert self._jvm.stdout is not None
        content = self._jvm.stdout.read(size_bytes)
        assert len(content) == size_bytes, "the JVM of the oracle exited"
        return content
