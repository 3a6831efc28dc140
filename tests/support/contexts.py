"""The context of a request whose handler is called without a server."""

from __future__ import annotations

from typing import Any

from kafka_compat.network.api import Api
from kafka_compat.network.connection import Connection
from kafka_compat.network.request import RequestContext


def request_context(services: Any, api_version: int) -> RequestContext[Any]:
    """Its connection is open, and can do nothing else. Real objects, not doubles: compiled handlers take no
    others.
    """
    connection = Connection.__new__(Connection)
    connection.closed = False
    connection.parked = set()
    return RequestContext(services, connection, Api.__new__(Api), api_version, 0, None)
