"""A sequence of faults under load, and their effects on the clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.durability.load import read_everything
from tests.faults.cluster import BROKER_IDS, FaultCluster, sleep_until
from tests.faults.evidence import Findings, check, longest_gap_s, take_out_repeated
from tests.faults.producers import CLIENTS, LIBRDKAFKA, Producer, is_login_not_answered, now_ms
from tests.faults.quorum_cluster import QuorumFaultCluster
from tests.support.process import wait_until

TOPIC = "ledger"
PARTITIONS = 6
KINDS = ("kill -9", "SIGSTOP", "restart")
MAJORITY = "majority"
"""Two of three voters are killed, and started again."""
WIPE = "wipe"
"""A voter is killed, and started again with an empty disk."""
QUORUM_KINDS = (*KINDS, MAJORITY, WIPE)
_AWAY_S = 3.0
"""How long a majority stays away."""
_ACKNOWLEDGED_S = 60.0
_CALM_S = 1.0
_SLOWER = 4
"""kafka-python sends metadata requests to the broker with the fewest requests in flight. With a steady stream
of records, that is repeatedly the paused broker, so this client pauses between records."""


@dataclass(frozen=True)
class Fault:
    """A fault and its target: the leader of a partition, the controller, or the leader of the quorum."""

    kind: str
    controller: bool
    partition: int = 0
    voter: bool = False

    def __str__(self) -> str:
        target = "quorum leader" if self.voter else "controller" if self.controller else "leader"
        return f"{self.kind} {target}"


@dataclass
class Outcome:
    """The effects of one fault."""

    fault: Fault
    broker_id: int
    began_ms: int
    ended_ms: int = 0
    gaps_s: dict[str, float] = field(default_factory=dict)
    """The longest time without an acknowledgement for any partition, by client."""

    @property
    def recovery_s(self) -> float:
        """The time until all replicas were in sync and all clients received acknowledgements again."""
        return (self.ended_ms - self.began_ms) / 1000


@dataclass
class Run:
    """The results of a run."""

    outcomes: list[Outcome]
    acknowledged: dict[str, int]
    given_up: dict[str, dict[int, str]]
    logins_not_answered: int
    """Records that librdkafka gave up without a fault of the brokers (`is_login_not_answered`)."""
    repeated: int
    """Records that librdkafka stored twice or out of order after giving up a record. It then begins a new
    epoch, also with Apache Kafka, and sends records again that were stored with the former epoch.
    """
    stored: int
    findings: Findings

    def longest_gap_s(self, kind: str) -> float:
        return max(
            (max(item.gaps_s.values()) for item in self.outcomes if item.fault.kind == kind), default=0
        )

    def table(self) -> str:
        """Format the outcomes as a table."""
        lines = [f"{'fault':24} broker  recovery  " + "  ".join(f"{client:>12}" for client in CLIENTS)]
        for item in self.outcomes:
            gaps = "  ".join(f"{item.gaps_s[client]:10.2f} s" for client in item.gaps_s)
            lines.append(f"{item.fault!s:24} {item.broker_id:6}  {item.recovery_s:6.1f} s  {gaps}")
        lines.append(f"acknowledged {self.acknowledged}, stored {self.stored}, {self.findings}")
        given_up = {client: len(items) for client, items in self.given_up.items()}
        lines.append(
            f"given up {given_up}, with logins not answered {self.logins_not_answered}, "
            f"then repeated {self.repeated}"
        )
        kinds = dict.fromkeys(item.fault.kind for item in self.outcomes)
        lines += [f"longest gap, {kind}: {self.longest_gap_s(kind):.2f} s" for kind in kinds]
        return "\n".join(lines)


def faults(count: int, only: str | None = None) -> list[Fault]:
    """Return a sequence of kills, pauses and restarts (or only one of these), alternating between leaders and
    controllers.
    """
    kinds = [kind for kind in KINDS if only in (None, kind)]
    turns = [(kind, controller) for controller in (False, True) for kind in kinds]
    return [Fault(*turns[number % len(turns)], partition=number % PARTITIONS) for number in range(count)]


def quorum_faults(count: int, only: str | None = None) -> list[Fault]:
    """Return a sequence of faults for a cluster with a quorum. Its targets are leaders of partitions, the
    controller, and the leader of the quorum, in turn.
    """
    targets = ((False, False), (True, False), (False, True))
    turns = [
        Fault(kind, controller, partition=0, voter=voter or kind in (MAJORITY, WIPE))
        for controller, voter in targets
        for kind in QUORUM_KINDS
        if only in (None, kind) and (kind not in (MAJORITY, WIPE) or controller or voter)
    ]
    return [replace(turns[number % len(turns)], partition=number % PARTITIONS) for number in range(count)]


def run(
    cluster: FaultCluster,
    planned: Sequence[Fault],
    directory: Path,
    *,
    request_timeout_ms: int = 5000,
    pause_ms: int = 10,
    tell: Callable[[str], None] = lambda _line: None,
) -> Run:
    """Run the faults under the load of all clients, and check all records afterwards."""
    cluster.create_topic(TOPIC, PARTITIONS)
    producers = [
        Producer(
            client,
            cluster.bootstrap_servers,
            TOPIC,
            PARTITIONS,
            pause_ms=pause_ms * (_SLOWER if client == "kafka-python" else 1),
            request_timeout_ms=request_timeout_ms,
            directory=directory,
        )
        for client in CLIENTS
    ]
    try:
        _wait_acknowledged(producers)
        outcomes = []
        for fault in planned:
            outcome = _carry_out(fault, cluster, producers)
            outcomes.append(outcome)
            tell(f"{fault} of {outcome.broker_id}: {outcome.recovery_s:.1f} s, {outcome.gaps_s}")
        for producer in producers:
            producer.stop()
    finally:
        for producer in producers:
            producer.kill()
    found = {producer.client: producer.outcomes() for producer in producers}
    refused_a_login = cluster.refused_a_login()
    given_up = {
        client: {
            number: error
            for number, error in items.items()
            if refused_a_login or not is_login_not_answered(client, error)
        }
        for client, (_, items) in found.items()
    }
    logins_not_answered = sum(len(items) - len(given_up[client]) for client, (_, items) in found.items())
    log = read_everything(cluster.bootstrap_servers, TOPIC, PARTITIONS)
    findings = check(log, {client: acknowledged for client, (acknowledged, _) in found.items()})
    return Run(
        outcomes,
        {client: len(acknowledged) for client, (acknowledged, _) in found.items()},
        given_up,
        logins_not_answered,
        take_out_repeated(findings, log, LIBRDKAFKA) if logins_not_answered else 0,
        len(log),
        findings,
    )


def _carry_out(fault: Fault, cluster: FaultCluster, producers: Sequence[Producer]) -> Outcome:
    target = _target(fault, cluster)
    outcome = Outcome(fault, target, now_ms())
    began_s = time.monotonic()
    broker = cluster.nodes[target]
    is_broker = target in BROKER_IDS
    if fault.kind == MAJORITY:
        assert isinstance(cluster, QuorumFaultCluster)
        away = [target, next(node_id for node_id in cluster.voters if node_id != target)]
        for node_id in away:
            cluster.voters[node_id].kill()
        time.sleep(_AWAY_S)  # the fault lasts for some time
        if not is_broker:
            _wait_acknowledged(producers)
        for node_id in away:
            cluster.voters[node_id].launch()
        for node_id in away:
            cluster.voters[node_id].wait_ready(_ACKNOWLEDGED_S)
    elif fault.kind == WIPE:
        assert isinstance(cluster, QuorumFaultCluster)
        broker.kill()
        if is_broker:
            cluster.wait_without(target, TOPIC)
        cluster.wipe(target)
        cluster.start(target)
    elif not is_broker and fault.kind != "restart":
        if fault.kind == "kill -9":
            broker.kill()
        with cluster.paused(target) if fault.kind == "SIGSTOP" else nullcontext():
            sleep_until(began_s + 1.5 * cluster.session_timeout_ms / 1000)
            assert isinstance(cluster, QuorumFaultCluster)
            wait_until(lambda: cluster.quorum_leader() != target, _ACKNOWLEDGED_S, "another leader")
            _wait_acknowledged(producers)
        if fault.kind == "kill -9":
            cluster.start(target)
    elif fault.kind == "kill -9":
        broker.kill()
        cluster.wait_without(target, TOPIC)
        _wait_acknowledged(producers)
        cluster.start(target)
    elif fault.kind == "SIGSTOP":
        with cluster.paused(target):
            cluster.wait_without(target, TOPIC)
            sleep_until(began_s + 1.5 * cluster.session_timeout_ms / 1000)
            _wait_acknowledged(producers)
    else:
        broker.process.stop(60)
        cluster.start(target)
    wait_until(lambda: cluster.registered() == set(BROKER_IDS), _ACKNOWLEDGED_S, "brokers registered")
    cluster.wait_in_sync(TOPIC)
    _wait_acknowledged(producers)
    outcome.ended_ms = now_ms()
    time.sleep(_CALM_S)  # a gap after the last fault would show within this time
    for producer in producers:
        outcome.gaps_s[producer.client] = longest_gap_s(
            producer.outcomes()[0], outcome.began_ms, outcome.ended_ms
        )
    return outcome


def _target(fault: Fault, cluster: FaultCluster) -> int:
    controller = cluster.controller()
    assert controller is not None
    if fault.voter:
        assert isinstance(cluster, QuorumFaultCluster)
        return cluster.quorum_leader()
    if fault.controller:
        return controller
    leaders = [state.leader for _, state in sorted(cluster.states(TOPIC).items())]
    others = [leader for leader in leaders if leader != controller]
    # After some faults, the controller may be the leader of every partition.
    return others[fault.partition % len(others)] if others else leaders[0]


def _wait_acknowledged(producers: Sequence[Producer]) -> None:
    """Wait until every client has received a new acknowledgement for every partition."""
    since_ms = now_ms()
    for producer in producers:
        acknowledged = partial(producer.acknowledged_since, since_ms)
        wait_until(acknowledged, _ACKNOWLEDGED_S, f"acknowledgements for {producer.client}", 0.1)
