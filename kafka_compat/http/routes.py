"""Routes, requests and responses of the HTTP listener, independent of the HTTP library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

FORBIDDEN, NOT_FOUND, CONFLICT, UNAVAILABLE = 403, 404, 409, 503
"""Statuses of HTTP that a BadCall may have."""


class BadCall(Exception):
    """What was asked cannot be done; the text says why, and what would be right."""

    def __init__(self, message: str, status: int = 400) -> None:
        """`status` is HTTP's."""
        super().__init__(message)
        self.status = status


class Call(NamedTuple):
    """One request."""

    path: Mapping[str, str]
    """The parts of its path that a route has names for."""
    query: Mapping[str, str]
    body: Mapping[str, Any]
    """The JSON object that came with it, or the fields of a form; empty where none came."""
    is_form: bool = False
    """Whether the body came from a form in a browser: all its values are texts."""
    host: str = ""
    """The address of who asks."""
    session: str | None = None
    """The session of the browser that asks, where the listener has a token (see Sessions)."""


class Page(NamedTuple):
    """An answer for people. `policy` is its Content-Security-Policy."""

    html: str
    status: int = 200
    policy: str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


class Redirect(NamedTuple):
    """An answer that leads a browser on. `session`: which it has from now on; "" ends the one that it has."""

    location: str
    session: str | None = None


class File(NamedTuple):
    """An answer that is whatever a file holds."""

    content: bytes
    content_type: str
    """As the header has it."""
    max_age_s: int = 0
    """For how long a browser may keep it."""
    name: str = ""
    """Of the file that a browser puts it into, rather than showing it: letters that need no quotes."""


class Stream(NamedTuple):
    """An answer that may be long, in pieces of UTF-8, each made when the one before it has gone."""

    pieces: AsyncIterator[bytes]
    content_type: str
    """As the header has it."""


class NotNow(NamedTuple):
    """An answer, as json.dumps takes it, which says that something is not so at present (status 503)."""

    body: Any


Answer = Any
"""What json.dumps takes, a Page, Redirect, File, Stream or NotNow; None for an answer without a body."""


class Route(NamedTuple):
    """A method and a path, as `/topics/{topic}`, and what is done for it."""

    method: str
    path: str
    handle: Callable[[Call], Awaitable[Answer]]
    summary: str
    """One line, for people. Empty: it is not among what can be asked."""
    body: Mapping[str, str] = {}
    """The fields of its JSON object: each with its type and meaning, as `integer: milliseconds, above 0`."""
    query: Mapping[str, str] = {}
    """The parameters of its query, likewise."""
    for_anybody: bool = False
    """Answered without the token, too: it tells nothing that is worth one."""
    for_browsers: bool = False
    """Pages of the listener itself may ask: a session stands for the token, and forms are read."""
    login: str | None = None
    """Where a browser that has neither token nor session is led."""


def natural(text: str, name: str) -> int:
    """A whole number of a path or a query. BadCall."""
    if not (text.isascii() and text.isdecimal()):
        raise BadCall(f"{name}={text}: expected a whole number of at least 0")
    return int(text)


def integer(call: Call, name: str, *, least: int) -> int:
    """A whole number of the body. BadCall."""
    value = call.body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadCall(f"{name}={value!r}: expected a whole number of at least {least}")
    return value
