"""The HTTP listener. It binds its address at startup, and serves requests once the brokers serve clients.

Importing aiohttp takes half as long as the startup of a broker. It is therefore imported in a thread once the
broker serves clients; earlier requests wait in the socket's backlog.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError
from kafka_compat.http.guard import Guard, Sessions, is_loopback
from kafka_compat.http.openapi import document, page
from kafka_compat.http.routes import Answer, BadCall, Call, File, NotNow, Page, Redirect, Route, Stream
from kafka_compat.long_work import AT_ONCE, batched

if TYPE_CHECKING:
    from aiohttp import web

SETTING = "kafka.compat.http.listener"
_BODY_BYTES_MAX = 1024 * 1024
_FORM: Final = "application/x-www-form-urlencoded"
_FIELDS_MAX: Final = 1000

log = logging.getLogger(__name__)


class HttpListener:
    """An HTTP listener with its routes."""

    def __init__(self, config: BrokerConfig) -> None:
        """Bind the configured address. Raises StartupError if this fails or a required token is missing."""
        address = config.str(SETTING) or ""
        host, port = address_of(address)
        token = config.str("kafka.compat.http.token")
        if token is None and not is_loopback(host):
            raise StartupError(
                f"{SETTING}={address} can be reached from other machines: set kafka.compat.http.token to "
                "require a token, or listen on 127.0.0.1"
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
        self.guard = Guard(host, token)
        self.sessions = Sessions(time.monotonic)
        # Include the port in the name, because browsers share cookies between the ports of a host.
        self._cookie = f"kafka-compat-{self._socket.getsockname()[1]}"
        self._routes: dict[tuple[str, str], Route] = {}
        self._disabled: Mapping[str, str] = {}
        self._runner: web.AppRunner | None = None

    async def serve(self, routes: Sequence[Route], disabled: Mapping[str, str] | None = None) -> None:
        """Start serving. `disabled` maps path prefixes of disabled services to advice for error responses."""
        self._disabled = disabled or {}
        web = await asyncio.to_thread(_import_web)
        described = list(routes)

        async def as_document(call: Call) -> Answer:
            return document(described, self.url)

        async def as_page(call: Call) -> Answer:
            return Page(page(described, self.url))

        routes = [
            *routes,
            Route("GET", "/openapi.json", as_document, "OpenAPI document"),
            Route("GET", "/api", as_page, "documentation of this API"),
        ]
        if not any(route.path == "/" for route in routes):
            routes.append(Route("GET", "/", as_page, "documentation of this API"))
        application = web.Application(client_max_size=_BODY_BYTES_MAX, middlewares=[self._middleware(web)])
        for route in routes:
            # Serve HEAD wherever GET works, because load balancers use it for health checks.
            for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
                self._routes[method, route.path] = route
                application.router.add_route(method, route.path, self._handler(web, route))
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def close(self) -> None:
        """Stop serving, and close the socket."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._socket.close()

    def _middleware(self, web: Any) -> Any:
        async def guarded(request: web.Request, handler: Any) -> web.StreamResponse:
            resource = request.match_info.route.resource
            route = None if resource is None else self._routes.get((request.method, resource.canonical))
            refusal = self.guard.refusal(
                request.headers,
                for_anybody=route is not None and route.for_anybody,
                for_browsers=route is not None and route.for_browsers,
                has_session=self._session(request) is not None,
            )
            if refusal is not None:
                if refusal.status == HTTPStatus.UNAUTHORIZED and route is not None and route.login:
                    back = quote(request.rel_url.raw_path_qs, safe="")
                    return _redirection(web, f"{route.login}?back={back}")
                return _problem(web, *refusal)
            try:
                found: web.StreamResponse = await handler(request)
                return found
            except web.HTTPException as error:
                prefix = next(filter(request.path.startswith, self._disabled), "")
                hint = f". {self._disabled[prefix]}" if prefix else ""
                return _problem(web, error.status, f"{request.method} {request.path}: {error.reason}{hint}")
            except BadCall as error:
                return _problem(web, error.status, str(error))
            except Exception as error:
                log.exception("HTTP request %s %s failed", request.method, request.path)
                return _problem(web, 500, repr(error))

        return web.middleware(guarded)

    def _session(self, request: web.Request) -> str | None:
        found = request.cookies.get(self._cookie)
        return found if found is not None and self.sessions.use(found) else None

    def _handler(self, web: Any, route: Route) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            is_form = route.for_browsers and request.content_type == _FORM
            data = await request.read()
            body = _fields(data) if is_form else _json_object(data)
            _check("field", body, route.body)
            _check("parameter", request.query, route.query)
            session = self._session(request)
            host = request.remote or ""
            call = Call(request.match_info, request.query, body, is_form, host, session)
            answer = await route.handle(call)
            if isinstance(answer, Page):
                headers = {
                    "Cache-Control": "no-store",
                    "Content-Security-Policy": answer.policy,
                    # Allow the referrer, because browsers would otherwise send forms with a null origin.
                    "Referrer-Policy": "same-origin",
                    "X-Content-Type-Options": "nosniff",
                }
                return web.Response(
                    text=answer.html, status=answer.status, content_type="text/html", headers=headers
                )
            if isinstance(answer, Redirect):
                return self._led_on(web, answer)
            if isinstance(answer, File):
                return _whole(web, answer)
            if isinstance(answer, Stream):
                return await _sent(web, request, answer)
            headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
            if isinstance(answer, NotNow):
                return web.json_response(answer.body, status=503, headers=headers)
            if answer is None:
                return web.Response(status=204)
            return web.json_response(text=await json_text(answer), headers=headers)

        return handle

    def _led_on(self, web: Any, answer: Redirect) -> Any:
        response = _redirection(web, answer.location)
        if answer.session:
            response.set_cookie(self._cookie, answer.session, path="/", httponly=True, samesite="Strict")
        elif answer.session is not None:
            response.del_cookie(self._cookie, path="/")
        return response


