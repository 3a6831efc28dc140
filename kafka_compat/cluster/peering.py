"""Parts of a clustered broker that need other brokers: the session with the shared metadata store, the
controller link, replica fetchers, and connections.

At shutdown, the objects that depend on the session are stopped first. Then the session ends. The connections
are closed when clients are no longer served.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.cluster.config_changes import ConfigChanges, announce
from kafka_compat.cluster.controller_link import RETRY_S, Address, ControllerLink
from kafka_compat.cluster.controller_service import ControllerService
from kafka_compat.cluster.enrolment import Enrolment
from kafka_compat.cluster.features import FinalizedFeatures, UnsupportedFeatures
from kafka_compat.cluster.isr_proposals import IsrProposals
from kafka_compat.cluster.peers import Peers
from kafka_compat.cluster.shared_store import ConnectStore, CurrentSession
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import NO_VERSION, MalformedNode
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, NodeExists
from kafka_compat.errors import ErrorCode, KafkaError, StartupError, known_code
from kafka_compat.lazy import Lazy
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.producer_ids import claim_block
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from kafka_compat.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafka_compat.replication.follower import FollowerSettings
from kafka_compat.replication.replica_fetcher import ReplicaFetchers
from kafka_compat.replication.replication_quota import FOLLOWER_RATE, LEADER_RATE, ReplicationQuotas
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.cluster.forwarding import Forwarding
    from kafka_compat.cluster.remote_partitions import RemotePartitions
    from kafka_compat.cluster.remote_persister import RemoteShareCoordinators
    from kafka_compat.cluster.remote_producer import RemoteProducer
    from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
    from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.transactions.marker_writer import MarkerWriter
    from kafka_compat.transactions.verification import Coordinators


log = logging.getLogger(__name__)

FAILURE_PAUSE_S = 1.0
"""Backoff in seconds after an error that an operator must fix, such as a malformed producer ID block."""
FIRST_VERSION_OF_LEVEL_0 = 4
"""The first version of ApiVersions that reports features with 0 as the lowest level."""
TELL_S = 2.0
"""Maximum time in seconds to wait, at shutdown, until brokers have received new leaders from this controller.
"""


class BrokerAddresses:
    """Inter-broker addresses, from the metadata, controller requests and registrations."""

    def __init__(self, metadata: MetadataCache, store: MetadataStore, listener: str) -> None:
        """`listener` is the name of the inter-broker listener."""
        self._metadata = metadata
        self._store = store
        self._listener = listener
        self.leaders: dict[int, Address] = {}
        """Addresses of leaders from LeaderAndIsr requests, which may arrive before the metadata."""

    def known(self, broker_id: int) -> Address | None:
        """Return a broker's address according to the metadata, or None if the broker is unknown."""
        broker = self._metadata.brokers.get(broker_id)
        return broker.endpoints.get(self._listener) if broker is not None else None

    async def of_controller(self, broker_id: int) -> Address | None:
        """Return the controller's address from the metadata or its registration, or None if it is unknown."""
        known = self.known(broker_id)
        if known is not None:
            return known
        try:
            data, _ = await self._store.get(znodes.broker_path(broker_id))
            endpoint = znodes.decode_broker(broker_id, data).endpoint(self._listener)
        except (MetadataStoreError, MalformedNode):
            return None
        return (endpoint.host, endpoint.port) if endpoint is not None else None


