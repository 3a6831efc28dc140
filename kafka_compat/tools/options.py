"""Parse the flags of a command by the rules of joptsimple, which Kafka's commands use.

A command's help file in `help/` also defines its flags: `--flag <Type: what>` has an argument, `[Type: what]`
is an optional argument, and a preceding `*` makes the flag required. The first line describes the command.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn, Self, TextIO

from kafka_compat.tools.failure import Failure, java_int

KAFKA_VERSION: Final = "4.3.1"
"""The Kafka release that the commands match, which `--version` prints."""

JSON: Final = "json"
"""An additional flag for JSON output, which Kafka's commands do not have."""

WITHOUT_JSON: Final = frozenset({"console-producer", "dump-log"})
"""Commands without JSON output, because they do not print a table."""

_HELP: Final = os.path.join(os.path.dirname(__file__), "help")


class Flag(NamedTuple):
    """A flag of a command. `argument` is "none", "required" or "optional"."""

    name: str
    argument: str
    is_required: bool = False
    text: str = ""
    is_number: bool = False


class Options:
    """A parsed command line. Values of flags are strings until they are requested as another type."""

    def __init__(self, command: str, arguments: list[str], also: str = "", lists: Sequence[str] = ()) -> None:
        """Parse the command line of `kafka-COMMAND`. `also` contains flags that the help omits, from older
        Kafka releases or this project: names separated by spaces, ending in "=" if the flag has an argument.
        The argument of a flag in `lists` is split at commas. Raises Failure if joptsimple would reject the
        line.
        """
        self.command = command
        self.arguments = arguments
        self.others: list[str] = []
        """Arguments that are neither flags nor values of flags."""
        self._flags = {flag.name: flag for flag in flags_of(command)}
        for name in [*([] if command in WITHOUT_JSON else [JSON]), *also.split()]:
            flag = Flag(name.rstrip("="), "required" if name.endswith("=") else "none")
            self._flags.setdefault(flag.name, flag)
        self._given: dict[str, list[str]] = {}
        self.order: list[str] = []
        """Names of the flags in the given order, with repetitions."""
        self._parse()
        for name in lists:
            if name in self._given:
                self._given[name] = ",".join(self._given[name]).split(",")

    @classmethod
    def or_usage(cls, command: str, arguments: list[str], also: str = "", lists: Sequence[str] = ()) -> Self:
        """Parse the command line. If joptsimple would reject it, exit with the error and the help."""
        try:
            return cls(command, arguments, also, lists)
        except Failure as failure:
            cls(command, ["--help"]).usage_error(failure.message or "")

    def has(self, name: str) -> bool:
        """Return whether the flag was given, with or without an argument."""
        return name in self._given

    def values(self, name: str) -> list[str]:
        """Return all arguments of a flag, in order."""
        return self._given.get(name, [])

    def value(self, name: str, default: str | None = None) -> str | None:
        """Return a flag's argument, or `default` if there is none. Raises Failure if the flag is repeated."""
        found = self.values(name)
        if len(found) > 1:
            text = f"Found multiple arguments for option {name}, but you asked for only one"
            raise _wrong("MultipleArgumentsForOption", text)
        return found[0] if found else default

    def pairs(self, name: str) -> dict[str, str]:
        """Return the NAME=VALUE arguments of a flag as a dictionary."""
        return {key: value for key, _, value in (item.partition("=") for item in self.values(name))}

    def given(self, name: str) -> str:
        """Return a flag's argument, or "" if there is none. Raises Failure if the flag was repeated."""
        return self.value(name) or ""

    def integer(self, name: str, bits: int = 32) -> int | None:
        """Return a flag's value as an integer, or None if there is none. Raises Failure if it is invalid."""
        text = self.value(name)
        return None if text is None else java_integer(text, name, bits)

    @property
    def as_json(self) -> bool:
        return JSON in self._given

    @property
    def errors(self) -> TextIO:
        """The stream for errors that Kafka's command prints on standard output. With --json, it is standard
        error, because standard output then contains only JSON.
        """
        return sys.stderr if self.as_json else sys.stdout

    def exit_for_help(self, without_arguments: str | None = None) -> None:
        """Exit with the help for --help or an empty command line, and with the version for --version.

        `without_arguments` replaces the first line of the help, also for --help.
        """
        if not self.arguments or self.has("help"):
            self.usage_error(without_arguments or help_of(self.command)[0])
        if self.has("version"):
            print(KAFKA_VERSION)
            sys.exit(0)

    def usage_error(self, message: str) -> NoReturn:
        """Print a message and the help, and exit with code 1."""
        table = "\n".join(help_of(self.command)[1:])
        print(f"{message}\n{table}", file=sys.stderr)
        sys.exit(1)

    def require(self, *names: str) -> None:
        """Exit with an error and the help unless all of these flags are given."""
        for name in names:
            if not self.has(name):
                self.usage_error(f'Missing required argument "[{name}]"')

    def forbid(self, used: str, *names: str) -> None:
        """Exit with an error and the help if any of these flags is given together with `used`."""
        if self.has(used):
            for name in names:
                if self.has(name):
                    self.usage_error(f'Option "[{used}]" can\'t be used with option "[{name}]"')

    def forbid_together(self, first: str, second: str) -> None:
        """Exit with an error and the help if a flag is given under both of its names."""
        if self.has(first) and self.has(second):
            self.usage_error(f"Options --{first} and --{second} cannot be specified together.")

    def renamed(self, old: str, new: str, warning: str) -> str:
        """Return the name under which a flag was given, or `new` if it is missing. For the old name, print
        `warning`, with {old} and {new} replaced, to stderr if the output on stdout is JSON.
        """
        if not self.has(old):
            return new
        print(warning.format(old=old, new=new), file=sys.stderr if self.as_json else sys.stdout)
        return old

    def _parse(self) -> None:
        rest = list(reversed(self.arguments))
        while rest:
            word = rest.pop()
            if word == "--":
                self.others += reversed(rest)
                break
            if word.startswith("--"):
                name, equals, argument = word[2:].partition("=")
                if name not in self._flags:
                    raise _wrong("UnrecognizedOption", f"{name} is not a recognized option")
                self._take(name, argument if equals else "", rest)
            elif word.startswith("-") and word != "-":
                name, equals, argument = word[1:].partition("=")
                if name not in self._flags:
                    raise _wrong("UnrecognizedOption", f"{name[:1]} is not a recognized option")
                self._take(name, argument if equals else "", rest)
            else:
                self.others.append(word)
        missing = [flag.name for flag in self._flags.values() if flag.is_required and not self.has(flag.name)]
        if missing and not (self.has("help") or self.has("version")):
            text = f"Missing required option(s) [{', '.join(missing)}]"
            raise _wrong("MissingRequiredOptions", text)

    def _take(self, name: str, argument: str, rest: list[str]) -> None:
        kind = self._flags[name].argument
        self.order.append(name)
        values = self._given.setdefault(name, [])
        if kind == "none":
            return
        if argument:
            values.append(argument)
        elif kind == "required":
            if not rest:
                raise _wrong("OptionMissingRequiredArgument", f"Option {name} requires an argument")
            values.append(rest.pop())
        elif rest and (_is_whole(rest[-1]) if self._flags[name].is_number else not rest[-1].startswith("-")):
            values.append(rest.pop())


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def java_integer(text: str, option: str, bits: int = 32) -> int:
    """Parse a number like Java's Integer.valueOf or Long.valueOf. Raises Failure if the text is invalid."""
    try:
        return java_int(text, bits)
    except Failure as failure:
        cause = Failure("joptsimple.internal.ReflectionException", str(failure), failure)
    raise _wrong("OptionArgumentConversion", f"Cannot parse argument '{text}' of option {option}", cause)


