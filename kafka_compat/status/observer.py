"""Take a snapshot of a cluster. If a broker fails to respond, it is not queried again for that snapshot."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka_compat.client.cluster import Cluster, Node
from kafka_compat.client.connection_settings import HandshakeFailed
from kafka_compat.client.groups import CONSUMERS
from kafka_compat.client.leaders import EARLIEST, LATEST, listed_offsets, offsets_request
from kafka_compat.client.partitions import TopicPartition, each_partition
from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.client import Untrusted
from kafka_compat.status.migration import ask_migration
from kafka_compat.status.quorum import ask_quorum
from kafka_compat.status.snapshot import Broker, Group, LogDir, Partition, Position, Snapshot, Topic

_NEWEST_FIRST: Final = (
    (ApiKey.FETCH, 18, "4.1+"),
    (ApiKey.PRODUCE, 12, "4.0"),
    (ApiKey.FETCH, 17, "3.9"),
    (ApiKey.LIST_TRANSACTIONS, 1, "3.8"),
    (ApiKey.FETCH, 16, "3.7"),
    (ApiKey.FETCH, 15, "3.5-3.6"),
    (ApiKey.FETCH, 13, "3.1-3.4"),
    (ApiKey.LIST_OFFSETS, 7, "3.0"),
    (ApiKey.PRODUCE, 9, "2.8"),
    (ApiKey.FETCH, 12, "2.7"),
    (ApiKey.FETCH, 11, "2.3-2.6"),
)
"""APIs, versions, and the Kafka releases that introduced them, newest first."""
_OLDER: Final = "<2.3"


def newest_release(versions: Mapping[int, tuple[int, int]]) -> str:
    """Return the newest Kafka release whose API versions a broker supports."""
    for key, version, release in _NEWEST_FIRST:
        if versions.get(key, (0, -1))[1] >= version:
            return release
    return _OLDER


def is_kraft(versions: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether the broker is in KRaft mode. Only KRaft brokers advertise the quorum's APIs."""
    return ApiKey.DESCRIBE_QUORUM in versions


_CALL: Final = "status"
_TOPIC: Final = 2
_MIN_ISR: Final = "min.insync.replicas"
_CONFIGS_AT_ONCE: Final = 5000

Versions = dict[int, tuple[int, int]]
Sizes = dict[TopicPartition, dict[int, int]]
"""Size in bytes of each partition's replica on each broker."""


class Unreachable(Exception):
    """Raised if none of the known brokers responds. The message lists each broker with its error."""


