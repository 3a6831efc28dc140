"""The controller's effects for each event, compared with the transcripts in tests/transcripts/controller.

After an intended change, set KAFKA_COMPAT_REWRITE_TRANSCRIPTS=1 to rewrite the transcripts, and review them
with `git diff`. In a transcript, the lines above the dashes are the events in the cluster; the lines below
them are the controller's effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.coordination.controller import events, request_batch
from kafka_compat.coordination.controller.context import AT_ONCE, DELETED_IDS_MAX, ControllerContext
from kafka_compat.coordination.controller.effects import Effect, SendUpdateMetadata
from kafka_compat.coordination.controller.events import Event
from kafka_compat.coordination.controller.outcomes import ControllerSettings, ElectionType, TopicPartition
from tests.coordination.controller.controller_world import World
from tests.support.transcripts import check_transcript, transcripts


@pytest.mark.parametrize("path", transcripts("controller"), ids=lambda path: path.stem)
def test_the_controller_reacts_to_events_as_each_transcript_describes(path: Path) -> None:
    check_transcript(path, Player().play)


def test_the_known_topics_are_not_copied_for_each_lookup() -> None:
    """With a copy, checking 2,000 topic names would copy 2,000 names 2,000 times."""
    world = World()
    world.start_broker(1)
    world.elect()
    known = world.controller.topics
    world.create_topic("t", {0: (1,)})
    assert "t" in known


def test_the_controller_yields_to_the_event_loop_with_very_many_partitions() -> None:
    """The broker continues to serve clients, and events that arrive meanwhile are queued."""
    world = World()
    for broker in (1, 2, 3):
        world.start_broker(broker)
    world.elect()
    partitions = 2 * AT_ONCE
    world.create_topic("t", {index: (1 + index % 3, 1 + (index + 1) % 3) for index in range(partitions)})
    world.hold_writes = True
    world.stop_broker(3)
    world.start_broker(4)
    pauses = 0
    while world.held is not None:
        pauses += not world.held.writes
        world.release(others_too=False)
    assert pauses > 0
    assert 4 in world.metadata and len(world.metadata[4]) == partitions
    for broker in (1, 2):
        told = [item.state for item in world.beliefs[broker].values()]
        assert len(told) == sum(broker in replicas for replicas in world.topics["t"].replicas.values())
        assert all(3 not in (state.leader, *state.isr) for state in told)


class Player:
    """Executes the commands of a transcript: methods of the world, or controller events."""

    def __init__(self) -> None:
        self.world = World()

    def play(self, commands: str) -> str:
        """Execute the commands, and return the controller's effects, one per line."""
        self.world.lines.clear()
        for line in commands.splitlines():
            if not line.startswith("#"):
                name, *words = line.split()
                getattr(self, "do_" + name.replace("-", "_"))(*words)
        return "\n".join(self.world.lines)

    def do_settings(self, *words: str) -> None:
        values = dict(word.split("=") for word in words)
        self.world = World(
            ControllerSettings(
                delete_topic_enable=values.get("delete", "true") == "true",
                leader_imbalance_per_broker_percentage=int(values.get("imbalance", "10")),
            )
        )

    def do_brokers(self, *ids: str) -> None:
        for broker in ids:
            self.world.start_broker(int(broker))

    def do_elected(self) -> None:
        self.world.elect()

    def do_resigned(self) -> None:
        self.world.send(events.Resigned())

    def do_up(self, broker: str) -> None:
        self.world.start_broker(int(broker))

    def do_down(self, broker: str) -> None:
        self.world.stop_broker(int(broker))

    def do_topic(self, name: str, *partitions: str) -> None:
        self.world.create_topic(name, {int(index): ids for index, ids in map(_pair, partitions)})

    def do_partitions(self, name: str, *partitions: str) -> None:
        self.world.add_partitions(name, {int(index): ids for index, ids in map(_pair, partitions)})

    def do_unclean(self, topic: str) -> None:
        self.world.unclean[topic] = True
        self.world.send(events.UncleanConfigChanged(False, self.world.unclean))

    def do_delete(self, topic: str) -> None:
        self.world.delete_topic(topic)

    def do_stopped(self, broker: str, error: str = "0") -> None:
        self.world.answer_stops(int(broker), error=int(error))

    def do_isr(self, partition: str, isr: str, *wrong: str) -> None:
        values = {name: int(value) for name, value in (word.split("=") for word in wrong)}
        self.world.propose_isr(_partition(partition), _ids(isr), **values)

    def do_meddle(self, partition: str, isr: str) -> None:
        self.world.meddle(_partition(partition), _ids(isr))

    def do_hold(self) -> None:
        self.world.hold_writes = True

    def do_release(self) -> None:
        self.world.release()

    def do_shutdown(self, broker: str, epoch: str = "") -> None:
        known = self.world.brokers[int(broker)].epoch if broker in map(str, self.world.brokers) else -1
        self.world.send(events.ControlledShutdownRequested("shutdown", int(broker), int(epoch or known)))

    def do_elect(self, kind: str, *partitions: str) -> None:
        wanted = None if partitions == ("all",) else tuple(map(_partition, partitions))
        self.world.unclean_requested = kind == "unclean"
        self.world.send(events.ElectionRequested("elect", ElectionType[kind.upper()], wanted))
        self.world.unclean_requested = False

    def do_preferred_node(self, *partitions: str) -> None:
        self.world.send(events.PreferredElectionFound(tuple(map(_partition, partitions))))

    def do_rebalance(self) -> None:
        self.world.send(events.RebalanceTick())

    def do_reassign(self, *targets: str) -> None:
        self._reassign(targets, may_change_replication_factor=True)

    def do_reassign_keeping_factor(self, *targets: str) -> None:
        self._reassign(targets, may_change_replication_factor=False)

    def _reassign(self, targets: Sequence[str], may_change_replication_factor: bool) -> None:
        pairs = [target.split("=") for target in targets]
        wanted = {_partition(name): None if ids == "cancel" else _ids(ids) for name, ids in pairs}
        self.world.send(events.ReassignmentRequested("reassign", wanted, may_change_replication_factor))

    def do_reassign_node(self, *targets: str) -> None:
        pairs = [target.split("=") for target in targets]
        self.world.send(events.ReassignmentFound({_partition(name): _ids(ids) for name, ids in pairs}))

    def do_list(self, *partitions: str) -> None:
        wanted = tuple(map(_partition, partitions)) or None
        self.world.send(events.ReassignmentsListed("list", wanted))

    def do_isr_notice(self, *partitions: str) -> None:
        names = map(_partition, partitions)
        self.world.send(events.IsrChangesFound({name: self.world.states[name] for name in names}))

    def do_disk_failed(self, broker: str, *partitions: str) -> None:
        errors = {_partition(name): 56 for name in partitions}
        self.world.send(events.LeaderAndIsrAnswered(int(broker), 0, errors))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(broker) for broker in text.split(",") if broker)


