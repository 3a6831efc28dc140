"""Environment variables of Kafka's container images, and the resulting broker settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.config import BrokerConfig, ConfigFileError, load
from kafka_compat.config.environment import settings_from_environment
from kafka_compat.config.load import with_secrets

OWN = Path(__file__).parents[2] / "image" / "root" / "etc" / "kafka-compat" / "server.properties"


def configured(**environment: str) -> BrokerConfig:
    """Return the settings of a container with these variables."""
    return load([str(OWN)], (), environment)


def bound(config: BrokerConfig) -> dict[str, int]:
    return {listener.name: listener.port for listener in config.listeners}


def test_a_container_without_settings_publishes_localhost_on_the_default_port() -> None:
    config = configured()
    assert bound(config) == {"PLAINTEXT": 9092}
    assert config.advertised_listeners == {}
    assert config.published_listeners == {"PLAINTEXT": ("localhost", 9092)}


@pytest.mark.parametrize(
    "given",
    [
        {"KAFKA_LISTENERS": "PLAINTEXT://:9092"},
        {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092"},
        {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:19092"},
        {"KAFKA_LISTENERS": "IN://:9092", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "IN:PLAINTEXT"},
    ],
)
def test_listeners_of_the_user_replace_the_published_address(given: dict[str, str]) -> None:
    assert configured(**given).published_listeners == {}


def test_a_different_published_port_can_be_set() -> None:
    config = configured(KAFKA_KAFKA_COMPAT_PUBLISHED_LISTENERS="PLAINTEXT://localhost:19092")
    assert bound(config) == {"PLAINTEXT": 9092}
    assert config.published_listeners == {"PLAINTEXT": ("localhost", 19092)}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("OTHER://localhost:9092", "No security protocol defined"),
        ("SSL://localhost:9092", "SSL is not among the listeners"),
        ("PLAINTEXT://:9092", "clients cannot connect to an empty host"),
        ("PLAINTEXT://localhost:0", "clients cannot connect to port 0"),
    ],
)
def test_an_unusable_published_address_is_rejected(value: str, problem: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"kafka\.compat\.published\.listeners.*{problem}"):
        configured(KAFKA_KAFKA_COMPAT_PUBLISHED_LISTENERS=value)


def test_a_node_of_a_quorum_has_listeners_for_clients_and_controllers() -> None:
    config = configured(
        CLUSTER_ID="4L6g3nShT-eMCtK--X86sw",
        KAFKA_NODE_ID="7",
        KAFKA_PROCESS_ROLES="broker,controller",
        KAFKA_CONTROLLER_QUORUM_VOTERS="7@localhost:9094",
        KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
        KAFKA_LISTENERS="PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        KAFKA_INTER_BROKER_LISTENER_NAME="BROKER",
        KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://localhost:32768,BROKER://4c1d2e3f:9093",
    )
    assert bound(config) == {"PLAINTEXT": 9092, "BROKER": 9093}
    assert config.advertised_listeners == {"PLAINTEXT": ("localhost", 32768), "BROKER": ("4c1d2e3f", 9093)}
    assert config.broker_id == 7
    assert config.unknown == ()
    assert config.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert config.quorum is not None
    assert config.quorum.sole_address is not None
    assert [(each.name, each.port) for each in config.quorum.listeners] == [("CONTROLLER", 9094)]


def test_a_node_with_roles_alone_publishes_localhost_and_is_the_only_voter() -> None:
    config = configured(KAFKA_PROCESS_ROLES="broker,controller")
    assert config.published_listeners == {"PLAINTEXT": ("localhost", 9092)}
    assert bound(config) == {"PLAINTEXT": 9092}
    assert config.quorum is not None
    assert config.quorum.sole_address is not None


def test_a_node_that_is_only_a_controller_has_no_listeners_for_clients() -> None:
    config = configured(
        KAFKA_PROCESS_ROLES="controller",
        KAFKA_NODE_ID="1",
        KAFKA_CONTROLLER_QUORUM_VOTERS="1@a:9093,2@b:9093",
    )
    assert config.listeners == ()
    assert config.quorum is not None
    assert [(each.name, each.port) for each in config.quorum.listeners] == [("CONTROLLER", 9093)]


VOTERS = "1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"
DIALECTS = {
    "apache/kafka": {
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_NODE_ID": "2",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka-2:19092,PLAINTEXT_HOST://localhost:39092",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS,
        "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
    },
    "cp-kafka": {
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_NODE_ID": "2",
        "KAFKA_PROCESS_ROLES": "controller,broker",
        "KAFKA_LISTENERS": "INTERNAL://kafka-2:19092,CONTROLLER://kafka-2:9093,EXTERNAL://0.0.0.0:9092",
        "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka-2:19092,EXTERNAL://localhost:39092",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": VOTERS,
    },
    "bitnami/kafka": {
        "KAFKA_KRAFT_CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_CFG_NODE_ID": "2",
        "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
        "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": VOTERS,
    },
}


@pytest.mark.parametrize("image", DIALECTS)
def test_the_variables_of_each_image_form_a_quorum(image: str) -> None:
    config = configured(**DIALECTS[image])
    quorum = config.quorum
    assert quorum is not None
    assert (quorum.node_id, quorum.roles) == (2, ("broker", "controller"))
    assert quorum.voters == {number: (f"kafka-{number}", 9093) for number in (1, 2, 3)}
    assert [(each.name, each.port) for each in quorum.listeners] == [("CONTROLLER", 9093)]
    assert config.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
    assert config.unknown == ()
    assert config.ignored_kraft == ()
    assert config.without_effect == []


def test_the_settings_of_the_group_coordinator_may_have_the_values_of_kafka_4() -> None:
    config = configured(
        KAFKA_GROUP_COORDINATOR_REBALANCE_PROTOCOLS="classic,consumer,share,streams",
        KAFKA_GROUP_COORDINATOR_APPEND_LINGER_MS="-1",
    )
    assert config.without_effect == [
        "group.coordinator.rebalance.protocols",
        "group.coordinator.append.linger.ms",
    ]


@pytest.mark.parametrize("prefix", ["KAFKA_", "KAFKA_CFG_"])
def test_the_controller_listener_does_not_need_to_be_named_in_a_setting(prefix: str) -> None:
    environment = {
        "KAFKA_ENABLE_KRAFT": "yes",
        f"{prefix}PROCESS_ROLES": "controller,broker",
        f"{prefix}LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        f"{prefix}ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
    }
    config = configured(**environment)
    assert bound(config) == {"PLAINTEXT": 9092}
    assert config.unknown == ()
    assert config.quorum is not None
    assert config.quorum.voters == {1: ("localhost", 9093)}


def test_advertised_listeners_are_bound_if_no_listeners_are_given() -> None:
    config = configured(
        KAFKA_BROKER_ID="1",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://kafka:29092,PLAINTEXT_HOST://localhost:9092",
        KAFKA_INTER_BROKER_LISTENER_NAME="PLAINTEXT",
    )
    assert bound(config) == {"PLAINTEXT": 29092, "PLAINTEXT_HOST": 9092}
    assert config.advertised_listeners["PLAINTEXT_HOST"] == ("localhost", 9092)


def test_only_advertised_listeners_are_bound() -> None:
    """A container configured only for TLS must not get a plaintext listener."""
    config = configured(
        KAFKA_ADVERTISED_LISTENERS="SSL://kafka:9093", KAFKA_SECURITY_INTER_BROKER_PROTOCOL="SSL"
    )
    assert bound(config) == {"SSL": 9093}


def test_the_advertised_port_can_be_the_containers_or_the_hosts_port() -> None:
    config = configured(KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://localhost:29092")
    assert sorted(bound(config).values()) == [9092, 29092]
    assert set(config.advertised_listeners.values()) == {("localhost", 29092)}
    assert {listener.security_protocol for listener in config.listeners} == {"PLAINTEXT"}
    assert bound(configured(KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://kafka.example.com:443")) == {
        "PLAINTEXT": 9092
    }


def test_listeners_in_a_later_file_replace_advertised_listeners_in_an_earlier_file(tmp_path: Path) -> None:
    mounted = tmp_path / "server.properties"
    mounted.write_text("listeners=PLAINTEXT://:19092\n")
    config = load([str(OWN), str(mounted)], (), {})
    assert config.advertised_listeners == {}
    assert bound(config) == {"PLAINTEXT": 19092}


def test_stores_and_their_passwords_are_read_from_the_secrets_directory(tmp_path: Path) -> None:
    (tmp_path / "creds").write_text("opened\n")
    told = with_secrets(
        {"ssl.keystore.filename": "broker.jks", "ssl.keystore.credentials": "creds", "broker.id": "1"},
        str(tmp_path),
    )
    assert told == {
        "ssl.keystore.location": f"{tmp_path}/broker.jks",
        "ssl.keystore.password": "opened",
        "broker.id": "1",
    }


def test_a_missing_secret_is_reported_by_name() -> None:
    with pytest.raises(ConfigFileError, match=r"environment: cannot read /etc/kafka/secrets/nobody: No such"):
        configured(KAFKA_SSL_KEY_CREDENTIALS="nobody")


def test_a_value_of_several_lines_is_joined_as_in_a_properties_file() -> None:
    given = 'PlainLoginModule required \\\nuser_alice="a b" \\\n  user_bob="c";\n'
    found = settings_from_environment({"KAFKA_LISTENER_NAME_EXTERNAL_PLAIN_SASL_JAAS_CONFIG": given})
    joined = 'PlainLoginModule required user_alice="a b" user_bob="c";\n'
    assert found["listener.name.external.plain.sasl.jaas.config"] == joined
