"""Mapping of certificate subjects to principals: ssl.principal.mapping.rules (KIP-371)."""

import logging
import re
from typing import Final, NamedTuple

from kafka_compat.config import ConfigError
from kafka_compat.security import distinguished_names
from kafka_compat.security.java_regex import compile_java
from kafka_compat.security.principal import Principal

log = logging.getLogger(__name__)

_TEXT: Final = r"(?:\\.|[^\\/])*"
_RULE: Final = re.compile(rf"RULE:(?P<pattern>{_TEXT})/(?P<replacement>{_TEXT})/(?P<case>[LU]?)")
_ITEM: Final = re.compile(rf"\s*(DEFAULT|RULE:{_TEXT}/{_TEXT}/.*?|.*?)\s*(?:,\s*|$)")
_REFERENCE: Final = re.compile(
    r"\\(?P<escaped>.)|\$(?P<digits>[0-9]+)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|(?P<bad>[\\$])", re.DOTALL
)
_REPEATED_REPETITION: Final = re.compile(
    r"(?<!\\)\((?!\?>)(?:[^()\\]|\\.)*(?<![\\*+?}])[*+}](?!\+)(?:[^()\\+]|\\.)*\)[*+{](?![+])"
)
_REMEMBERED_MAX: Final = 1024


class NoMatchingRule(Exception):
    """Raised if no rule applies to the name in a certificate."""


class _Rule(NamedTuple):
    """A rule. `parts` are the texts and group numbers that form the principal's name."""

    pattern: re.Pattern[str]
    parts: tuple[str | int, ...]
    case: str

    def apply(self, name: str) -> str | None:
        if not self.pattern.fullmatch(name):
            return None
        # As in Kafka, first match the entire name, and then replace every match of the pattern in the name.
        result = self._all_replaced(name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _all_replaced(self, name: str) -> str:
        # After an empty match, advance as Java does. `re.sub` would try the same position again.
        result, end, begin = "", 0, 0
        while begin <= len(name) and (match := self.pattern.search(name, begin)):
            found = (part if isinstance(part, str) else match[part] or "" for part in self.parts)
            start = match.start()
            result += name[end:start] + "".join(found)
            end = match.end()
            begin = end + (start == end)
        return result + name[end:]


class PrincipalMapper:
    """The principal mapping rules of a listener. The first rule that applies is used."""

    def __init__(self, rules: str, setting: str = "ssl.principal.mapping.rules") -> None:
        """Parse the rules. Raises ConfigError, which names `setting`, if a rule is invalid."""
        self._setting = setting
        self._text = rules
        items = (match[1] for match in _ITEM.finditer(rules.strip()))
        self._rules = [self._rule(item) for item in items if item]
        self._remembered: dict[str, str] = {}

    def principal(self, certificate: bytes) -> Principal:
        """Return a certificate's principal. Raises NoMatchingRule, or ValueError if the DER is invalid."""
        return Principal(
            "User", self.name(distinguished_names.rfc2253(distinguished_names.subject(certificate)))
        )

    def name(self, distinguished_name: str) -> str:
        """Apply the rules to a name in Java's notation. Raises NoMatchingRule if no rule applies."""
        found = self._remembered.get(distinguished_name)
        if found is None:
            found = self._mapped(distinguished_name)
            if len(self._remembered) == _REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[distinguished_name] = found
        return found

    def _mapped(self, name: str) -> str:
        for rule in self._rules:
            result = name if rule is None else rule.apply(name)
            if result is not None:
                return result
        raise NoMatchingRule(f"No rules apply to {name}, rules {self._text}")

    def _rule(self, item: str) -> _Rule | None:
        if item == "DEFAULT":
            return None
        match = _RULE.match(item)
        end = match.end() if match else 0
        if match is None or end < len(item):
            left = item[end:]
            raise self._wrong(
                f"Invalid rule: `{item}`, unmatched substring: `{left}`",
                "expected DEFAULT and RULE:pattern/replacement/[LU], separated by commas",
            )
        try:
            pattern = compile_java(match["pattern"])
            parts = _parts(match["replacement"], pattern)
        except ValueError as error:
            raise self._wrong(f"Invalid rule: `{item}`: {error}", "") from error
        if _REPEATED_REPETITION.search(match["pattern"]):
            log.warning(
                "Rule %s in %s has nested quantifiers: a name that does not match can take very long to "
                "evaluate. Use (?>...) or possessive quantifiers, as in [^,]++",
                item,
                self._setting,
            )
        return _Rule(pattern, parts, match["case"])

    def _wrong(self, problem: str, expected: str) -> ConfigError:
        return ConfigError(self._setting, self._text, problem, expected)


def _parts(replacement: str, pattern: re.Pattern[str]) -> tuple[str | int, ...]:
    """Return the texts and group numbers of a replacement, by Java's rules, and by Kafka's rule that a number
    without a group is literal if the pattern has groups. Raises ValueError if it is invalid.
    """
    parts: list[str | int] = []
    end = 0
    for match in _REFERENCE.finditer(replacement):
        start = match.start()
        parts.append(replacement[end:start])
        end = match.end()
        if match["bad"]:
            raise ValueError(f"{match['bad']} at the end, or not before a group, in {replacement!r}")
        if match["escaped"]:
            parts.append(match["escaped"])
        elif match["name"]:
            if match["name"] not in pattern.groupindex:
                raise ValueError(f"No group with name {{{match['name']}}}")
            parts.append(pattern.groupindex[match["name"]])
        else:
            parts += _numbered(match["digits"], pattern.groups)
    parts.append(replacement[end:])
    return tuple(part for part in parts if part != "")


def _numbered(digits: str, groups: int) -> tuple[str | int, str]:
    """Split digits into a valid group number and the remaining digits, which are literal text."""
    if int(digits[0]) > groups:
        if not groups:
            raise ValueError(f"No group {digits[0]}")
        return f"${digits}", ""
    size = 1
    while size < len(digits) and int(digits[: size + 1]) <= groups:
        size += 1
    return int(digits[:size]), digits[size:]
