"""Routes, requests and responses of the HTTP listener, independent of the HTTP library."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

FORBIDDEN, NOT_FOUND, CONFLICT, UNAVAILABLE = 403, 404, 409, 503
"""HTTP statuses that a BadCall may have."""


class BadCall(Exception):
    """Raised for a request that cannot be fulfilled. The message states the reason and the valid values."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Call(NamedTuple):
    """An HTTP request."""

    path: Mapping[str, str]
    """Values of the route's path parameters."""
    query: Mapping[str, str]
    body: Mapping[str, Any]
    """The JSON object or form fields in the body, or an empty mapping if there is no body."""
    is_form: bool = False
    """Whether the body is from a browser's form. All values are then strings."""
    host: str = ""
    """Address of the client."""
    session: str | None = None
    """ID of the browser's session (see Sessions), or None if it has none."""


class Page(NamedTuple):
    """An HTML response. `policy` is its Content-Security-Policy."""

    html: str
    status: int = 200
    policy: str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


class Redirect(NamedTuple):
    """A redirect. `session` is the ID of the browser's new session, or "" to end its session."""

    location: str
    session: str | None = None


class File(NamedTuple):
    """A response with the contents of a file."""

    content: bytes
    content_type: str
    """Value of the Content-Type header."""
    max_age_s: int = 0
    """Number of seconds for which browsers may cache the response."""
    name: str = ""
    """Name under which browsers save the file instead of showing it. Must not need quotes."""


class Stream(NamedTuple):
    """A long response in UTF-8 chunks, each created after the previous chunk was sent."""

    pieces: AsyncIterator[bytes]
    content_type: str
    """Value of the Content-Type header."""


class NotNow(NamedTuple):
    """A JSON response with status 503, for a condition that is not met yet."""

    body: Any


Answer = Any
"""Data for json.dumps, a Page, Redirect, File, Stream or NotNow, or None for a response without a body."""


class Route(NamedTuple):
    """A method and a path, such as `/topics/{topic}`, with its handler."""

    method: str
    path: str
    handle: Callable[[Call], Awaitable[Answer]]
    summary: str
    """One-line description for the list of routes. Routes without a description are not listed."""
    body: Mapping[str, str] = {}
    """Fields of the JSON body, each with its type and meaning, such as `integer: milliseconds, above 0`."""
    query: Mapping[str, str] = {}
    """Query parameters, in the format of `body`."""
    for_anybody: bool = False
    """Whether the route is also served without a token. It must reveal nothing confidential."""
    for_browsers: bool = False
    """Whether the listener's pages may use the route, with forms, and with a session instead of the token."""
    login: str | None = None
    """Path to which browsers with neither token nor session are redirected."""


def natural(text: str, name: str) -> int:
    """Parse a non-negative integer from a path or query. Raises BadCall if it is invalid."""
    if not (text.isascii() and text.isdecimal()):
        raise BadCall(f"{name}={text}: expected a whole number of at least 0")
    return int(text)


def integer(call: Call, name: str, *, least: int) -> int:
    """Return an integer from the body. Raises BadCall if it is missing, not an integer, or below `least`."""
    value = call.body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadCall(f"{name}={value!r}: expected a whole number of at least {least}")
    return value