class Peering:
    def __init__(
        self,
        context: BrokerContext,
        connect_store: ConnectStore,
        service: ControllerService,
        tasks: Tasks,
        malformed: MalformedNodes,
        settings_changed: Callable[[str], Awaitable[None]],
    ) -> None:
        """`settings_changed` is called with the path of each entity whose settings another broker changed."""
        assert isinstance(context.store, CurrentSession)
        self._context = context
        self._store = context.store
        self._service = service
        self._tasks = tasks
        self._security = context.broker_security()
        config, metadata = context.config, context.metadata
        self._protocol = config.inter_broker_protocol
        self._malformed = malformed
        self._client_id = f"broker-{metadata.local_id}"
        self.addresses = BrokerAddresses(metadata, self._store, config.inter_broker_listener)
        self._link = self._controller_link(self._client_id)
        self.features = FinalizedFeatures(tasks, config, metadata, malformed, peer_levels=self.peer_levels)
        self.config_changes = ConfigChanges(tasks, settings_changed, context.clock.now_ms, malformed)
        self._enrolment = Enrolment(
            self._store,
            connect_store,
            tasks,
            features=self.features,
            service=service,
            config_changes=self.config_changes,
            now_ms=context.clock.now_ms,
            wait_s=2 * config.session_timeout_ms / 1000,
        )
        self.proposals = IsrProposals(
            metadata.local_id,
            self._link,
            broker_epoch=lambda: self.broker_epoch,
            is_alive=lambda other: other in metadata.brokers,
            version=self._protocol.alter_partition,
        )
        self.quotas = ReplicationQuotas(
            metadata.local_id,
            config.int("replication.quota.window.num"),
            1000 * config.int("replication.quota.window.size.seconds"),
        )
        self._peers = Peers(
            self.addresses.known, self._client_id, config.int("request.timeout.ms"), self._security
        )
        self.remote_partitions = Lazy(self._make_remote_partitions)
        self.remote_producer = Lazy(self._make_remote_producer)
        self._fetchers: ReplicaFetchers
        self.forwarding: Forwarding | None = None
        self._handed_over = False
        self.can_store_change: Callable[[], bool] = lambda: True
        """Function that returns whether the metadata store can be written, as far as this broker knows."""

    def _controller_link(self, client_id: str) -> ControllerLink:
        timeout_ms = self._context.config.int("controller.socket.timeout.ms")
        return ControllerLink(
            client_id, self._service, self.addresses.of_controller, timeout_ms, self._security
        )

    @property
    def broker_epoch(self) -> int:
        return self._enrolment.broker_epoch

    def forward_requests(self) -> None:
        """Forward clients' requests to the controller if another broker is the controller."""
        from kafka_compat.cluster.forwarding import CLIENT_ID_PREFIX, Forwarding

        # A connection of its own: an election that a client has requested must not delay ISR proposals.
        link = self._controller_link(f"{CLIENT_ID_PREFIX}{self._context.metadata.local_id}")
        self.forwarding = Forwarding(link)

    def fetch_for(self, replicas: ReplicaManager) -> None:
        """Start fetching followed partitions from their leaders."""
        context, config = self._context, self._context.config
        self._fetchers = ReplicaFetchers(
            context.metadata.local_id,
            FollowerSettings(
                fetch_max_bytes=config.int("replica.fetch.max.bytes"),
                response_max_bytes=config.int("replica.fetch.response.max.bytes"),
                min_bytes=config.int("replica.fetch.min.bytes"),
                wait_max_ms=config.int("replica.fetch.wait.max.ms"),
                backoff_ms=config.int("replica.fetch.backoff.ms"),
                fetch_version=self._protocol.fetch,
                list_offsets_version=self._protocol.list_offsets,
            ),
            self._client_to,
            context.clock,
            fetchers_per_leader=config.int("num.replica.fetchers"),
            quota=self.quotas.follower,
        )
        replicas.fetching = self._fetchers

    def _client_to(self, leader_id: int) -> BrokerClient | None:
        address = self.addresses.known(leader_id) or self.addresses.leaders.get(leader_id)
        if address is None:
            return None
        timeout_ms = self._context.config.int("replica.socket.timeout.ms")
        return BrokerClient(*address, self._client_id, request_timeout_ms=timeout_ms, security=self._security)

    async def allocate_producer_ids(self) -> znodes.ProducerIdBlock:
        """Return a block of producer IDs, from the controller (KIP-730) or, with the protocol of Kafka 2.8,
        from ZooKeeper. Failed attempts are retried.
        """
        if self._protocol.controller_allocates_producer_ids:
            return await self._ask_for_producer_ids()
        while True:
            try:
                return await claim_block(self._store, self._context.metadata.local_id)
            except MetadataStoreError as error:
                log.info("Could not claim a block of producer IDs: %r; retrying", error)
                await asyncio.sleep(RETRY_S)
            except MalformedNode as error:
                self._malformed.report(error, NO_VERSION, "no producer ID is allocated")
                await asyncio.sleep(FAILURE_PAUSE_S)

    async def _ask_for_producer_ids(self) -> znodes.ProducerIdBlock:
        local_id = self._context.metadata.local_id
        while True:
            request = AllocateProducerIdsRequest(broker_id=local_id, broker_epoch=self.broker_epoch)
            response: AllocateProducerIdsResponse = await self._link.send(
                ApiKey.ALLOCATE_PRODUCER_IDS, 0, request
            )
            if response.error_code == ErrorCode.NONE:
                first = response.producer_id_start
                return znodes.ProducerIdBlock(local_id, first, first + response.producer_id_len - 1)
            passes_soon = response.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
            await asyncio.sleep(RETRY_S if passes_soon else FAILURE_PAUSE_S)

    # --- other brokers

    def marker_writer(self, local: MarkerWriter) -> MarkerWriter:
        from kafka_compat.cluster.remote_markers import ClusterMarkerWriter

        return ClusterMarkerWriter(local, self._context.metadata, self._peers, self._topic_exists)

    def coordinators(self, local: Coordinators) -> Coordinators:
        from kafka_compat.cluster.remote_coordinators import ClusterCoordinators

        return ClusterCoordinators(
            local, self._context.metadata, self._peers, self._protocol.add_partitions_to_txn
        )

    def share_coordinators(self) -> RemoteShareCoordinators:
        from kafka_compat.cluster.remote_persister import RemoteShareCoordinators

        return RemoteShareCoordinators(self._peers)

    def _make_remote_partitions(self) -> RemotePartitions:
        from kafka_compat.cluster.remote_partitions import RemotePartitions

        timeout_ms = self._context.config.int("request.timeout.ms")
        peers = Peers(self.addresses.known, self._client_id, timeout_ms, self._security)
        return RemotePartitions(peers, self._protocol.list_offsets)

    def _make_remote_producer(self) -> RemoteProducer:
        from kafka_compat.cluster.remote_producer import RemoteProducer

        # Use separate connections, because a batch may wait for followers, and responses arrive in order.
        timeout_ms = self._context.config.int("request.timeout.ms")
        return RemoteProducer(Peers(self.addresses.known, self._client_id, timeout_ms, self._security))

    async def peer_levels(self) -> dict[int, dict[str, int]]:
        """Return the highest level of each feature that each other live broker supports. Raises KafkaError if
        a broker does not respond.
        """
        request = ApiVersionsRequest(client_software_name="kafka-compat", client_software_version="1")
        found: dict[int, dict[str, int]] = {}
        for broker_id in sorted(self._context.metadata.brokers.keys() - {self._context.metadata.local_id}):
            try:
                response = await self._peers.client(broker_id).send(
                    ApiKey.API_VERSIONS, FIRST_VERSION_OF_LEVEL_0, request
                )
            except ConnectionError as error:
                problem = f"Broker {broker_id} did not report the features that it supports: {error}"
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, problem) from error
            except MalformedRequest:
                # A broker that does not know this version responds with version 0, without features.
                found[broker_id] = {}
            else:
                found[broker_id] = {each.name: each.max_version for each in response.supported_features}
        return found

    async def _topic_exists(self, topic: str) -> bool:
        """Return whether the topic exists in the store, or True if the store does not respond."""
        try:
            return await self._store.exists(znodes.topic_path(topic)) is not None
        except MetadataStoreError:
            return True

    # --- the session

    async def register(self, broker: BrokerInfo) -> None:
        """Register this broker. Raises StartupError if this fails, for example because its ID is taken."""
        try:
            await self._enrolment.enter_first(broker)
        except NodeExists as error:
            raise StartupError(f"another broker with broker.id={broker.broker_id} is registered") from error
        except UnsupportedFeatures as error:
            raise StartupError(str(error)) from error

    def announce(self, entity_path: str) -> None:
        """Notify all brokers that the settings of an entity have changed."""
        self._tasks.spawn(
            f"announcing new settings of {entity_path}",
            partial(announce, self._store, entity_path),
            restarts=True,
        )

    def apply_settings(self) -> None:
        """Apply the current settings for fetchers and replication quotas."""
        config = self._context.config
        self._fetchers.resize(config.int("num.replica.fetchers"))
        self.quotas.set_rates(config.int(LEADER_RATE), config.int(FOLLOWER_RATE))

    # --- shutdown

    async def shut_down_controlled(self) -> None:
        """Move leadership to other brokers with ControlledShutdown requests. Failed requests are retried."""
        config = self._context.config
        if self._handed_over or not config.bool("controlled.shutdown.enable"):
            return
        self._handed_over = True
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        for attempt in range(config.int("controlled.shutdown.max.retries")):
            if not self.can_store_change():
                log.warning("Controlled shutdown failed: the metadata quorum has no leader")
                return
            if attempt:
                await asyncio.sleep(config.int("controlled.shutdown.retry.backoff.ms") / 1000)
            response = await self._request_shutdown()
            if response is None:
                log.warning("Controlled shutdown failed: no controller responded")
            elif response.error_code != ErrorCode.NONE:
                log.warning("Controlled shutdown failed: %s", known_code(response.error_code).name)
            elif not response.remaining_partitions:
                # If this broker is the controller, wait until the other brokers know the new leaders.
                await self._service.drain(TELL_S)
                took_ms = int((loop.time() - began_s) * 1000)
                log.info("Controlled shutdown of broker %d succeeded (%d ms)", config.broker_id, took_ms)
                return
            else:
                left = len(response.remaining_partitions)
                log.warning("Controlled shutdown is incomplete (partitions without a new leader: %d)", left)

    async def _request_shutdown(self) -> ControlledShutdownResponse | None:
        config = self._context.config
        request = ControlledShutdownRequest(broker_id=config.broker_id, broker_epoch=self.broker_epoch)
        try:
            async with asyncio.timeout(config.int("controller.socket.timeout.ms") / 1000):
                return await self._link.send_once(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
        except TimeoutError:
            return None

    def begin_leaving(self) -> None:
        """Stop replacing expired sessions."""
        self._enrolment.is_leaving = True

    async def leave(self) -> None:
        """Stop the objects that depend on the session, before the session ends."""
        await self.proposals.close()
        await self._enrolment.leave()
        await self._link.close()
        if self.forwarding is not None:
            await self.forwarding.close()

    async def close(self) -> None:
        """Close the connections to other brokers."""
        await self._peers.close()
        if self.remote_partitions.made is not None:
            await self.remote_partitions.made.close()
        if self.remote_producer.made is not None:
            await self.remote_producer.made.close()
        await self._fetchers.close()
