"""A broker that has lost its records waits until other replicas lead its partitions.

A broker that starts with an empty log directory may still be in the in-sync replicas (ISR) of its
partitions, if all brokers stopped at the same time, or if it stopped last. It could then become leader, and
the other replicas would remove their records. Therefore, it registers only once it is in no ISR of a
partition whose log it lacks. The controller changes an ISR when it elects another replica.

The wait ends after WAIT_S if no other replica of these partitions is registered. Otherwise, only an unclean
election ends it, because the other replicas may lack acknowledged records. Partitions with one replica start
empty. Apache Kafka with ZooKeeper does not wait; in KRaft mode, the controller notices a new directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from kafka_compat.cluster.controller_nodes import ControllerNodes
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import TopicState
from kafka_compat.errors import StoppedWaiting

if TYPE_CHECKING:
    from kafka_compat.coordination.controller.outcomes import TopicPartition
    from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.storage.directories.log_dirs import LogDirs

log = logging.getLogger(__name__)

WAIT_S: Final = 30.0
_LOOK_S: Final = 0.25
_SHOWN_MAX: Final = 5


def may_have_lost_records(log_dirs: LogDirs) -> bool:
    """Return whether a log directory contains no log. Replicas in failed directories are offline anyway."""
    used = {held.disk.path for held in log_dirs.logs.values()}
    return not log_dirs.offline and any(path not in used for path in log_dirs.directories)


async def await_other_leaders(
    store: MetadataStore,
    malformed: MalformedNodes,
    broker_id: int,
    held: Collection[tuple[str, int]],
    stopped: asyncio.Event,
) -> None:
    """Wait, by the rules of this module, until the broker is in the ISR of no partition without a log. `held`
    contains the partitions with a log. Raises StoppedWaiting once `stopped` is set, and MetadataStoreError if
    the store fails.
    """
    nodes = ControllerNodes(store, malformed)
    lost = await _replicas_without_log(nodes, broker_id, held)
    if not lost:
        return
    log.warning(
        "This broker has no records of %s, of which it is an in-sync replica. It waits for other replicas to "
        "become leaders before it joins the cluster",
        _named(lost),
    )
    loop = asyncio.get_running_loop()
    next_s = loop.time() + WAIT_S
    while lost := await _still_in_sync(nodes, broker_id, lost):
        if loop.time() >= next_s:
            next_s += WAIT_S
            registered = set(await store.children(znodes.BROKER_IDS))
            if not any(str(other) in registered for replicas in lost.values() for other in replicas):
                log.error("No other replica of %s has started in time: it starts empty", _named(lost))
                return
            log.error(
                "This broker cannot join the cluster: it has no records of %s, of which it is the last "
                "in-sync replica. Restore its log directory, or accept the loss of the newest records with "
                "kafka-leader-election --election-type UNCLEAN",
                _named(lost),
            )
        # Look at intervals: there may be very many nodes.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), _LOOK_S)
            raise StoppedWaiting("stopped while waiting for other leaders of this broker's partitions")


async def _replicas_without_log(
    nodes: ControllerNodes, broker_id: int, held: Collection[tuple[str, int]]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the partitions without a log whose ISR contains the broker, with their other replicas."""
    from kafka_compat.coordination.controller.outcomes import TopicPartition

    topics = await nodes.topics(await nodes.topic_names(), lambda _: None)
    others = {
        TopicPartition(name, number): tuple(each for each in replicas if each != broker_id)
        for name, topic in topics.items()
        if isinstance(topic, TopicState)
        for number, replicas in topic.replicas.items()
        if broker_id in replicas and len(replicas) > 1 and (name, number) not in held
    }
    return await _still_in_sync(nodes, broker_id, others)


async def _still_in_sync(
    nodes: ControllerNodes, broker_id: int, partitions: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, tuple[int, ...]]:
    states = await nodes.states(list(partitions), lambda _: None)
    return {partition: partitions[partition] for partition, state in states.items() if broker_id in state.isr}


def _named(partitions: Collection[TopicPartition]) -> str:
    names = sorted(map(str, partitions))
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more
