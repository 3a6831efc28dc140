"""Encoding and sending of the controller's requests to other brokers."""

from collections.abc import Callable
from typing import Any

from kafka_compat.cluster import controller_wire as wire
from kafka_compat.cluster.broker_channels import ControllerRequest
from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.coordination.controller import effects
from kafka_compat.coordination.controller.events import Event
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataTopicState

Post = Callable[[Event], None]


def leader_and_isr(
    controller_id: int, effect: effects.SendLeaderAndIsr, listener: str, version: int, post: Post
) -> ControllerRequest:
    """Build a LeaderAndIsr request of at least version 5. `post` is called with the response as an event."""

    def make() -> Any:
        return wire.leader_and_isr(controller_id, effect, listener)

    return ControllerRequest(
        "LeaderAndIsr",
        _Sending(ApiKey.LEADER_AND_ISR, version, make).send,
        lambda response: post(wire.leader_and_isr_answered(effect, response)),
    )


def stop_replica(
    controller_id: int, effect: effects.SendStopReplica, version: int, post: Post | None
) -> ControllerRequest:
    """Build a StopReplica request of at least version 3. `post`, if any, is called with the response as an
    event.
    """

    def make() -> Any:
        return wire.stop_replica(controller_id, effect)

    return ControllerRequest(
        "StopReplica",
        _Sending(ApiKey.STOP_REPLICA, version, make).send,
        None if post is None else lambda response: post(wire.stop_replica_answered(effect, response)),
    )


class UpdateMetadata:
    """The UpdateMetadata requests for one effect. They share one list of topics."""

    def __init__(self, controller_id: int, effect: effects.SendUpdateMetadata, version: int) -> None:
        self._controller_id = controller_id
        self._version = version
        self._effect = effect
        self._topics: list[UpdateMetadataTopicState] | None = None

    def request(self, broker_epoch: int) -> ControllerRequest:
        """Build the request to the broker with this broker epoch."""

        def make() -> Any:
            if self._topics is None:
                self._topics = wire.metadata_topics(self._effect)
            return wire.update_metadata(self._controller_id, self._effect, broker_epoch, self._topics)

        sending = _Sending(ApiKey.UPDATE_METADATA, self._version, make)
        return ControllerRequest("UpdateMetadata", sending.send)


class _Sending:
    def __init__(self, api_key: ApiKey, version: int, make: Callable[[], Any]) -> None:
        self._api_key = api_key
        self._version = version
        self._make = make
        self._message: Any = None

    async def send(self, client: BrokerClient | None) -> Any:
        assert client is not None
        if self._message is None:
            self._message = self._make()
        return await client.send(self._api_key, self._version, self._message)
