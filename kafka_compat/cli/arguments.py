"""The argument parser of all commands, and argument types that several commands use."""

import argparse
import os
from collections.abc import Iterable
from typing import Any, NoReturn

_COLUMNS = 80
"""Width that is used if the terminal's width is unknown."""


class Parser(argparse.ArgumentParser):
    """An argument parser that starts quickly. argparse creates a help formatter for each argument, and its
    own formatter imports shutil and three compression libraries to find the terminal's width. This would take
    5% of a broker's startup time.
    """

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Formatter)
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        """Print the error with a suggestion, and exit with code 2."""
        super().error(message + self._guess(message))

    def _guess(self, message: str) -> str:
        import re

        if choice := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            return did_you_mean(choice[1], re.findall(r"[\w.-]+", choice[2]))
        _, of_flags, words = message.partition("unrecognized arguments: ")
        flags = [word.partition("=")[0] for word in words.split() if of_flags and word.startswith("--")]
        return "".join(did_you_mean(flag, _flags(self)) for flag in flags[:1])


def add_several(parser: argparse.ArgumentParser, name: str, metavar: str, help: str, **more: Any) -> None:
    """Add an argument that may be repeated."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=help, **more)


def add_override(parser: argparse.ArgumentParser) -> None:
    """Add the flag that overrides settings of the files."""
    add_several(parser, "--override", "NAME=VALUE", "setting that overrides the files; may be repeated")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion such as ` (did you mean serve?)`, or "" if no known name is similar."""
    import difflib

    likely = difflib.get_close_matches(word, sorted(known), 1)
    return f" (did you mean {likely[0]}?)" if likely else ""


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    found: set[str] = set()
    for action in parser._actions:
        found.update(flag for flag in action.option_strings if flag.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                found |= _flags(command)
    return found


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap a description without breaking the names of commands and flags."""
        import textwrap

        return textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False)


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
    """Parse a port from 0 to 65535. Raises ArgumentTypeError if the text is not a port."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; expected a number from 0 to 65535")
    return int(text)


def count(text: str) -> int:
    """Parse a number of brokers, at least 1. Raises ArgumentTypeError if the text is invalid."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a valid number of brokers; expected 1 or more")
    return int(text)
