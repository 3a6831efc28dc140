"""Parsing of settings, and the messages about invalid ones."""

from pathlib import Path

import pytest

from kafka_compat.config import (
    BrokerConfig,
    ConfigError,
    ConfigFileError,
    ConflictingTopicConfig,
    UnknownTopicConfig,
    broker_keys,
    check_topic_config,
    load,
    log_config,
    topic_keys,
)
from kafka_compat.config.keys import dynamic_only_keys


def test_by_default_a_broker_listens_on_the_loopback_interface() -> None:
    config = load()
    assert [(x.name, x.host, x.port) for x in config.listeners] == [("PLAINTEXT", "127.0.0.1", 9092)]
    assert config.broker_id == 1
    assert config.advertised_listeners == {}
    assert config.bool("auto.create.topics.enable") is True
    assert config.internal_replication_factor("offsets.topic.replication.factor", brokers=1) == 1
    assert config.internal_replication_factor("offsets.topic.replication.factor", brokers=5) == 3


def test_the_default_data_directory_is_the_users_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kafka_compat.config.own_settings import default_log_dir

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert default_log_dir() == str(tmp_path / ".local/share/kafka-compat/logs")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_log_dir() == str(tmp_path / "data/kafka-compat/logs")


def test_every_default_is_valid() -> None:
    for key in [*broker_keys().values(), *topic_keys().values()]:
        if key.default not in (None, ""):
            assert key.default is not None
            assert key.show(key.parse(key.default)) == key.default, key.name


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("num.partitions=abc", "Invalid value abc for configuration num.partitions: Not a number of type"),
        (
            "num.partitions=0",
            "num.partitions: Value must be at least 1 (expected a whole number of at least 1",
        ),
        ("num.partitions=3000000000", "Not a number of type INT"),
        ("log.cleaner.min.cleanable.ratio=1.5", "Value must be no more than 1"),
        ("auto.create.topics.enable=yes", "Expected value to be either true or false"),
        ("log.cleanup.policy=compact,shred", "Invalid value shred for configuration log.cleanup.policy"),
        ("compression.type=rar", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level=0", "expected a whole number from 1 to 9, or -1"),
        ("inter.broker.protocol.version=next", "a version such as 3.9-IV0"),
        ("listeners=PLAINTEXT:/127.0.0.1", "for example PLAINTEXT://127.0.0.1:9092"),
        ("listeners=", "At least one listener is needed"),
        ("listeners=PLAINTEXT://:70000", "70000 is not a port"),
        ("listeners=OUTSIDE://:9092", "name its protocol in listener.security.protocol.map"),
        ("listeners=PLAINTEXT://a:1,PLAINTEXT://a:2", "must have a different name"),
        ("listener.security.protocol.map=A:TLS", "A:TLS does not name a security protocol"),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "clients cannot connect to"),
        ("advertised.listeners=SSL://me:9092", "SSL is not among the listeners"),
        ("inter.broker.listener.name=INSIDE", "expected one of PLAINTEXT"),
        ("broker.id=-2", "expected a whole number from 0 to 1000"),
        ("broker.id=1001", "expected a whole number from 0 to 1000"),
        ("log.dirs=,", "At least one log directory"),
        ("log.retention.ms=0", "must be unlimited (-1)"),
        ("log.roll.ms=0", "log.roll.ms"),
        ("max.connections.per.ip.overrides=hostA", "hostA is not HOST:LIMIT"),
    ],
)
def test_an_invalid_value_is_reported_with_the_valid_values(setting: str, sentence: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        load(overrides=[setting])
    assert sentence in str(caught.value)
    assert setting.partition("=")[0] in str(caught.value)


def test_a_null_character_in_a_value_is_an_error() -> None:
    """No file name can have one."""
    with pytest.raises(ConfigError, match=r"for configuration log\.dirs: A value cannot contain the null"):
        BrokerConfig({"log.dirs": "/tmp/\0x"})


def test_an_error_names_the_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("broker.id=3\n\nlog.segment.bytes = \\\n  many\n")
    with pytest.raises(ConfigFileError, match=r"server\.properties, line 3: Invalid value many"):
        load([str(path)])
    with pytest.raises(ConfigFileError, match=r"cannot read .*missing.properties: No such file"):
        load([str(tmp_path / "missing.properties")])
    with pytest.raises(ConfigFileError, match="expected name=value"):
        load(overrides=["num.partitions"])


def test_errors_never_contain_secrets() -> None:
    with pytest.raises(ConfigError) as caught:
        raise broker_keys()["ssl.keystore.password"].refuse("hunter2", "too short")
    assert "hunter2" not in str(caught.value)


def test_the_command_line_overrides_the_environment_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=2\nlog.segment.bytes=1000\nbroker.rack=a\n")
    environment = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_BROKER_RACK": "b", "KAFKA_HEAP_OPTS": "-Xmx1G"}
    config = load([str(path)], ["num.partitions=4"], environment)
    assert config.int("num.partitions") == 4
    assert config.str("broker.rack") == "b"
    assert config.int("log.segment.bytes") == 1000
    assert config.unknown == ()
    assert load([str(path)]).str("broker.rack") == "a", "the environment is read only on request"


def test_environment_variables_are_mapped_as_in_the_docker_images() -> None:
    config = load(
        environment={
            "KAFKA_CFG_LOG_RETENTION_HOURS": "5",
            "KAFKA_LOG_RETENTION_HOURS": "6",
            "KAFKA_KAFKA_COMPAT_RECORD_VALIDATION_ENABLE": "false",
            "KAFKA_ODD___NAME__X": "1",
            "KAFKA_CREATE_TOPICS": "orders:3:1,users:1:1:compact",
            "KAFKA_LOG4J_LOGGERS": "x=DEBUG",
            "PATH": "/bin",
        }
    )
    assert config.int("log.retention.hours") == 5
    assert config.bool("kafka.compat.record.validation.enable") is False
    assert config.unknown == ("odd-name_x",)
    topics = [tuple(topic) for topic in config.create_topics]
    assert topics == [("orders", 3, 1, None), ("users", 1, 1, "compact")]
    with pytest.raises(ConfigFileError, match="'orders:x'"):
        load(environment={"KAFKA_CREATE_TOPICS": "orders:x"})


def test_the_settings_of_a_quorum_are_ignored_with_zookeeper() -> None:
    config = BrokerConfig.from_properties(
        {
            "zookeeper.connect": "localhost:2181",
            "process.roles": "broker,controller",
            "node.id": "7",
            "controller.quorum.voters": "7@localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
    )
    assert config.broker_id == 7
    assert config.quorum is None
    assert [listener.name for listener in config.listeners] == ["PLAINTEXT"]
    assert set(config.ignored_kraft) == {
        "process.roles",
        "controller.quorum.voters",
        "controller.listener.names",
    }


def test_listeners_for_clients_inside_and_outside_a_container_are_parsed() -> None:
    config = BrokerConfig.from_properties(
        {
            "listeners": "INSIDE://0.0.0.0:9092,OUTSIDE://[::1]:9094",
            "listener.security.protocol.map": "inside:plaintext, OUTSIDE:PLAINTEXT",
            "advertised.listeners": "INSIDE://broker:9092,OUTSIDE://localhost:9094",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    assert [(x.name, x.host, x.port) for x in config.listeners] == [
        ("INSIDE", "0.0.0.0", 9092),
        ("OUTSIDE", "::1", 9094),
    ]
    assert config.advertised_listeners == {"INSIDE": ("broker", 9092), "OUTSIDE": ("localhost", 9094)}
    assert config.inter_broker_listener == "INSIDE"


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "5"}, 5),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_the_retention_setting_with_the_finest_unit_applies(
    settings: dict[str, str], retention_ms: int
) -> None:
    assert log_config(BrokerConfig(settings), {}).retention_ms == retention_ms


def test_a_topic_inherits_unset_settings_from_the_broker() -> None:
    config = BrokerConfig(
        {"log.roll.hours": "2", "message.max.bytes": "77", "log.cleanup.policy": "compact,delete"}
    )
    topic = log_config(config, {"max.message.bytes": "99", "min.cleanable.dirty.ratio": "0.25"})
    assert topic.segment_ms == 7_200_000
    assert topic.max_message_bytes == 99
    assert topic.cleanup_policy == {"compact", "delete"}
    assert topic.min_cleanable_dirty_ratio == 0.25
    assert topic.flush_ms == 2**63 - 1


@pytest.mark.parametrize(
    ("overrides", "level"),
    [
        ({}, None),
        ({"compression.gzip.level": "9"}, None),
        ({"compression.type": "gzip"}, 4),
        ({"compression.type": "gzip", "compression.gzip.level": "9"}, 9),
        ({"compression.type": "zstd"}, 3),
        ({"compression.type": "lz4", "compression.lz4.level": "17"}, 17),
        ({"compression.type": "snappy", "compression.gzip.level": "9"}, None),
        ({"compression.type": "uncompressed"}, None),
    ],
)
def test_the_compression_level_is_that_of_the_topics_codec(
    overrides: dict[str, str], level: int | None
) -> None:
    config = BrokerConfig({"compression.gzip.level": "4"})
    assert log_config(config, overrides).compression_level == level


def test_flush_ms_falls_back_to_the_schedulers_interval() -> None:
    assert log_config(BrokerConfig({"log.flush.scheduler.interval.ms": "500"}), {}).flush_ms == 500
    both = {"log.flush.scheduler.interval.ms": "500", "log.flush.interval.ms": "20"}
    assert log_config(BrokerConfig(both), {}).flush_ms == 20


def test_unset_timestamp_limits_fall_back_to_the_deprecated_setting() -> None:
    topic = log_config(
        BrokerConfig({}), {"message.timestamp.difference.max.ms": "50", "message.timestamp.after.max.ms": "9"}
    )
    assert (topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms) == (50, 9)


def test_invalid_topic_settings_are_rejected() -> None:
    config = BrokerConfig({})
    with pytest.raises(UnknownTopicConfig, match=r"Unknown topic config name: retention\.days"):
        check_topic_config(config, {"retention.days": "1"})
    with pytest.raises(ConfigError, match=r"-2 for configuration retention\.ms: Value must be at least -1"):
        check_topic_config(config, {"retention.ms": "-2"})
    with pytest.raises(ConflictingTopicConfig, match=r"min\.compaction\.lag\.ms"):
        check_topic_config(config, {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"})
    with pytest.raises(ConfigError, match="partitionId"):
        check_topic_config(config, {"leader.replication.throttled.replicas": "1-2"})
    check_topic_config(config, {"leader.replication.throttled.replicas": "0:1,1:2", "retention.ms": " 5 "})


def test_dynamic_settings_override_static_settings_in_other_units_until_removed() -> None:
    config = BrokerConfig({"log.retention.ms": "5"})
    changed = config.set_dynamic(
        {"log.retention.hours": "1", "num.io.threads": "9"}, {"num.io.threads": "10"}
    )
    assert changed == {"log.retention.ms", "log.retention.hours", "num.io.threads"}
    assert log_config(config, {}).retention_ms == 3_600_000
    assert config.int("num.io.threads") == 10
    with pytest.raises(ConfigError):
        config.set_dynamic({"num.io.threads": "none"}, {})
    assert config.int("num.io.threads") == 10
    assert config.set_dynamic({}, {}) >= {"log.retention.ms", "num.io.threads"}
    assert log_config(config, {}).retention_ms == 5


def test_unknown_settings_are_collected_for_a_warning() -> None:
    config = BrokerConfig({"num.partition": "3", "listener.name.internal.ssl.keystore.location": "/x"})
    assert config.unknown == ("num.partition",)


def test_kafkas_dynamic_only_settings_are_accepted_in_a_file() -> None:
    for name in dynamic_only_keys():
        config = BrokerConfig({name: "1000"})
        assert (config.unknown, config.without_effect, config.int(name)) == ((), [], 1000)
    typo = "leader.replication.throttled.rat"
    assert BrokerConfig({typo: "1"}).unknown_with_guess(typo) == f"{typo} (did you mean {typo}e?)"
