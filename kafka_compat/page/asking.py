"""Requests that the page makes of a broker of this process: on the same way as those of clients, with the
rights of whoever looks at the page.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.deferred import HungUp
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import BadCall
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.api.calls import Calls

CLIENT_ID: Final = "kafka-compat-page"
PATIENCE_S: Final = 30.0
_CHECKED_BY_VIEWS: Final = frozenset((ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH))
"""Views tell of their errors in words of their own."""


async def ask_here(calls: Calls, caller: Caller, key: ApiKey, version: int, request: Any) -> Any:
    """The response. Raises TimeoutError, and BadCall with the text of an error that fails the request as a
    whole.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            response = await calls.ask(caller, key, version, request)
    except (HungUp, KafkaError) as error:
        raise BadCall(f"{key.name} failed: {error}", 409) from None
    code = getattr(response, "error_code", 0)
    if code and key not in _CHECKED_BY_VIEWS:
        message = getattr(response, "error_message", None)
        raise BadCall(f"{ErrorCode(code).name}: {message or 'it failed'}", 409)
    return response
