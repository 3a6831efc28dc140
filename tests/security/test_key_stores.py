"""Key stores and trust stores of keytool and openssl are read, in every type, or rejected with the reason."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.security import jks, tls_settings
from kafka_compat.security.key_stores import (
    KeyEntry,
    StoreError,
    first_of_each_kind,
    load_key_store,
    load_trust_store,
)
from kafka_compat.security.tls_context import TlsContext
from kafka_compat.security.tls_settings import Secret
from tests.support.certificates import (
    STORE_PASSWORD,
    Authority,
    Identity,
    authority,
    java_key_store,
    java_trust_store,
    keytool,
    pem,
)

JAVA_TYPES = ("PKCS12", "JKS", "JCEKS")


def key_store(
    path: Path | None = None,
    kind: str = "JKS",
    password: str | None = STORE_PASSWORD,
    key_password: str | None = None,
    key: str | None = None,
    chain: str | None = None,
) -> tuple[KeyEntry, ...]:
    return load_key_store(
        tls_settings.KeyStoreSettings(
            kind,
            None if path is None else str(path),
            None if password is None else Secret(password),
            None if key_password is None else Secret(key_password),
            None if key is None else Secret(key),
            chain,
        )
    )


def trusted(path: Path, kind: str = "JKS", password: str | None = STORE_PASSWORD) -> set[bytes]:
    found = load_trust_store(
        tls_settings.TrustStoreSettings(kind, str(path), None if password is None else Secret(password), None)
    )
    return {item.public_bytes(Encoding.DER) for item in found}


def der(*authorities: Authority) -> set[bytes]:
    return {item.certificate.public_bytes(Encoding.DER) for item in authorities}


def assert_holds(entries: tuple[KeyEntry, ...], identity: Identity) -> None:
    (entry,) = entries
    assert entry.key.private_numbers() == identity.key.private_numbers()  # type: ignore[union-attr]
    assert entry.chain == identity.chain


def chained() -> Identity:
    """An identity issued by an intermediate authority, whose chain includes the root certificate."""
    return Authority("Between", signed_by=authority()).issue(with_root=True)


@pytest.fixture(scope="module")
def identity() -> Identity:
    return chained()


# -- Java's stores


@pytest.mark.parametrize("kind", JAVA_TYPES)
@pytest.mark.parametrize("said", ["JKS", "PKCS12"])
def test_the_type_of_a_key_store_is_detected(
    kind: str, said: str, identity: Identity, tmp_path: Path
) -> None:
    path = java_key_store(tmp_path / "store.jks", identity, kind)
    assert_holds(key_store(path, said), identity)


@pytest.mark.parametrize("kind", ["JKS", "JCEKS"])
def test_a_key_can_have_its_own_password(kind: str, identity: Identity, tmp_path: Path) -> None:
    path = java_key_store(tmp_path / "store.jks", identity, kind, key_password="key-secret")
    assert_holds(key_store(path, key_password="key-secret"), identity)
    for wrong in (None, "another"):
        with pytest.raises(StoreError, match="the private key broker cannot be decrypted") as caught:
            key_store(path, key_password=wrong)
        assert caught.value.setting == ("ssl.key.password" if wrong else "ssl.keystore.password")


@pytest.mark.parametrize("kind", JAVA_TYPES)
def test_a_wrong_store_password_is_reported(kind: str, identity: Identity, tmp_path: Path) -> None:
    path = java_key_store(tmp_path / "store.jks", identity, kind)
    with pytest.raises(StoreError, match="tampered with, or password was incorrect") as caught:
        key_store(path, password="another")
    assert caught.value.setting == "ssl.keystore.password"
    assert "another" not in str(caught.value)


@pytest.mark.parametrize("kind", JAVA_TYPES)
def test_a_trust_store_created_by_keytool_is_read(kind: str, tmp_path: Path) -> None:
    one, two = Authority("Ein Äußerer"), Authority("Two")
    path = java_trust_store(tmp_path / "trust.jks", [one.certificate, two.certificate], kind)
    assert trusted(path) == der(one, two)
    with pytest.raises(StoreError, match="password was incorrect") as caught:
        trusted(path, password="another")
    assert caught.value.setting == "ssl.truststore.password"


@pytest.mark.parametrize("kind", ["JKS", "JCEKS"])
def test_a_trust_store_can_be_read_without_its_password(kind: str, tmp_path: Path) -> None:
    path = java_trust_store(tmp_path / "trust.jks", [authority().certificate], kind)
    assert trusted(path, password=None) == der(authority())


def test_a_pkcs12_trust_store_requires_its_password(tmp_path: Path) -> None:
    path = java_trust_store(tmp_path / "trust.jks", [authority().certificate])
    with pytest.raises(StoreError, match="requires a password") as caught:
        trusted(path, password=None)
    assert caught.value.setting == "ssl.truststore.password"


@pytest.mark.parametrize("kind", JAVA_TYPES)
def test_the_certificate_of_a_key_entry_is_trusted_but_its_issuer_is_not(
    kind: str, identity: Identity, tmp_path: Path
) -> None:
    path = java_key_store(tmp_path / "store.jks", identity, kind)
    assert trusted(path) == {identity.der()}


@pytest.mark.parametrize("kind", JAVA_TYPES)
def test_a_key_store_without_a_private_key_is_rejected(kind: str, tmp_path: Path) -> None:
    path = java_trust_store(tmp_path / "trust.jks", [authority().certificate], kind)
    with pytest.raises(StoreError, match="no private key"):
        key_store(path)


def test_pkcs12_stores_from_old_java_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "old.p12"
    keytool(
        *("-J-Dkeystore.pkcs12.legacy", "-genkeypair", "-alias", "a", "-keyalg", "RSA"),
        *("-keystore", str(path), "-storepass", STORE_PASSWORD, "-dname", "CN=old"),
    )
    (entry,) = key_store(path)
    assert entry.chain[0].subject.rfc4514_string() == "CN=old"


def test_the_first_key_of_each_algorithm_is_used(tmp_path: Path) -> None:
    path = tmp_path / "both.jks"
    for alias, algorithm in (("a", "RSA"), ("b", "EC"), ("c", "RSA")):
        keytool(
            *("-genkeypair", "-alias", alias, "-keyalg", algorithm, "-keystore", str(path)),
            *("-storetype", "JKS", "-storepass", STORE_PASSWORD, "-keypass", STORE_PASSWORD),
            *("-dname", f"CN={alias}"),
        )
    shown = first_of_each_kind(key_store(path))
    assert sorted(entry.alias for entry in shown) in (["a", "b"], ["b", "c"])


def test_a_pkcs12_store_created_by_openssl_is_read(identity: Identity, tmp_path: Path) -> None:
    pair, path = tmp_path / "pair.pem", tmp_path / "store.p12"
    pair.write_text(identity.key_pem() + identity.chain_pem())
    command = ["openssl", "pkcs12", "-export", "-in", str(pair), "-out", str(path)]
    command += ["-passout", f"pass:{STORE_PASSWORD}"]
    for more in ([], ["-legacy"], ["-certpbe", "NONE"]):
        subprocess.run([*command, *more], check=True, capture_output=True)
        assert_holds(key_store(path, "PKCS12"), identity)


def test_a_pkcs12_store_has_a_single_password(identity: Identity, tmp_path: Path) -> None:
    path = java_key_store(tmp_path / "store.p12", identity)
    assert_holds(key_store(path, key_password=STORE_PASSWORD), identity)
    with pytest.raises(StoreError, match="only one password") as caught:
        key_store(path, key_password="another")
    assert caught.value.setting == "ssl.key.password"


@given(data=st.data())
def test_a_damaged_java_store_is_rejected(data: st.DataObject) -> None:
    content = bytearray(_small_jks())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    try:
        # Only the digest reveals every modified byte, and its verification needs the password.
        store = jks.parse(bytes(content[:cut]), None)
        for key in store.keys:
            jks.unprotected(key.protected, STORE_PASSWORD)
    except (ValueError, jks.WrongPassword):
        pass
    if bytes(content[:cut]) != _small_jks():
        with pytest.raises((ValueError, jks.WrongPassword)):
            jks.parse(bytes(content[:cut]), STORE_PASSWORD)


# -- PEM


@pytest.mark.parametrize("password", [None, "key-secret"])
def test_a_pem_file_can_contain_key_and_certificates_in_any_order(
    password: str | None, identity: Identity, tmp_path: Path
) -> None:
    path = tmp_path / "keys.pem"
    for text in (
        identity.key_pem(password) + identity.chain_pem(),
        identity.chain_pem() + "\nBag Attributes: none - at all\n" + identity.key_pem(password),
        (identity.key_pem(password) + identity.chain_pem()).replace("\n", "\r\n").rstrip(),
    ):
        path.write_text(text, newline="")
        assert_holds(key_store(path, "PEM", None, password), identity)


@pytest.mark.parametrize("password", [None, "key-secret"])
def test_pem_content_can_be_a_setting_on_one_line(password: str | None, identity: Identity) -> None:
    key, chain = identity.key_pem(password), identity.chain_pem()
    for given_key, given_chain in ((key, chain), (key.replace("\n", " "), chain.replace("\n", " "))):
        entries = key_store(None, "PEM", None, password, given_key, given_chain)
        assert_holds(entries, identity)


def test_a_key_encrypted_by_openssl_is_read(identity: Identity, tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.pem", tmp_path / "keys.pem"
    plain.write_text(identity.key_pem())
    command = ["openssl", "pkcs8", "-topk8", "-in", str(plain), "-passout", "pass:key-secret"]
    for cipher in (["-v2", "aes256"], ["-v1", "PBE-SHA1-3DES"]):
        ran = subprocess.run([*command, *cipher], check=True, capture_output=True, text=True)
        path.write_text(ran.stdout + identity.chain_pem())
        assert_holds(key_store(path, "PEM", None, "key-secret"), identity)


@pytest.mark.parametrize(
    ("protected", "password", "setting", "problem"),
    [
        (True, None, "ssl.keystore.location", "the private key is encrypted"),
        (True, "another", "ssl.key.password", "cannot be decrypted"),
        (False, "another", "ssl.key.password", "not encrypted"),
    ],
)
def test_a_pem_key_needs_a_password_only_if_it_is_encrypted(
    protected: bool, password: str | None, setting: str, problem: str, identity: Identity, tmp_path: Path
) -> None:
    path = tmp_path / "keys.pem"
    path.write_text(identity.key_pem("key-secret" if protected else None) + identity.chain_pem())
    with pytest.raises(StoreError, match=problem) as caught:
        key_store(path, "PEM", None, password)
    assert caught.value.setting == setting


def test_pem_trust_stores_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trust.pem"
    path.write_text("# ours\n" + authority().pem() + Authority("Two").pem())
    assert der(authority()) < trusted(path, "PEM", None)
    openssl = subprocess.run(
        ["openssl", "x509", "-trustout", "-addtrust", "serverAuth"],
        input=authority().pem().encode(),
        check=True,
        capture_output=True,
    )
    path.write_bytes(openssl.stdout)
    assert b"BEGIN TRUSTED" in openssl.stdout
    assert trusted(path, "PEM", None) == der(authority())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "not a keystore|not provided"),
        ("nonsense", "not a keystore|not provided"),
        ("{key}", "At least one certificate expected"),
        ("{chain}", "Private key not provided"),
        ("{key}{key}{chain}", "Expected one private key, but found 2"),
        ("{key}{other}", "does not belong to the private key"),
        ("{key}{backwards}", "does not belong to the private key"),
        ("{key}{chain}{other}", "Certificate chain is not valid"),
        ("{key}-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n", "not base64"),
        ("{key}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate cannot be read"),
        (
            "{chain}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "private key cannot be read",
        ),
    ],
)
def test_an_invalid_pem_file_is_reported_with_the_reason(
    content: str, problem: str, identity: Identity, tmp_path: Path
) -> None:
    path = tmp_path / "keys.pem"
    path.write_text(
        content.format(
            key=identity.key_pem(),
            chain=identity.chain_pem(),
            backwards=pem(identity.chain[::-1]),
            other=Authority("Other").pem(),
        )
    )
    with pytest.raises(StoreError, match=problem):
        key_store(path, "PEM", None)


# -- files and settings


@pytest.mark.parametrize(
    ("kind", "content", "problem", "expected"),
    [
        ("JKS", b"-----BEGIN CERTIFICATE-----", "is PEM, not a JKS store", "set ssl.keystore.type=PEM"),
        ("PEM", b"\xfe\xed\xfe\xed....", "not PEM", "set ssl.keystore.type=JKS"),
        ("PEM", b"\x30\x82\x01\x01....", "not PEM", "set ssl.keystore.type=PKCS12"),
        ("PKCS12", b"nonsense", "not a keystore", "JKS, PKCS12, JCEKS or PEM"),
        ("PKCS12", b"\x30\x03\x02\x01\x01", "not a complete PKCS12 store", ""),
        ("JKS", b"\xfe\xed\xfe\xed", "not a complete JKS keystore", ""),
    ],
)
def test_a_key_store_that_is_invalid_or_of_the_wrong_type_is_reported(
    kind: str, content: bytes, problem: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=problem) as caught:
        key_store(path, kind, None if kind == "PEM" else STORE_PASSWORD)
    assert expected in caught.value.expected


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        key_store(tmp_path / "missing.jks")
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        key_store(tmp_path)


def test_errors_name_the_listeners_setting_and_the_file_but_no_secret(
    identity: Identity, tmp_path: Path
) -> None:
    path = java_key_store(tmp_path / "store.jks", identity)
    config = BrokerConfig(
        {
            "listener.name.inside.ssl.keystore.location": str(path),
            "listener.name.inside.ssl.keystore.password": "very-secret",
        }
    )
    with pytest.raises(ConfigError) as caught:
        TlsContext(tls_settings.TlsSettings.of(config, Listener("INSIDE", "", 0, "SSL")))
    assert caught.value.name == "listener.name.inside.ssl.keystore.password"
    assert str(path) in str(caught.value)
    assert "very-secret" not in str(caught.value) + caught.value.expected


@cache
def _small_jks() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return java_key_store(Path(folder) / "store.jks", authority().issue(), "JKS").read_bytes()
