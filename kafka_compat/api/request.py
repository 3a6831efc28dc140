"""What a handler is told of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.api.api import Api
    from kafka_compat.api.caller import Caller
    from kafka_compat.api.services import Services
    from kafka_compat.long_work import LongWork
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.principal import Principal


class RequestContext:
    """What a handler may know of a request and its caller, and the services that it uses."""

    __slots__ = ("_api", "api_version", "caller", "is_kept", "services")

    def __init__(self, services: Services, caller: Caller, api: Api, api_version: int, is_kept: bool) -> None:
        self.services = services
        self.caller = caller
        """Who asks, as it was known when the request came."""
        self.api_version = api_version
        self.is_kept = is_kept
        """Whether the bytes that the request refers to stay as long as it does, and may be changed."""
        self._api = api

    @property
    def api_key(self) -> ApiKey:
        return self._api.key

    @property
    def principal(self) -> Principal:
        return self.caller.principal

    @property
    def client_id(self) -> str | None:
        return self.caller.client_id

    @property
    def client_host(self) -> str:
        return self.caller.host

    @property
    def listener_name(self) -> str:
        return self.caller.listener_name

    @property
    def has_left(self) -> bool:
        """Whether the caller has left: nobody waits for the response any more."""
        return self.caller.session.has_left

    @property
    def sendfile_bytes_min(self) -> int:
        """From how many bytes on slices of files do not pass through this process on their way."""
        return self.caller.session.sendfile_bytes_min

    @property
    def long_work(self) -> LongWork:
        """By what long work shares the event loop."""
        return self.services.long_work

    @property
    def authorizer(self) -> Authorizer | None:
        """Who decides what the caller may do, if anybody: `handlers.authorization` asks."""
        if self.caller.is_trusted:
            return None
        return self.services.authorizer
