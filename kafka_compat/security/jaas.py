"""Parser of sasl.jaas.config, which contains a login module and its options (`MODULE FLAG key="value" …;`),
and of JAAS files (`SECTION { MODULE FLAG key="value" …; };`).
"""

import re
from typing import Final, NamedTuple

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>[=;])|(?P<word>[^\s=;"']+))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_QUOTED: Final = "quoted"
_SIGN: Final = "sign"


class _Token(NamedTuple):
    kind: str
    text: str


_EQUALS: Final = _Token(_SIGN, "=")
_END: Final = _Token(_SIGN, ";")
_IN_FILE = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<brace>[{}])""",
    re.DOTALL,
)
_MODULE = re.compile(r"""(?:[^;"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|["'])+;?""")
_SECTION = re.compile(r"""[\s;]*["']?(?P<name>[^\s{}"';]+)["']?\s*""")


class LoginModule(NamedTuple):
    """A login module: its Java class, which selects a mechanism, and its options."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        """Omit the options, because they are secret."""
        return f"LoginModule({self.name})"


def parse(text: str) -> LoginModule:
    """Parse a single login module. Raises ValueError, without quoting the text, if it is invalid."""
    tokens = _tokens(text)
    if len(tokens) < 2 or _SIGN in (tokens[0].kind, tokens[1].kind):
        raise ValueError("JAAS config does not begin with a login module and its flag")
    if tokens[1].text.lower() not in _FLAGS:
        raise ValueError(f"the login module's flag is not one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != _END:
        option = tokens[position : position + 3]
        kinds = [token.kind for token in option]
        if len(option) < 3 or option[1] != _EQUALS or kinds[0] == _SIGN or kinds[2] == _SIGN:
            raise ValueError(f'option {len(options) + 1} of the login module is not of the form key="value"')
        options[option[0].text] = option[2].text
        position += 3
    if position == len(tokens):
        raise ValueError("JAAS config entry not terminated by semi-colon")
    if position + 1 < len(tokens):
        raise ValueError("JAAS config property does not contain exactly one login module")
    return LoginModule(tokens[0].text, options)


def parse_section(text: str, *sections: str) -> list[LoginModule]:
    """Parse the login modules in the first of these sections that a JAAS file contains. Raises ValueError if
    it is invalid.

    Other sections may use syntax that only Java supports.
    """
    found = _sections(text)
    for section in sections:
        if section in found:
            modules = _MODULE.findall(found[section])
            return [parse(module) for module in modules if module.strip()]
    return []


def _sections(text: str) -> dict[str, str]:
    """Return the text between the braces of each section, without comments."""
    sections: dict[str, str] = {}
    name, parts, position = None, [""], 0
    for match in _IN_FILE.finditer(text):
        start = match.start()
        parts[-1] += text[position:start]
        position = match.end()
        if match["quoted"]:
            parts[-1] += match["quoted"]
        elif match["brace"] == "{":
            named = _SECTION.fullmatch(parts[-1])
            if name is not None or named is None:
                raise ValueError("JAAS file: expected a section's name before its brace {")
            name = named["name"]
            parts.append("")
        elif match["brace"] == "}":
            if name is None:
                raise ValueError("JAAS file: a brace } closes no section")
            sections.setdefault(name, parts[-1])
            name, parts = None, [""]
        else:
            parts[-1] += " "
    if name is not None:
        raise ValueError(f"JAAS file: the section {name} has no closing brace }}")
    return sections


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("JAAS config has an unmatched quotation mark")
        kind = match.lastgroup or ""
        found = match[kind]
        tokens.append(_Token(kind, _ESCAPE.sub(r"\1", found[1:-1]) if kind == _QUOTED else found))
        position = match.end()
    return tokens
