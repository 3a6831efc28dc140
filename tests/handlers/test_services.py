"""Handlers depend only on the services declared in their types, so tests can pass just those."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

from kafka_compat.api.calls import Calls
from kafka_compat.broker.services import BrokerServices
from kafka_compat.errors import ErrorCode
from kafka_compat.network.dispatch import Dispatcher
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.network.serving import serving

if TYPE_CHECKING:
    from kafka_compat.api.services import Services


def brokers_offer_everything(broker: BrokerServices) -> Services:
    """Let the type checker verify that a broker provides all services that handlers need. Never called."""
    return broker


class ClassicGroups:
    """The only service that Heartbeat needs."""

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        return ErrorCode.NONE if (group_id, generation_id, member_id) == ("g", 3, "m") else ErrorCode(25)


async def test_a_handler_can_run_with_test_doubles_of_its_services() -> None:
    groups = SimpleNamespace(classic=ClassicGroups())
    services = SimpleNamespace(served={ApiKey.HEARTBEAT: (0, 4)}, groups=groups, authorizer=None)
    dispatcher = Dispatcher(Calls(services))
    async with serving(dispatcher.dispatch) as (_, port):
        with Connection(f"127.0.0.1:{port}", timeout_s=10) as connection:
            for member_id, code in (("m", 0), ("stranger", 25)):
                request = {"group_id": "g", "generation_id": 3, "member_id": member_id}
                answer = await asyncio.to_thread(connection.ask, ApiKey.HEARTBEAT, 4, request)
                assert answer["error_code"] == code
    await dispatcher.stop()
