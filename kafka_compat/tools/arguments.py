"""Parse the flags of Kafka commands that use argparse4j, and format text as argparse4j does."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn

from kafka_compat.tools.options import help_of

_WIDTH: Final = 75
_BITS: Final = {"Short": 16, "Integer": 32, "Long": 64}


class Argument(NamedTuple):
    """A flag. `kind` is String, Short, Integer, Long or Double, True for a flag without a value, or List for
    several values. `letter` is its short form, without a dash.
    """

    kind: str = "String"
    is_required: bool = False
    letter: str = ""

    def named(self, name: str) -> str:
        """Return the flag's names as in argparse4j's messages."""
        return f"--{name}/-{self.letter}" if self.letter else f"--{name}"


class Arguments(dict[str, str]):
    """Values of flags, by name without dashes. The values of a List are separated by newlines."""

    def integer(self, name: str) -> int | None:
        """Return a flag's value as an integer, or None if the flag is missing."""
        return int(self[name]) if name in self else None


def parse(
    program: str,
    page: str,
    known: Mapping[str, Argument],
    arguments: Sequence[str],
    *,
    until: Sequence[str] = (),
) -> tuple[Arguments, list[str]]:
    """Return the values of the flags, and the arguments starting at the first one that is listed in `until`.
    `page` is the help file. Exits on --help and on invalid arguments.
    """
    found = Arguments()
    rest = list(reversed(arguments))
    letters = {f"-{argument.letter}": f"--{name}" for name, argument in known.items() if argument.letter}
    while rest:
        word = rest.pop()
        word = letters.get(word, word)
        name, equals, value = word.removeprefix("--").partition("=")
        if word in ("-h", "--help"):
            print("\n".join(help_of(page)))
            sys.exit(1)
        if not word.startswith("-") or len(word) == 1:
            command = _meant(word, until)
            if command is not None:
                return found, [command, *reversed(rest)]
            if until:
                choices = ", ".join(f"'{one}'" for one in until)
                fail(program, page, f"invalid choice: '{word}' (choose from {choices})")
            fail(program, page, f"unrecognized arguments: '{word}'")
        full = _meant(name, tuple(known))
        if not word.startswith("--") or full is None:
            fail(program, page, f"unrecognized arguments: '{word}'")
        name = full
        kind = known[name].kind
        if kind == "True":
            found[name] = "true"
            continue
        values = [value] if equals else _values(rest, kind == "List")
        if not values:
            how_many = "1 argument(s)" if kind == "List" else "one argument"
            fail(program, page, f"argument {known[name].named(name)}: expected {how_many}")
        for text in values:
            _check(program, page, known[name].named(name), kind, text)
        found[name] = "\n".join(values)
    return found, []


def show_help(page: str, commands: Sequence[str], words: Sequence[str]) -> None:
    """If a flag asks for help, print the help of the command line or of its command, and exit with code 0."""
    command = next((word for word in words if word in commands), "")
    place = words.index(command) if command else len(words)
    for file, some in ((page, words[:place]), (f"{page}-{command}", words[place:])):
        if {"-h", "--help"} & {*some}:
            print("\n".join(help_of(file)))
            sys.exit(0)


def parse_command(
    program: str, page: str, commands: Mapping[str, Mapping[str, Argument]], rest: Sequence[str]
) -> tuple[str, Arguments]:
    """Return the command at the start of `rest`, which `parse` returned, and the values of its flags."""
    if not rest:
        fail(program, page, "too few arguments")
    command, *more = rest
    given, _ = parse(program, f"{page}-{command}", commands[command], more)
    return command, given


def check_required(program: str, page: str, known: Mapping[str, Argument], found: Arguments) -> None:
    """Exit with an error if a required flag is missing."""
    for name, argument in reversed(list(known.items())):
        if argument.is_required and name not in found:
            fail(program, page, f"argument {argument.named(name)} is required")


def _meant(word: str, names: Sequence[str]) -> str | None:
    """Return the name that equals the word, or else the only name that begins with it, if any."""
    if word in names:
        return word
    found = [name for name in names if name.startswith(word)]
    return found[0] if len(found) == 1 else None


def _values(rest: list[str], several: bool) -> list[str]:
    found: list[str] = []
    while rest and (several or not found) and (not rest[-1].startswith("-") or _is_number(rest[-1])):
        found.append(rest.pop())
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check(program: str, page: str, name: str, kind: str, text: str) -> None:
    if kind == "Double":
        is_one = _is_number(text)
    elif kind in _BITS:
        bound = 1 << (_BITS[kind] - 1)
        is_one = text.lstrip("+-").isdecimal() and -bound <= int(text) < bound
    else:
        return
    if not is_one:
        why = f'For input string: "{text}"'
        if kind != "Double" and text.lstrip("+-").isdecimal() and kind == "Short":
            why = f'Value out of range. Value:"{text}" Radix:10'
        fail(program, page, f"argument {name}: could not convert '{text}' to {kind} ({why})")


def fail(program: str, page: str, message: str) -> NoReturn:
    """Print the usage and an error message, and exit with code 1."""
    lines = help_of(page)
    end = lines.index("") if "" in lines else len(lines)
    usage = lines[:end]
    print("\n".join([*usage, justified(f"{program}: error: {message}")]), file=sys.stderr)
    sys.exit(1)


def justified(text: str) -> str:
    """Justify `text` in lines of 75 characters. All lines except the last are padded with spaces, starting in
    the middle. Lines break between words and after hyphens.
    """
    lines: list[list[str]] = [[]]
    for word in text.split(" "):
        first, *more = re.split(r"(?<=-)(?=[^-\d])", word)
        if lines[-1] and len(" ".join([*lines[-1], first])) >= _WIDTH:
            lines.append([])
        lines[-1].append(first)
        for piece in more:
            if len(" ".join(lines[-1]) + piece) >= _WIDTH:
                lines.append([""])
            lines[-1][-1] += piece
    return "\n".join([*map(_filled, lines[:-1]), " ".join(lines[-1])])


def _filled(words: list[str]) -> str:
    gaps = len(words) - 1
    if not gaps:
        return words[0]
    each, more = divmod(_WIDTH - sum(map(len, words)), gaps)
    first = (gaps - more + 1) // 2
    found = words[0]
    for gap, word in enumerate(words[1:]):
        found += " " * (each + (first <= gap < first + more)) + word
    return found
