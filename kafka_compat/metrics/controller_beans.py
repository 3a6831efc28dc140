"""Kafka's metrics of the controller, and of the group and transaction coordinators.

The controller's MBeans are kafka.controller:type=KafkaController, ControllerStats, ControllerEventManager and
ControllerChannelManager. Brokers that are not the controller report 0, as in Kafka. Times include all terms
in which a broker was the controller.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.state import ConsumerGroupState
from kafka_compat.groups.requests import GroupState, GroupType
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import NO_TAGS, Bean, Tags

if TYPE_CHECKING:
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.cluster.controller_service import ControllerService
    from kafka_compat.cluster.controller_times import Durations
    from kafka_compat.metrics.cluster_view import ClusterView

_WITH_ZOOKEEPER: Final = 4
"""ZkMigrationState of a cluster that uses ZooKeeper and is not migrating."""


def controller(view: ClusterView, beans: Beans) -> Steps[None]:
    """Add the metrics of this process's controllers."""
    for each in view.services:
        yield from _known(each, beans)
    beans.gauge(Bean("server", "MetadataLoader", "CurrentControllerId"), view.metadata.controller_id)
    if any(each.config.str("zookeeper.connect") for each in view.services):
        beans.gauge(_controller("ZkMigrationState"), _WITH_ZOOKEEPER)
    candidates = [each for each in view.services if not each.membership.is_standalone]
    if candidates:
        _terms(candidates, beans)


def _known(services: BrokerServices, beans: Beans) -> Steps[None]:
    metadata = services.metadata
    is_controller = metadata.controller_id == services.broker_id
    partitions = offline = not_preferred = 0
    if is_controller:
        for topic in list(metadata.topics.values()):
            for some in batched(topic.partitions):
                for known in some:
                    leader = metadata.reachable_leader(known)
                    partitions += 1
                    offline += leader is None
                    not_preferred += leader != known.replicas[0]
                yield None
    for name, value in (
        ("ActiveControllerCount", int(is_controller)),
        ("GlobalTopicCount", len(metadata.topics) if is_controller else 0),
        ("GlobalPartitionCount", partitions),
        ("OfflinePartitionsCount", offline),
        ("PreferredReplicaImbalanceCount", not_preferred),
        ("ActiveBrokerCount", len(metadata.brokers) if is_controller else 0),
        ("FencedBrokerCount", 0),
    ):
        beans.gauge(Bean("controller", "KafkaController", name), value)
    unclean = Bean("controller", "ControllerStats", "UncleanLeaderElectionsPerSec")
    beans.counter(unclean, services.controller.unclean_elections)


def _terms(candidates: Sequence[BrokerServices], beans: Beans) -> None:
    from kafka_compat.cluster.controller_times import STATES, Backlog
    from kafka_compat.coordination.controller.machine import DeletionCounts

    may_be = [each.controller for each in candidates]
    backlogs = [each.term.backlog for each in may_be if each.term is not None]
    backlog = backlogs[0] if backlogs else Backlog(0, {}, DeletionCounts())
    deletions = backlog.deletions
    beans.gauge(_controller("ControllerState"), max(STATES.index(each.times.state) for each in may_be))
    beans.gauge(_controller("TopicsToDeleteCount"), deletions.topics)
    beans.gauge(_controller("TopicsIneligibleToDeleteCount"), deletions.topics_ineligible)
    beans.gauge(_controller("ReplicasToDeleteCount"), deletions.replicas)
    beans.gauge(_controller("ReplicasIneligibleToDeleteCount"), deletions.replicas_ineligible)
    for state in may_be[0].times.by_state:
        bean = Bean("controller", "ControllerStats", f"{state}RateAndTimeMs")
        _durations(bean, [each.times.by_state[state] for each in may_be], beans)
    events = "ControllerEventManager"
    beans.gauge(Bean("controller", events, "EventQueueSize"), backlog.waiting)
    _durations(Bean("controller", events, "EventQueueTimeMs"), [each.times.waited for each in may_be], beans)
    _channels(may_be, backlog.unsent, beans)


