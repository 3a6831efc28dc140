"""TLS contexts created from Kafka's ssl.* settings, and their renewal when files change."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.security.tls_context import TlsContext, check_handshake
from kafka_compat.security.tls_settings import TlsSettings
from tests.support.certificates import Authority, Identity, authority

LISTENER = Listener("INSIDE", "127.0.0.1", 0, "SSL")


def settings(values: Mapping[str, str], listener: Listener = LISTENER) -> TlsSettings:
    return TlsSettings.of(BrokerConfig(values), listener)


def in_settings(identity: Identity, *trusted: Authority) -> dict[str, str]:
    """Settings that contain the key and all certificates."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": identity.key_pem(),
        "ssl.keystore.certificate.chain": identity.chain_pem(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "".join(item.pem() for item in trusted or (authority(),)),
    }


def context(values: Mapping[str, str], *, between_brokers: bool = False) -> TlsContext:
    return TlsContext(settings(values), between_brokers=between_brokers)


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Complete a handshake, and return the server's and the client's end. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_end = server.wrap_bio(to_server, to_client, server_side=True)
    client_end = client.wrap_bio(to_client, to_server, server_hostname=host)
    waiting = [client_end, server_end]
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass
    return server_end, client_end


def test_client_and_server_contexts_can_complete_a_handshake() -> None:
    made = context({**in_settings(authority().issue()), "ssl.client.auth": "required"})
    server, client = shake_hands(made.server, made.client)
    assert server.version() == "TLSv1.3"
    shown = made.stores.keys[0].chain[0].public_bytes(Encoding.DER)
    assert client.getpeercert(True) == shown
    assert server.getpeercert(True) == shown


@pytest.mark.parametrize(("host", "found"), [("localhost", True), ("127.0.0.1", True), ("elsewhere", False)])
def test_a_client_verifies_the_host_name(host: str, found: bool) -> None:
    made = context(in_settings(authority().issue()))
    if found:
        shake_hands(made.server, made.client, host)
    else:
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            shake_hands(made.server, made.client, host)
        trusting = context({**in_settings(authority().issue()), "ssl.endpoint.identification.algorithm": ""})
        shake_hands(made.server, trusting.client, host)


def test_the_common_name_is_verified_if_there_are_no_alternative_names() -> None:
    made = context(in_settings(authority().issue("broker.example.com", hosts=())))
    shake_hands(made.server, made.client, "broker.example.com")


@pytest.mark.parametrize(
    ("client_auth", "shown", "accepted"),
    [
        ("none", "nothing", True),
        ("requested", "nothing", True),
        ("requested", "a stranger's", False),
        ("requested", "a friend's", True),
        ("required", "nothing", False),
        ("required", "a stranger's", False),
        ("required", "a friend's", True),
    ],
)
def test_clients_must_present_certificates_if_configured(
    client_auth: str, shown: str, accepted: bool
) -> None:
    server = context({**in_settings(authority().issue()), "ssl.client.auth": client_auth})
    signer = Authority("Stranger") if shown == "a stranger's" else authority()
    values = in_settings(signer.issue("somebody"), authority())
    if shown == "nothing":
        values = {name: value for name, value in values.items() if "keystore" not in name}
    client = context(values)
    if not accepted:
        with pytest.raises(ssl.SSLError):
            shake_hands(server.server, client.client)
        return
    end, _ = shake_hands(server.server, client.client)
    assert (end.getpeercert(True) is not None) == (client_auth != "none" and shown == "a friend's")


def test_any_certificate_in_a_trust_store_is_trusted() -> None:
    between = Authority("Between", signed_by=authority())
    identity = between.issue()
    assert len(identity.chain) == 2
    for trusted in (authority(), between):
        made = context(in_settings(identity, trusted))
        shake_hands(made.server, made.client)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_only_enabled_protocols_are_negotiated(version: str) -> None:
    made = context({**in_settings(authority().issue()), "ssl.enabled.protocols": version})
    both = context(in_settings(authority().issue()))
    assert shake_hands(made.server, both.client)[0].version() == version
    other = "TLSv1.3" if version == "TLSv1.2" else "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        shake_hands(
            made.server,
            context({**in_settings(authority().issue()), "ssl.enabled.protocols": other}).client,
        )


def test_sessions_are_not_resumed_in_tls_13() -> None:
    made = context(in_settings(authority().issue()))
    _, client = shake_hands(made.server, made.client)
    with pytest.raises(ssl.SSLWantReadError):
        client.read(1)
    assert client.session is None or not client.session.has_ticket


