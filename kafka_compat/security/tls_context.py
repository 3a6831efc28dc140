"""OpenSSL contexts of one listener, built from its settings: for its server side, and for connections to
other brokers.

TLS 1.2 is the minimum. Certificates are verified for each connection: TLS 1.3 session resumption is disabled,
so that no session outlives an expired or replaced certificate. While a listener runs, its certificates can be
replaced only as allowed by KIP-226 and KIP-978. This module is imported only if a listener uses TLS.
"""

import logging
import os
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kafka_compat.config import ConfigError
from kafka_compat.security import cipher_suites, distinguished_names
from kafka_compat.security.key_stores import KeyEntry, StoreError, Stores, first_of_each_kind, load_stores
from kafka_compat.security.tls_settings import TlsSettings

log = logging.getLogger(__name__)

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PREFERRED_TLS13: Final = "TLS_AES_256_GCM_SHA384"
_ALL_TLS13: Final = frozenset({_PREFERRED_TLS13, "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
_CLIENT_AUTH: Final = {"required": ssl.CERT_REQUIRED, "requested": ssl.CERT_OPTIONAL, "none": ssl.CERT_NONE}
_WARNED_BEFORE: Final = timedelta(days=30)


class TlsContext:
    """The keys, certificates and contexts of one listener, from its files at the time of creation.

    A context serves any number of connections. After its replacement, existing connections keep it.
    """

    def __init__(
        self, settings: TlsSettings, *, between_brokers: bool = False, of_client: bool = False
    ) -> None:
        """Read the files. With `between_brokers`, also verify that the listener can connect to itself as a
        client. With `of_client`, the settings are those of a client. Raises ConfigError if either fails.
        """
        self.settings = settings
        self._between_brokers = between_brokers
        self._of_client = of_client
        self._stamps = _stamps(settings)
        try:
            self.stores = load_stores(settings)
        except StoreError as error:
            raise _config_error(settings, error) from error
        self._warn_of_dates()
        _ = self.server
        if between_brokers:
            check_handshake(self, self)

    @cached_property
    def server(self) -> ssl.SSLContext:
        """The context for connections to the listener. Raises ConfigError if OpenSSL rejects a setting."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0
        context.verify_mode = _CLIENT_AUTH[self.settings.client_auth]
        if context.verify_mode != ssl.CERT_NONE:
            self._trust(context)
        return context

    @cached_property
    def client(self) -> ssl.SSLContext:
        """The context for connections to other brokers. Pass the dialed host as `server_hostname`. Raises
        ConfigError if OpenSSL rejects a setting.
        """
        return self.client_for(self.settings.verify_host_name)

    def client_for(self, verify_host_name: bool) -> ssl.SSLContext:
        """Return a client context. Raises ConfigError if OpenSSL rejects a setting."""
        context = self._context(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = verify_host_name
        self._trust(context)
        return context

    def suite_refused(self, connection: ssl.SSLObject) -> str | None:
        """Return the negotiated cipher suite if ssl.cipher.suites does not allow it, or None otherwise. The
        caller must close a connection whose suite is not allowed.

        Python before 3.15 cannot restrict TLS 1.3 suites, and OpenSSL negotiates the first of its suites that
        the client supports.
        """
        agreed = connection.cipher()
        if not self.settings.cipher_suites or agreed is None or agreed[0] in self.settings.cipher_suites:
            return None
        return agreed[0]

    def changed(self) -> bool:
        """Return whether a store's file has been modified or replaced since this object was created."""
        return _stamps(self.settings) != self._stamps

    def renewed(self, settings: TlsSettings) -> "TlsContext":
        """Return the context for new connections: this object if nothing has changed, or a new one with the
        stores in `settings`, read from their files. All other settings require a restart. Raises ConfigError
        if the new stores are invalid or, by Kafka's rules (KIP-226), not allowed while the listener runs.
        """
        settings = self.settings._replace(
            key_store=settings.key_store, trust_store=settings.trust_store, own=settings.own
        )
        if settings == self.settings and not self.changed():
            return self
        renewed = TlsContext(settings, between_brokers=self._between_brokers)
        check_changes(settings, self.stores, renewed.stores)
        if self._between_brokers:
            # Check both directions: old and new certificates coexist while brokers are updated one by one.
            check_handshake(self, renewed)
            check_handshake(renewed, self)
        return renewed

    def _context(self, protocol: int) -> ssl.SSLContext:
        settings = self.settings
        context = ssl.SSLContext(protocol)
        context.minimum_version = _VERSIONS[settings.protocols[0]]
        context.maximum_version = _VERSIONS[settings.protocols[-1]]
        context.options |= ssl.OP_NO_RENEGOTIATION
        # As in Java, trust every certificate in the trust store, whether or not it is self-signed.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if settings.cipher_suites:
            self._choose_suites(context)
        for entry in first_of_each_kind(self.stores.keys):
            self._load_key(context, entry)
        return context

    def _choose_suites(self, context: ssl.SSLContext) -> None:
        suites = self.settings.cipher_suites
        newest = {suite for suite in suites if cipher_suites.is_tls13(suite)}
        older = [suite for suite in suites if suite not in newest]
        lacking = "ssl.cipher.suites has no suite for ssl.enabled.protocols"
        if not newest:
            if self.settings.protocols[0] == "TLSv1.3":
                raise self._suites_error(lacking, f"expected {_PREFERRED_TLS13} among them")
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        elif newest != _ALL_TLS13 and _PREFERRED_TLS13 not in newest and "TLSv1.3" in self.settings.protocols:
            raise self._suites_error(
                "OpenSSL prefers another suite of TLS 1.3, and Python cannot change that",
                f"expected {_PREFERRED_TLS13} among them, or none of TLS 1.3",
            )
        if older:
            context.set_ciphers(":".join(older))
        elif self.settings.protocols[-1] == "TLSv1.2":
            raise self._suites_error(
                lacking, "expected a suite of TLS 1.2, such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
            )
        else:
            context.minimum_version = ssl.TLSVersion.TLSv1_3

    def _suites_error(self, reason: str, expected: str) -> ConfigError:
        return ConfigError(
            self.settings.named("ssl.cipher.suites"), ",".join(self.settings.cipher_suites), reason, expected
        )

    def _load_key(self, context: ssl.SSLContext, entry: KeyEntry) -> None:
        try:
            with _file_in_memory(entry.pem()) as path:
                context.load_cert_chain(path)
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).replace("_", " ").lower()
            raise _config_error(
                self.settings,
                StoreError(_place_of_keys(self.settings), f"OpenSSL rejects the certificates: {reason}"),
            ) from error

    def _trust(self, context: ssl.SSLContext) -> None:
        if self.stores.trusted is None:
            context.load_default_certs()
        else:
            encoded = b"".join(certificate.public_bytes(Encoding.DER) for certificate in self.stores.trusted)
            context.load_verify_locations(cadata=encoded)

    def _warn_of_dates(self) -> None:
        now = datetime.now(UTC)
        shown = [certificate for entry in self.stores.keys for certificate in entry.chain]
        trusted = [item for item in self.stores.trusted or () if item not in shown]
        if self._of_client:
            place, peers = "in the client's settings", "brokers reject it"
        else:
            place, peers = f"on listener {self.settings.listener_name}", "clients reject it"
        for certificates, useless in ((shown, peers), (trusted, "it is not trusted")):
            for certificate in dict.fromkeys(certificates):
                if problem := date_problem(certificate, now, useless):
                    log.warning(
                        "The certificate of %s %s %s",
                        certificate.subject.rfc4514_string(),
                        place,
                        problem,
                    )

    def invalid(self) -> str | None:
        """Return which certificate of the listener is not valid at this time and since when, or None."""
        now = datetime.now(UTC)
        for entry in self.stores.keys:
            for certificate in entry.chain:
                first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
                if not first <= now <= last:
                    return date_problem(certificate, now)
        return None


def check_handshake(server: TlsContext, client: TlsContext) -> None:
    """Raise ConfigError unless the client side of one context can connect to the server side of the other, as
    brokers require. Host names are not verified.
    """
    try:
        _shake_hands(server.server, client)
    except ssl.SSLError as error:
        raise ConfigError(
            client.settings.named("ssl.truststore.location"),
            None,
            "A client SSLEngine created with the provided settings can't connect to a server SSLEngine "
            "created with those settings. "
            f"Brokers use the listener {client.settings.listener_name} among themselves: "
            f"{_reason(error)}",
            "expected a trust store that trusts the certificate of the key store",
            whole=True,
        ) from error


def _shake_hands(server: ssl.SSLContext, client: TlsContext) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.client_for(False).wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                # In TLS 1.3, the client finishes before the server verifies the client's certificate.
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", None) or (error.reason or str(error)).replace("_", " ").lower()


def date_problem(certificate: x509.Certificate, now: datetime, useless: str = "") -> str | None:
    """Return when a certificate expires, if that is soon, or why its dates make it invalid, or None.
    `useless` is the consequence of an invalid certificate.
    """
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    consequence = f": {useless}" if useless else ""
    if last < now:
        return f"expired on {last:%Y-%m-%d %H:%M} UTC{consequence}"
    if first > now:
        until = f"{consequence} until then" if useless else ""
        return f"is not valid before {first:%Y-%m-%d %H:%M} UTC{until}"
    return f"expires on {last:%Y-%m-%d %H:%M} UTC" if last - now < _WARNED_BEFORE else None


def _stamps(settings: TlsSettings) -> tuple[object, ...]:
    """Return values that change when a store's file is modified or replaced."""
    stores: Sequence[str | None] = (
        settings.key_store.location if settings.key_store else None,
        settings.trust_store.location if settings.trust_store else None,
    )
    return tuple(None if path is None else _stamp(path) for path in stores)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _place_of_keys(settings: TlsSettings) -> str:
    in_file = settings.key_store is not None and settings.key_store.location is not None
    return "ssl.keystore.location" if in_file else "ssl.keystore.certificate.chain"


def _config_error(settings: TlsSettings, error: StoreError) -> ConfigError:
    """Convert an error to a ConfigError with the setting's name and the file's path, without secrets."""
    store = settings.trust_store if "truststore" in error.setting else settings.key_store
    location = store.location if store else None
    if error.setting.endswith(".location"):
        return ConfigError(settings.named(error.setting), location, error.reason, error.expected)
    what = f"{location}: " if location else ""
    return ConfigError(settings.named(error.setting), "[hidden]", f"{what}{error.reason}", error.expected)


@contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    """Yield a path from which OpenSSL can read `content` once. On Linux, the content stays in memory;
    elsewhere, it is in a file that only this user can read and that is deleted immediately.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            path = f"/proc/self/fd/{descriptor}"
            if os.path.exists(path):
                yield path
                return
        finally:
            os.close(descriptor)
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)


def check_changes(settings: TlsSettings, old: Stores, new: Stores) -> None:
    """Raise ConfigError if `new` must not replace `old`. Neither a key store nor a trust store may be added,
    and a key store must not be removed. The subjects may change only with ssl.allow.dn.changes, host names
    may be removed only with ssl.allow.san.changes, and the number of keys may change only with both.
    """
    if old.keys and not new.keys:
        what = "remove the SSL keystore from an existing listener for which a keystore was configured"
        raise _refused_change(settings, "keystore", f"Cannot {what}.")
    if new.keys and not old.keys:
        what = "add SSL keystore to an existing listener for which no keystore was configured"
        raise _refused_change(settings, "keystore", f"Cannot {what}.")
    if new.trusted is not None and old.trusted is None:
        what = "add SSL truststore to an existing listener for which no truststore was configured"
        raise _refused_change(settings, "truststore", f"Cannot {what}.")
    allow_names, allow_hosts = settings.allow_dn_changes, settings.allow_san_changes
    if len(old.keys) != len(new.keys) and not (allow_names and allow_hosts):
        raise _refused_change(
            settings,
            "keystore",
            "Keystore entries do not match, "
            f"existing store contains {len(old.keys)} entries, new store contains {len(new.keys)} entries",
        )
    for before, after in zip(old.keys, new.keys, strict=False):
        if not allow_names and _name(before).casefold() != _name(after).casefold():
            raise _refused_change(
                settings,
                "keystore",
                "Keystore DistinguishedName does not match:  "
                f"existing={{alias={before.alias}, DN={_name(before)}}}, "
                f"new={{alias={after.alias}, DN={_name(after)}}}",
                "expected the same distinguished name, or ssl.allow.dn.changes=true",
            )
        if not allow_hosts and not _hosts(after) >= _hosts(before):
            raise _refused_change(
                settings,
                "keystore",
                "Keystore SubjectAltNames do not match:  "
                f"existing={{alias={before.alias}, SAN={_listed(_hosts(before))}}}, "
                f"new={{alias={after.alias}, SAN={_listed(_hosts(after))}}}",
                "expected the same names and more, or ssl.allow.san.changes=true",
            )


def _refused_change(settings: TlsSettings, store: str, sentence: str, expected: str = "") -> ConfigError:
    name = settings.named(f"ssl.{store}.location")
    return ConfigError(
        name, None, f"org.apache.kafka.common.config.ConfigException: {sentence}", expected, whole=True
    )


def _name(entry: KeyEntry) -> str:
    return distinguished_names.rfc2253(distinguished_names.subject(entry.chain[0].public_bytes(Encoding.DER)))


def _hosts(entry: KeyEntry) -> frozenset[x509.GeneralName]:
    try:
        extension = entry.chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(extension.value)


def _listed(names: Iterable[x509.GeneralName]) -> str:
    return f"[{', '.join(sorted(str(name.value) for name in names))}]"
