"""What the two requests of KIP-714 have in common: who asks, and what the end of its connection means."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_compat.telemetry.subscriptions import Client

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.api.request import RequestContext
    from kafka_compat.telemetry.service import ClientTelemetry


def client_of(ctx: RequestContext) -> Client:
    """What is known of who asks."""
    caller = ctx.caller
    return Client(
        caller.client_id, caller.software_name, caller.software_version, caller.host, str(caller.port)
    )


def forget_at_the_end(caller: Caller, telemetry: ClientTelemetry, instance_id: UUID) -> None:
    """Have the instance forgotten when its caller leaves; of several of one session, the last."""
    if not caller.session.has_left:
        caller.session.when_left(telemetry, partial(telemetry.forget, instance_id))
