"""A cluster of three brokers in this process on one embedded metadata store, and requests to the brokers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka_compat.broker import Broker, BrokerHooks
from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.cluster.controller_election import ControllerEpoch
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.membership import Membership
from kafka_compat.cluster.shared_store import ConnectStore, CurrentSession, SharedStore
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.served import CLUSTER_SERVED
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_compat.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.clock import Clock
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import Record, build_batch, iter_records
from tests.support import waiting
from tests.support.client_security import for_brokers
from tests.support.ports import free_port
from tests.support.secured import Secured, first_nodes

SETTLE_S = 15.0


class EmbeddedBroker(Broker):
    """A broker of the cluster, with accessors for tests."""

    def __init__(self, config: BrokerConfig, connect_store: ConnectStore, clock: Clock | None = None) -> None:
        super().__init__(
            config, Membership(SharedStore(connect_store)), CLUSTER_SERVED, BrokerHooks(clock=clock)
        )

    @property
    def replicas(self) -> ReplicaManager:
        return self.services.replicas

    @property
    def metadata(self) -> MetadataCache:
        return self.services.metadata

    @property
    def log_dirs(self) -> LogDirs:
        return self.services.log_dirs

    def overrides(self, topic: str) -> Mapping[str, str]:
        """Return the topic settings that this broker knows."""
        return self.membership.topic_settings.overrides.of(topic)

    @property
    def controller(self) -> ControllerService:
        return self.membership.service

    @property
    def store(self) -> CurrentSession:
        store = self.membership.store
        assert isinstance(store, CurrentSession)
        return store

    @property
    def broker_epoch(self) -> int:
        return self.membership.broker_epoch


class EmbeddedCluster:
    """Brokers 1 to `count`. Each broker keeps its directory and port when it is restarted."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        settings: Mapping[str, str] | None = None,
        racks: Mapping[int, str] | None = None,
        *,
        ports: Mapping[int, int] | None = None,
        advertised: Mapping[int, int] | None = None,
        clock: Clock | None = None,
        security: Secured | None = None,
    ) -> None:
        """`ports` maps broker ids to ports (default: free ports), and `advertised` maps them to advertised
        ports. `clock` is used by all brokers. With `security`, all clients must authenticate, including the
        clients of this class.
        """
        self.directory = directory
        self.count = count
        self.brokers: dict[int, EmbeddedBroker] = {}
        self.sessions: dict[int, Any] = {}
        self._settings = dict(settings or {})
        self._racks = dict(racks or {})
        self._ports: dict[int, int] = dict(ports or {})
        self._advertised = advertised or {}
        self._clock = clock
        self._security = security
        self._clients: dict[int, BrokerClient] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self.tree = EmbeddedMetadataStore(str(directory / "tree.journal"))

    async def start(self) -> None:
        if self._security is not None:
            session = self.tree.connect()
            for path, data in first_nodes().items():
                await session.put(path, data)
            await session.close()
        await asyncio.gather(*(self.start_broker(broker_id) for broker_id in range(1, self.count + 1)))

    async def start_broker(self, broker_id: int) -> EmbeddedBroker:
        address = f"127.0.0.1:{self._ports.get(broker_id, 0)}"
        config = BrokerConfig.from_properties(
            {
                "broker.id": str(broker_id),
                "listeners": f"PLAINTEXT://{address}",
                "log.dirs": str(self.directory / f"broker-{broker_id}"),
                "offsets.topic.num.partitions": "3",
                "transaction.state.log.num.partitions": "3",
                "replica.lag.time.max.ms": "1500",
                "group.initial.rebalance.delay.ms": "0",
                **(self._security.settings(address) if self._security is not None else {}),
                **self._settings,
                **({"broker.rack": self._racks[broker_id]} if broker_id in self._racks else {}),
            }
            | (
                {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._advertised[broker_id]}"}
                if broker_id in self._advertised
                else {}
            )
        )

        async def connect() -> MetadataStore:
            session = self.sessions[broker_id] = self.tree.connect()
            return session

        broker = EmbeddedBroker(config, connect, self._clock)
        await broker.start()
        ((_, self._ports[broker_id]),) = broker.addresses.values()
        self.brokers[broker_id] = broker
        return broker

    def port(self, broker_id: int) -> int:
        """Return the port of a broker, running or not."""
        return self._ports[broker_id]

    def reserve_port(self, broker_id: int) -> int:
        """Reserve a port for a broker that is not yet started."""
        self._ports[broker_id] = free_port()
        return self._ports[broker_id]

    async def stop_broker(self, broker_id: int, *, controlled: bool = True) -> None:
        await self.brokers.pop(broker_id).stop(controlled=controlled)
        client = self._clients.pop(broker_id, None)
        if client is not None:
            await client.close()

    async def stop(self) -> None:
        for broker_id in list(self.brokers):
            await self.stop_broker(broker_id, controlled=False)
        await self.tree.close()

    async def expire_session(self, broker_id: int) -> None:
        """End the session of a broker, as if the broker had been unreachable for too long."""
        await self.sessions[broker_id].expire()

    # --- the state of the cluster

    @property
    def controller(self) -> EmbeddedBroker:
        return next(broker for broker in self.brokers.values() if broker.controller.is_active)

    def epoch(self, broker: EmbeddedBroker | None = None) -> ControllerEpoch | None:
        """Return the epoch of a broker as controller (default: the controller), or None if it is not one."""
        term = (broker or self.controller).controller.term
        return None if term is None else term.epoch

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader according to all live brokers, or -1 if they disagree or if it is not alive."""
        known = {
            found.leader if (found := broker.metadata.partition(topic, partition)) else -1
            for broker in self.brokers.values()
        }
        leader = known.pop() if len(known) == 1 else -1
        if leader not in self.brokers:
            return -1
        held = self.brokers[leader].replicas.get(topic, partition)
        return leader if held is not None and held.is_leader else -1

    def isr(self, topic: str, partition: int = 0) -> set[int]:
        """Return the in-sync replicas according to all live brokers, or the empty set if they disagree."""
        known = {
            frozenset(found.isr if (found := broker.metadata.partition(topic, partition)) else ())
            for broker in self.brokers.values()
        }
        return set(known.pop()) if len(known) == 1 else set()

    def is_at_rest(self, topic: str, partitions: int) -> bool:
        """Return whether all records of these partitions are committed and no transaction is open.
        Transaction markers are written only after the producer has received its response.
        """
        for index in range(partitions):
            broker = self.brokers.get(self.leader(topic, index))
            held = broker.replicas.get(topic, index) if broker is not None else None
            if held is None or held.last_stable_offset < held.log.log_end_offset:
                return False
        return True

    async def send(self, broker_id: int, key: ApiKey, version: int, request: Any) -> Any:
        client = self._clients.get(broker_id)
        if client is None:
            port = self._ports[broker_id]
            client = BrokerClient("127.0.0.1", port, "test", security=for_brokers())
            self._clients[broker_id] = client
        return await client.send(key, version, request)

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 3,
        configs: Mapping[str, str] | None = None,
        assignment: Sequence[int] = (),
    ) -> ErrorCode:
        """Create a topic, and wait until the other brokers have its metadata, because the response does not
        wait for them.

        With `assignment`, the topic has one partition on these brokers.
        """
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=-1 if assignment else partitions,
                    replication_factor=-1 if assignment else replicas,
                    assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=list(assignment))]
                    if assignment
                    else [],
                    configs=[
                        CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
                    ],
                )
            ],
            timeout_ms=10_000,
        )
        response = await self.send(self.controller.broker_id, ApiKey.CREATE_TOPICS, 7, request)
        error = ErrorCode(response.topics[0].error_code)
        if error == ErrorCode.NONE:
            brokers = list(self.brokers.values())
            with contextlib.suppress(TimeoutError):  # a broker that is cut off does not respond
                await until(lambda: all(name in broker.metadata.topics for broker in brokers), 2)
        return error

    async def produce(
        self, broker_id: int, topic: str, value: bytes, acks: int = -1, timeout_ms: int = 5000
    ) -> ErrorCode:
        """Append one record to partition 0 on this broker."""
        batch = build_batch([Record(timestamp=1, key=None, value=value)])
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=0, records=memoryview(batch))],
                )
            ],
        )
        response = await self.send(broker_id, ApiKey.PRODUCE, 9, request)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    async def values(self, broker_id: int, topic: str) -> list[bytes]:
        """Return the committed records of partition 0, as a consumer reads them from this broker."""
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=2**30,
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=UUID(int=0),
                    partitions=[
                        FetchPartition(
                            partition=0, current_leader_epoch=-1, fetch_offset=0, partition_max_bytes=2**30
                        )
                    ],
                )
            ],
        )
        response = await self.send(broker_id, ApiKey.FETCH, 11, request)
        data = response.responses[0].partitions[0]
        assert data.error_code == 0
        found: list[bytes] = []
        position = 0
        for header in read_headers(data.records):
            batch = data.records[position : position + header.size_bytes]
            found.extend(record.value or b"" for record in iter_records(batch))
            position += header.size_bytes
        return found


async def until(condition: Callable[[], object | Awaitable[object]], timeout_s: float = SETTLE_S) -> None:
    """Wait until the condition holds. Raises TimeoutError after `timeout_s`."""
    await waiting.until(condition, timeout_s)


async def until_missing(session: MetadataStore, path: str) -> None:
    """Wait until a node is deleted. Raises TimeoutError after SETTLE_S."""

    async def is_missing() -> bool:
        return await session.exists(path) is None

    await until(is_missing)