@pytest.mark.parametrize(
    ("suites", "agreed"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("ECDHE-ECDSA-AES256-GCM-SHA384,TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
        ("TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"),
    ],
)
def test_cipher_suites_are_selected_by_java_or_openssl_name(suites: str, agreed: str) -> None:
    made = context({**in_settings(authority().issue()), "ssl.cipher.suites": suites})
    server, _ = shake_hands(made.server, context(in_settings(authority().issue())).client)
    cipher = server.cipher()
    assert cipher is not None
    assert cipher[0] == agreed
    assert made.suite_refused(server) is None


def test_a_disabled_suite_is_reported_after_the_handshake() -> None:
    made = context({**in_settings(authority().issue()), "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"})
    server, _ = shake_hands(made.server, context(in_settings(authority().issue())).client)
    strict = context(
        {
            **in_settings(authority().issue()),
            "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        }
    )
    assert strict.suite_refused(server) == "TLS_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "ssl.cipher.suites: OpenSSL prefers another"),
        (
            {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384", "ssl.enabled.protocols": "TLSv1.2"},
            "has no suite for ssl.enabled.protocols",
        ),
        (
            {"ssl.cipher.suites": "ECDHE-ECDSA-AES128-GCM-SHA256", "ssl.enabled.protocols": "TLSv1.3"},
            "has no suite for ssl.enabled.protocols",
        ),
    ],
)
def test_unusable_cipher_suites_are_rejected(values: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        context({**in_settings(authority().issue()), **values})


def test_an_expired_certificate_is_logged_and_rejected_by_clients(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = context(in_settings(authority().issue(days=-3)))
    assert "CN=localhost on listener" in caplog.text and "expired on" in caplog.text
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shake_hands(made.server, made.client)
    with pytest.raises(ConfigError, match=r"can't connect to a server.*certificate has expired"):
        context(in_settings(authority().issue(days=-3)), between_brokers=True)


def test_startup_fails_if_a_broker_would_not_trust_its_own_certificate() -> None:
    with pytest.raises(ConfigError, match="listener INSIDE among themselves: unable to get local issuer"):
        context(in_settings(authority().issue(), Authority("Another")), between_brokers=True)
    context(in_settings(authority().issue()), between_brokers=True)


def test_repr_never_contains_secrets() -> None:
    made = settings({**in_settings(authority().issue()), "ssl.keystore.certificate.chain": "chain"})
    assert "PRIVATE KEY" not in repr(made)
    assert made.key_store is not None and "PRIVATE KEY" in made.key_store.key  # type: ignore[operator]


# -- certificates changed while a listener is running


class Files:
    """A key store and a trust store that tests rewrite."""

    def __init__(self, folder: Path) -> None:
        self.keys, self.trusted = folder / "keys.pem", folder / "trusted.pem"
        self._written = 0

    def write(self, identity: Identity, *trusted: Authority) -> None:
        self.keys.write_text(identity.key_pem() + identity.chain_pem())
        self.trusted.write_text("".join(item.pem() for item in trusted or (authority(),)))
        # Set a distinct time, because a file of the same size with the same time counts as unchanged.
        self._written += 1
        for path in (self.keys, self.trusted):
            os.utime(path, (self._written, self._written))

    def settings(self, **others: str) -> TlsSettings:
        return settings(
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.keys),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.trusted),
                **{name.replace("_", "."): value for name, value in others.items()},
            }
        )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_only_certificates_whose_files_changed_are_renewed(files: Files) -> None:
    files.write(authority().issue())
    old = TlsContext(files.settings())
    assert not old.changed()
    assert old.renewed(files.settings()) is old
    renewed = authority().issue()
    files.write(renewed)
    assert old.changed()
    new = old.renewed(files.settings())
    assert new is not old
    _, client = shake_hands(new.server, new.client)
    assert client.getpeercert(True) == renewed.der()
    # The old context remains usable.
    assert shake_hands(old.server, old.client)[1].getpeercert(True) != renewed.der()


def test_a_renewed_certificate_with_another_subject_or_fewer_hosts_is_rejected(files: Files) -> None:
    files.write(authority().issue("one", ["localhost", "a.example.com"]))
    old = TlsContext(files.settings())
    files.write(authority().issue("another", ["localhost", "a.example.com"]))
    with pytest.raises(ConfigError, match=r"DistinguishedName does not match.*DN=CN=one.*DN=CN=another"):
        old.renewed(files.settings())
    files.write(authority().issue("ONE", ["localhost"]))
    with pytest.raises(ConfigError, match=r"SubjectAltNames do not match.*a\.example\.com, localhost"):
        old.renewed(files.settings())
    files.write(authority().issue("One", ["localhost", "a.example.com", "b.example.com"]))
    assert old.renewed(files.settings()) is not old

    allowing = TlsContext(files.settings(ssl_allow_dn_changes="true", ssl_allow_san_changes="true"))
    files.write(authority().issue("another", ["localhost"]))
    # As in Kafka, the settings with which the listener was started apply.
    assert allowing.renewed(files.settings()) is not allowing


def test_a_broken_file_does_not_affect_the_running_listener(files: Files) -> None:
    files.write(authority().issue())
    old = TlsContext(files.settings())
    files.keys.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"keys\.pem"):
        old.renewed(files.settings())
    files.keys.unlink()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        old.renewed(files.settings())
    shake_hands(old.server, old.client)


def test_brokers_can_change_to_a_new_authority_only_if_they_trust_both_authorities(files: Files) -> None:
    following = Authority("Next")
    files.write(authority().issue())
    old = TlsContext(files.settings(), between_brokers=True)
    files.write(following.issue(), following)
    with pytest.raises(ConfigError, match="can't connect"):
        old.renewed(files.settings())
    files.write(authority().issue(), authority(), following)
    both = old.renewed(files.settings())
    files.write(following.issue(), authority(), following)
    new = both.renewed(files.settings())
    check_handshake(new, both)
