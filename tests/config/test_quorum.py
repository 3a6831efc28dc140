"""Settings of the nodes of a quorum: what they mean, and Kafka's messages for invalid ones."""

from __future__ import annotations

import socket

import pytest

from kafka_compat.config import BrokerConfig, ConfigError, ConfigFileError, load
from kafka_compat.config.listeners import Listener
from kafka_compat.config.synonyms import broker_entry_names
from tests.config.quorum_cases import BROKER, CASES, COMBINED, CONTROLLER, Case
from tests.config.stock_files import STOCK_FILES
from tests.support import campaign

CALLED = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def quorum(base: dict[str, str | None], **changes: str) -> BrokerConfig:
    """Return the configuration with these settings, whose names have underscores instead of dots."""
    named = {name.replace("_", "."): value for name, value in changes.items()}
    return BrokerConfig(Case("", base, {**named}, None).settings)


@CALLED
def test_invalid_combinations_get_kafkas_message(case: Case) -> None:
    if case.message is None:
        assert BrokerConfig(case.settings).quorum is not None
    else:
        with pytest.raises(ConfigError) as caught:
            BrokerConfig(case.settings)
        assert str(caught.value) == case.message


def test_a_combined_node_has_the_listeners_of_both_roles() -> None:
    config = quorum(
        COMBINED,
        controller_quorum_voters="1@kafka-1:9093,2@kafka-2:9093,3@[::1]:19093",
        controller_quorum_fetch_timeout_ms="500",
    )
    found = config.quorum
    assert found is not None
    assert (found.node_id, found.roles) == (1, ("broker", "controller"))
    assert found.voters == {1: ("kafka-1", 9093), 2: ("kafka-2", 9093), 3: ("::1", 19093)}
    assert [item.name for item in config.listeners] == ["PLAINTEXT"]
    assert found.listeners == (Listener("CONTROLLER", "", 9093, "PLAINTEXT"),)
    assert (found.listener_name, found.security_protocol) == ("CONTROLLER", "PLAINTEXT")
    assert (found.fetch_timeout_ms, found.election_timeout_ms) == (500, 1000)
    assert found.metadata_log_dir == "/tmp/kafka-logs"
    assert config.ignored_kraft == ()
    assert config.without_effect == []
    assert found.sole_address is None


def test_a_controller_has_no_listeners_for_clients() -> None:
    config = quorum(CONTROLLER, metadata_log_dir="/data/metadata")
    assert config.quorum is not None
    assert config.listeners == ()
    assert config.quorum.roles == ("controller",)
    assert config.quorum.metadata_log_dir == "/data/metadata"
    assert config.quorum.sole_address is not None


def test_a_broker_connects_to_the_first_controller_listener() -> None:
    config = quorum(
        BROKER,
        controller_listener_names="SECURE,CONTROLLER",
        listener_security_protocol_map="SECURE:SASL_SSL,CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        sasl_mechanism_controller_protocol="SCRAM-SHA-512",
    )
    found = config.quorum
    assert found is not None
    assert found.listeners == ()
    assert (found.listener_name, found.security_protocol) == ("SECURE", "SASL_SSL")
    assert found.sasl_mechanism == "SCRAM-SHA-512"
    assert found.sole_address is None


def test_a_quorum_with_dynamic_voters_is_found_through_bootstrap_servers() -> None:
    found = BrokerConfig(STOCK_FILES["4.4"]).quorum
    assert found is not None
    assert not found.is_static
    assert found.sole_address is not None
    assert found._replace(bootstrap_servers=(("kafka-1", 9093),)).sole_address is None
    assert found._replace(bootstrap_servers=(("localhost", 19093),)).sole_address is None
    assert found.bootstrap_servers == (("localhost", 9093),)
    assert found.advertised == {"CONTROLLER": ("localhost", 9093)}


