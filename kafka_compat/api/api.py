"""One API as served by a broker: handler, versions and message classes."""

from __future__ import annotations

import importlib
import struct
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_compat.api.codec_thread import ELEMENTS_MAX, ELEMENTS_ON_LOOP_MAX
from kafka_compat.api.error_codes import Codes
from kafka_compat.protocol import codec, messages
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.buffers import TooLong, size_of
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.encoded_array import EncodedArray
from kafka_compat.protocol.headers import flexible_from, has_flexible_response_header
from kafka_compat.storage.segments.file_slice import FileSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from kafka_compat.errors import KafkaError
    from kafka_compat.protocol.schema import Message

Part = bytes | bytearray | memoryview | FileSlice
"""A part of an encoded response."""

SIZE_BYTES: Final = 4
"""Size in bytes of a frame's length prefix."""
_START: Final = Struct(">ii")
_FLEXIBLE_START: Final = Struct(">iix")
"""Layouts of the start of a response frame: its size and header."""

_INT: Final = Struct(">i")
_CORRELATION_ID_END: Final = 8
_REPEATED_MAX: Final = 32

TIMED_PER_S: Final = 20
_RARELY: Final = 1001
"""Sampling interval for the rest of a second after TIMED_PER_S requests have been timed."""
_NEVER: Final = 0
_FIRST: Final = 1


class Requests:
    """Counter for one version of an API. It also selects the requests to time (see request_counts.py)."""

    __slots__ = ("_left", "_paced", "count", "every", "next_timed")

    def __init__(self, is_watched: bool = True) -> None:
        self.count = 0
        self.next_timed = _FIRST if is_watched else _NEVER
        """Number of the next request to be timed."""
        self.every = 1
        """Sampling interval N: every Nth request is timed."""
        self._left = TIMED_PER_S
        self._paced = 0

    def timed(self) -> None:
        """Count the current request as timed, and select the next request to time."""
        self._left -= 1
        if self._left == 0:
            # This second's sample limit is reached. Time requests rarely until `pace` adapts the interval.
            self.every = max(self.every, _RARELY)
        self.next_timed = self.count + self.every

    def pace(self, second_s: float) -> None:
        """Adapt the sampling interval to the request rate of the last `second_s` seconds."""
        rate = (self.count - self._paced) / second_s
        self._paced = self.count
        self._left = TIMED_PER_S
        # Keep the interval odd, so that it does not coincide with a repeating pattern of requests.
        self.every = int(rate / TIMED_PER_S) | 1
        self.next_timed = min(self.next_timed, self.count + self.every)