class Observer:
    """A blocking, single-threaded client that takes snapshots over persistent connections."""

    def __init__(self, cluster: Cluster) -> None:
        """Create an observer without opening connections."""
        self._cluster = cluster
        self._answered = 0
        """ID of the node that described the cluster most recently."""
        self._faults: dict[int, str] = {}
        """The reason why a node counts as down in this snapshot, by node ID."""
        self._missing: dict[str, None] = {}

    def observe(self) -> Snapshot:
        """Take a snapshot. Raises WrongSettings on invalid settings, or Unreachable if no broker responds."""
        self._faults, self._missing = {}, {}
        time_ms = int(time.time() * 1000)
        metadata = self._metadata()
        nodes = [self._cluster.nodes[key] for key in sorted(self._cluster.nodes) if key >= 0]
        versions = {node.node_id: found for node in nodes if (found := self._versions(node)) is not None}
        groups, unserved = ask_groups(self, sorted(versions))
        log_dirs, sizes = self._log_dirs(versions)
        taken_at_s = time.monotonic()
        leading = _leading(metadata, versions)
        ends = dict(self._offsets(leading, LATEST))
        starts = dict(self._offsets(leading, EARLIEST))
        of_quorum = any(map(is_kraft, versions.values()))
        return Snapshot(
            time_ms=time_ms,
            taken_at_s=taken_at_s,
            cluster_id=metadata.cluster_id,
            is_kraft=of_quorum,
            controller_id=None if of_quorum or metadata.controller_id < 0 else metadata.controller_id,
            topics=self._topics(metadata, starts, ends, sizes),
            groups=tuple(_with_ends(group, ends) for group in groups),
            log_dirs=tuple(log_dirs),
            unserved=tuple(unserved),
            brokers=self._brokers(nodes, versions, metadata),
            quorum=ask_quorum(self) if of_quorum else None,
            migration=ask_migration(self, sorted(versions)) if of_quorum else None,
            missing=tuple(self._missing),
        )

    # --- requests

    def ask(self, node_id: int, key: ApiKey, **request: Any) -> Any:
        """Return a broker's response. If the request fails, note the reason and return None."""
        if node_id in self._faults:
            return None
        try:
            return self._cluster.try_broker(node_id, key, _CALL, **request)
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                self._faults[node_id] = _reason(error)
            else:
                self.note(f"broker {node_id} is too old for {key.name}")
        except (OSError, EOFError, ValueError, HandshakeFailed, Untrusted) as error:
            self._faults[node_id] = _reason(error)
        return None

    def version(self, node_id: int, key: ApiKey) -> int:
        """Return the newest version of an API that both the broker and the client support, or -1."""
        if node_id in self._faults:
            return -1
        try:
            return self._cluster.version(node_id, key, _CALL)
        except KafkaError:
            return -1

    def note(self, text: str) -> None:
        """Record, for the snapshot, a description of data that could not be queried or was not reported."""
        self._missing[text] = None

    # --- cluster

    def _metadata(self) -> Any:
        found: dict[str, str] = {}
        """The reason why an address does not respond or lists no brokers, by address."""
        nodes = self._cluster.nodes
        for node_id in sorted(nodes, key=lambda each: (each != self._answered, each < 0, abs(each))):
            node = nodes[node_id]
            if f"{node.host}:{node.port}" in found:
                continue
            answer = self.ask_metadata(node_id)
            if answer is not None and answer.brokers:
                self._cluster.take(answer)
                self._answered = node_id
                # Do not query brokers at addresses that have already failed.
                for each in self._cluster.nodes.values():
                    if f"{each.host}:{each.port}" in found:
                        self._faults[each.node_id] = found[f"{each.host}:{each.port}"]
                return answer
            found[f"{node.host}:{node.port}"] = self._faults.get(node_id, "it lists no brokers yet")
        raise Unreachable("; ".join(f"{address}: {reason}" for address, reason in found.items()))

    def ask_metadata(self, node_id: int) -> Any:
        """Return a broker's metadata for all topics, or None if the broker fails. Topics are not created."""
        return self.ask(
            node_id,
            ApiKey.METADATA,
            topics=None,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )

    def _versions(self, node: Node) -> Versions | None:
        # Send a request first, because it reopens a persistent connection that has been closed.
        if self.ask(node.node_id, ApiKey.METADATA, topics=[], allow_auto_topic_creation=False) is None:
            return None
        return self._cluster.api_versions(node.node_id, _CALL)

    def _brokers(
        self, nodes: Sequence[Node], versions: dict[int, Versions], metadata: Any
    ) -> tuple[Broker, ...]:
        found = {
            node.node_id: Broker(
                node.node_id,
                node.host,
                node.port,
                node.rack,
                newest_release(versions[node.node_id]) if node.node_id in versions else None,
                self._faults.get(node.node_id),
            )
            for node in nodes
        }
        for _, partition in each_partition(metadata.topics):
            for broker_id in partition.replica_nodes:
                found.setdefault(broker_id, Broker(broker_id, fault="it is not in the cluster"))
        return tuple(found[key] for key in sorted(found))

    # --- topics

    def _topics(
        self, metadata: Any, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int], sizes: Sizes
    ) -> tuple[Topic, ...]:
        adding = self._adding(metadata)
        min_isr = self._min_isr([topic.name for topic in metadata.topics])
        found = []
        for topic in sorted(metadata.topics, key=lambda each: str(each.name)):
            partitions = []
            for one in sorted(topic.partitions, key=lambda each: int(each.partition_index)):
                place = (topic.name, one.partition_index)
                bytes_of = sizes.get(place, {})
                partitions.append(
                    Partition(
                        one.partition_index,
                        one.leader_id if one.leader_id >= 0 else None,
                        tuple(one.replica_nodes),
                        tuple(one.isr_nodes),
                        adding.get(place, ()),
                        starts.get(place),
                        ends.get(place),
                        bytes_of.get(one.leader_id),
                        sum(bytes_of.values()) if bytes_of else None,
                    )
                )
            found.append(Topic(topic.name, topic.is_internal, min_isr.get(topic.name), tuple(partitions)))
        return tuple(found)

    def _min_isr(self, names: Sequence[str]) -> dict[str, int]:
        from kafka_compat.protocol.messages.describe_configs import DescribeConfigsResource

        found = {}
        for part in _parts(names, _CONFIGS_AT_ONCE):
            resources = [
                DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=name, configuration_keys=[_MIN_ISR]
                )
                for name in part
            ]
            answer = self.ask_anyone(ApiKey.DESCRIBE_CONFIGS, resources=resources)
            for result in answer.results if answer is not None else ():
                for one in result.configs:
                    if one.name == _MIN_ISR and one.value:
                        found[result.resource_name] = int(one.value)
                if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    self.note("min.insync.replicas of some topics: no permission to describe their settings")
        return found

    def _adding(self, metadata: Any) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas that reassignments add. Query reassignments only if an ISR is incomplete."""
        if all(len(one.isr_nodes) >= len(one.replica_nodes) for _, one in each_partition(metadata.topics)):
            return {}
        controller = metadata.controller_id
        if controller not in self._cluster.nodes:
            return {}
        # If the controller does not respond, assume that nothing is being reassigned, as kafka-topics does.
        answer = self.ask(controller, ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None)
        topics = answer.topics if answer is not None else ()
        return {place: tuple(one.adding_replicas) for place, one in each_partition(topics)}

    def ask_anyone(self, key: ApiKey, **request: Any) -> Any:
        """Return the response of the first broker that responds, or None if all fail."""
        for node_id in sorted(self._cluster.nodes, key=lambda each: (each != self._answered, each < 0)):
            answer = self.ask(node_id, key, **request)
            if answer is not None:
                return answer
        return None

    # --- offsets and sizes

    def _offsets(
        self, leading: dict[int, dict[str, list[int]]], at: int
    ) -> Iterator[tuple[TopicPartition, int]]:
        for node_id, topics in leading.items():
            answer = self.ask(node_id, ApiKey.LIST_OFFSETS, **offsets_request(topics, lambda _: at))
            for place, code, found in listed_offsets(answer) if answer is not None else ():
                if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    self.note("records of some topics: no permission to describe them")
                elif not code and found.offset >= 0:
                    yield place, found.offset

    def _log_dirs(self, brokers: Iterable[int]) -> tuple[list[LogDir], Sizes]:
        found: list[LogDir] = []
        sizes: Sizes = {}
        for node_id in brokers:
            answer = self.ask(node_id, ApiKey.DESCRIBE_LOG_DIRS, topics=None)
            if answer is None:
                continue
            if answer.error_code or not answer.results:
                # In versions 0 to 2, an empty response is the only sign of missing authorization.
                why = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name
                if answer.error_code:
                    why = known_code(answer.error_code).name
                self.note(f"sizes and disks of broker {node_id}: {why}")
            for result in answer.results:
                for place, one in each_partition(result.topics):
                    if not one.is_future_key:
                        sizes.setdefault(place, {})[node_id] = one.partition_size
                found.append(LogDir.of(node_id, result))
        return found, sizes


def _leading(metadata: Any, brokers: Iterable[int]) -> dict[int, dict[str, list[int]]]:
    found: dict[int, dict[str, list[int]]] = {broker: {} for broker in brokers}
    for (name, number), one in each_partition(metadata.topics):
        if one.leader_id in found:
            found[one.leader_id].setdefault(name, []).append(number)
    return {broker: topics for broker, topics in found.items() if topics}


def _with_ends(group: Group, ends: dict[TopicPartition, int]) -> Group:
    positions = (Position(*each[:3], ends.get(each[:2])) for each in group.positions)
    return group._replace(positions=tuple(positions))


def _parts(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, KafkaError):
        return f"{error.code.name}: {error}" if str(error) else error.code.name
    if isinstance(error, ConnectionRefusedError):
        return "Connection refused, nothing listens there"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


# --- groups, queried from their coordinators in few requests


_GROUPS_AT_ONCE: Final = 1000
_SEVERAL_GROUPS: Final = 8
"""First version of OffsetFetch that supports several groups (KIP-709)."""
_NEW_PROTOCOL: Final = "consumer"
_SHARE: Final = "share"
_EMPTY: Final = "Empty"
_CLASSIC: Final = ("", "classic")


def ask_groups(observer: Observer, brokers: Iterable[int]) -> tuple[list[Group], list[tuple[int, str]]]:
    """Return all groups with their committed offsets, sorted by name. Also return (broker ID, error) for each
    broker that does not serve its groups.
    """
    found: dict[str, Group] = {}
    unserved = []
    for node_id in brokers:
        answer = observer.ask(node_id, ApiKey.LIST_GROUPS)
        if answer is None:
            continue
        if answer.error_code:
            unserved.append((node_id, known_code(answer.error_code).name))
        groups = {
            one.group_id: Group(one.group_id, one.group_state, one.group_type, one.protocol_type, node_id)
            for one in answer.groups
        }
        _describe(observer, node_id, groups)
        _positions(observer, node_id, groups)
        found |= groups
    return [found[group_id] for group_id in sorted(found)], unserved


def _describe(observer: Observer, node_id: int, groups: dict[str, Group]) -> None:
    newer = [each.group_id for each in groups.values() if each.type.lower() == _NEW_PROTOCOL]
    classic = [each.group_id for each in groups.values() if each.type.lower() in _CLASSIC]
    answers = [
        observer.ask(node_id, ApiKey.DESCRIBE_GROUPS, groups=part)
        for part in _parts(classic, _GROUPS_AT_ONCE)
    ]
    share = [each.group_id for each in groups.values() if each.type.lower() == _SHARE]
    if share:
        answers += [
            observer.ask(node_id, ApiKey.SHARE_GROUP_DESCRIBE, group_ids=part)
            for part in _parts(share, _GROUPS_AT_ONCE)
        ]
    if newer:
        answers += [
            observer.ask(node_id, ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=part)
            for part in _parts(newer, _GROUPS_AT_ONCE)
        ]
    for answer in answers:
        for one in answer.groups if answer is not None else ():
            group = groups[one.group_id]
            if one.error_code == ErrorCode.UNSUPPORTED_VERSION and group.state == _EMPTY:
                # The feature group.version was disabled; the group stays until a classic member joins.
                groups[one.group_id] = group._replace(members=0)
            elif one.error_code:
                groups[one.group_id] = group._replace(error=known_code(one.error_code).name)
            else:
                state = one.group_state or group.state
                groups[one.group_id] = group._replace(
                    state=state,
                    members=len(one.members),
                    epoch=getattr(one, "group_epoch", None),
                    target_epoch=getattr(one, "assignment_epoch", None),
                )


def _positions(observer: Observer, node_id: int, groups: dict[str, Group]) -> None:
    names = [each.group_id for each in groups.values() if each.protocol_type in ("", CONSUMERS)]
    for group_id, code, topics in _committed(observer, node_id, names):
        group = groups[group_id]
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            observer.note("offsets of some groups: no permission to describe them")
        elif code:
            groups[group_id] = group._replace(error=known_code(code).name)
        else:
            positions = (
                Position(*place, one.committed_offset, None)
                for place, one in each_partition(topics)
                if one.committed_offset >= 0 and not one.error_code
            )
            groups[group_id] = group._replace(positions=tuple(sorted(positions, key=lambda each: each[:2])))


def _committed(observer: Observer, node_id: int, names: Sequence[str]) -> Iterator[tuple[str, int, Any]]:
    from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequestGroup

    if observer.version(node_id, ApiKey.OFFSET_FETCH) >= _SEVERAL_GROUPS:
        for part in _parts(names, _GROUPS_AT_ONCE):
            asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in part]
            answer = observer.ask(node_id, ApiKey.OFFSET_FETCH, groups=asked)
            for one in answer.groups if answer is not None else ():
                yield one.group_id, one.error_code, one.topics
    else:
        for name in names:
            answer = observer.ask(node_id, ApiKey.OFFSET_FETCH, group_id=name, topics=None)
            if answer is not None:
                yield name, answer.error_code, answer.topics
