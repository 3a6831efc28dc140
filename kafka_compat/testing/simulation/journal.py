"""Journal of a simulation: all received data and faults, with their times.

Runs with the same digest are identical.
"""

import hashlib
from collections.abc import Callable

from kafka_compat.protocol.api_keys import ApiKey

_HEADER_BYTES = 12
_VERSIONS = 32
_NAMES = {int(key): key.name for key in ApiKey}


class Journal:
    """Journal of a simulation run. `now_s` returns the simulated time."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._hash = hashlib.sha256()
        self._entries: list[tuple[float, str, bytes | None, bool]] = []

    def note(self, what: str) -> None:
        """Record an event at the current time."""
        self._note(what, None, False)

    def note_data(self, where: str, data: bytes, *, is_request: bool) -> None:
        """Record received bytes at the current time. Requests are recorded with their API names."""
        self._note(where, data, is_request)
        self._hash.update(data)

    def _note(self, what: str, data: bytes | None, is_request: bool) -> None:
        now_s = self._now_s()
        self._hash.update(b"%.9f %b\n" % (now_s, what.encode()))
        self._entries.append((now_s, what, data, is_request))

    @property
    def digest(self) -> str:
        """SHA-256 of all times, names and bytes so far, in hexadecimal."""
        return self._hash.hexdigest()

    def lines(self) -> list[str]:
        """Return the entries as text: the time in seconds, the event and, for data, the request and size."""
        return [_line(*entry) for entry in self._entries]


def _line(now_s: float, what: str, data: bytes | None, is_request: bool) -> str:
    if data is None:
        return f"{now_s:12.6f}  {what}"
    request = ""
    if is_request and len(data) >= _HEADER_BYTES:
        key, version = int.from_bytes(data[4:6], "big"), int.from_bytes(data[6:8], "big")
        # Show the name of the request with which the data begins. Other data rarely looks like a request.
        request = f" {_NAMES[key]} v{version}" if key in _NAMES and version < _VERSIONS else ""
    return f"{now_s:12.6f}  {what}:{request} {len(data)} bytes"
