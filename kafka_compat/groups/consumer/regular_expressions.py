"""Regular expressions to which members of consumer groups subscribe (KIP-848, RE2 syntax).

An expression must match the whole name of a topic. Topics that the member must not describe are left out.
"""

import re
from collections.abc import Callable, Collection, Generator
from typing import Any, Final, NamedTuple

from kafka_compat.long_work import batched

_PATTERNS_PER_STEP: Final = 50
_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""The escape sequence for any byte, which Kafka does not support."""
_COMPILATION_SIZE: Final = 20
"""Size of a step that compiles a regular expression."""


class ResolveRegexes(NamedTuple):
    """Request of a group to resolve all its regular expressions, which takes too long for a heartbeat.
    `may_describe` returns whether the member whose heartbeat caused it may describe a topic.
    """

    regexes: tuple[str, ...]
    may_describe: Callable[[str], bool]


def are_supported() -> bool:
    """Return whether the package that matches regular expressions is installed."""
    try:
        import re2  # noqa: F401
    except ImportError:
        return False
    return True


def problem(regex: str) -> str | None:
    """Return why a regular expression cannot be used, or None."""
    if not are_supported():
        return "the broker needs the package google-re2: install kafka-compat[regex]"
    import re2

    if _ANY_BYTE.search(regex):
        return "invalid escape sequence: \\C"
    try:
        _compiled(regex)
    except re2.error as error:
        reason: str = error.args[0].decode(errors="replace")
        return reason
    return None


def _compiled(regex: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(regex, options=options)


def resolved(
    request: ResolveRegexes, names: Collection[str]
) -> Generator[int, None, dict[str, frozenset[str]]]:
    """Return the topics that match each regular expression, in steps that yield their size
    (see `run_cooperatively`).
    """
    compiled: list[tuple[str, Any]] = []
    for regex in request.regexes:
        if problem(regex) is None:
            compiled.append((regex, _compiled(regex)))
        yield _COMPILATION_SIZE
    found: dict[str, set[str]] = {regex: set() for regex in request.regexes}
    for name in names:
        hits: list[str] = []
        for some in batched(compiled, _PATTERNS_PER_STEP):
            hits += [regex for regex, pattern in some if pattern.fullmatch(name)]
            yield len(some)
        if hits and request.may_describe(name):
            for regex in hits:
                found[regex].add(name)
    return {regex: frozenset(topics) for regex, topics in found.items()}
