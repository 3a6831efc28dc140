"""Requests that the page makes of a broker of this process: served by the handlers that serve clients, with
their rights, without a socket in between.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Generator
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_compat.error_mapping import told_as
from kafka_compat.http.routes import BadCall
from kafka_compat.network.api import Api
from kafka_compat.network.budget import AnswerBudget, RequestBudget
from kafka_compat.network.connection import Connection
from kafka_compat.network.limits import Limits
from kafka_compat.network.request import RequestContext
from kafka_compat.network.turns import Turns
from kafka_compat.protocol.pending import PENDING

if TYPE_CHECKING:
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.network.host import Host
    from kafka_compat.page.rights import Rights
    from kafka_compat.protocol.api_keys import ApiKey

CLIENT_ID: Final = "kafka-compat-page"
PATIENCE_S: Final = 30.0


async def ask_here(
    services: BrokerServices[Any], rights: Rights, key: ApiKey, version: int, request: Any
) -> Any:
    """The response. Raises TimeoutError, and BadCall with the text of an error that fails the request as a
    whole.
    """
    late: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answered(ctx: Any, slot: Any, response: Any) -> None:
        if not late.done():
            late.set_result(response)

    low, high = services.served[key]
    api = Api(key, low, high, answered)
    with socket.socket() as nowhere:
        connection = Connection(
            _nobodys_server(), services.config.listeners[0].name, nowhere, (rights.host, 0), None
        )
        connection.principal = rights.principal
        ctx: RequestContext[Any] = RequestContext(services, connection, api, version, 0, CLIENT_ID)
        # The request is an object of its own: there is no frame that goes.
        ctx.frame_is_kept = True
        try:
            async with asyncio.timeout(PATIENCE_S):
                response = api.handler(ctx, request)
                if isinstance(response, Generator) and not isinstance(response, Coroutine):
                    response = await services.long_work.finish(response)
                elif isinstance(response, Coroutine):
                    response = await response
                if response is PENDING:
                    if ctx._early is not PENDING:
                        return ctx._early
                    ctx._slot = connection.take_slot()
                    response = await late
                return response
        except TimeoutError:
            raise
        except Exception as error:
            told = told_as(error, f"{key.name} of the page")
            raise BadCall(f"{told.code.name}: {told.message or 'it failed'}", 409) from None
        finally:
            for parked in list(connection.parked):
                parked.connection_ended()


def _nobodys_server() -> Host:
    """What a connection needs of its server, where nothing comes and goes."""

    def ignore(*_: object) -> None: ...

    found = SimpleNamespace(
        loop=SimpleNamespace(time=monotonic, add_reader=ignore, remove_reader=ignore),
        limits=Limits(1 << 20, 60_000, 10, 10, 60_000),
        scratch=memoryview(bytearray(16)),
        use_sendfile=False,
        dispatch=ignore,
        turns=Turns(monotonic, ignore),
        request_budget=RequestBudget(1 << 20),
        answer_budget=AnswerBudget(1 << 20, ignore, lambda: None),
    )
    return cast("Host", found)
