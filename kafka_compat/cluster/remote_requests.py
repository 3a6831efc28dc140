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
    """Build a LeaderAndIsr request of at least version 5. `post` is called with the response as an event. A
    request with many partitions is encoded in another thread.
    """

    def make() -> Any:
        return wire.leader_and_isr(controller_id, effect, listener)

    return ControllerRequest(
        "LeaderAndIsr",
        _Sending(ApiKey.LEADER_AND_ISR, version, make, _thread_for(effect, long_work)).send,
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
    """The UpdateMetadata requests for one effect. They are encoded once, and differ only in the epoch
    of the receiver.
    """

    def __init__(
        self, controller_id: int, effect: effects.SendUpdateMetadata, version: int, long_work: LongWork
    ) -> None:
        self._long_work = long_work
        self._controller_id = controller_id
        self._version = version
        self._effect = effect
        self._parts: tuple[bytes, bytes] | None = None
        """The encoded request before and after the broker epoch."""

    def request(self, broker_epoch: int) -> ControllerRequest:
        """Build the request to the broker with this broker epoch."""

        def make() -> Encoded:
            if self._parts is None:
                body, first = self._encode(self._effect, 0), self._epoch_position()
                self._parts = body[:first], body[first + _EPOCH_BYTES :]
            return Encoded(broker_epoch.to_bytes(_EPOCH_BYTES, signed=True).join(self._parts))

        sending = _Sending(
            ApiKey.UPDATE_METADATA, self._version, make, _thread_for(self._effect, self._long_work)
        )
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
        self, api_key: ApiKey, version: int, make: Callable[[], Any], long_work: LongWork | None = None
    ) -> None:
        """`make` builds the message: in another thread if `long_work` is given."""
        self._api_key = api_key
        self._version = version
        self._make = make
        self._long_work = long_work
        self._message: Any = None

    async def send(self, client: BrokerClient | None) -> Any:
        assert client is not None
        if self._message is None:
            if self._long_work is None:
                self._message = self._make()
            else:
                self._message = await self._long_work.in_thread(self._make_encoded)
        return await client.send(self._api_key, self._version, self._message)

    def _make_encoded(self) -> Encoded:
        made = self._make()
        return made if isinstance(made, Encoded) else Encoded(_encoded(made, self._version))


def _thread_for(
    effect: effects.SendLeaderAndIsr | effects.SendUpdateMetadata, long_work: LongWork
) -> LongWork | None:
    """Return `long_work` if the effect's request takes long to encode."""
    return long_work if len(effect.partitions) > _ENCODED_AT_ONCE else None


def _encoded(message: object, version: int) -> bytes:
    """Encode a message without keeping the interpreter's lock for long."""
    return b"".join(cast("list[bytes]", codec.encode_long(message, version)))