def _channels(may_be: Sequence[ControllerService], unsent: Mapping[int, int], beans: Beans) -> None:
    channels = "ControllerChannelManager"
    beans.gauge(Bean("controller", channels, "TotalQueueSize"), sum(unsent.values()))
    sent: dict[int, list[Durations]] = defaultdict(list)
    for each in may_be:
        for broker_id, durations in each.times.sent.items():
            sent[broker_id].append(durations)
    for broker_id, waiting in unsent.items():
        tags = {"broker-id": str(broker_id)}
        beans.gauge(Bean("controller", channels, "QueueSize"), waiting, tags)
        _durations(Bean("controller", channels, "RequestRateAndQueueTimeMs"), sent[broker_id], beans, tags)


def _durations(bean: Bean, found: Sequence[Durations], beans: Beans, tags: Tags = NO_TAGS) -> None:
    kept_ms = sorted(ms for durations in found for ms in durations.kept_ms)
    beans.distribution(bean, sum(durations.count for durations in found), kept_ms, tags)


def _controller(name: str) -> Bean:
    return Bean("controller", "KafkaController", name)


SHARE_STATES: Final = ("Empty", "Stable", "Dead")
GROUPS, TRANSACTIONS = "group-coordinator-metrics", "transaction-coordinator-metrics"
_COUNTS: Final = {
    "classic_rebalances": "group-completed-rebalance-count",
    "consumer_rebalances": "consumer-group-rebalance-count",
    "offset_commits": "offset-commit-count",
    "offset_deletions": "offset-deletion-count",
    "offset_expirations": "offset-expiration-count",
}
"""Maps the fields of GroupCounts to Kafka's attributes."""
_PURGATORY: Final = ("PurgatorySize", "NumDelayedOperations")


def groups(view: ClusterView, beans: Beans) -> Steps[None]:
    """Add the metrics of the groups that this process coordinates."""
    states: dict[GroupType, Counter[str]] = {each: Counter() for each in GroupType}
    offsets = 0
    counts: Counter[str] = Counter(dict.fromkeys(_COUNTS.values(), 0))
    for coordinator in view.coordinators():
        for some in batched(coordinator.group_ids(), 200):
            for group_id in some:
                progress = coordinator.progress(group_id)
                if progress is not None:
                    states[progress.type][progress.state] += 1
                    offsets += len(progress.committed)
            yield None
        for name, attribute in _COUNTS.items():
            counts[attribute] += getattr(coordinator.counts, name)
    classic, consumer = states[GroupType.CLASSIC], states[GroupType.CONSUMER]
    beans.gauge(_group_manager("NumGroups"), classic.total())
    beans.gauge(_group_manager("NumOffsets"), offsets)
    for state in GroupState:
        beans.gauge(_group_manager(f"NumGroups{state}"), classic[state])
        beans.attribute(GROUPS, "classic-group-count", classic[state], {"state": state})
    for consumer_state in ConsumerGroupState:
        tags = {"state": consumer_state}
        beans.attribute(GROUPS, "consumer-group-count", consumer[consumer_state], tags)
    for share_state in SHARE_STATES:
        count = states[GroupType.SHARE][share_state]
        beans.attribute(GROUPS, "share-group-count", count, {"state": share_state})
    for group_type, of_type in states.items():
        beans.attribute(GROUPS, "group-count", of_type.total(), {"protocol": group_type})
    beans.attribute(GROUPS, "offset-count", offsets)
    for attribute, number in counts.items():
        beans.attribute(GROUPS, attribute, number)
    for name in _PURGATORY:
        # Count the groups that are preparing a rebalance, because each has a delayed join in Kafka.
        bean = Bean("server", "DelayedOperationPurgatory", name)
        beans.gauge(bean, classic[GroupState.PREPARING_REBALANCE], {"delayedOperation": "Rebalance"})


def loading(view: ClusterView, beans: Beans) -> None:
    """Add the recent load times of coordinator partitions, in milliseconds, or NaN before the first load."""
    of_groups = [took for each in view.coordinators() for took in each.load_times_ms]
    of_transactions: list[int] = []
    for services in view.services:
        made = services.coordinators.transactions.made
        of_transactions += [] if made is None else made.load_times_ms
    for type_name, times_ms in ((GROUPS, of_groups), (TRANSACTIONS, of_transactions)):
        average_ms = sum(times_ms) / len(times_ms) if times_ms else math.nan
        beans.attribute(type_name, "partition-load-time-avg", average_ms)
        beans.attribute(type_name, "partition-load-time-max", max(times_ms, default=math.nan))


def _group_manager(name: str) -> Bean:
    return Bean("coordinator.group", "GroupMetadataManager", name)
