"""What the two requests of KIP-714 have in common: who asks, and what the end of its connection means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafka_compat.telemetry.subscriptions import Client

if TYPE_CHECKING:
    from kafka_compat.network.connection import Connection
    from kafka_compat.network.request import RequestContext
    from kafka_compat.telemetry.service import ClientTelemetry


def client_of(ctx: RequestContext[Any]) -> Client:
    """What is known of who asks."""
    _, name, version = ctx.connection.told
    return Client(ctx.client_id, name, version, ctx.client_host, str(ctx.connection.peer_port))


def forget_at_the_end(connection: Connection, telemetry: ClientTelemetry, instance_id: UUID) -> None:
    """Have the instance forgotten when its connection ends; of several that came by one, the last."""
    if connection.closed:
        return
    held = next((each for each in connection.parked if isinstance(each, _Instance)), None)
    if held is None:
        connection.parked.add(_Instance(telemetry, instance_id))
    else:
        held.instance_id = instance_id


class _Instance:
    """Parked at a connection."""

    __slots__ = ("_telemetry", "instance_id")

    def __init__(self, telemetry: ClientTelemetry, instance_id: UUID) -> None:
        self._telemetry = telemetry
        self.instance_id = instance_id

    def connection_ended(self) -> None:
        self._telemetry.forget(self.instance_id)
