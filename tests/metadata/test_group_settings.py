"""Settings of groups: requests, storage, and the effective values that coordinators read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.config import BrokerConfig
from kafka_compat.config.synonyms import ConfigSource
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.config_manager import ConfigManager, ResourceType
from kafka_compat.metadata.dynamic_settings import DynamicSettings
from kafka_compat.metadata.feed import ConfigChange, MetadataDelta
from kafka_compat.metadata.group_configs import GroupConfigManager
from kafka_compat.metadata.incremental_changes import Change, Operation

GROUP, BROKER = ResourceType.GROUP, ResourceType.BROKER
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE, APPEND, SUBTRACT = Operation


class World:
    """A broker's config manager and group settings, with a real store."""

    def __init__(self, session: EmbeddedSession) -> None:
        self.session = session
        self.config = BrokerConfig({})
        metadata = MetadataCache("cluster", 1)
        self.manager = ConfigManager(DynamicSettings(self.config, session, metadata))
        self.groups = GroupConfigManager(self.config, session, metadata.feed)
        self.changes: list[ConfigChange] = []
        metadata.feed.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        self.changes += delta.config_changes

    async def change(
        self,
        group_id: str,
        key: str,
        operation: int,
        value: str | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        changes = [Change(key, operation, value)]
        await self.manager.alter_incrementally(GROUP, group_id, changes, validate_only)

    def restarted(self) -> GroupConfigManager:
        return GroupConfigManager(self.config, self.session, MetadataCache("cluster", 1).feed)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = EmbeddedMetadataStore(str(tmp_path / "journal"))
    yield World(store.connect())
    await store.close()


@pytest.mark.parametrize("group_id", ["g", "a/b", "..", ".", "ü%2F ~", "<default>", "x" * 249])
async def test_a_groups_settings_are_stored_described_listed_and_deleted(world: World, group_id: str) -> None:
    await world.change(group_id, SESSION, SET, "50000")
    assert world.groups.consumer(group_id).session_timeout_ms == 50_000
    assert world.groups.consumer("other").session_timeout_ms == 45_000
    (entry,) = await world.manager.describe(GROUP, group_id, [SESSION])
    assert (entry.value, entry.source, entry.read_only) == ("50000", ConfigSource.GROUP, False)
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        (SESSION, "50000", ConfigSource.GROUP),
        (f"group.{SESSION}", "45000", ConfigSource.DEFAULT),
    ]
    assert await world.manager.group_resources() == [group_id]
    after_restart = world.restarted()
    await after_restart.read_all()
    assert after_restart.overrides(group_id) == {SESSION: "50000"}
    await world.change(group_id, SESSION, DELETE)
    assert world.groups.consumer(group_id).session_timeout_ms == 45_000
    assert await world.manager.group_resources() == []
    assert [change.group for change in world.changes] == [group_id, group_id]
    assert all(change.is_local for change in world.changes)


async def test_a_group_without_settings_has_the_brokers_defaults(world: World) -> None:
    entries = await world.manager.describe(GROUP, "g", None)
    values = {entry.name: (entry.value, entry.source) for entry in entries}
    assert {source for _, source in values.values()} == {ConfigSource.DEFAULT}
    assert values["share.auto.offset.reset"] == ("latest", ConfigSource.DEFAULT)
    assert values["errors.deadletterqueue.topic.name"] == ("", ConfigSource.DEFAULT)
    assert {name: value for name, value in values.items() if name.startswith("consumer.")} == {
        SESSION: ("45000", ConfigSource.DEFAULT),
        HEARTBEAT: ("5000", ConfigSource.DEFAULT),
        "consumer.assignment.interval.ms": ("1000", ConfigSource.DEFAULT),
    }
    await world.change("g", SESSION, DELETE)
    assert world.changes == []


async def test_alter_configs_replaces_all_settings_of_a_group(world: World) -> None:
    await world.change("g", SESSION, SET, "50000")
    await world.manager.alter(GROUP, "g", [(HEARTBEAT, "6000")], False)
    assert world.groups.overrides("g") == {HEARTBEAT: "6000"}
    await world.manager.alter(GROUP, "g", [], False)
    assert world.groups.overrides("g") == {}


async def test_validate_only_requests_do_not_change_a_group(world: World) -> None:
    await world.change("g", SESSION, SET, "50000", validate_only=True)
    with pytest.raises(KafkaError, match="must be in the range"):
        await world.change("g", SESSION, SET, "1", validate_only=True)
    assert world.changes == []
    assert await world.manager.group_resources() == []


@pytest.mark.parametrize(
    ("group_id", "change", "code", "message"),
    [
        ("g", Change(SESSION, SET, "40000"), 40, f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        ("g", Change("nope", SET, "1"), 40, "Unknown group config name: nope"),
        ("g", Change("streams.session.timeout.ms", SET, "50000"), 40, "Unknown group config name: streams"),
        ("g", Change(SESSION, SET, None), 42, "Null value not supported for"),
        (
            "g",
            Change(SESSION, APPEND, "1"),
            40,
            f"Can't APPEND to key {SESSION} because its type is not LIST.",
        ),
        ("g", Change("nope", SUBTRACT, "1"), 40, "Can't SUBTRACT to key nope because"),
        ("", Change(SESSION, SET, "50000"), 42, "Default group resources are not allowed."),
    ],
)
async def test_invalid_changes_of_a_group_are_rejected(
    world: World, group_id: str, change: Change, code: int, message: str
) -> None:
    with pytest.raises(KafkaError) as failed:
        await world.change(group_id, *change)
    assert failed.value.code == code
    assert failed.value.message.startswith(message)
    assert world.changes == []


async def test_the_empty_name_cannot_be_described(world: World) -> None:
    with pytest.raises(KafkaError, match="Group name must not be empty") as failed:
        await world.manager.describe(GROUP, "", None)
    assert failed.value.code == ErrorCode.INVALID_REQUEST


async def test_a_dynamic_broker_setting_applies_to_groups_without_their_own(world: World) -> None:
    await world.change("g", "consumer.assignment.interval.ms", SET, "7")
    assert world.groups.consumer("other").assignment_interval_ms == 1000
    changes = [Change("group.consumer.assignment.interval.ms", SET, "3")]
    await world.manager.alter_incrementally(BROKER, "", changes, False)
    assert world.groups.consumer("other").assignment_interval_ms == 3
    assert world.groups.consumer("g").assignment_interval_ms == 7
    with pytest.raises(KafkaError) as failed:
        await world.manager.alter_incrementally(BROKER, "", [Change(f"group.{SESSION}", SET, "46000")], False)
    assert failed.value.code == ErrorCode.INVALID_REQUEST


async def test_a_malformed_node_keeps_the_groups_previous_settings(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.change("g", SESSION, SET, "50000")
    await world.session.set(znodes.config_path("groups", "g"), b"{")
    await world.groups.reread("g")
    assert world.groups.consumer("g").session_timeout_ms == 50_000
    assert "the group keeps its previous settings" in caplog.text
    await world.session.set(znodes.config_path("groups", "g"), znodes.encode_config({SESSION: "46000"}))
    await world.groups.reread("g")
    assert world.groups.consumer("g").session_timeout_ms == 46_000
    assert not world.changes[-1].is_local
