"""Key stores and trust stores contain the same keys and certificates for this broker as for Kafka's
DefaultSslEngineFactory, or both reject the settings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.security.distinguished_names import rfc2253, subject
from kafka_compat.security.tls_context import TlsContext
from kafka_compat.security.tls_settings import TlsSettings
from tests.oracle.ssl_oracle import Refused, SslOracle
from tests.support.certificates import STORE_PASSWORD, Authority, authority, java_key_store, java_trust_store

KEYS, TRUST = "ssl.keystore.", "ssl.truststore."


@pytest.fixture(scope="module")
def kafka() -> Iterator[SslOracle]:
    with SslOracle("3.9.1") as oracle:
        yield oracle


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a store of each type, with the same identity and the same authorities."""
    path = tmp_path_factory.mktemp("stores")
    identity = Authority("Between", signed_by=authority()).issue("the broker", with_root=True)
    trusted = [authority().certificate, Authority("Another").certificate]
    for kind in ("PKCS12", "JKS", "JCEKS"):
        java_key_store(path / f"keys.{kind}", identity, kind)
        java_trust_store(path / f"trust.{kind}", trusted, kind)
    java_key_store(path / "own-password.JKS", identity, "JKS", key_password="key-secret")
    (path / "key").write_text(identity.key_pem())
    # Kafka on Java 17 reads this legacy encryption, but not PBES2. This broker reads both.
    encrypted = subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-passout", "pass:key-secret"],
        input=identity.key_pem(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (path / "key-encrypted").write_text(encrypted)
    # Kafka finds only the last certificate if several are on one line, so this chain has only one.
    alone = authority().issue("alone")
    (path / "self-key").write_text(alone.key_pem())
    (path / "self-chain").write_text(alone.chain_pem())
    (path / "chain").write_text(identity.chain_pem())
    (path / "keys.PEM").write_text(identity.key_pem() + identity.chain_pem())
    (path / "keys-encrypted.PEM").write_text(identity.chain_pem() + encrypted)
    (path / "trust.PEM").write_text("a word before\n" + authority().pem() + "between\n" + authority().pem())
    (path / "nonsense").write_text("nonsense")
    (path / "empty").touch()
    return path


CASES = {
    "nothing": "",
    **{
        f"{kind} as {said}": f"keys={kind} type={said} password=P"
        for kind in ("PKCS12", "JKS")
        for said in ("PKCS12", "JKS", "pkcs12")
    },
    "JCEKS": "keys=JCEKS type=JCEKS password=P",
    "wrong password": "keys=JKS type=JKS password=wrong",
    "wrong password of PKCS12": "keys=PKCS12 type=JKS password=wrong",
    "no password": "keys=JKS type=JKS",
    "a password and no store": "type=JKS password=P",
    "no such type": "keys=JKS type=SKJ password=P",
    "no such type and no store": "type=SKJ",
    "pem in lower case": "keys=PEM type=pem",
    "the key's own password": "keys=own type=JKS password=P key.password=key-secret",
    "the key's own password is missing": "keys=own type=JKS password=P",
    "the key's own password is wrong": "keys=own type=JKS password=P key.password=wrong",
    "PKCS12 with another password of the key": "keys=PKCS12 type=PKCS12 password=P key.password=wrong",
    "PKCS12 with the same password of the key": "keys=PKCS12 type=PKCS12 password=P key.password=P",
    "PEM": "keys=PEM type=PEM",
    "PEM as JKS": "keys=PEM type=JKS password=P",
    "JKS as PEM": "keys=JKS type=PEM",
    "PEM with a password of the store": "keys=PEM type=PEM password=P",
    "PEM with a password it does not have": "keys=PEM type=PEM key.password=P",
    "encrypted PEM": "keys=encrypted type=PEM key.password=key-secret",
    "encrypted PEM without password": "keys=encrypted type=PEM",
    "encrypted PEM with a wrong password": "keys=encrypted type=PEM key.password=wrong",
    "PEM in settings": "key=key chain=chain type=PEM",
    "PEM in settings on one line": "key=self-key/1 chain=self-chain/1 type=PEM",
    "encrypted PEM in settings": "key=key-encrypted chain=chain type=PEM key.password=key-secret",
    "no chain": "key=key type=PEM",
    "no key": "chain=chain type=PEM",
    "a key without its type": "key=key chain=chain",
    "key and store": "key=key chain=chain type=PEM keys=PEM",
    "a chain that is none": "key=key chain=nonsense type=PEM",
    "a key that is none": "key=nonsense chain=chain type=PEM",
    "no such file": "keys=missing type=PEM",
    "nonsense": "keys=nonsense type=JKS password=P",
    "nonsense as PEM": "keys=nonsense type=PEM",
    "an empty file": "keys=empty type=PKCS12 password=P",
    **{f"trust {kind}": f"trust={kind} trust.type=JKS trust.password=P" for kind in ("PKCS12", "JKS")},
    "trust JCEKS": "trust=JCEKS trust.type=JCEKS trust.password=P",
    "trust without password": "trust=JKS trust.type=JKS",
    "trust with a wrong password": "trust=JKS trust.type=JKS trust.password=wrong",
    "trust PEM": "trust=PEM trust.type=PEM",
    "trust PEM with a password": "trust=PEM trust.type=PEM trust.password=P",
    "trust in settings": "certificates=trust.PEM trust.type=PEM",
    "trust in settings on one line": "certificates=self-chain/1 trust.type=PEM",
    "trust in settings and in a file": "certificates=trust.PEM trust.type=PEM trust=PEM",
    "trust in settings without its type": "certificates=trust.PEM",
    "trust nonsense": "trust=nonsense trust.type=PEM",
    "trust a password and no store": "trust.password=P",
    "no such protocol": "protocols=TLSv1.4",
    "no such cipher suite": "suites=TLS_NONE",
}  # fmt: skip


def settings_of(case: str, folder: Path) -> dict[str, str]:
    def content(name: str) -> str:
        name, _, on_one_line = name.partition("/")
        text = (folder / name).read_text()
        return text.replace("\n", " ") if on_one_line else text

    files = {
        "own": "own-password.JKS",
        "encrypted": "keys-encrypted.PEM",
        "nonsense": "nonsense",
        "empty": "empty",
    }
    names = {
        "type": f"{KEYS}type",
        "password": f"{KEYS}password",
        "key.password": "ssl.key.password",
        "trust.type": f"{TRUST}type",
        "trust.password": f"{TRUST}password",
        "protocols": "ssl.enabled.protocols",
        "suites": "ssl.cipher.suites",
    }
    settings = {}
    for item in case.split():
        name, _, value = item.partition("=")
        if name in ("keys", "trust"):
            file = files.get(value, f"{name}.{value}")
            settings[f"{KEYS if name == 'keys' else TRUST}location"] = str(folder / file)
        elif name in ("key", "chain", "certificates"):
            setting = {"key": f"{KEYS}key", "chain": f"{KEYS}certificate.chain"}.get(
                name, f"{TRUST}certificates"
            )
            settings[setting] = content(value)
        else:
            settings[names[name]] = STORE_PASSWORD if value == "P" else value
    return settings


def found_here(settings: dict[str, str]) -> str:
    context = TlsContext(TlsSettings.of(BrokerConfig(settings), Listener("A", "", 0, "SSL")))
    keys, trusted = context.stores
    told_keys = {
        f"key of {rfc2253(subject(entry.chain[0].public_bytes(Encoding.DER)))} {len(entry.chain)}"
        for entry in keys
    }
    told_trusted = {f"trusts {rfc2253(subject(item.public_bytes(Encoding.DER)))} 1" for item in trusted or ()}
    return ";".join("|".join(sorted(told)) or "none" for told in (told_keys, told_trusted))


@pytest.mark.parametrize("case", CASES)
def test_every_store_is_read_as_in_kafka(kafka: SslOracle, folder: Path, case: str) -> None:
    settings = settings_of(CASES[case], folder)
    try:
        expected = kafka.configured(settings)
    except Refused as refused:
        with pytest.raises(ConfigError) as caught:
            found_here(settings)
        told, kafkas = f"{caught.value} {caught.value.expected}", str(refused)
        assert STORE_PASSWORD not in told
        assert "wrong" not in told.replace("is wrong", "")
        if "specified" in kafkas and "<" not in kafkas:
            assert kafkas.rstrip(".") in told, "the message differs from Kafka's"
    else:
        assert found_here(settings) == expected