def help_of(command: str) -> list[str]:
    """Return the lines of a command's help."""
    with open(os.path.join(_HELP, f"{command}.txt"), encoding="utf-8") as file:
        return file.read().splitlines()


def flags_of(command: str) -> list[Flag]:
    """Return the flags in a command's help, with their descriptions."""
    found: list[Flag] = []
    left = right = ""
    column = 0
    for line in [*help_of(command)[1:], "--"]:
        if line.startswith("Option"):
            column = line.index("Description")
        elif line.startswith(("--", "* --")):
            if left.startswith(("--", "* --")) and not left.startswith("---"):
                found.append(_flag(left, right.strip()))
            left, right = line[:column].strip(), line[column:].strip()
        else:
            left += " " + line[:column].strip()
            right += " " + line[column:].strip()
    return found


def _flag(left: str, text: str) -> Flag:
    words = left.removeprefix("* ").split()
    second = words[1][0] if len(words) > 1 else ""
    kind = {"<": "required", "[": "optional"}.get(second, "none")
    is_number = len(words) > 1 and words[1].strip("[]:") in ("Integer", "Long")
    return Flag(words[0].rstrip(",")[2:], kind, left.startswith("*"), text, is_number)


def _wrong(kind: str, text: str, cause: Failure | None = None) -> Failure:
    return Failure(f"joptsimple.{kind}Exception", text, cause)