class Api:
    """An API and its handler. Created on first use, so that unused handlers are never imported.

    If `is_watched` is true, error codes and durations are recorded for metrics. `handlers` is the package of
    the handlers.
    """

    __slots__ = (
        "_decoders",
        "_frame_starts",
        "_framers",
        "_repeated",
        "_repeated_frames",
        "codes",
        "first_flexible_version",
        "handler",
        "has_short_header",
        "has_topics",
        "is_watched",
        "key",
        "max_version",
        "min_version",
        "request_class",
        "requests",
        "response_class",
    )

    def __init__(
        self,
        key: ApiKey,
        min_version: int,
        max_version: int,
        *,
        is_watched: bool = False,
        handlers: str = "kafka_compat.handlers",
    ) -> None:
        name = key.name.lower()
        handler: Any = getattr(importlib.import_module(f"{handlers}.{name}"), name)
        declared = handler.declaration
        if (declared.low, declared.high) != (min_version, max_version):
            raise RuntimeError(f"handlers/served.py is not up to date: {name} declares {declared}")
        self.key = key
        self.min_version = min_version
        self.max_version = max_version
        self.handler: Callable[..., Any] = handler.function
        self.first_flexible_version: int = flexible_from(key)
        """The first version whose request headers have tagged fields."""
        self.has_short_header = key is ApiKey.CONTROLLED_SHUTDOWN
        """Whether version 0 of the request header lacks the client ID."""
        self._frame_starts = [
            _FLEXIBLE_START if has_flexible_response_header(key, version) else _START
            for version in range(max_version + 1)
        ]
        self.request_class = messages.request_class(key)
        self.response_class: type = messages.response_class(key)
        self.has_topics = key is ApiKey.METADATA
        """Whether `topics` in a response may be an EncodedArray."""
        versions = range(max_version + 1)
        self._decoders: list[Any] = [None for _ in versions]
        """Decoders of small requests, indexed by version, or None before the first request."""
        self._framers: list[Any] = [None for _ in versions]
        """Encoders of frames, indexed by version, or None before the first response."""
        self.is_watched = is_watched
        self.requests = [Requests(is_watched) for _ in range(max_version + 1)]
        """Request counters, indexed by version."""
        self.codes = Codes(key)
        """Error code counts, kept if metrics are enabled."""
        self._repeated: dict[Hashable, Any] = {}
        self._repeated_frames: dict[int, bytes] = {}
        """Maps the id() of each repeated response to its frame, which is empty until it is encoded."""

    def repeated(self, key: Hashable) -> Any:
        """Return the response that was passed to `repeat` with the same key, or None."""
        return self._repeated.get(key)

    def repeat(self, key: Hashable, response: Any) -> None:
        """Keep a response, so that it is built and encoded only once. It must never be modified. The key
        states everything on which the response depends, including the version.
        """
        if len(self._repeated) >= _REPEATED_MAX:
            self.forget_repeated()
        self._repeated[key] = response
        self._repeated_frames[id(response)] = b""

    def forget_repeated(self) -> None:
        """Drop the repeated responses, because the metadata has changed."""
        self._repeated, self._repeated_frames = {}, {}

    def decode(self, version: int, frame: bytes | memoryview, position: int) -> Any:
        """Decode a request. Raises MalformedRequest, or TooLong if decoding would block the event loop; the
        caller must then use `decode_long`.
        """
        if isinstance(frame, bytes):
            decoder = self._decoders[version]
            if decoder is None:
                decoder = self._decoders[version] = codec.decoder(self.request_class, version)
            try:
                return decoder(frame, position, ELEMENTS_ON_LOOP_MAX)[0]
            except (struct.error, IndexError, ValueError):
                pass  # `codec.decode_at` fails as well, and its error contains the reason.
        request, _ = codec.decode_at(self.request_class, version, frame, position, ELEMENTS_ON_LOOP_MAX)
        return request

    def decode_long(self, version: int, frame: bytes | memoryview, position: int) -> Any:
        """Decode a long request. Raises MalformedRequest if it is malformed or has too many elements."""
        try:
            request, _ = codec.decode_long(self.request_class, version, frame, position, ELEMENTS_MAX)
        except TooLong:
            problem = f"{self.key.name} v{version}: more than {ELEMENTS_MAX} elements"
            raise MalformedRequest(problem) from None
        return request

    def error_response(self, version: int, request: Any, error: KafkaError) -> Message | None:
        """Return the error response to `request`, or None if the request expects no response."""
        from kafka_compat.api.error_response import error_response

        return error_response(self.key, version, request, error.code, error.message)

    def encode(self, version: int, correlation_id: int, response: Any) -> list[Part]:
        """Encode a response as the parts of a frame, and count its error codes if metrics are enabled. Raises
        TooLong if encoding would block the event loop; the caller must then use `encode_long`.
        """
        framer = self._framers[version]
        if framer is None:
            framer = self._framers[version] = codec.framer(self.response_class, version)
        known = self._repeated_frames.get(id(response)) if self._repeated_frames else None
        parts: list[Part]
        if known:
            parts = [known[:SIZE_BYTES] + _INT.pack(correlation_id) + known[_CORRELATION_ID_END:]]
        elif self.has_topics and isinstance(response.topics, EncodedArray):
            parts = self._around(
                version, framer(response, correlation_id, codec.UNBOUNDED)[0], response.topics
            )
        else:
            try:
                parts = framer(response, correlation_id, ELEMENTS_ON_LOOP_MAX)
            except codec.ENCODING_ERRORS:
                # `codec.encode_long` fails as well, and its error contains the reason.
                parts = self._frame(version, correlation_id, codec.encode_long(response, version))
        if known == b"":
            self._repeated_frames[id(response)] = b"".join(cast("list[bytes]", parts))
        if self.is_watched:
            self.codes.count(response)
        return parts

    def _around(self, version: int, frame: bytes, topics: EncodedArray) -> list[Part]:
        """Insert topics, which are already encoded, into the frame of a response without topics."""
        end = len(frame) - topics.end_bytes
        count_bytes = 1 if self._frame_starts[version] is _FLEXIBLE_START else _INT.size
        parts = [frame[SIZE_BYTES : end - count_bytes], *topics.parts, frame[end:]]
        return [_INT.pack(sum(map(len, parts))), *parts]

    def encode_long(self, version: int, correlation_id: int, response: Any) -> list[Part]:
        """Encode a long response as the parts of a frame. Call this in the codec's thread."""
        # Use no lock: a count may be lost if the event loop counts another response at the same time.
        if self.is_watched:
            self.codes.count(response)
        return self._frame(version, correlation_id, codec.encode_long(response, version))

    def _frame(self, version: int, correlation_id: int, parts: Sequence[Any]) -> list[Part]:
        start = self._frame_starts[version]
        size_bytes = start.size - SIZE_BYTES + sum(map(size_of, parts))
        return [start.pack(size_bytes, correlation_id), *parts]
