"""Java's own key store formats: JKS, and JCEKS, which has the same structure and stronger key protection.

Java's behavior is the only specification of these formats. All numbers are big-endian. No I/O. Only JCEKS
requires `cryptography`.
"""

import hashlib
import hmac
import struct
from typing import Final, NamedTuple

from kafka_compat.security import der

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_WHITENER: Final = b"Mighty Aphrodite"
_PRIVATE_KEY, _TRUSTED, _SECRET_KEY = 1, 2, 3
_JKS_PROTECTION: Final = "1.3.6.1.4.1.42.2.17.1.1"
_JCEKS_PROTECTION: Final = "1.3.6.1.4.1.42.2.19.1"
_DIGEST_BYTES: Final = 20
_ITERATIONS_MAX: Final = 5_000_000


class JksKey(NamedTuple):
    """An encrypted private key (an EncryptedPrivateKeyInfo) and its certificate chain, which begins with the
    key's own certificate. All are DER.
    """

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]


class JksStore(NamedTuple):
    """A JKS or JCEKS store. `trusted` contains the trusted certificates in DER."""

    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]


class WrongPassword(Exception):
    """Raised if the password is wrong, or the store was modified."""


def is_jks(data: bytes) -> bool:
    """Return whether the bytes of a file are a JKS or JCEKS store."""
    return data[:4] in (_JKS, _JCEKS)


def parse(data: bytes, password: str | None) -> JksStore:
    """Parse a store. Without a password, its integrity is not checked, as in Java for trust stores.

    Raises WrongPassword if the integrity check fails, or ValueError if the format is invalid.
    """
    if not is_jks(data) or len(data) < 12 + _DIGEST_BYTES:
        raise ValueError("it is not a complete JKS keystore")
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        found = hashlib.sha1(_utf16(password) + _WHITENER + content, usedforsecurity=False).digest()
        if not hmac.compare_digest(found, digest):
            raise WrongPassword
    try:
        return _Reader(content).store()
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"the keystore is damaged: {error}") from error


def unprotected(protected: bytes, password: str) -> bytes:
    """Decrypt a private key, and return its PKCS8 DER form. Raises WrongPassword if decryption fails, or
    ValueError if the algorithm is unknown.
    """
    algorithm, encrypted = der.sequence(protected)[:2]
    oid, *parameters = list(der.elements(algorithm.content))
    name = der.dotted(oid.content)
    if name == _JKS_PROTECTION:
        return _without_jks_protection(encrypted.content, password)
    if name == _JCEKS_PROTECTION and parameters:
        salt, iterations = der.sequence(parameters[0].whole)
        count = int.from_bytes(iterations.content)
        return _without_jceks_protection(encrypted.content, password, salt.content, count)
    raise ValueError(f"a key is protected by the unknown algorithm {name}")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def store(self) -> JksStore:
        _, self._version, count = struct.unpack(">4sii", self._take(12))
        if self._version not in (1, 2):
            raise ValueError(f"the keystore has the unknown version {self._version}")
        keys: list[JksKey] = []
        trusted: list[bytes] = []
        for _ in range(count):
            (tag,) = struct.unpack(">i", self._take(4))
            alias = self._text()
            self._take(8)  # Skip the creation time.
            if tag == _PRIVATE_KEY:
                protected = self._sized()
                (length,) = struct.unpack(">i", self._take(4))
                keys.append(JksKey(alias, protected, tuple(self._certificate() for _ in range(length))))
            elif tag == _TRUSTED:
                trusted.append(self._certificate())
            elif tag == _SECRET_KEY:
                raise ValueError(f"the entry {alias} is a secret key, which only Java can read")
            else:
                raise ValueError(f"the entry {alias} has the unknown type {tag}")
        return JksStore(tuple(keys), tuple(trusted))

    def _certificate(self) -> bytes:
        if self._version == 2:
            self._text()  # Skip the certificate type, which is X.509.
        return self._sized()

    def _text(self) -> str:
        (size_bytes,) = struct.unpack(">H", self._take(2))
        return self._take(size_bytes).decode(errors="replace")

    def _sized(self) -> bytes:
        (size_bytes,) = struct.unpack(">i", self._take(4))
        return self._take(size_bytes)

    def _take(self, size_bytes: int) -> bytes:
        end = self._offset + size_bytes
        if size_bytes < 0 or end > len(self._data):
            raise ValueError("the keystore is truncated")
        taken = self._data[self._offset : end]
        self._offset = end
        return taken


def _without_jks_protection(protected: bytes, password: str) -> bytes:
    """Decrypt a JKS key. Its key stream is a chain of SHA-1 hashes of the password, seeded with the salt."""
    salt, text, digest = (
        protected[:_DIGEST_BYTES],
        protected[_DIGEST_BYTES:-_DIGEST_BYTES],
        protected[-_DIGEST_BYTES:],
    )
    secret = _utf16(password)
    stream, block = bytearray(), salt
    while len(stream) < len(text):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(text, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), digest):
        raise WrongPassword
    return key


def _without_jceks_protection(protected: bytes, password: str, salt: bytes, iterations: int) -> bytes:
    """Decrypt a JCEKS key (PBEWithMD5AndTripleDES). Each half of the salt yields half of the cipher key."""
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC

    if len(salt) != 8 or not 1 <= iterations <= _ITERATIONS_MAX:
        raise ValueError("a key is protected in a form that Java does not use")
    halves = [salt[:4], salt[4:]]
    if halves[0] == halves[1]:
        # Reproduce a bug in Java: the code is meant to reverse the first half, but does not.
        halves[0] = bytes((salt[3], salt[0], salt[1], salt[3]))
    derived = b""
    for half in halves:
        block = half
        for _ in range(iterations):
            block = hashlib.md5(block + password.encode("utf-8"), usedforsecurity=False).digest()
        derived += block
    decryptor = Cipher(TripleDES(derived[:24]), CBC(derived[24:])).decryptor()
    padded = decryptor.update(protected) + decryptor.finalize()
    padding = padded[-1]
    if not 1 <= padding <= 8 or padded[-padding:] != bytes([padding]) * padding:
        raise WrongPassword
    return padded[:-padding]


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