def _import_web() -> Any:
    from aiohttp import web

    return web


def _redirection(web: Any, location: str) -> Any:
    headers = {"Location": location, "Cache-Control": "no-store"}
    return web.Response(status=HTTPStatus.SEE_OTHER, headers=headers)


def _fields(data: bytes) -> dict[str, str]:
    """Return the fields of a form. If a name is repeated, the last value is used."""
    try:
        # Convert line endings, because browsers send \r\n in multi-line fields.
        return {
            name: value.replace("\r\n", "\n")
            for name, value in parse_qsl(
                data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX
            )
        }
    except ValueError as error:
        raise BadCall(f"cannot read the form: {error}") from None


def _json_object(data: bytes) -> dict[str, Any]:
    if not data:
        return {}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadCall(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadCall(f"expected a JSON object, for example {{}}, not {str(body)[:100]}")
    return body


def _whole(web: Any, file: File) -> Any:
    headers = {"Content-Type": file.content_type, "X-Content-Type-Options": "nosniff"}
    if file.name:
        headers["Content-Disposition"] = f'attachment; filename="{file.name}"'
        headers["Cache-Control"] = "no-store"
    if file.max_age_s:
        headers["Cache-Control"] = f"max-age={file.max_age_s}"
    return web.Response(body=file.content, headers=headers)


async def _sent(web: Any, request: web.Request, stream: Stream) -> Any:
    """Send a stream in chunks, so that a response to a slow client is not buffered in memory."""
    headers = {"Content-Type": stream.content_type, "X-Content-Type-Options": "nosniff"}
    response = web.StreamResponse(headers=headers)
    # If the client disconnects, ignore the error, because no response can be sent.
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        try:
            async for piece in stream.pieces:
                await response.write(piece)
        except ConnectionError:
            raise
        except Exception:
            # Close the connection, because the response has begun and must not look complete.
            log.exception("HTTP request %s %s failed", request.method, request.path)
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
    return response


def _check(what: str, given: Mapping[str, Any], known: Mapping[str, str]) -> None:
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise BadCall(f"unknown {what} {unknown[0]!r}; expected: {', '.join(known) or 'none'}")


def _problem(web: Any, status: int, text: str) -> Any:
    return web.json_response(
        {"status": status, "detail": text}, status=status, content_type="application/problem+json"
    )


def address_of(text: str) -> tuple[str, int]:
    """Return the host and the port in the listener's setting. Raises StartupError if it is invalid."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or not parts.hostname or port is None or parts.path not in ("", "/"):
        raise StartupError(f"{SETTING}={text}: expected for example http://127.0.0.1:8080 (port 0: any)")
    return parts.hostname, port


async def json_text(answer: Any) -> str:
    """Serialize a response to JSON, formatted like json.dumps. Long lists in an object are serialized in
    chunks, yielding to the event loop between chunks.
    """
    if not isinstance(answer, dict):
        return json.dumps(answer)
    members = [f"{json.dumps(name)}: {await _value(value)}" for name, value in answer.items()]
    return f"{{{', '.join(members)}}}"


async def _value(value: Any) -> str:
    if not isinstance(value, list) or len(value) <= AT_ONCE:
        return json.dumps(value)
    parts = []
    for some in batched(value):
        parts.append(json.dumps(some)[1:-1])
        await asyncio.sleep(0)
    return f"[{', '.join(parts)}]"
