"""The context of a request whose handler is called without a server."""

from __future__ import annotations

import functools
import socket
from types import SimpleNamespace
from typing import Any, cast

from kafka_compat.network.api import Api
from kafka_compat.network.budget import AnswerBudget, RequestBudget
from kafka_compat.network.connection import Connection
from kafka_compat.network.host import Host
from kafka_compat.network.limits import Limits
from kafka_compat.network.request import RequestContext
from kafka_compat.network.turns import Turns
from kafka_compat.protocol.api_keys import ApiKey


def request_context(services: Any, api_version: int) -> RequestContext[Any]:
    """Its connection is open, and nothing comes or goes there. Real objects, since what is compiled takes no
    doubles of classes.
    """
    return RequestContext(services, _connection(), _api(), api_version, 0, None)


@functools.cache
def _connection() -> Connection:

    def ignore(*_: object) -> None: ...

    nothing = SimpleNamespace(time=lambda: 0.0, add_reader=ignore)
    host = SimpleNamespace(
        loop=nothing,
        limits=Limits(1 << 20, 60_000, 10, 10, 60_000),
        scratch=memoryview(bytearray(16)),
        use_sendfile=False,
        dispatch=ignore,
        turns=Turns(nothing.time, ignore),
        request_budget=RequestBudget(1 << 20),
        answer_budget=AnswerBudget(1 << 20, ignore, lambda: None),
    )
    return Connection(cast("Host", host), "PLAINTEXT", socket.socket(), ("127.0.0.1", 0), None)


@functools.cache
def _api() -> Api:
    return Api(ApiKey.FETCH, 0, 18, lambda *_: None)
