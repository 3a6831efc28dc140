"""Capture the output of Spark's JVM on stdout and stderr: Java warnings, Ivy downloads, error logs.

The output goes to a file that is deleted when the job succeeds. When the job fails, the file is kept and its
name is printed, because it may contain more details than the exception. A process has at most one such JVM.
"""

import atexit
import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

_file: Path | None = None
_REASON = re.compile(
    r"^(?:Exception in thread [^:]+: )?(?P<text>(?:[\w.$]+(?:Exception|Error): |Error: |Error occurred ).+)"
)
_TELLING = re.compile(r"\b(ERROR|FATAL|\w*(Error|Exception)):? |OutOfMemory")
_UNRESOLVED = re.compile(r"unresolved dependency: ([^:\]]+: [^\]]+)")


def redirection(*, verbose: bool) -> dict[str, Any]:
    """Return Popen arguments that redirect the JVM's output to a file or, with `verbose`, to stderr. In both
    cases, stdout contains only the job's report.
    """
    global _file
    if verbose:
        return {"stdout": 2}
    handle, name = tempfile.mkstemp(prefix="kafka-compat-spark-", suffix=".log")
    _file = Path(name)
    atexit.register(_discard)
    # Do not close the file: Popen uses it when the JVM starts, and this process ends with the job.
    return {"stdout": handle, "stderr": handle}


def reason() -> str:
    """Return the JVM's first output line with a reason for its exit, or "" if there is none."""
    for line in _lines():
        if found := _UNRESOLVED.search(line):
            return f"{found[1].replace('#', ':').replace(';', ':')}."
        if found := _REASON.match(line):
            return found["text"].strip()
    return ""


def kept(*, whatever_it_says: bool = False) -> str:
    """Keep the output file if it contains errors. Return a line with its name, or "" if there are none."""
    global _file
    if not any(whatever_it_says or _TELLING.search(line) for line in _lines()):
        return ""
    named, _file = _file, None
    return f"\nSpark's own messages: {named}"


def _lines() -> list[str]:
    if _file is None:
        return []
    try:
        return _file.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _discard() -> None:
    if _file is not None:
        with contextlib.suppress(OSError):
            os.unlink(_file)
