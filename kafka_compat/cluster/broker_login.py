"""SASL authentication of this broker to another broker."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from kafka_compat.daemon_thread import in_daemon_thread
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafka_compat.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kafka_compat.security.broker_security import SaslLogin
from kafka_compat.security.sasl.client import Untrusted

Ask = Callable[[ApiKey, int, Any], Awaitable[Any]]
"""A function that sends a request in the given version and returns the response."""

_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 2


async def log_in(login: SaslLogin, host: str, ask: Ask) -> int:
    """Authenticate a connection to `host`. Return the session lifetime in ms, or 0 if it is unlimited. Raises
    ConnectionError if the authentication fails.
    """
    handshake = await ask(
        ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, SaslHandshakeRequest(mechanism=login.mechanism)
    )
    if handshake.error_code:
        raise ConnectionError(
            f"it rejects the SASL mechanism {login.mechanism} ({ErrorCode(handshake.error_code).name}) and "
            f"supports {', '.join(handshake.mechanisms)}: see sasl.mechanism.inter.broker.protocol"
        )
    client = login.new_client(host)
    token: bytes | None
    try:
        token = await in_daemon_thread(client.first) if login.asks_others else client.first()
    except Untrusted as error:
        raise ConnectionError(str(error)) from error
    while token is not None:
        answer = await ask(
            ApiKey.SASL_AUTHENTICATE, _AUTHENTICATE_VERSION, SaslAuthenticateRequest(auth_bytes=token)
        )
        if answer.error_code:
            raise ConnectionError(
                f"it rejects this broker's user: {answer.error_message or ErrorCode(answer.error_code).name}"
            )
        try:
            token = client.next(bytes(answer.auth_bytes))
        except Untrusted as error:
            raise ConnectionError(str(error)) from error
    return int(answer.session_lifetime_ms)
