"""Network partitions: a broker is isolated from all hosts, only from the other brokers, or only from
ZooKeeper.

With acks=all, the isolated broker acknowledges no records that the other brokers do not have, and the other
brokers continue if they can. After the network recovers, all replicas are identical, batch for batch, and
contain every record acknowledged with acks=all. Records that an isolated leader acknowledged with acks=1 are
lost, because the logs diverged. No consumer ever received them.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.partitions.cluster import BROKER_IDS, CLIENT, ZOOKEEPER, PartitionedCluster, host_of
from tests.partitions.load import ALL_IN_SYNC, LEADER_ONLY, Attempt, DirectProducer, IdempotentProducer
from tests.partitions.network import Network, missing
from tests.partitions.readers import DirectReader
from tests.support import campaign
from tests.support.process import wait_until

MIN_1, MIN_2 = "min-isr-1", "min-isr-2"
TOPICS = (MIN_1, MIN_2)
CUT_OFF = 1
OTHERS = (2, 3)

QUORUM = 0
"""Brokers that are the voters of a metadata quorum, instead of brokers with ZooKeeper."""

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module", autouse=True)
def namespaces() -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)


class Trial:
    """A cluster under load from all sides, and checks after one network fault."""

    def __init__(self, cluster: PartitionedCluster) -> None:
        self.cluster = cluster
        self.network = cluster.network
        for topic in TOPICS:
            cluster.create_topic(topic, {"min.insync.replicas": topic[-1]})
        cluster.wait_all_in_sync(len(TOPICS))
        addresses = {broker_id: broker.address for broker_id, broker in cluster.brokers.items()}
        self.direct = {
            (broker_id, acks): DirectProducer(
                self.network, host_of(CUT_OFF) if broker_id == CUT_OFF else CLIENT, address, TOPICS, acks
            )
            for broker_id, address in addresses.items()
            for acks in (LEADER_ONLY, ALL_IN_SYNC)
        }
        self.readers = [
            DirectReader(self.network, host_of(CUT_OFF) if broker_id == CUT_OFF else CLIENT, address, TOPICS)
            for broker_id, address in addresses.items()
        ]
        self.idempotent = [
            IdempotentProducer(self.network, host_of(CUT_OFF), addresses[CUT_OFF], MIN_1),
            IdempotentProducer(self.network, CLIENT, ",".join(addresses.values()), MIN_1),
        ]

    @property
    def clients(self) -> list[DirectProducer | IdempotentProducer | DirectReader]:
        return [*self.direct.values(), *self.idempotent, *self.readers]

    def acknowledged(
        self, broker_id: int, acks: int, since_s: float, until_s: float, topics: tuple[str, ...] = TOPICS
    ) -> list[Attempt]:
        """Return the records that were both sent to the broker and acknowledged by it in this time."""
        return [
            attempt
            for attempt in list(self.direct[broker_id, acks].attempts)
            if attempt.error == ErrorCode.NONE
            and attempt.sent_s > since_s
            and attempt.answered_s < until_s
            and attempt.topic in topics
        ]

    def wait_acknowledged(
        self, broker_id: int, acks: int, count: int, since_s: float = 0.0, topics: tuple[str, ...] = TOPICS
    ) -> None:
        wait_until(
            lambda: len(self.acknowledged(broker_id, acks, since_s, time.monotonic(), topics)) >= count,
            20,
            f"{count} records acknowledged by broker {broker_id} with acks={acks}",
            0.1,
        )

    def finish(self) -> dict[tuple[str, int], dict[int, bytes]]:
        """Restore the network, wait until all replicas are in sync, stop the load, and return the values by
        partition and offset.
        """
        self.network.heal()
        self.cluster.wait_all_in_sync(len(TOPICS))
        for client in self.clients:
            client.stop()
        wait_until(lambda: not self.cluster.unequal(TOPICS), 20, "identical replicas", 0.2)
        for broker in self.cluster.brokers.values():
            broker.kill()
        assert self.cluster.unequal(TOPICS) == []
        logs = {(topic, index): self.cluster.values(topic, index) for topic in TOPICS for index in range(3)}
        self._check_nothing_lost(logs)
        for reader in self.readers:
            for place, seen in reader.seen.items():
                assert seen, f"no records of {place} were read"
                gone = {offset for offset, value in seen.items() if logs[place].get(offset) != value}
                assert not gone, f"{len(gone)} records of {place} were read but are not in the log"
        return logs

    def _check_nothing_lost(self, logs: dict[tuple[str, int], dict[int, bytes]]) -> None:
        kept = [
            attempt
            for broker_id in BROKER_IDS
            for attempt in self.direct[broker_id, ALL_IN_SYNC].attempts
            if attempt.error == ErrorCode.NONE
        ]
        times = {place: Counter(log.values()) for place, log in logs.items()}
        for producer in self.idempotent:
            assert len(producer.attempts) == producer.sent
            assert all(attempt.error == ErrorCode.NONE for attempt in producer.attempts)
            # The client does not report every offset, because a response to a later batch also acknowledges
            # earlier ones.
            kept += [attempt for attempt in producer.attempts if attempt.offset >= 0]
            wrong = [
                attempt
                for attempt in producer.attempts
                if times[attempt.topic, attempt.partition][attempt.value] != 1
            ]
            assert wrong == [], f"{len(wrong)} records of an idempotent producer are not stored exactly once"
        lost = [
            attempt
            for attempt in kept
            if logs[attempt.topic, attempt.partition].get(attempt.offset) != attempt.value
        ]
        assert lost == [], f"{len(lost)} of {len(kept)} acknowledged records are lost"


def lost_with_acks_1(trial: Trial, logs: dict[tuple[str, int], dict[int, bytes]]) -> int:
    return sum(
        attempt.error == ErrorCode.NONE
        and logs[attempt.topic, attempt.partition].get(attempt.offset) != attempt.value
        for attempt in trial.direct[CUT_OFF, LEADER_ONLY].attempts
    )


@pytest.fixture
def trial(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Trial]:
    """A trial whose parameter is the initial controller, or QUORUM."""
    first: int = request.param
    if first == QUORUM:
        cluster = PartitionedCluster(tmp_path, quorum=True)
    else:
        cluster = PartitionedCluster(tmp_path, (first, *(item for item in BROKER_IDS if item != first)))
    try:
        cluster.start()
        trial = Trial(cluster)
        try:
            yield trial
        finally:
            for client in trial.clients:
                client.abandon()
    finally:
        cluster.stop()


def others_lead(trial: Trial) -> float:
    """Wait until other brokers lead all partitions of the isolated broker, and return the time."""
    return trial.cluster.wait_for(
        OTHERS[0],
        lambda states: bool(states) and all(state.leader in OTHERS for state in states.values()),
        "leaders among the other brokers",
    )


def everything_from_everyone(network: Network, broker_id: int = CUT_OFF) -> None:
    network.unplug(host_of(broker_id))


def what_it_sends(network: Network, broker_id: int = CUT_OFF) -> None:
    for host in network.hosts:
        if host != host_of(broker_id):
            network.lose(host_of(broker_id), host)


def what_it_is_sent(network: Network, broker_id: int = CUT_OFF) -> None:
    for host in network.hosts:
        if host != host_of(broker_id):
            network.lose(host, host_of(broker_id))


def zookeeper(network: Network, broker_id: int = CUT_OFF) -> None:
    network.cut(host_of(broker_id), [ZOOKEEPER])


def brokers(network: Network, broker_id: int = CUT_OFF) -> None:
    network.cut(host_of(broker_id), [host_of(other) for other in BROKER_IDS if other != broker_id])


CUT_S = campaign.rounds(5, 12)
CONTROLLERS = (CUT_OFF, 2)
FEW = 5
"""Even the slowest machine acknowledges more records than this during a fault."""
only_campaign = pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")


def last(since_s: float) -> float:
    """Wait until the fault has lasted for CUT_S, and return the current time."""
    wait_until(lambda: time.monotonic() > since_s + CUT_S, 20, "the end of the fault", 0.1)
    return time.monotonic()


@pytest.mark.parametrize(
    ("trial", "loss"),
    [
        (CUT_OFF, everything_from_everyone),
        pytest.param(2, everything_from_everyone, marks=only_campaign),
        *(
            pytest.param(controller, loss, marks=only_campaign)
            for controller in (*CONTROLLERS, QUORUM)
            for loss in (what_it_sends, what_it_is_sent)
        ),
        pytest.param(QUORUM, everything_from_everyone, marks=only_campaign),
    ],
    indirect=["trial"],
)
def test_a_fully_isolated_broker_does_not_lose_acknowledged_records(
    trial: Trial, loss: Callable[[Network], None]
) -> None:
    trial.wait_acknowledged(CUT_OFF, ALL_IN_SYNC, 20)
    loss(trial.network)
    cut_s = time.monotonic()
    moved_s = others_lead(trial)
    for broker_id in OTHERS:
        trial.wait_acknowledged(broker_id, ALL_IN_SYNC, 50, moved_s)
    healed_s = last(cut_s)
    assert trial.acknowledged(CUT_OFF, ALL_IN_SYNC, cut_s, healed_s) == []
    assert len(trial.acknowledged(CUT_OFF, LEADER_ONLY, cut_s, healed_s)) > FEW
    logs = trial.finish()
    assert lost_with_acks_1(trial, logs) > FEW, "the logs did not diverge"


@pytest.mark.parametrize("trial", [CUT_OFF, pytest.param(2, marks=only_campaign)], indirect=True)
def test_a_broker_isolated_only_from_zookeeper_does_not_lose_acknowledged_records(trial: Trial) -> None:
    """The broker leads until its session expires. Then other brokers become leaders, but the isolated broker
    is not notified and still considers itself the leader.
    """
    trial.wait_acknowledged(CUT_OFF, ALL_IN_SYNC, 20)
    zookeeper(trial.network)
    cut_s = time.monotonic()
    moved_s = others_lead(trial)
    for broker_id in OTHERS:
        trial.wait_acknowledged(broker_id, ALL_IN_SYNC, 50, moved_s)
    healed_s = last(cut_s)
    assert trial.acknowledged(CUT_OFF, ALL_IN_SYNC, moved_s, healed_s) == []
    assert len(trial.acknowledged(CUT_OFF, LEADER_ONLY, moved_s, healed_s)) > FEW
    logs = trial.finish()
    assert lost_with_acks_1(trial, logs) > FEW, "the logs did not diverge"


@pytest.mark.parametrize(
    "trial", [pytest.param(item, marks=only_campaign) for item in CONTROLLERS], indirect=True
)
def test_a_broker_isolated_only_from_other_brokers_does_not_lose_acknowledged_records(trial: Trial) -> None:
    """No session expires, so a broker that cannot reach the controller cannot make progress, as in Kafka. If
    the controller itself is isolated, it continues alone where min.insync.replicas allows it.
    """
    is_controller = trial.cluster.controller_id(CUT_OFF) == CUT_OFF
    trial.wait_acknowledged(CUT_OFF, ALL_IN_SYNC, 20)
    brokers(trial.network)
    cut_s = time.monotonic()
    side = CUT_OFF if is_controller else OTHERS[0]
    topics = (MIN_1,) if is_controller else TOPICS
    trial.wait_acknowledged(side, ALL_IN_SYNC, 50, cut_s, topics)
    healed_s = last(cut_s)
    silent = (MIN_2,) if is_controller else TOPICS
    assert trial.acknowledged(CUT_OFF, ALL_IN_SYNC, cut_s, healed_s, silent) == []
    trial.finish()


@only_campaign
@pytest.mark.timeout(600)
@pytest.mark.parametrize("trial", [CUT_OFF, QUORUM], indirect=True)
def test_network_partitions_of_every_kind_do_not_lose_acknowledged_records(trial: Trial) -> None:
    """Some faults are shorter than a session, and some begin while the cluster recovers from the previous
    one. The seed is fixed.
    """
    chance = random.Random(7)
    losses = (everything_from_everyone, what_it_sends, what_it_is_sent, zookeeper, brokers)
    for round_ in range(15):
        chance.choice(losses)(trial.network, chance.choice(BROKER_IDS))
        # The duration of each fault is random.
        time.sleep(chance.uniform(0.5, 8))
        trial.network.heal()
        if round_ % 3 == 2:
            trial.cluster.wait_all_in_sync(len(TOPICS), 60)
        else:
            time.sleep(chance.uniform(0, 2))  # the next cut comes before the last is repaired
    trial.finish()
