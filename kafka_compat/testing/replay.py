"""Replay recorded requests (`Control.record`) against a target broker. The IDs of topics, producers and
members are replaced with those that the target broker assigns.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any

from kafka_compat.client.connection import Connection
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.json_form import api_named, from_json, to_json
from kafka_compat.protocol.messages import request_class
from kafka_compat.storage.records.batch import HEADER_SIZE, read_header, seal

Entry = dict[str, Any]

_TIMEOUT_S = 60.0
_GIVEN = ("member_id", "producer_id", "topic_id")
"""Suffixes of the names of fields with IDs that a broker assigns and clients send back. Each broker assigns
different IDs.
"""


def save(entries: Sequence[Entry], path: str | Path) -> None:
    """Save recorded requests to a file, as one line of JSON per request."""
    with open(path, "w") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)


def load(path: str | Path) -> list[Entry]:
    """Return the recorded requests from a file. Raises ValueError if the file is not a recording."""
    with open(path) as file:
        return [json.loads(line) for line in file]


def replay(entries: Sequence[Entry], bootstrap_servers: str) -> list[Any]:
    """Send recorded requests to the first of `bootstrap_servers`, over as many connections as were recorded.
    Each request is sent after the responses that preceded it in the recording. Return the responses in the
    format of `response` in the recording, with None for missing responses. Raises OSError if the broker
    cannot be reached, and EOFError if it closes the connection.
    """
    return _Replay(entries, bootstrap_servers.split(",")[0]).run()


class _Replay:
    def __init__(self, entries: Sequence[Entry], server: str) -> None:
        self._entries = entries
        self._server = server
        self._connections: dict[int, Connection] = {}
        self._unanswered: dict[int, list[int]] = {}
        """Indexes of requests without a response yet, by connection."""
        self._answers: list[Any] = [None] * len(entries)
        self._ids: dict[Any, Any] = {}
        """Maps IDs from the recorded broker to IDs from the current broker."""

    def run(self) -> list[Any]:
        with ExitStack() as stack:
            for place, entry in enumerate(self._entries):
                self._receive(entry["number"] - 1)
                connection = self._connection(entry, stack)
                connection.send(*self._request(entry))
                if entry["response"] is not None:
                    self._unanswered.setdefault(entry["connection"], []).append(place)
            self._receive(inf)
        return self._answers

    def _connection(self, entry: Entry, stack: ExitStack) -> Connection:
        number = entry["connection"]
        if number not in self._connections:
            host, _, port = self._server.rpartition(":")
            plain = socket.create_connection((host, int(port)), _TIMEOUT_S)
            connection = Connection(plain, entry["client_id"])
            stack.callback(connection.close)
            self._connections[number] = connection
        return self._connections[number]

    def _receive(self, requests_before: float) -> None:
        """Receive the responses that preceded the next request in the recording."""
        for number, places in self._unanswered.items():
            while places and self._entries[places[0]]["answered_after"] <= requests_before:
                entry = self._entries[places[0]]
                answer = self._connections[number].receive(_key(entry), entry["version"])
                response = to_json(answer, frozenset({"records"}))
                self._answers[places.pop(0)] = response
                self._ids.update(_given(entry["response"], response))

    def _request(self, entry: Entry) -> tuple[ApiKey, int, Any]:
        key = _key(entry)
        request = from_json(request_class(key), self._translated(entry["request"]))
        if key == ApiKey.PRODUCE:
            for topic in request.topic_data:
                for partition in topic.partition_data:
                    partition.records = self._with_producer_ids(bytearray(partition.records or b""))
        return key, entry["version"], request

    def _translated(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._translated(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._translated(item, name) for item in value]
        return self._ids.get((_kind(name), value), value)

    def _with_producer_ids(self, records: bytearray) -> bytes:
        start = 0
        while start + HEADER_SIZE <= len(records):
            header = read_header(records, start)
            end = start + header.size_bytes
            now = self._ids.get(("producer_id", header.producer_id), header.producer_id)
            if now != header.producer_id:
                records[start : start + HEADER_SIZE] = header.replace(producer_id=now).pack()
                seal(memoryview(records)[start:end])
            start = end
        return bytes(records)


def _key(entry: Entry) -> ApiKey:
    found = api_named(entry["api"])
    if found is None:
        raise ValueError(f"not a recording: unknown API {entry['api']}")
    return found


def _given(before: Any, now: Any, name: str = "") -> Iterator[tuple[tuple[str, Any], Any]]:
    """Yield ((kind, recorded ID), current ID) for the assigned IDs in two corresponding responses."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before.keys() & now.keys():
            yield from _given(before[key], now[key], key)
    elif isinstance(before, list) and isinstance(now, list):
        for one, other in zip(before, now, strict=False):
            yield from _given(one, other, name)
    elif kind := _kind(name):
        yield (kind, before), now


def _kind(name: str) -> str:
    return next((kind for kind in _GIVEN if name.endswith(kind)), "")
