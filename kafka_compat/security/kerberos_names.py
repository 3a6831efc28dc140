"""Mapping of Kerberos principals to short names by sasl.kerberos.principal.to.local.rules."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<components>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?",
    re.ASCII,
)
_PARAMETER: Final = re.compile(r"([^$]*)(?:\$(\d*))?", re.ASCII)
_GROUP: Final = re.compile(r"\\(.)|\$(\d)|(\$)|(\\)", re.ASCII | re.DOTALL)


class NoName(Exception):
    """Raised if the principal is invalid, or no rule applies to it."""


class KerberosName(NamedTuple):
    """A principal, `service/host@realm`. The host and the realm may be None."""

    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a principal. Raises NoName if it is malformed."""
        match = _NAME.fullmatch(text)
        if match is not None:
            return cls(match[1], match[2], match[3])
        if "@" in text:
            raise NoName(f"Malformed Kerberos name: {text}")
        return cls(text, None, None)

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return f"{self.service}{host}" + ("" if self.realm is None else f"@{self.realm}")


class _Rule(NamedTuple):
    """A rule: RULE:[components:format](match)s/from/to/g/L. `components` is None for DEFAULT."""

    text: str
    components: int | None
    format: str
    match: re.Pattern[str] | None
    replaced: re.Pattern[str] | None
    replacement: str
    replaces_all: bool
    case: str | None

    def apply(self, realm: str, parameters: Sequence[str]) -> str | None:
        """Return the short name, or None if the rule does not apply. Raises NoName if the name is invalid."""
        if self.components is None:
            name = parameters[1] if parameters[0] == realm else None
        else:
            name = self._made(parameters) if len(parameters) - 1 == self.components else None
        if name is None:
            return None
        if "/" in name or "@" in name:
            raise NoName(f"Non-simple name {name} after auth_to_local rule {self.text}")
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _made(self, parameters: Sequence[str]) -> str | None:
        base = _filled(self.format, parameters)
        if self.match is not None and self.match.fullmatch(base) is None:
            return None
        if self.replaced is None:
            return base
        return self.replaced.sub(
            lambda match: _replacement(self.replacement, match), base, count=0 if self.replaces_all else 1
        )


def _filled(format: str, parameters: Sequence[str]) -> str:
    parts = []
    for match in _PARAMETER.finditer(format):
        parts.append(match[1])
        if match[2] is not None:
            if not match[2] or int(match[2]) >= len(parameters):
                raise NoName(f"${match[2]} in {format} is none of the {len(parameters)} parts of a principal")
            parts.append(parameters[int(match[2])])
    return "".join(parts)


def _replacement(text: str, match: re.Match[str]) -> str:
    """Return the replacement for a match, as in Java: `$1` is a group, and a backslash quotes a character."""

    def part(found: re.Match[str]) -> str:
        escaped, group = found[1], found[2]
        if escaped is not None:
            return str(escaped)
        if group is None or int(group) > match.re.groups:
            raise NoName(f"the replacement {text!r} of a rule refers to an unknown group")
        return match[int(group)] or ""

    return _GROUP.sub(part, text)


class ShortNamer:
    """A mapping of principals to short names by the first rule that applies."""

    def __init__(self, realm: str, rules: Sequence[str]) -> None:
        """`realm` is the default realm. Raises ValueError if a rule is invalid."""
        self._realm = realm
        self._rules = [_parsed(rule) for rule in rules]

    def short_name(self, principal: KerberosName) -> str:
        """Return the short name of a principal. Raises NoName if no rule applies or the result is invalid."""
        if principal.realm is None:
            if principal.host is None:
                return principal.service
            raise NoName(f"No realm in {principal}")
        parameters = [principal.realm, principal.service]
        if principal.host is not None:
            parameters.append(principal.host)
        for rule in self._rules:
            name = rule.apply(self._realm, parameters)
            if name is not None:
                return name
        raise NoName(f"No rules apply to {principal}")


def _parsed(text: str) -> _Rule:
    match = _RULE.match(text)
    if match is None:
        raise ValueError(f"Invalid rule: {text}")
    end = match.end()
    if end != len(text):
        raise ValueError(f"Invalid rule: `{text}`, unmatched substring: `{text[end:]}`")
    if match["default"]:
        return _Rule(text, None, "", None, None, "", False, None)
    if not match["components"]:
        raise ValueError(f"Invalid rule: {text}")
    try:
        accepted = None if match["match"] is None else re.compile(match["match"])
        replaced = None if match["from"] is None else re.compile(match["from"])
    except re.error as error:
        raise ValueError(f"Invalid rule: {text}: {error}") from None
    return _Rule(
        text,
        int(match["components"]),
        match["format"],
        accepted,
        replaced,
        match["to"] or "",
        match["all"] == "g",
        match["case"],
    )