def test_only_controllers_whose_voters_are_in_the_log_join_them_by_themselves() -> None:
    join = {"controller_quorum_auto_join_enable": "true"}
    servers = {"controller_quorum_voters": "", "controller_quorum_bootstrap_servers": "kafka-1:9093"}
    for changes, expected in ((join, False), (join | servers, True), (servers, False)):
        found = quorum(CONTROLLER, **changes).quorum
        assert found is not None and found.auto_join is expected
    with pytest.raises(ConfigError, match="only supported when process"):
        quorum(BROKER, **join)


def test_only_nodes_of_a_quorum_report_whether_they_join_the_voters_by_themselves() -> None:
    name = "controller.quorum.auto.join.enable"
    assert name in broker_entry_names(quorum(COMBINED))
    assert name not in broker_entry_names(quorum(COMBINED, zookeeper_connect="localhost:2181"))


def test_a_quorum_is_ignored_if_zookeeper_is_set() -> None:
    assert quorum(COMBINED, zookeeper_connect="localhost:2181").quorum is None
    assert BrokerConfig({"broker.session.timeout.ms": "x"}).ignored_kraft == ("broker.session.timeout.ms",)


def from_environment(**variables: str) -> BrokerConfig:
    return load((), (), {f"KAFKA_{name}": value for name, value in variables.items()})


def test_a_container_with_both_roles_and_nothing_else_is_a_quorum_of_one() -> None:
    config = from_environment(PROCESS_ROLES="broker,controller", LISTENERS="PLAINTEXT://:9092")
    assert config.quorum is not None
    assert config.quorum.voters == {1: ("localhost", 9093)}
    assert config.quorum.listeners == (Listener("CONTROLLER", "", 9093, "PLAINTEXT"),)
    assert config.quorum.sole_address is not None


def test_the_controller_listener_of_a_container_has_its_voters_port() -> None:
    config = from_environment(
        PROCESS_ROLES="controller", NODE_ID="2", CONTROLLER_QUORUM_VOTERS="1@a:19093, 2@b:29093"
    )
    assert config.quorum is not None
    assert config.quorum.listeners == (Listener("CONTROLLER", "", 29093, "PLAINTEXT"),)


def test_a_broker_in_a_container_needs_voters_and_an_id() -> None:
    with pytest.raises(ConfigFileError, match="must contain the set of bootstrap controllers"):
        from_environment(PROCESS_ROLES="broker", NODE_ID="4")
    with pytest.raises(ConfigFileError, match="which is required when `process"):
        from_environment(PROCESS_ROLES="broker", CONTROLLER_QUORUM_VOTERS="1@a:9093")


@pytest.mark.parametrize("name", ["CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID"])
def test_the_cluster_id_of_a_container_is_in_its_environment(name: str) -> None:
    assert load((), (), {name: "MkU3OEVBNTcwNTJENDM2Qk"}).cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
    assert load((), (), {}).cluster_id is None


def test_a_given_port_keeps_the_controller_listener() -> None:
    overrides = [f"{name}={value}" for name, value in COMBINED.items() if value is not None]
    variables = {
        f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in COMBINED.items() if value
    }
    config = load((), (), variables, 0)
    assert [(item.host, item.port) for item in config.listeners] == [("127.0.0.1", 0)]
    assert config.quorum is not None
    assert [item.port for item in config.quorum.listeners] == [9093]
    assert load((), overrides, None, 0).listeners[0].port == 9092


@pytest.mark.skipif(not campaign.enabled(), reason="starts a JVM: --campaign")
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_kafka_accepts_and_rejects_the_same_settings(version: str) -> None:
    from tests.oracle.config_oracle import check

    for case, said in zip(CASES, check(version, [case.settings for case in CASES]), strict=True):
        expected = None if case.since > version else case.message
        if version == case.since or version == "3.9.1":
            assert said == expected, case.name
        else:
            assert (said is None) == (expected is None), (case.name, said)


def test_an_empty_advertised_host_is_the_host_name_of_the_machine() -> None:
    config = quorum(COMBINED, advertised_listeners="PLAINTEXT://:9092")
    assert config.advertised_listeners == {"PLAINTEXT": (socket.gethostname(), 9092)}
