"""The listener: its address is claimed when the broker starts, and served as soon as what serves it is there.

aiohttp takes as long to import as half a broker takes to start, so that happens in a thread once the broker
serves its clients. Whoever asks sooner waits in the socket's queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError
from kafka_compat.http.guard import Guard, is_loopback
from kafka_compat.http.openapi import document, page
from kafka_compat.http.routes import Answer, BadCall, Call, NotNow, Page, Route, Stream

if TYPE_CHECKING:
    from aiohttp import web

SETTING = "kafka.compat.http.listener"
_BODY_BYTES_MAX = 1024 * 1024
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

log = logging.getLogger(__name__)


class HttpListener:
    """One address, and what is served there."""

    def __init__(self, config: BrokerConfig) -> None:
        """Claim the address that the settings name. StartupError."""
        address = config.str(SETTING) or ""
        host, port = _address(address)
        token = config.str("kafka.compat.http.token")
        if token is None and not is_loopback(host):
            raise StartupError(
                f"{SETTING}={address} can be reached from other machines: set "
                "kafka.compat.http.token, which is then asked for, or listen on 127.0.0.1"
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(128)
        except OSError as error:
            self._socket.close()
            reason = error.strerror or error
            raise StartupError(f"cannot listen on {SETTING}={address}: {reason}") from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}"
        """Where it listens."""
        self._guard = Guard(host, token)
        self._runner: web.AppRunner | None = None

    async def serve(self, routes: Sequence[Route]) -> None:
        """Answer from now on."""
        web = await asyncio.to_thread(_import_web)
        described = list(routes)

        async def as_document(call: Call) -> Answer:
            return document(described, self.url)

        async def as_page(call: Call) -> Answer:
            return Page(page(described, self.url))

        routes = [
            *routes,
            Route("GET", "/openapi.json", as_document, "what can be asked, for tools"),
            Route("GET", "/", as_page, "what can be asked, for people"),
        ]
        for_anybody = {(route.method, route.path) for route in routes if route.for_anybody}
        guarded = self._middleware(web, for_anybody)
        application = web.Application(client_max_size=_BODY_BYTES_MAX, middlewares=[guarded])
        for route in routes:
            application.router.add_route(route.method, route.path, _handler(web, route))
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def close(self) -> None:
        """Answer no more."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._socket.close()

    def _middleware(self, web: Any, for_anybody: Set[tuple[str, str]]) -> Any:
        async def guarded(request: web.Request, handler: Any) -> web.StreamResponse:
            is_for_anybody = (request.method, request.path) in for_anybody
            refusal = self._guard.refusal(request.headers, for_anybody=is_for_anybody)
            if refusal is not None:
                return _problem(web, *refusal)
            try:
                found: web.StreamResponse = await handler(request)
                return found
            except web.HTTPException as error:
                return _problem(web, error.status, f"{request.method} {request.path}: {error.reason}")
            except BadCall as error:
                return _problem(web, error.status, str(error))
            except Exception as error:
                log.exception("%s %s failed", request.method, request.path)
                return _problem(web, 500, repr(error))

        return web.middleware(guarded)


def _import_web() -> Any:
    from aiohttp import web

    return web


def _handler(web: Any, route: Route) -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        body: Any = {}
        data = await request.read()
        if data:
            try:
                body = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise BadCall(f"the body is no JSON: {error}") from None
            if not isinstance(body, dict):
                raise BadCall(f"expected a JSON object, for example {{}}, and not {str(body)[:100]}")
        _check("field", body, route.body)
        _check("parameter", request.query, route.query)
        answer = await route.handle(Call(request.match_info, request.query, body))
        if isinstance(answer, Page):
            return web.Response(text=answer.html, content_type="text/html", headers=_PAGE_HEADERS)
        if isinstance(answer, Stream):
            return await _sent(web, request, answer)
        if isinstance(answer, NotNow):
            return web.json_response(answer.body, status=503)
        return web.Response(status=204) if answer is None else web.json_response(answer)

    return handle


async def _sent(web: Any, request: web.Request, stream: Stream) -> Any:
    """Piece by piece: a client that reads slowly does not make it lie in memory."""
    response = web.StreamResponse(headers={"Content-Type": stream.content_type})
    # Whoever asked may have gone: there is nobody left to tell of it.
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        try:
            async for piece in stream.pieces:
                await response.write(piece)
        except ConnectionError:
            raise
        except Exception:
            # It has begun to be told, and must not look as if it were whole.
            log.exception("%s %s failed", request.method, request.path)
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
    return response


def _check(what: str, given: Mapping[str, Any], known: Mapping[str, str]) -> None:
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise BadCall(f"{unknown[0]!r} is no {what} of it; there are {', '.join(known) or 'none'}")


def _problem(web: Any, status: int, text: str) -> Any:
    """RFC 9457."""
    return web.json_response(
        {"status": status, "detail": text}, status=status, content_type="application/problem+json"
    )


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or not parts.hostname or port is None or parts.path not in ("", "/"):
        raise StartupError(f"{SETTING}={text}: expected an address as http://127.0.0.1:8080 (port 0: any)")
    return parts.hostname, port
