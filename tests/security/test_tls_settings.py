"""The ssl.* settings of a listener: precedence, defaults, and messages for invalid values."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path

import pytest

from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.security.cipher_suites import openssl_name
from kafka_compat.security.tls_settings import TlsSettings

SSL = Listener("Inside", "127.0.0.1", 0, "SSL")
SASL_SSL = SSL._replace(security_protocol="SASL_SSL")
PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}


def settings(listener: Listener = SSL, **values: str) -> TlsSettings:
    return TlsSettings.of(BrokerConfig({name.replace("__", "."): v for name, v in values.items()}), listener)


def test_by_default_a_client_trusts_the_systems_authorities() -> None:
    found = settings()
    assert (found.key_store, found.trust_store) == (None, None)
    assert found.client_auth == "none"
    assert found.protocols == ("TLSv1.2", "TLSv1.3")
    assert found.cipher_suites == ()
    assert found.verify_host_name
    assert found.principal_mapping_rules == "DEFAULT"


def test_listener_settings_override_general_settings() -> None:
    config = BrokerConfig(
        {
            "ssl.keystore.location": "/all.jks",
            "ssl.keystore.password": "all",
            "ssl.client.auth": "required",
            "listener.name.inside.ssl.keystore.location": "/inside.jks",
            "listener.name.inside.ssl.client.auth": "requested",
            "listener.name.outside.ssl.keystore.location": "/outside.jks",
            # Kafka reads listener names only in lower case.
            "listener.name.Inside.ssl.truststore.location": "/nobody.jks",
        }
    )
    found = TlsSettings.of(config, SSL)
    assert found.key_store is not None
    assert (found.key_store.location, found.key_store.password) == ("/inside.jks", "all")
    assert found.client_auth == "requested"
    assert found.trust_store is None
    assert found.named("ssl.keystore.location") == "listener.name.inside.ssl.keystore.location"
    assert found.named("ssl.keystore.password") == "ssl.keystore.password"
    assert config.unknown == ("listener.name.Inside.ssl.truststore.location",)
    assert "did you mean listener.name.inside.ssl" in config.unknown_with_guess(config.unknown[0])
    other = TlsSettings.of(config, SSL._replace(name="OUTSIDE"))
    assert other.key_store is not None and other.key_store.location == "/outside.jks"
    assert other.client_auth == "required"


def test_listeners_with_sasl_require_certificates_only_if_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert settings(SASL_SSL, ssl__client__auth="required").client_auth == "none"
    assert "listener.name.inside.ssl.client.auth" in caplog.text
    own = settings(SASL_SSL, listener__name__inside__ssl__client__auth="required")
    assert own.client_auth == "required"


def test_insecure_protocols_stay_disabled(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert settings(ssl__enabled__protocols="TLSv1.2,TLSv1.1,TLSv1").protocols == ("TLSv1.2",)
    assert "ssl.enabled.protocols: TLSv1.1, TLSv1" in caplog.text
    assert settings(ssl__enabled__protocols="TLSv1.3, TLSv1.2").protocols == ("TLSv1.2", "TLSv1.3")
    assert settings(ssl__enabled__protocols="", ssl__protocol="TLSv1.2").protocols == ("TLSv1.2",)


def test_host_names_are_not_verified_if_verification_is_disabled() -> None:
    assert not settings(ssl__endpoint__identification__algorithm="").verify_host_name


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
            "SSL private key can be specified only for PEM, but key store type is JKS.",
        ),
        (
            {**PEM, "ssl.keystore.key": "k"},
            "private key is specified, but certificate chain is not specified",
        ),
        (
            {
                **PEM,
                "ssl.keystore.key": "k",
                "ssl.keystore.certificate.chain": "c",
                "ssl.keystore.location": "/l",
            },
            "Both SSL key store location and separate private key are specified",
        ),
        (
            {
                **PEM,
                "ssl.keystore.key": "k",
                "ssl.keystore.certificate.chain": "c",
                "ssl.keystore.password": "p",
            },
            "key store password cannot be specified with PEM format, only key password",
        ),
        (
            {**PEM, "ssl.keystore.location": "/l", "ssl.keystore.password": "p"},
            "key store password cannot be specified with PEM format, only key password",
        ),
        ({"ssl.keystore.certificate.chain": "c"}, "certificate chain is specified, but private key is not"),
        (
            {"ssl.keystore.password": "p"},
            "SSL key store is not specified, but key store password is specified",
        ),
        (
            {"ssl.keystore.location": "/l"},
            "SSL key store is specified, but key store password is not specified",
        ),
        ({"ssl.truststore.certificates": "c"}, "SSL trust store certs can be specified only for PEM"),
        (
            {**PEM, "ssl.truststore.certificates": "c", "ssl.truststore.location": "/l"},
            "Both SSL trust store location and separate trust certificates are specified",
        ),
        (
            {**PEM, "ssl.truststore.location": "/l", "ssl.truststore.password": "p"},
            "SSL trust store password cannot be specified for PEM format",
        ),
        ({"ssl.truststore.password": "p"}, "trust store is not specified, but trust store password is"),
        (
            {"ssl.truststore.location": "/l", "ssl.truststore.type": "BKS"},
            "Invalid value BKS for configuration ssl.truststore.type: BKS not found",
        ),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth: String must be one of: required, requested, none"),
        ({"ssl.enabled.protocols": "TLSv1.4"}, "Unsupported protocol TLSv1.4"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "no longer secure"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "Unsupported CipherSuite: TLS_NO_SUCH"),
        ({"ssl.cipher.suites": "TLS_DH_anon_WITH_AES_128_GCM_SHA256"}, "Unsupported CipherSuite"),
        ({"ssl.cipher.suites": "NULL-SHA256"}, "Unsupported CipherSuite"),
    ],
)
def test_invalid_settings_are_rejected_with_kafkas_messages(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TlsSettings.of(BrokerConfig(values), SSL)
    assert sentence in str(caught.value)
    assert caught.value.name in values


def test_invalid_listener_values_are_rejected_when_they_are_parsed() -> None:
    with pytest.raises(ConfigError, match=r"configuration listener\.name\.inside\.ssl\.client\.auth"):
        BrokerConfig({"listener.name.inside.ssl.client.auth": "maybe"})


def test_mechanism_settings_are_found_by_the_mechanisms_name() -> None:
    config = BrokerConfig({"listener.name.inside.scram-sha-512.sasl.jaas.config": "module"})
    assert config.unknown == ()
    of_listener = config.for_listener("INSIDE")
    assert of_listener.str("scram-sha-512.sasl.jaas.config") == "module"
    assert not of_listener.is_own("plain.sasl.jaas.config")


def test_a_changed_listener_setting_is_detected() -> None:
    config = BrokerConfig({"listener.name.inside.ssl.keystore.location": "/old"})
    name = "listener.name.inside.ssl.keystore.location"
    assert config.set_dynamic({}, {name: "/new"}) == {name}
    assert config.for_listener("inside").str("ssl.keystore.location") == "/new"
    assert config.set_dynamic({}, {}) == {name}
    assert config.for_listener("inside").str("ssl.keystore.location") == "/old"


# -- names of cipher suites


def test_every_java_suite_is_known_by_its_java_name(tmp_path: Path) -> None:
    program = tmp_path / "Suites.java"
    program.write_text(
        """public class Suites {
            public static void main(String[] none) throws Exception {
                var all = javax.net.ssl.SSLContext.getDefault().getSupportedSSLParameters().getCipherSuites();
                System.out.println(String.join(",", all));
            }
        }"""
    )
    ran = subprocess.run(["java", str(program)], check=True, capture_output=True, text=True)
    names = ran.stdout.strip().split(",")
    assert len(names) > 20
    found = settings(ssl__cipher__suites=ran.stdout.strip()).cipher_suites
    assert len(found) == len(names) - 1, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV is not a suite"


def test_suite_names_are_translated_to_openssl_names() -> None:
    command = ["openssl", "ciphers", "-stdname", "-s", "ALL:!aNULL:!ARIA:!PSK:!SRP"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(listed) > 20
    for line in listed:
        java, _, openssl = line.split()[:3]
        assert openssl_name(java) == openssl
        assert openssl_name(openssl) == openssl