def _pair(text: str) -> tuple[str, tuple[int, ...]]:
    index, _, ids = text.partition("=")
    return index, _ids(ids)


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def test_updates_of_very_many_partitions_are_split_between_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_batch, "PARTITIONS_PER_REQUEST", 10)
    world = World()
    for broker in (1, 2):
        world.start_broker(broker)
    world.elect()
    sizes = {"a": 4, "b": 25, "c": 3, "d": 3, "e": 5, "f": 1}
    for name, size in sizes.items():
        world.create_topic(name, {index: (1,) for index in range(size)})
    world.lines.clear()
    updates: list[tuple[TopicPartition, ...]] = []
    handle = world.controller.handle

    def watched(event: Event) -> list[Effect]:
        found = handle(event)
        updates.extend(
            tuple(item.partition for item in effect.partitions)
            for effect in found
            if isinstance(effect, SendUpdateMetadata) and effect.partitions
        )
        return found

    monkeypatch.setattr(world.controller, "handle", watched)
    world.start_broker(3)
    wanted = [TopicPartition(name, index) for name, size in sizes.items() for index in range(size)]
    assert [partition for update in updates for partition in update] == wanted
    assert [[partition.topic for partition in update] for update in updates] == [
        ["a"] * 4 + ["b"] * 25,
        ["c"] * 3 + ["d"] * 3 + ["e"] * 5,
        ["f"],
    ]
    assert len(world.metadata[3]) == len(wanted)


def test_the_number_of_deleted_topics_remembered_by_a_controller_is_bounded() -> None:
    context = ControllerContext(ControllerSettings(), events.Elected(1, 1, ()))
    for number in range(DELETED_IDS_MAX + 5):
        context.note_deleted(UUID(int=number))
    assert len(context.deleted_ids) == DELETED_IDS_MAX
    assert UUID(int=4) not in context.deleted_ids
    assert UUID(int=DELETED_IDS_MAX + 4) in context.deleted_ids
