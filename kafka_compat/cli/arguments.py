"""What the parsers of all commands have in common, and what arguments of several commands may be."""

from __future__ import annotations

import argparse
import os
from typing import Any

_COLUMNS = 80
"""Where nothing says how wide the terminal is."""


class Parser(argparse.ArgumentParser):
    """One that starts quickly: argparse makes a formatter of help for each argument; its own imports shutil
    and three compression libraries to know how wide the terminal is, a twentieth of the start of a broker.
    """

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(**settings)


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or _COLUMNS
    except ValueError:
        pass
    try:
        return os.get_terminal_size().columns or _COLUMNS
    except OSError:
        return _COLUMNS


def port(text: str) -> int:
    """A number from 0 to 65535."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; expected a number from 0 to 65535")
    return int(text)


def count(text: str) -> int:
    """Of brokers: 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of brokers; expected 1 or more")
    return int(text)
