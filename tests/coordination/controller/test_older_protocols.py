"""The controller in clusters with brokers before Kafka 3.3, which know fewer errors and states."""

from __future__ import annotations

import pytest

from kafka_compat.coordination.controller import events, outcomes
from kafka_compat.coordination.controller.effects import AlterPartitionReply
from kafka_compat.coordination.controller.outcomes import ControllerError, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import PartitionState
from tests.coordination.controller.controller_world import World

T0 = TopicPartition("t", 0)


def _world(settings: outcomes.ControllerSettings | None = None) -> World:
    world = World(settings)
    for broker in (1, 2, 3):
        world.start_broker(broker)
    world.elect()
    world.create_topic("t", {0: (1, 2, 3)})
    return world


def test_a_leader_before_kafka_3_3_may_add_a_broker_that_is_shutting_down() -> None:
    """After an error, it would never propose an ISR again. The broker leaves the ISR with its session."""
    world = _world()
    world.send(events.ControlledShutdownRequested("shutdown", 3, world.brokers[3].epoch))
    assert world.states[T0].isr == (1, 2)
    world.propose_isr(T0, (1, 2, 3))
    reply = world.replies["isr"]
    assert isinstance(reply, AlterPartitionReply)
    assert reply.partitions == {T0: ControllerError.INELIGIBLE_REPLICA}
    world.propose_isr(T0, (1, 2, 3), old=1)
    reply = world.replies["isr"]
    assert isinstance(reply, AlterPartitionReply)
    assert isinstance(reply.partitions[T0], PartitionState)
    assert world.states[T0].isr == (1, 2, 3)
    world.stop_broker(3)
    assert world.states[T0].isr == (1, 2)
    assert world.beliefs[1][T0].state.isr == (1, 2)


@pytest.mark.parametrize("recovers", [True, False])
def test_unclean_leaders_are_marked_only_if_all_brokers_know_the_mark(recovers: bool) -> None:
    world = _world(outcomes.ControllerSettings(recovers_leaders=recovers))
    world.propose_isr(T0, (1,))
    world.unclean["t"] = True
    world.send(events.UncleanConfigChanged(False, dict(world.unclean)))
    world.stop_broker(1)
    state = world.states[T0]
    assert (state.leader in (2, 3), state.recovering) == (True, recovers)
