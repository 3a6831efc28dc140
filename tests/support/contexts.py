"""Request contexts for handlers called without a server."""

from __future__ import annotations

import functools
from typing import Any

from kafka_compat.api.api import Api
from kafka_compat.api.caller import Caller
from kafka_compat.api.handler import RequestContext
from kafka_compat.protocol.api_keys import ApiKey


def request_context(services: Any, api_version: int) -> RequestContext:
    """Return the context of a caller in this process. It uses real objects, because compiled code does not
    accept doubles of its classes.
    """
    caller = Caller(host="127.0.0.1", listener_name="PLAINTEXT")
    return RequestContext(services, caller, _api(), api_version, False)


@functools.cache
def _api() -> Api:
    return Api(ApiKey.FETCH, 0, 18)
