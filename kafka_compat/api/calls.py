"""Dispatch of requests from all kinds of callers through quota, middleware, handler and accounting.

If a handler raises an exception, the API's error response is sent (see error_response.py), so that every
caller gets a response. A caller that expects no response is disconnected (HungUp), as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.api.api import Api
from kafka_compat.api.codec_thread import CodecThread
from kafka_compat.api.handler import RequestContext
from kafka_compat.api.request_counts import RequestCounts
from kafka_compat.api.stages import Account, Middleware, Quota, Sent, StagedContext, Stages
from kafka_compat.deferred import Deferred, HungUp
from kafka_compat.error_mapping import as_kafka_error
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.api.listener_context import ListenerServices
    from kafka_compat.api.services import Services

LONG_BYTES: Final = 16 * 1024
"""Request size above which an error response is built in the codec's thread."""


class Calls:
    """The request dispatcher of one broker. Handlers access `services` as `ctx.services`."""

    def __init__(
        self,
        services: ListenerServices,
        *,
        middleware: Sequence[Middleware] = (),
        accounts: Sequence[Account] = (),
        is_watched: bool = False,
        handlers: str = "kafka_compat.handlers",
    ) -> None:
        """If `is_watched` is true, error codes and durations are recorded for metrics. `handlers` is the
        package of the handlers.
        """
        # The handlers of controller listeners use no others: see ListenerContext.
        self._services: Services = services  # type: ignore[assignment]
        self._handlers = handlers
        self._is_watched = is_watched
        self.apis: dict[int, Api] = {}
        """The APIs in use, by key."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.codec_thread = CodecThread()
        self.counts = RequestCounts(self.apis)
        self._all = Stages(self._handle_untimed, None, None, tuple(accounts), tuple(middleware))
        self.stages: Stages | None = self._all if self._all.any else None
        """The current request stages, or None if requests are passed directly to their handlers."""

    def api(self, key: int) -> Api | None:
        """Return the API with this key, or None if this broker does not serve it."""
        api = self.apis.get(key)
        if api is None:
            versions = self._services.served.get(key)  # type: ignore[call-overload]
            if versions is None:
                return None
            low, high = versions
            api = self.apis[key] = Api(
                ApiKey(key), low, high, is_watched=self._is_watched, handlers=self._handlers
            )
        return api

    def set_quota(self, quota: Quota | None, sent: Sent | None = None) -> None:
        """Set the quota stage for future requests, or remove it if `quota` is None."""
        self._compose(quota, sent, self._all.accounts)

    def add_account(self, account: Account) -> None:
        """Add a function that is called after each future request, for example to count requests."""
        self._compose(self._all.quota, self._all.sent, (*self._all.accounts, account))

    def remove_account(self, account: Account) -> None:
        accounts = tuple(one for one in self._all.accounts if one != account)
        self._compose(self._all.quota, self._all.sent, accounts)

    def _compose(self, quota: Quota | None, sent: Sent | None, accounts: tuple[Account, ...]) -> None:
        handle = self._handle_untimed if quota is None else self._handle_timed
        self._all = Stages(handle, quota, sent, accounts, self._all.middleware)
        self.stages = self._all if self._all.any else None

    def context(self, api: Api, caller: Caller, version: int, is_kept: bool = True) -> RequestContext:
        """Return the context of a request. `is_kept` is false if its bytes do not live as long as it does."""
        return RequestContext(self._services, caller, api, version, is_kept)

    def serve(
        self,
        ctx: RequestContext,
        request: Any,
        size_bytes: int = 0,
        arrived_s: float = 0.0,
        began_s: float = 0.0,
    ) -> Any:
        """Serve a request. Return its response, None if it expects no response, or a Deferred.

        The API must serve the version. Requests may share `ctx` unless its `is_kept` is false. Raises HungUp
        if the caller must be disconnected without a response.

        If the Deferred has a `sent` callback, the caller must call it when the response is sent. The
        remaining arguments describe a request that arrived in a frame: its size without the length prefix,
        and the times when it arrived and when serving began (see StagedContext).
        """
        api = ctx.api
        requests = api.requests[ctx.api_version]
        requests.count = count = requests.count + 1
        if self.stages is not None or count == requests.next_timed:
            staged = StagedContext(self._services, ctx.caller, api, ctx.api_version, ctx.is_kept)
            timed = None
            if count == requests.next_timed:
                requests.timed()
                timed = self.counts.timed
            staged.begin(request, self.stages or self._all, size_bytes, arrived_s, began_s, timed)
            return self._staged(staged, request)
        try:
            response = api.handler(ctx, request)
            if type(response) is api.response_class:
                return response
            return self._settled(ctx, request, response)
        except HungUp:
            raise
        except Exception as error:
            return self._failed(ctx, request, error, size_bytes)

    async def ask(self, caller: Caller, key: ApiKey, version: int, request: Any) -> Any:
        """Serve a request and return its response. Canceling the wait also cancels the request."""
        api = self.api(key)
        if api is None or not api.min_version <= version <= api.max_version:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        stages = self.stages
        # Encode the request, because the quota counts the size of the encoded request.
        is_measured = stages is not None and stages.quota is not None
        size_bytes = len(codec.encode(request, version)) if is_measured else 0
        result = self.serve(self.context(api, caller, version), request, size_bytes)
        response = result
        if isinstance(result, Deferred):
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            result.when_done(partial(_settle, done))
            try:
                await done
            except asyncio.CancelledError:
                result.cancel()
                raise
            if result.is_hung_up:
                raise HungUp
            response = result.response
            if result.sent is not None:
                result.sent(0)
        if self._is_watched and response is not None:
            api.codes.count(response)
        return response

    def _staged(self, ctx: StagedContext, request: Any) -> Deferred:
        try:
            result = ctx.stages.serve(ctx, request)
        except HungUp:
            return ctx.lost()
        except Exception as error:
            try:
                result = self._failed(ctx, request, error, ctx.request_bytes)
            except HungUp:
                return ctx.lost()
        return ctx.returned(result)

    def _handle_untimed(self, ctx: RequestContext, request: Any) -> Any:
        return self._handled(ctx, request, ctx.api.handler)

    def _handle_timed(self, ctx: RequestContext, request: Any) -> Any:
        from kafka_compat.api.busy_time import timed

        return self._handled(ctx, request, partial(timed, ctx.api.handler))

    def _handled(self, ctx: RequestContext, request: Any, handler: Callable[..., Any]) -> Any:
        try:
            return self._settled(ctx, request, handler(ctx, request))
        except HungUp:
            raise
        except Exception as error:
            size_bytes = ctx.request_bytes if isinstance(ctx, StagedContext) else 0
            return self._failed(ctx, request, error, size_bytes)

    def _settled(self, ctx: RequestContext, request: Any, result: Any) -> Any:
        """Convert a handler's return value, which may also be a generator or a coroutine, to a response, None
        or a Deferred. A compiled coroutine is also an instance of Generator.
        """
        if result is None or isinstance(result, Deferred):
            return result
        if isinstance(result, Generator) and not isinstance(result, Coroutine):
            result = self._services.long_work.run(result)
        if isinstance(result, Coroutine):
            deferred = Deferred(is_serial=True)
            self._spawn(self._await_handler(ctx, request, result, deferred))
            return deferred
        return result

    async def _await_handler(
        self, ctx: RequestContext, request: Any, coroutine: Coroutine[Any, Any, Any], deferred: Deferred
    ) -> None:
        try:
            try:
                result = await coroutine
            except HungUp:
                raise
            except Exception as failure:
                result = self._error_response(ctx, request, failure)
                if result is None:
                    raise HungUp from failure
        except BaseException as error:
            deferred.hang_up()
            if not isinstance(error, HungUp):
                raise
            return
        if isinstance(result, Deferred):
            deferred.follow(result)
        else:
            deferred.complete(result)

    def _failed(self, ctx: RequestContext, request: Any, error: Exception, size_bytes: int) -> Any:
        if ctx.is_kept and size_bytes > LONG_BYTES:
            deferred = Deferred(is_serial=True)
            self._spawn(self._fail_long(ctx, request, error, deferred))
            return deferred
        response = self._error_response(ctx, request, error)
        if response is None:
            raise HungUp from error
        return response

    async def _fail_long(
        self, ctx: RequestContext, request: Any, error: Exception, deferred: Deferred
    ) -> None:
        response = None
        try:
            response = await self.codec_thread.run(self._error_response, ctx, request, error)
        finally:
            if response is None:
                deferred.hang_up()
            else:
                deferred.complete(response)

    def _error_response(self, ctx: RequestContext, request: Any, error: Exception) -> Any:
        failure = as_kafka_error(error, f"{ctx.api.key.name} v{ctx.api_version} from {ctx.client_host}")
        return ctx.api.error_response(ctx.api_version, request, failure)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel all requests in progress, and close the codec's thread."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self.codec_thread.close()


def _settle(done: asyncio.Future[None], _: Deferred) -> None:
    if not done.done():
        done.set_result(None)
