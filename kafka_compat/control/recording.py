"""Recording of clients' requests, and of the responses to them, for tests."""

from collections.abc import Callable
from typing import Any

from kafka_compat.api.caller import Session
from kafka_compat.api.stages import Served, StagedContext
from kafka_compat.http.routes import CONFLICT, Answer, BadCall, Call, Route
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.json_form import api_name, to_json

_SIZE_MAX = 100_000
"""Maximum number of requests in a recording, which is kept in memory."""

_LEFT_OUT = frozenset({"records"})
"""Response fields that are not recorded: records may be large, or still be in a file."""
_SECRET = frozenset(
    {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    }
)
"""APIs that transfer passwords and keys. Their requests are not recorded."""

Entry = dict[str, Any]
"""A recorded request: `number` (starting at 1, in order of arrival), `at_ms` (the broker's time of day),
`connection` (numbered from 1), `client_id`, `api`, `version`, `request`, `response` (None if none has been
sent), and `answered_after` (the number of requests that had arrived before the response was sent).
"""


class Recording:
    """The recorded requests to all brokers of a process, with their responses."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._is_on = False
        self._entries: list[Entry] = []
        self._unanswered: dict[int, Entry] = {}
        """Maps the id() of a request context, which exists until the response, to the recorded request."""
        self._connections: dict[Session, int] = {}

    # --- request hooks

    def came(self, ctx: StagedContext, request: Any) -> None:
        """Record a request before it is handled, if a recording is in progress."""
        session = ctx.caller.session
        if not self._is_on or ctx.api_key in _SECRET or len(self._entries) == _SIZE_MAX:
            return
        if session.line is None:
            # Skip requests from the web console, which is not a client.
            return
        entry = {
            "number": len(self._entries) + 1,
            "at_ms": self._now_ms(),
            "connection": self._connections.setdefault(session, len(self._connections) + 1),
            "client_id": ctx.client_id,
            "api": api_name(ctx.api_key),
            "version": ctx.api_version,
            "request": to_json(request),
            "response": None,
            "answered_after": None,
        }
        self._entries.append(entry)
        self._unanswered[id(ctx)] = entry

    def answered(self, served: Served) -> None:
        """Add a response to the recorded request."""
        entry = self._unanswered.pop(id(served.context), None)
        if entry is not None and served.response is not None:
            entry["response"] = to_json(served.response, _LEFT_OUT)
            entry["answered_after"] = len(self._entries)

    # --- routes

    def routes(self, prefix: str) -> list[Route]:
        path = prefix + "/recording"
        return [
            Route("POST", path, self._begin, "start recording requests and responses"),
            Route("GET", path, self._all, "recorded requests and responses, in order of arrival"),
            Route("DELETE", path, self._end, "stop recording, and delete the recording"),
        ]

    async def _begin(self, call: Call) -> Answer:
        if self._is_on:
            raise BadCall("a recording is in progress: end it first (DELETE)", CONFLICT)
        self._is_on = True

    async def _all(self, call: Call) -> Answer:
        return self._entries

    async def _end(self, call: Call) -> Answer:
        self.reset()

    def reset(self) -> None:
        """Stop recording, and discard the recorded requests."""
        self._is_on = False
        self._entries = []
        self._unanswered = {}
        self._connections = {}
