"""Regular expressions to which members of consumer groups subscribe (KIP-848, RE2 syntax).

An expression must match the whole name of a topic. Topics that the member must not describe are left out.
"""

from collections.abc import Callable, Collection, Generator
from typing import Any, Final, NamedTuple

from kafka_compat.long_work import batched

_NAMES_PER_STEP: Final = 50


class ResolveRegexes(NamedTuple):
    """Request of a group to resolve all its regular expressions, which takes too long for a heartbeat.
    `may_describe` returns whether the member whose heartbeat caused it may describe a topic.
    """

    regexes: tuple[str, ...]
    may_describe: Callable[[str], bool]


def problem(regex: str) -> str | None:
    """Return why a regular expression cannot be used, or None."""
    try:
        import re2
    except ImportError:
        return "the broker needs the package google-re2: install kafka-compat[regex]"
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
    compiled = {regex: _compiled(regex) for regex in request.regexes if problem(regex) is None}
    found: dict[str, set[str]] = {regex: set() for regex in request.regexes}
    for some in batched(names, _NAMES_PER_STEP):
        for name in some:
            hits = [regex for regex, pattern in compiled.items() if pattern.fullmatch(name)]
            if hits and request.may_describe(name):
                for regex in hits:
                    found[regex].add(name)
        yield len(some)
    return {regex: frozenset(topics) for regex, topics in found.items()}
