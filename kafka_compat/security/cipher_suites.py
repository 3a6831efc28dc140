"""Mapping between Java's names of cipher suites (the names in the RFCs) and OpenSSL's names."""

import re
import ssl
from collections.abc import Sequence
from functools import cache
from typing import Final

NO_RENEGOTIATION: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""A signaling value rather than a suite. OpenSSL always sends it, and Java lists it as a suite."""

_JAVA_NAME: Final = re.compile(r"(?:TLS|SSL)_(?P<exchange>\w+?)_WITH_(?P<cipher>\w+?)(?:_(?P<hash>SHA\d*))?")
_CIPHERS: Final = (
    ("3DES_EDE_CBC", "DES-CBC3"),
    ("CHACHA20_POLY1305", "CHACHA20-POLY1305"),
    ("_128_CBC", "128"),
    ("_256_CBC", "256"),
    ("_128", "128"),
    ("_256", "256"),
    ("_CCM_8", "_CCM8"),
)


def openssl_name(suite: str) -> str | None:
    """Return OpenSSL's name for a cipher suite, given its Java or OpenSSL name. Return None if OpenSSL does
    not know the suite, or if the suite lacks encryption or authentication. The names of TLS 1.3 suites begin
    with TLS_, and are the same in Java and OpenSSL.
    """
    for name in (suite, _translated(suite)):
        if name in _known():
            return name
    return None


def openssl_names(suites: Sequence[str]) -> tuple[str, ...]:
    """Return OpenSSL's names for the suites in a setting, without duplicates. Raises ValueError, with Kafka's
    message, if a name is invalid.
    """
    found: list[str] = []
    for suite in suites:
        if suite == NO_RENEGOTIATION:
            continue
        name = openssl_name(suite)
        if name is None:
            raise ValueError(f"Unsupported CipherSuite: {suite}")
        found.append(name)
    return tuple(dict.fromkeys(found))


def is_tls13(name: str) -> bool:
    """Return whether a suite (by OpenSSL's name) belongs to TLS 1.3, whose suites are selected separately."""
    return name.startswith("TLS_")


def _translated(suite: str) -> str:
    match = _JAVA_NAME.fullmatch(suite)
    if match is None:
        return suite
    cipher = match["cipher"]
    for java, openssl in _CIPHERS:
        cipher = cipher.replace(java, openssl)
    # OpenSSL omits RSA key exchange from all names, and the hash from the names of ChaCha20 suites.
    parts = [] if match["exchange"] == "RSA" else [match["exchange"]]
    parts.append(cipher)
    if match["hash"] and "CHACHA20" not in cipher:
        parts.append(match["hash"])
    return "-".join(parts).replace("_", "-")


@cache
def _known() -> frozenset[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:COMPLEMENTOFALL:!aNULL:!eNULL:!PSK:!SRP:@SECLEVEL=0")
    return frozenset(cipher["name"] for cipher in context.get_ciphers())
