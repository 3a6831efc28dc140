"""Security settings of ZooKeeper connections: parsing, defaults, and messages for invalid values."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.cluster.zookeeper_sessions import store_security
from kafka_compat.config import BrokerConfig, ConfigError, load
from kafka_compat.config.load import settings_from_java_options
from kafka_compat.coordination.zookeeper_store.security import OPEN, DigestLogin, access_of_others
from kafka_compat.security import jaas
from tests.support.certificates import STORE_PASSWORD, authority, java_key_store, java_trust_store
from tests.support.ports import free_port
from tests.support.secure_zookeeper import jaas_file, login, pem_store, quoted
from tests.support.servers import run_kafka_compat

JAAS = "kafka.compat.zookeeper.sasl.jaas.config"
JAAS_FILE = "kafka.compat.zookeeper.sasl.jaas.file"
SERVER_JAAS_FILE = "kafka.compat.sasl.jaas.file"
JAAS_SECTION = "kafka.compat.zookeeper.sasl.jaas.section"
JAAS_ENABLE = "kafka.compat.zookeeper.sasl.enable"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;"


def refusal(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        store_security(BrokerConfig(settings))
    assert "secret" not in refused.value.in_full
    return refused.value.in_full


# -- SASL


def test_zookeeper_security_is_disabled_by_default() -> None:
    assert store_security(BrokerConfig({})) == OPEN


def test_credentials_come_from_a_setting_or_a_section_of_the_jaas_file(tmp_path: Path) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(
        "/* of this broker's\n clients: { */\n"
        "KafkaServer { org.apache.kafka.common.security.scram.ScramLoginModule required; };\n"
        f'Client {{ // {{ not "this"\n {login("file", "a;b } //")} }};\n'
        f"Other {{ {login('other', 'x')} {KERBEROS} }};"
    )
    settings = {JAAS_FILE: str(file)}
    found = store_security(BrokerConfig(settings)).login
    assert found == DigestLogin("file", "a;b } //", f"the section Client of {file} ({JAAS_FILE})")
    found = store_security(BrokerConfig(settings | {JAAS_SECTION: "Other"})).login
    assert found is not None
    assert found.username == "other"
    found = store_security(BrokerConfig(settings | {JAAS: login("own", "y")})).login
    assert found == DigestLogin("own", "y", JAAS)
    # The file may exist for the KafkaServer section only.
    assert store_security(BrokerConfig(settings | {JAAS_SECTION: "Absent"})) == OPEN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "login module"),
        (login("kafka", "secret")[:-1], "semi-colon"),
        (KERBEROS, "only DIGEST-MD5 is"),
        ('x.DigestLoginModule required username="kafka";', "only DIGEST-MD5 is"),
    ],
)
def test_invalid_credentials_are_rejected(text: str, said: str, tmp_path: Path) -> None:
    assert said in refusal({JAAS: text})
    file = tmp_path / "jaas.conf"
    file.write_text(f"Client {{ {text} }};")
    in_full = refusal({JAAS_FILE: str(file)})
    assert said in in_full
    assert str(file) in in_full


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    assert "No such file" in refusal({JAAS_FILE: str(tmp_path / "absent")})
    file = tmp_path / "jaas.conf"
    file.write_text("Client { a required;")
    assert "Client has no closing brace" in refusal({JAAS_FILE: str(file)})


def test_credentials_are_rejected_if_the_login_is_disabled(tmp_path: Path) -> None:
    """As in Kafka, a configured but disabled login aborts startup."""
    file = jaas_file(tmp_path / "jaas.conf", "kafka", "secret")
    assert JAAS_ENABLE in refusal({JAAS_FILE: str(file), JAAS_ENABLE: "false"})


def test_protected_nodes_need_an_authenticated_owner() -> None:
    in_full = refusal({"zookeeper.set.acl": "true"})
    for setting in ("zookeeper.set.acl", JAAS, JAAS_FILE, "zookeeper.ssl.keystore.location"):
        assert setting in in_full
    assert store_security(BrokerConfig({"zookeeper.set.acl": "true", JAAS: login("a", "b")})).protects_nodes


@given(st.text(alphabet="ab{}\"'\\;/* \nü", max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_quoted_values_of_a_section_are_unchanged_after_parsing(
    username: str, password: str, other: str
) -> None:
    text = f"Other {{ {login(other, other)} }};\nClient {{ {login(username, password)} }};"
    (module,) = jaas.parse_section(text, "Client")
    assert (module.options["username"], module.options["password"]) == (username, password)


@given(st.text(alphabet="ab{}\"'\\;/* \n=", max_size=40))
def test_random_files_are_parsed_or_rejected(text: str) -> None:
    with contextlib.suppress(ValueError):
        jaas.parse_section(text, "a")


# -- KAFKA_OPTS


def test_jvm_system_properties_provide_defaults_for_settings(tmp_path: Path) -> None:
    options = (
        "-Xmx1G -Djava.security.auth.login.config='/etc/my jaas.conf' "
        "-Dzookeeper.client.secure=true -Dother=1 "
        "-Dzookeeper.ssl.keyStore.location=/k -Dzookeeper.ssl.hostnameVerification=false"
    )
    assert settings_from_java_options(options) == {
        JAAS_FILE: "/etc/my jaas.conf",
        SERVER_JAAS_FILE: "/etc/my jaas.conf",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": "/k",
        "zookeeper.ssl.endpoint.identification.algorithm": "",
    }
    assert settings_from_java_options("-Djava.security.auth.login.config=/a '") == {
        JAAS_FILE: "/a",
        SERVER_JAAS_FILE: "/a",
    }
    environment = {"KAFKA_OPTS": options, "KAFKA_ZOOKEEPER_SSL_KEYSTORE_LOCATION": "/variable"}
    config = load(overrides=["zookeeper.ssl.client.enable=false"], environment=environment)
    assert config.str(JAAS_FILE) == "/etc/my jaas.conf"
    assert config.str("zookeeper.ssl.keystore.location") == "/variable"
    assert not config.bool("zookeeper.ssl.client.enable")
    assert load(environment=None).str(JAAS_FILE) is None


# -- TLS


def _tls(**changed: str) -> dict[str, str]:
    settings = {f"zookeeper.ssl.{name.replace('_', '.')}": value for name, value in changed.items()}
    return {"zookeeper.ssl.client.enable": "true"} | settings


def test_stores_of_every_type_are_read(tmp_path: Path) -> None:
    identity = authority().issue("kafka")
    trusted = java_trust_store(tmp_path / "trusted.jks", [authority().certificate], "JKS")
    pem = pem_store(tmp_path / "keys.pem", identity)
    encrypted = tmp_path / "encrypted.pem"
    encrypted.write_text(identity.key_pem("secret") + identity.chain_pem())
    for location, kind, password in (
        (java_key_store(tmp_path / "keys.p12", identity), "", STORE_PASSWORD),
        (java_key_store(tmp_path / "keys.jks", identity, "JKS"), "JKS", STORE_PASSWORD),
        (pem, "", ""),
        (pem, "PEM", ""),
        (encrypted, "PEM", "secret"),
    ):
        settings = _tls(
            truststore_location=str(trusted),
            truststore_password=STORE_PASSWORD,
            keystore_location=str(location),
        )
        if password:
            settings["zookeeper.ssl.keystore.password"] = password
        if kind:
            settings["zookeeper.ssl.keystore.type"] = kind
        security = store_security(BrokerConfig(settings | {"zookeeper.set.acl": "true"}))
        assert security.tls is not None
        assert security.protects_nodes
        settings["zookeeper.ssl.keystore.password"] = "not the secret"
        if password:
            assert "zookeeper.ssl.keystore.password" in refusal_of_password(settings)


def refusal_of_password(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        store_security(BrokerConfig(settings))
    assert "not the secret" not in refused.value.in_full
    return refused.value.in_full


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"keystore_location": "/absent"}, "zookeeper.ssl.keystore.location"),
        ({"truststore_location": "/absent"}, "zookeeper.ssl.truststore.location"),
        ({"truststore_location": "/absent", "truststore_type": "BCFKS"}, "zookeeper.ssl.truststore.type"),
        ({"endpoint_identification_algorithm": "HTTP"}, "zookeeper.ssl.endpoint.identification.algorithm"),
        ({"protocol": "TLSv1.1"}, "zookeeper.ssl.protocol"),
        ({"enabled_protocols": "TLSv1.2,SSL"}, "zookeeper.ssl.enabled.protocols"),
        ({"cipher_suites": "TLS_NULL"}, "zookeeper.ssl.cipher.suites"),
        ({"crl_enable": "true"}, "zookeeper.ssl.crl.enable"),
        ({"ocsp_enable": "true"}, "zookeeper.ssl.ocsp.enable"),
    ],
)
def test_invalid_tls_settings_are_rejected(changed: dict[str, str], said: str) -> None:
    assert said in refusal(_tls(**changed))
    assert store_security(BrokerConfig(_tls(**changed) | {"zookeeper.ssl.client.enable": "false"})) == OPEN


def test_a_socket_class_without_tls_is_rejected_if_tls_is_enabled() -> None:
    name, package = "zookeeper.clientCnxnSocket", "org.apache.zookeeper"
    in_full = refusal(_tls() | {name: f"{package}.ClientCnxnSocketNIO"})
    assert name in in_full
    assert f"{package}.ClientCnxnSocketNetty" in in_full


# -- the ACLs, and the command line


@pytest.mark.parametrize(
    ("path", "world"),
    [
        ("/", (True, False)),
        ("/controller", (True, False)),
        ("/consumers", (True, True)),
        ("/consumers/g/offsets/t/0", (True, False)),
        ("/config/topics/t", (True, False)),
        ("/config/users", (False, False)),
        ("/config/users/alice/clients/app", (False, False)),
        ("/config/brokers/1", (False, False)),
        ("/delegation_token", (True, False)),
        ("/delegation_token/tokens/id", (False, False)),
        ("/brokers/ids/1", (True, False)),
    ],
)
def test_public_access_to_a_node_follows_kafkas_rules_for_its_path(
    path: str, world: tuple[bool, bool]
) -> None:
    """The rules of kafka.zk.ZkData. tests/security/test_zookeeper_acls.py compares them with Apache Kafka."""
    assert access_of_others(path) == world


def test_a_startup_error_is_reported_in_one_line(tmp_path: Path) -> None:
    stranger = run_kafka_compat(
        "serve",
        "--port=0",
        f"--override=log.dirs={tmp_path}",
        f"--override=zookeeper.connect=127.0.0.1:{free_port()}",
        f"--override={JAAS}=x.DigestLoginModule required username={quoted('kafka')};",
    )
    assert stranger.returncode == 2
    assert JAAS in stranger.stderr
    assert "Traceback" not in stranger.stderr
