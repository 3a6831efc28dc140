"""Distinguished names of certificate subjects in Java's format: `X500Principal.getName()`, RFC 2253. No I/O.

Principals are derived from these names. ACLs written for Kafka match only if every character is the same.
"""

from typing import Final

from kafka_compat.security import der

_VERSION: Final = 0xA0
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""Tags of UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString: UTF-8 in Java."""

_ESCAPED: Final = str.maketrans({**{char: f"\\{char}" for char in ',=+<>#;"\\'}, "\0": "\\00"})


def subject(certificate: bytes) -> bytes:
    """Return the subject name in a DER certificate, as DER. Raises ValueError if it is invalid."""
    fields = der.sequence(der.sequence(certificate)[0].whole)
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    # The first five fields are serialNumber, signature, issuer, validity and subject.
    if len(fields) < 5:
        raise ValueError("DER: not a certificate")
    return fields[4].whole


def rfc2253(name: bytes) -> str:
    """Format a DER name as KEYWORD=value parts, in reverse order. Raises ValueError if it is invalid."""
    parts = reversed(der.sequence(name))
    return ",".join("+".join(_attribute(item) for item in der.elements(part.content)) for part in parts)


def _attribute(attribute: der.Element) -> str:
    oid, value = list(der.elements(attribute.content))
    dotted = der.dotted(oid.content)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or dotted}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(_decoded(value.content))}"


def _decoded(content: bytes) -> str:
    """Decode UTF-8 as in Java: each invalid byte, such as Latin-1 in a T61String, becomes U+FFFD."""
    text, left = "", memoryview(content)
    while True:
        try:
            return text + str(left, "utf-8")
        except UnicodeDecodeError as error:
            start, end = error.start, error.end
        if left[start] == 0xED and start + 1 < len(left) and 0xA0 <= left[start + 1] < 0xC0:
            # Treat an encoded surrogate as one invalid character, as Java does.
            end = start + (3 if start + 2 < len(left) and 0x80 <= left[start + 2] < 0xC0 else 2)
        text += str(left[:start], "utf-8") + "\ufffd"
        left = left[end:]


def _escaped(value: str) -> str:
    text = value.translate(_ESCAPED)
    # Escape leading and trailing carriage returns as well as spaces, as Java does.
    inner = text.strip(" \r")
    start = len(text) - len(text.lstrip(" \r"))
    if not inner:
        return "".join(f"\\{char}" for char in text)
    lead, trail = text[:start], text[start + len(inner) :]
    return "".join((*(f"\\{char}" for char in lead), inner, *(f"\\{char}" for char in trail)))
