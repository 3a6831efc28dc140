"""The standard streams and the encoding of names that a process was started with, made fit to work with."""

from __future__ import annotations

import io
import os
import sys

_UTF8 = "PYTHONUTF8"


def prepare() -> None:
    """Open each standard stream that the process was started without (`>&-`) on nothing: a file of the
    broker would get its number, and what is printed would get into that file. Characters that a stream
    cannot show are escaped from now on.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                # The lowest number that is free is this one, since those below it are open by now.
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # In the C locale Python writes the bytes of a file's name as they are: that may stay.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def use_utf8() -> None:
    """Start the program again, with UTF-8 for names of files, where it was told to use ASCII for them: by
    `LC_ALL=C` where Python's own cure for that is off (PYTHONUTF8=0, PYTHONCOERCECLOCALE=0).
    """
    is_ascii = sys.getfilesystemencoding() in ("ascii", "us-ascii")
    if is_ascii and os.environ.get(_UTF8) != "1" and not sys.flags.ignore_environment:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, _UTF8: "1"})
