"""Client telemetry of one broker: its subscriptions, its client instances, and the receiver of pushes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.following import Following
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.store.metadata_store import Event, MetadataStore, MetadataStoreError
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.long_work import Steps
from kafka_compat.telemetry.instances import ClientInstance, ClientInstances, Push
from kafka_compat.telemetry.payload import ABOUT, IDENTITY, PushRefused, bounded, read_push
from kafka_compat.telemetry.resources import resource_names, resource_settings
from kafka_compat.telemetry.subscriptions import Client, Subscription, subscription

if TYPE_CHECKING:
    from kafka_compat.storage.clock import Clock
    from kafka_compat.tasks import Tasks
    from kafka_compat.telemetry.payload import Pairs
    from kafka_compat.telemetry.pushed import PushedMetrics

log = logging.getLogger(__name__)

_GROWTH_MAX: Final = 4
"""The maximum size of a decompressed push, in multiples of telemetry.max.bytes."""


class ClientTelemetry:
    """The client telemetry of one broker. Subscriptions are loaded at the first client request."""

    def __init__(
        self, store: MetadataStore, tasks: Tasks, clock: Clock, pushed: PushedMetrics, max_bytes: int
    ) -> None:
        """`max_bytes` is telemetry.max.bytes."""
        self.max_bytes = max_bytes
        self._store = store
        self._clock = clock
        self._pushed = pushed
        self._instances = ClientInstances(uuid4, max_bytes)
        self._following = Following(
            "client metrics", store, (znodes.CLIENT_METRICS,), self._read, (), tasks, self._read_if_changed
        )
        self._starting = asyncio.Lock()
        self._has_started = False
        self._has_changed = False

    # --- subscriptions

    async def ready(self) -> None:
        """Load the subscriptions if necessary. While the store is unavailable, there are no subscriptions."""
        if self._has_started:
            return
        async with self._starting:
            if not self._has_started:
                try:
                    await self._following.start()
                except MetadataStoreError as error:
                    log.info("Could not read the client metrics subscriptions: %r", error)
                else:
                    self._has_started = True

    async def _read(self) -> None:
        self._has_changed = False
        subscriptions: list[Subscription] = []
        for name in await resource_names(self._store, self._changed):
            try:
                settings = await resource_settings(self._store, name)
                if settings:
                    subscriptions.append(subscription(settings))
            except (MalformedNode, KafkaError) as error:
                log.error("Ignored invalid client metrics subscription %s: %s. Create it again", name, error)
        self._instances.subscribe(subscriptions)

    def _changed(self, event: Event) -> None:
        self._has_changed = True
        self._following.wake()

    async def _read_if_changed(self) -> None:
        if self._has_changed:
            await self._read()

    # --- requests

    def ask(self, instance_id: UUID, client: Client) -> tuple[UUID, ClientInstance | ErrorCode]:
        """Process GetTelemetrySubscriptions, like ClientInstances.ask."""
        return self._instances.ask(instance_id, client, self._clock.monotonic_ms())

    def push(self, instance_id: UUID, client: Client, push: Push, metrics: bytes) -> Steps[ErrorCode]:
        """Process PushTelemetry, and return the error code."""
        now_ms = self._clock.monotonic_ms()
        instance, error = self._instances.push(instance_id, client, push, now_ms)
        if error or instance is None or not metrics:
            return error
        size_max, series_max = _GROWTH_MAX * self.max_bytes, self._pushed.series_of_one_max
        try:
            read = yield lambda: read_push(metrics, push.compression_type, size_max, series_max)
        except PushRefused as refused:
            who = client.client_id, client.client_source_address
            log.info("Rejected a telemetry push from client %s (%s): %s", *who, refused)
            instance.last_error = (
                ErrorCode.TELEMETRY_TOO_LARGE if refused.is_too_large else ErrorCode.INVALID_RECORD
            )
            return instance.last_error
        now_ms = self._clock.monotonic_ms()
        identity, about = _identity(instance_id, client)
        self._pushed.take(instance_id, identity, about, read, instance.shown_for_ms, now_ms)
        return ErrorCode.NONE

    def forget(self, instance_id: UUID) -> None:
        """Remove an instance whose connection was closed."""
        self._instances.forget(instance_id)


def _identity(instance_id: UUID, client: Client) -> tuple[Pairs, Pairs]:
    """Return the labels of all metrics of a client, and the labels added to its client-identity sample."""
    values = (
        client.client_id or "",
        znodes.encode_topic_id(instance_id),
        client.client_software_name,
        client.client_software_version,
        client.client_source_address,
    )
    labels = dict(zip(ABOUT, values, strict=True))
    return bounded({name: labels.pop(name) for name in IDENTITY}), bounded(labels)
