"""Fork a topic: create a second topic with the current contents of the first, without copying records.

All replicas must be on brokers of this process, so that their logs can be forked at one moment. The znodes of
the new topic are then written with the leaders, epochs and in-sync replicas of the original, and the
controller assigns the partitions to the brokers. A znode records an unfinished fork, so that the next startup
after a crash deletes it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.broker import Broker
from kafka_compat.broker.services import BrokerServices
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import PartitionState, TopicState
from kafka_compat.coordination.store.metadata_store import Create, MetadataStore, NoNode
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import CONFLICT, NOT_FOUND, UNAVAILABLE, Answer, BadCall, Call, Route
from kafka_compat.metadata import topic_log, topic_rules
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.metadata.topic_nodes import creation, new_topic_id
from kafka_compat.replication.disk_work import finished
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, build_marker

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import GroupCoordinator

Services = BrokerServices


async def fork_topic(
    brokers: Sequence[Services], source: str, name: str, then: Callable[[], Awaitable[None]]
) -> TopicMetadata:
    """Create the topic `name` with the contents of `source`: its records with offsets, timestamps and leader
    epochs, the producers' sequence numbers, aborted transactions, and settings. Open transactions of `source`
    are aborted in the fork, because no producer would end them.

    `then` is awaited when the new topic has leaders. When `fork_topic` returns, the fork survives if the
    brokers are killed. It survives a machine failure when the flush that `fork_topic` starts is complete.
    Raises KafkaError if the topic cannot be forked.
    """
    controller = next((each for each in brokers if each.controller.is_active), None)
    if controller is None or not await controller.controller.begin():
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "The controller is not in this process.")
    known = controller.metadata.topics.get(source)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{source}' does not exist.")
    if known.is_internal:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{source} is an internal topic and cannot be forked.")
    topic_rules.check_new_name(name, controller.metadata)
    services = {each.broker_id: each for each in brokers}
    away = {replica for each in known.partitions for replica in each.replicas} - services.keys()
    if away:
        problem = f"Replicas of {source} are on brokers in other processes: {sorted(away)}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    fork = _Fork(controller, services, known, name)
    async with controller.topics.writes.alone():
        topic_rules.check_new_name(name, controller.metadata)
        await controller.store.put(znodes.unfinished_fork_path(name), None)
        try:
            await fork.fork_logs()
            await fork.write_nodes()
        except BaseException:
            await fork.drop_logs()
            await controller.store.delete_tree(znodes.unfinished_fork_path(name))
            raise
    try:
        created = await controller.topics.until_led(name, len(known.partitions))
        await then()
    except BaseException:
        await controller.topics.delete(name)
        raise
    finally:
        await controller.store.delete_tree(znodes.unfinished_fork_path(name))
    fork.flush()
    return created


async def delete_unfinished_forks(store: MetadataStore) -> None:
    """Tell the controller to delete the topics of forks that a crash interrupted."""
    try:
        names = await store.children(znodes.UNFINISHED_FORKS)
    except NoNode:
        return
    for name in names:
        if await store.exists(znodes.topic_path(name)) is not None:
            await store.put(znodes.delete_topic_path(name), None)
        await store.delete_tree(znodes.unfinished_fork_path(name))


class _Fork:
    def __init__(
        self, controller: Services, services: Mapping[int, Services], source: TopicMetadata, name: str
    ) -> None:
        self._controller = controller
        self._services = services
        self._source = source
        self._name = name
        self._topic_id = new_topic_id()
        self._configs = dict(controller.membership.topic_settings.overrides.of(source.name))
        self._forked: list[tuple[Services, Log]] = []

    @property
    def _replicas(self) -> dict[int, tuple[int, ...]]:
        return {each.partition: each.replicas for each in self._source.partitions}

    def _held_by(self, broker_id: int) -> list[int]:
        return [index for index, replicas in self._replicas.items() if broker_id in replicas]

    async def fork_logs(self) -> None:
        for broker_id, services in self._services.items():
            services.membership.topic_settings.overrides.put(self._name, self._configs)
            held = self._held_by(broker_id)
            await services.replicas.prepare((self._name, index, self._topic_id) for index in held)
            source, source_id = self._source.name, self._source.topic_id
            await services.replicas.prepare((source, index, source_id) for index in held)
        try:
            # Do not await, so that all logs are forked at the same moment.
            for broker_id, services in self._services.items():
                for index in self._held_by(broker_id):
                    self._forked.append((services, self._fork_log(services, index)))
        except StorageError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        for services in self._services.values():
            logs = [log for holder, log in self._forked if holder is services and log.log_start_offset]
            for path in {log.disk.path for log in logs}:
                refused = await finished(partial(services.log_dirs.store_log_starts, path))
                if refused is not None:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(refused))

    def _fork_log(self, services: Services, index: int) -> Log:
        source = (self._source.name, index)
        held = services.replicas.get(*source)
        if held is None or source not in services.log_dirs.logs:
            problem = f"The disk of {self._source.name}-{index} is offline."
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, problem)
        log: Log = services.log_dirs.fork(source, (self._name, index), self._topic_id)
        services.replicas.restore_high_watermarks({(self._name, index): held.high_watermark})
        if not held.is_leader:
            return log
        now_ms = services.clock.now_ms()
        for producer in list(log.producers.entries.values()):
            if producer.current_txn_first_offset >= 0:
                marker = build_marker(
                    EndTransactionMarker(ControlRecordType.ABORT, producer.coordinator_epoch),
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    timestamp=now_ms,
                )
                data = memoryview(bytearray(marker))
                log.append_as_leader(data, leader_epoch=held.leader_epoch, now_ms=now_ms, internal=True)
        return log

    async def write_nodes(self) -> None:
        """Create the new topic in the metadata store, with the partition states of the source topic."""
        store, name = self._controller.store, self._name
        states = {index: await self._state(index) for index in self._replicas}
        has_config = await store.exists(znodes.config_path("topics", name)) is not None
        operations = creation(TopicState(name, self._topic_id, self._replicas), self._configs, has_config)
        for index, state in states.items():
            operations.append(Create(znodes.partition_path(name, index)))
            data = znodes.encode_partition_state(state)
            operations.append(Create(znodes.partition_state_path(name, index), data))
        await store.multi(operations)
        topic_log.created(name, self._replicas)

    async def _state(self, index: int) -> PartitionState:
        path = znodes.partition_state_path(self._source.name, index)
        data, stat = await self._controller.store.get(path)
        state = znodes.decode_partition_state(self._source.name, index, data, stat.version)
        return state._replace(partition_epoch=0)

    async def drop_logs(self) -> None:
        """Delete the logs and settings of a failed fork."""
        for broker_id, services in self._services.items():
            keys = [(self._name, index) for index in self._held_by(broker_id)]
            await services.replicas.delete_all(keys)
            services.membership.topic_settings.overrides.forget(self._name)

    def flush(self) -> None:
        for services, log in self._forked:
            services.flusher.request(log, partial(_flushed, services))


def _flushed(services: Services, error: Exception | None) -> None:
    # Ignore the error, because the log directory has already reported it.
    if error is None:
        services.log_dirs.checkpoint_recovery_points()


_STATUS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    ErrorCode.TOPIC_ALREADY_EXISTS: CONFLICT,
    ErrorCode.KAFKA_STORAGE_ERROR: UNAVAILABLE,
}


class Forks:
    """Route that forks a topic. It responds when clients can use the fork and the fork survives a crash."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = brokers

    def routes(self, prefix: str) -> list[Route]:
        return [
            Route(
                "POST",
                prefix + "/topics/{topic}/fork",
                self._fork,
                "fork a topic: create a topic with the same contents, without copying records",
                {
                    "name": "string: name of the new topic",
                    "groups": "true, or an array of strings: groups whose committed offsets are copied",
                },
            )
        ]

    async def _fork(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        source, name = call.path["topic"], call.body.get("name")
        if not isinstance(name, str):
            raise BadCall(f"name={name!r}: expected the name of a topic")
        wanted = _groups(call)
        services = [each.services for each in self._brokers]
        groups: list[str] = []

        async def then() -> None:
            if wanted != []:
                groups.extend(await copy_positions(services, source, name, wanted))

        try:
            created = await fork_topic(services, source, name, then)
        except KafkaError as error:
            status = _STATUS.get(error.code, 400)
            raise BadCall(f"{error.code.name} {error.message or ''}".strip(), status) from None
        return {
            "name": name,
            "partitions": len(created.partitions),
            "groups": sorted(groups),
            "took_ms": round((time.perf_counter() - began_s) * 1000, 3),
        }


def _groups(call: Call) -> list[str] | None:
    given = call.body.get("groups", [])
    if given is True:
        return None
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given
    raise BadCall(f"groups={given!r}: expected true, or an array of group names")


async def copy_positions(
    brokers: Sequence[Services], source: str, name: str, wanted: list[str] | None
) -> list[str]:
    """Copy the offsets of the `wanted` groups (None: all) from topic `source` to topic `name`, and return the
    groups that had offsets. Raises KafkaError if the groups are loading or offsets cannot be stored.
    """
    copied: list[str] = []
    for broker in brokers:
        groups = broker.coordinators.groups.made
        if groups is not None:
            copied += await _copy_positions(groups, source, name, wanted)
    return copied


async def _copy_positions(
    groups: GroupCoordinator, source: str, name: str, wanted: list[str] | None
) -> list[str]:
    if groups.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The groups are not loaded yet.")
    stored: dict[str, asyncio.Future[ErrorCode]] = {}

    def outcome(group: str) -> asyncio.Future[ErrorCode]:
        return stored.setdefault(group, asyncio.get_running_loop().create_future())

    copied = groups.offsets.copy(source, name, wanted, lambda group, error: outcome(group).set_result(error))
    for group in copied:
        error = await outcome(group)
        if error:
            raise KafkaError(error, f"The offsets of group {group} cannot be stored.")
    return copied
