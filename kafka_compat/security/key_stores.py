"""Key stores and trust stores in Kafka's formats: PEM, PKCS12, and Java's JKS and JCEKS.

Except for PEM, the content rather than the setting determines the format, as in Java, whose keytool writes
PKCS12 for any file name. This module is imported only if a listener uses TLS.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from kafka_compat.security import der, jks, pem
from kafka_compat.security.tls_settings import KeyStoreSettings, TlsSettings, TrustStoreSettings

PrivateKey: TypeAlias = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | dsa.DSAPrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)


class StoreError(Exception):
    """Raised for an unusable store, with the faulty setting (`ssl.X`) and a `reason` without secrets."""

    def __init__(self, setting: str, reason: str, expected: str = "") -> None:
        super().__init__(reason)
        self.setting = setting
        self.reason = reason
        self.expected = expected


class KeyEntry(NamedTuple):
    """A private key and its certificate chain, which begins with the key's certificate."""

    alias: str
    key: PrivateKey
    chain: tuple[x509.Certificate, ...]

    def pem(self) -> bytes:
        """Return the unencrypted key and the certificates as one PEM text."""
        parts = [self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
        return b"".join(parts + [certificate.public_bytes(Encoding.PEM) for certificate in self.chain])


class Stores(NamedTuple):
    """The keys and trusted certificates for one side of a connection. If `keys` is empty, no certificate is
    presented. If `trusted` is None, the system's authorities are trusted.
    """

    keys: tuple[KeyEntry, ...]
    trusted: tuple[x509.Certificate, ...] | None


def load_stores(settings: TlsSettings) -> Stores:
    """Load the key store and the trust store from their files. Raises StoreError if either is unusable."""
    return Stores(
        () if settings.key_store is None else load_key_store(settings.key_store),
        None if settings.trust_store is None else load_trust_store(settings.trust_store),
    )


def load_key_store(settings: KeyStoreSettings) -> tuple[KeyEntry, ...]:
    """Return the private keys in a store. Raises StoreError if it is unusable or contains no key."""
    if settings.key is not None:
        entry = _pem_entry(
            str(settings.key),
            settings.certificate_chain or "",
            settings,
            "ssl.keystore.key",
            "ssl.keystore.certificate.chain",
        )
        return (_checked(entry, "ssl.keystore.certificate.chain"),)
    where = "ssl.keystore.location"
    data = _read(where, cast(str, settings.location))
    _check_type(where, "ssl.keystore.type", settings.type, data)
    if settings.type == "PEM":
        text = _text(where, data)
        return (_checked(_pem_entry(text, text, settings, where, where), where),)
    entries = _jks_entries(data, settings) if jks.is_jks(data) else _pkcs12_entries(data, settings)
    if not entries:
        raise StoreError(
            where,
            "the keystore has no private key",
            "expected a keystore with an entry of type PrivateKeyEntry",
        )
    return tuple(_checked(entry, where) for entry in entries)


def load_trust_store(settings: TrustStoreSettings) -> tuple[x509.Certificate, ...]:
    """Return the certificates that a store trusts. Raises StoreError if it is unusable or has none.

    As in Java, an entry with a private key trusts the certificate of the key, but not those of its issuers.
    """
    if settings.certificates is not None:
        return _pem_certificates("ssl.truststore.certificates", settings.certificates)
    where = "ssl.truststore.location"
    data = _read(where, cast(str, settings.location))
    _check_type(where, "ssl.truststore.type", settings.type, data)
    if settings.type == "PEM":
        return _pem_certificates(where, _text(where, data))
    password = None if settings.password is None else str(settings.password)
    if jks.is_jks(data):
        store = _jks(where, "ssl.truststore.password", data, password)
        found = [*store.trusted, *(entry.chain[0] for entry in store.keys if entry.chain)]
        trusted = [_certificate(where, item) for item in found]
    else:
        content = _pkcs12(where, "ssl.truststore.password", data, password)
        own = content.cert.certificate if content.cert else None
        others = [item.certificate for item in content.additional_certs]
        signers = _chain(own, others) if own else ()
        trusted = [item for item in ([own] if own else []) + others if item is own or item not in signers]
    if not trusted:
        raise StoreError(where, "the truststore has no certificate")
    return tuple(trusted)


def _read(setting: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise StoreError(setting, f"the file cannot be read: {error.strerror or error}") from error


def _check_type(where: str, setting: str, given: str, data: bytes) -> None:
    """Raise StoreError if the configured type is PEM and the file is binary, or vice versa."""
    binary = data[:1] == b"\x30" or jks.is_jks(data)
    if given == "PEM" and binary:
        kind = "JKS" if jks.is_jks(data) else "PKCS12"
        raise StoreError(where, "the file is not PEM", f"for this file set {setting}={kind}")
    if given != "PEM" and not binary:
        if pem.is_pem(data):
            raise StoreError(where, f"the file is PEM, not a {given} store", f"set {setting}=PEM")
        raise StoreError(where, "the file is not a keystore", "expected JKS, PKCS12, JCEKS or PEM")


def _text(setting: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StoreError(setting, "the file is not text, so it is not PEM") from error


# -- PEM


def _pem_entry(
    key_text: str, chain_text: str, settings: KeyStoreSettings, where: str, chain: str
) -> KeyEntry:
    keys = [block for block in _blocks(where, key_text) if block.is_private_key]
    if len(keys) != 1:
        problem = f"Expected one private key, but found {len(keys)}" if keys else "Private key not provided"
        raise StoreError(where, problem, "expected PEM with one BEGIN PRIVATE KEY block")
    password = None if settings.key_password is None else settings.key_password.encode()
    try:
        key = load_pem_private_key(keys[0].text(), password)
    except TypeError as error:
        # Either no password is set for an encrypted key, or a password is set for an unencrypted key.
        if password is None:
            raise StoreError(where, "the private key is encrypted", "set ssl.key.password") from error
        raise StoreError(
            "ssl.key.password", "the private key is not encrypted", "remove ssl.key.password"
        ) from error
    except ValueError as error:
        if password is not None:
            raise _wrong_password("ssl.key.password", "the private key cannot be decrypted") from error
        raise StoreError(where, "the private key cannot be read", "expected a key in PKCS8") from error
    return KeyEntry("kafka", cast(PrivateKey, key), _pem_certificates(chain, chain_text))


def _pem_certificates(where: str, text: str) -> tuple[x509.Certificate, ...]:
    found = tuple(
        _certificate(where, block.content) for block in _blocks(where, text) if block.is_certificate
    )
    if not found:
        raise StoreError(
            where,
            "At least one certificate expected, but none found",
            "expected PEM with BEGIN CERTIFICATE blocks",
        )
    return found


def _blocks(where: str, text: str) -> list[pem.Block]:
    try:
        return pem.blocks(text)
    except ValueError as error:
        raise StoreError(where, str(error)) from error


# -- JKS


def _jks_entries(data: bytes, settings: KeyStoreSettings) -> list[KeyEntry]:
    where, password = "ssl.keystore.location", str(settings.password)
    store = _jks(where, "ssl.keystore.password", data, password)
    asked = "ssl.keystore.password" if settings.key_password is None else "ssl.key.password"
    key_password = password if settings.key_password is None else str(settings.key_password)
    entries = []
    for item in store.keys:
        try:
            key = load_der_private_key(jks.unprotected(item.protected, key_password), None)
        except jks.WrongPassword:
            raise _wrong_password(asked, f"the private key {item.alias} cannot be decrypted") from None
        except ValueError as error:
            raise StoreError(where, f"the private key {item.alias} cannot be read: {error}") from error
        chain = tuple(_certificate(where, certificate) for certificate in item.chain)
        entries.append(KeyEntry(item.alias, cast(PrivateKey, key), chain))
    return entries


def _jks(where: str, asked: str, data: bytes, password: str | None) -> jks.JksStore:
    try:
        return jks.parse(data, password)
    except jks.WrongPassword:
        raise _wrong_password(asked, "Keystore was tampered with, or password was incorrect") from None
    except ValueError as error:
        raise StoreError(where, str(error)) from error


# -- PKCS12


def _pkcs12_entries(data: bytes, settings: KeyStoreSettings) -> list[KeyEntry]:
    if settings.key_password is not None and settings.key_password != settings.password:
        raise StoreError(
            "ssl.key.password",
            "it differs from the keystore password, but a PKCS12 keystore has only one password",
            "remove ssl.key.password",
        )
    where = "ssl.keystore.location"
    store = _pkcs12(where, "ssl.keystore.password", data, str(settings.password))
    if store.key is None:
        return []
    if store.cert is None:
        raise StoreError(where, "the private key has no certificate")
    own = store.cert.certificate
    alias = (store.cert.friendly_name or b"").decode(errors="replace")
    chain = (own, *_chain(own, [item.certificate for item in store.additional_certs]))
    return [KeyEntry(alias, cast(PrivateKey, store.key), chain)]


def _pkcs12(where: str, asked: str, data: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if not _is_pkcs12(data):
            raise StoreError(where, "the file is not a complete PKCS12 store") from error
        problem = "Keystore was tampered with, or password was incorrect"
        if password is None:
            raise StoreError(asked, "a PKCS12 store requires a password") from error
        raise _wrong_password(asked, problem) from error
    except Exception as error:  # Catch all errors, such as unsupported encryption.
        raise StoreError(where, f"the PKCS12 store cannot be read: {error}") from error


def _is_pkcs12(data: bytes) -> bool:
    try:
        version = der.sequence(data)[0]
    except ValueError:
        return False
    return version.tag == der.INTEGER and version.content == b"\x03"


def _chain(own: x509.Certificate, others: Sequence[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Return `own`, its issuer, and so on, up to a self-signed certificate or one whose issuer is missing."""
    chain: list[x509.Certificate] = []
    last, left = own, list(others)
    while last.issuer != last.subject:
        signer = next((item for item in left if item.subject == last.issuer), None)
        if signer is None:
            break
        chain.append(signer)
        left.remove(signer)
        last = signer
    return tuple(chain)


# -- all formats


def _certificate(where: str, content: bytes) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(der.first(content).whole)
    except ValueError as error:
        raise StoreError(where, f"a certificate cannot be read: {error}") from error


def _checked(entry: KeyEntry, where: str) -> KeyEntry:
    """Return `entry`. Raises StoreError if its certificates do not match its key."""
    if not entry.chain:
        raise StoreError(where, f"the private key {entry.alias} has no certificate")
    if _public_bytes(entry.chain[0].public_key()) != _public_bytes(entry.key.public_key()):
        expected = "expected the key's certificate first"
        raise StoreError(where, "the first certificate does not belong to the private key", expected)
    for certificate, signer in zip(entry.chain, entry.chain[1:], strict=False):
        if certificate.issuer != signer.subject:
            raise StoreError(
                where,
                "Certificate chain is not valid",
                "expected the key's certificate first, each followed by its issuer's",
            )
    return entry


def _public_bytes(key: object) -> bytes:
    return cast(rsa.RSAPublicKey, key).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _wrong_password(setting: str, problem: str) -> StoreError:
    return StoreError(setting, problem, "expected the password that the store was created with")


def first_of_each_kind(entries: Iterable[KeyEntry]) -> list[KeyEntry]:
    """Return the first entry of each key type, so that a server can present one that the client supports."""
    kinds: dict[str, KeyEntry] = {}
    for entry in entries:
        kinds.setdefault(type(entry.key).__name__, entry)
    return list(kinds.values())
