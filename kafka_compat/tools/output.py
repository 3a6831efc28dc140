"""Standard output of commands: a failed write ends the command with one message, or silently if the reader
has closed the pipe.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Any, Final

_FAILED: Final = 1
_BROKEN_PIPE: Final = 0
"""Like Kafka's commands, a command succeeds if the reader of its output has read enough."""


class Unwritable(BaseException):
    """A failed write to standard output. Not an Exception, because commands print those."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Descriptor(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise Unwritable(error) from None


def guarded(run: Callable[[], int]) -> int:
    """Call `run`, and return its exit code, or that of a failed write to standard output."""
    _replace_closed_streams()
    _check_writes()
    try:
        try:
            return run()
        finally:
            sys.stdout.flush()
    except Unwritable as failed:
        discard()
        if isinstance(failed.error, BrokenPipeError):
            return _BROKEN_PIPE
        reason = failed.error.strerror or failed.error
        with contextlib.suppress(OSError):
            print(f"kafka-compat: cannot write to standard output: {reason}", file=sys.stderr)
        return _FAILED


def discard() -> None:
    """Redirect standard output to /dev/null, because Python would retry the buffered write at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _replace_closed_streams() -> None:
    """Replace standard streams that the parent process has closed by /dev/null."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, open(descriptor, "r" if descriptor == 0 else "w", closefd=False))  # noqa: SIM115


def _check_writes() -> None:
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):
        return
    descriptor = _Descriptor(1, "w", closefd=False)
    # Python's own stream has no buffer if PYTHONUNBUFFERED is set.
    is_buffered = isinstance(stream.buffer, io.BufferedIOBase)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(descriptor) if is_buffered else descriptor,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
