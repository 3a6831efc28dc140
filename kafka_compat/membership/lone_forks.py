"""Forks of topics, on a broker that is alone: a second topic that holds what the first one holds now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import TopicState
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.membership.foundation import Foundation
from kafka_compat.membership.lone_topics import LoneTopics
from kafka_compat.metadata import topic_log, topic_rules
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.metadata.topic_nodes import describe_partitions, new_topic_id
from kafka_compat.replication.disk_work import finished
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, build_marker


class LoneForks:
    """See the module."""

    def __init__(self, foundation: Foundation, replicas: ReplicaManager, topics: LoneTopics) -> None:
        self._clock = foundation.clock
        self._metadata = foundation.metadata
        self._log_dirs = foundation.log_dirs
        self._flusher = foundation.flusher
        self._overrides = foundation.topic_overrides
        self._store = foundation.store
        self._replicas = replicas
        self._topics = topics

    async def fork(self, source: str, name: str, then: Callable[[], Awaitable[None]]) -> TopicMetadata:
        """Make the topic `name` of what `source` holds: records with their offsets, times and leader epochs,
        producers' sequences, aborted transactions, settings. Transactions that are open in `source` are
        aborted in the fork, since nobody would end them there.

        It survives a kill of the broker once `then` has returned, and an end of the machine as soon as its
        flush, which is begun, is done. Raises KafkaError.
        """
        known = self._metadata.topics.get(source)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{source}' does not exist.")
        if known.is_internal:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{source} is Kafka's own: it cannot be forked.")
        replicas = {each.partition: each.replicas for each in known.partitions}
        topic_id = new_topic_id()
        state = TopicState(name, topic_id, replicas)
        epochs = {each.partition: each.leader_epoch for each in known.partitions}
        forked: list[Log] = []

        async def make_logs() -> dict[int, int]:
            indexes = sorted(replicas)
            await self._replicas.prepare((name, index, topic_id) for index in indexes)
            await self._replicas.prepare((source, index, known.topic_id) for index in indexes)
            try:
                # All at one moment.
                forked.extend(self._fork(source, name, index, topic_id, epochs[index]) for index in indexes)
            except StorageError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            for path in {log.disk.path for log in forked if log.log_start_offset}:
                refused = await finished(partial(self._log_dirs.store_log_starts, path))
                if refused is not None:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(refused))
            return epochs

        async with self._topics.lock:
            made = await self._make(state, self._overrides.of(source), make_logs, then)
        for log in forked:
            self._flusher.request(log, self._flushed)
        return made

    async def _make(
        self,
        state: TopicState,
        configs: Mapping[str, str],
        make_logs: Callable[[], Awaitable[Mapping[int, int]]],
        then: Callable[[], Awaitable[None]],
    ) -> TopicMetadata:
        name = state.name
        topic_rules.check_new_name(name, self._metadata)
        # As if it were being deleted, until it is whole.
        await self._store.put(znodes.delete_topic_path(name), None)
        self._overrides.put(name, configs)
        try:
            epochs = await make_logs()
            await self._topics.write_topic(state, configs, epochs)
            partitions = [
                replace(each, leader_epoch=epochs[each.partition])
                for each in describe_partitions(state.replicas)
            ]
            made = TopicMetadata(name, state.topic_id or UUID(int=0), tuple(partitions))
            await self._topics.lead_all(made, is_new=False)
            await self._topics.tell_leading(made)
            await then()
        except BaseException:
            await self._topics.drop(name)
            raise
        await self._store.delete_tree(znodes.delete_topic_path(name))
        topic_log.made(name, state.replicas)
        return made

    def _fork(self, source: str, name: str, index: int, topic_id: UUID, epoch: int) -> Log:
        if (source, index) not in self._log_dirs.logs:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The disk of {source}-{index} is offline.")
        log = self._log_dirs.fork((source, index), (name, index), topic_id)
        now_ms = self._clock.now_ms()
        for producer in list(log.producers.entries.values()):
            if producer.current_txn_first_offset >= 0:
                marker = build_marker(
                    EndTransactionMarker(ControlRecordType.ABORT, producer.coordinator_epoch),
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    timestamp=now_ms,
                )
                data = memoryview(bytearray(marker))
                log.append_as_leader(data, leader_epoch=epoch, now_ms=now_ms, internal=True)
        return log

    def _flushed(self, error: Exception | None) -> None:
        # The disk has told of an error.
        if error is None:
            self._log_dirs.checkpoint_recovery_points()
