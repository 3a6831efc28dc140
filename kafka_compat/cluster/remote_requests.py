"""Encoding and sending of the controller's requests to other brokers."""

from collections.abc import Callable
from typing import Any, Final, cast

from kafka_compat.cluster import controller_wire as wire
from kafka_compat.cluster.broker_channels import ControllerRequest
from kafka_compat.cluster.broker_client import BrokerClient, Encoded
from kafka_compat.coordination.controller import effects
from kafka_compat.coordination.controller.events import Event
from kafka_compat.long_work import LongWork
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey

Post = Callable[[Event], None]

_EPOCH_BYTES: Final = 8
_ENCODED_AT_ONCE: Final = 1_000
"""Number of partitions up to which a request is encoded on the event loop: about 10 ms."""


def leader_and_isr(
    controller_id: int,
    effect: effects.SendLeaderAndIsr,
    listener: str,
    version: int,
    post: Post,
    long_work: LongWork,
) -> ControllerRequest:
    """Build a LeaderAndIsr request of at least version 5. `post` is called with the response as an event."""

    def encode() -> bytes:
        return _encoded(wire.leader_and_isr(controller_id, effect, listener), version)

    return ControllerRequest(
        "LeaderAndIsr",
        _Sending(ApiKey.LEADER_AND_ISR, version, encode, _thread_for(effect, long_work)).send,
        lambda response: post(wire.leader_and_isr_answered(effect, response)),
    )


def stop_replica(
    controller_id: int, effect: effects.SendStopReplica, version: int, post: Post | None
) -> ControllerRequest:
    """Build a StopReplica request of at least version 3. `post`, if any, is called with the response as an
    event.
    """

    def encode() -> bytes:
        return _encoded(wire.stop_replica(controller_id, effect), version)

    return ControllerRequest(
        "StopReplica",
        _Sending(ApiKey.STOP_REPLICA, version, encode).send,
        None if post is None else lambda response: post(wire.stop_replica_answered(effect, response)),
    )


class UpdateMetadata:
    """The UpdateMetadata requests for one effect. They are encoded once, because only the broker epoch of the
    receiver differs.
    """

    def __init__(
        self, controller_id: int, effect: effects.SendUpdateMetadata, version: int, long_work: LongWork
    ) -> None:
        self._controller_id = controller_id
        self._effect = effect
        self._version = version
        self._long_work = long_work
        self._parts: tuple[bytes, bytes] | None = None
        """The encoded request before and after the broker epoch."""

    def request(self, broker_epoch: int) -> ControllerRequest:
        """Build the request to the broker with this broker epoch."""

        def encode() -> bytes:
            if self._parts is None:
                body, first = self._encode(self._effect, 0), self._epoch_position()
                self._parts = body[:first], body[first + _EPOCH_BYTES :]
            return broker_epoch.to_bytes(_EPOCH_BYTES, signed=True).join(self._parts)

        thread = _thread_for(self._effect, self._long_work)
        sending = _Sending(ApiKey.UPDATE_METADATA, self._version, encode, thread)
        return ControllerRequest("UpdateMetadata", sending.send)

    def _encode(self, effect: effects.SendUpdateMetadata, broker_epoch: int) -> bytes:
        return _encoded(wire.update_metadata(self._controller_id, effect, broker_epoch), self._version)

    def _epoch_position(self) -> int:
        """Return the position of the broker epoch in the encoded request."""
        empty = self._effect._replace(partitions=(), live_brokers=())
        first, second = (self._encode(empty, epoch) for epoch in (0, -1))
        return next(i for i, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)


class _Sending:
    def __init__(
        self,
        api_key: ApiKey,
        version: int,
        encode: Callable[[], bytes],
        long_work: LongWork | None = None,
    ) -> None:
        """`encode` returns the body of the request. With `long_work`, it is called in another thread."""
        self._api_key = api_key
        self._version = version
        self._encode = encode
        self._long_work = long_work
        self._request: Encoded | None = None

    async def send(self, client: BrokerClient | None) -> Any:
        assert client is not None
        if self._request is None:
            if self._long_work is None:
                body = self._encode()
            else:
                body = await self._long_work.in_thread(self._encode)
            self._request = Encoded(body)
        return await client.send(self._api_key, self._version, self._request)


def _thread_for(
    effect: effects.SendLeaderAndIsr | effects.SendUpdateMetadata, long_work: LongWork
) -> LongWork | None:
    """Return `long_work` if the effect's request takes long to encode."""
    return long_work if len(effect.partitions) > _ENCODED_AT_ONCE else None


def _encoded(message: object, version: int) -> bytes:
    """Encode a message without keeping the interpreter's lock for long."""
    return b"".join(cast("list[bytes]", codec.encode_long(message, version)))
