"""Settings documented as having an effect: each must be read in the sources."""

from pathlib import Path

from kafka_compat.config import broker_keys, topic_keys
from kafka_compat.config.documentation import document
from kafka_compat.config.keys import dynamic_only_keys
from kafka_compat.config.listener_config import broker_setting_has_effect
from kafka_compat.config.topic_table import SERVER_SYNONYMS

PACKAGE = Path(__file__).resolve().parents[2] / "kafka_compat"
TABLES = {"broker_table.py", "topic_table.py", "documentation.py", "own_settings.py"}

#: Settings whose names the sources compose from parts.
COMPOSED = {
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
}


def test_every_setting_with_an_effect_is_read_in_the_sources() -> None:
    source = "".join(path.read_text() for path in PACKAGE.rglob("*.py") if path.name not in TABLES)
    topics = {name for name, key in topic_keys().items() if key.effect == "works"}
    of_topics = {name for topic in topics for name in SERVER_SYNONYMS.get(topic, ())}
    brokers = {name for name, key in (broker_keys() | dynamic_only_keys()).items() if key.effect == "works"}
    for name in (brokers - of_topics | topics) - COMPOSED:
        assert f'"{name}"' in source, name


def test_every_documented_kind_of_effect_applies_to_a_setting() -> None:
    keys = [*broker_keys().values(), *dynamic_only_keys().values(), *topic_keys().values()]
    assert {key.effect for key in keys} == {"works", "listener", "stored", "unneeded"}


def test_compaction_settings_have_an_effect_and_remote_storage_settings_have_none() -> None:
    assert broker_setting_has_effect("log.cleanup.policy")
    assert broker_setting_has_effect("log.cleaner.threads")
    assert broker_setting_has_effect("log.retention.minutes")
    assert not broker_setting_has_effect("log.local.retention.ms")


def test_every_setting_is_documented() -> None:
    for name in [*broker_keys(), *topic_keys()]:
        text = document(name)
        assert text is not None
        assert "default" in text
    assert document("no.such.setting") is None
