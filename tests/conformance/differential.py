"""The same requests to our broker and to a genuine one, with what differs in the responses."""

from __future__ import annotations

import itertools
import secrets
import uuid
from collections.abc import Callable, Iterable

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import request_class
from kafka_compat.protocol.schema import schema_of
from tests.conformance.comparison import differences, neutral
from tests.conformance.wire import Closed, Connection, Plain
from tests.support.process import wait_until

Side = Callable[[str], Plain]
"""A request that differs by side ("ours" or "genuine"), because it holds an id that the broker gave."""


class Pair:
    """A connection to our broker and one to a genuine one, and topics of the same name on both.

    `host` is the address of this machine that the connections come from.
    """

    def __init__(self, ours: str, genuine: str, *, host: str | None = None) -> None:
        self.addresses = (ours, genuine)
        self._addresses = {"ours": ours, "genuine": genuine}
        self._host = host
        self.sides = {name: Connection(address, source=host) for name, address in self._addresses.items()}
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count()
        self._genuine_versions = {
            entry["api_key"]: (entry["min_version"], entry["max_version"])
            for entry in self.sides["genuine"].ask(ApiKey.API_VERSIONS, 0, {})["api_keys"]
        }

    def close(self) -> None:
        for connection in self.sides.values():
            connection.close()

    def name(self, what: str = "topic") -> str:
        return f"{what}-{self._run}-{next(self._numbers)}"

    def topic(self, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        """A new topic on both brokers, with its leaders known."""
        name = self.name()
        wanted = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }
        for answer in self.both(ApiKey.CREATE_TOPICS, 4, {"topics": [wanted], "timeout_ms": 15_000}):
            assert answer["topics"][0]["error_code"] == 0, answer
        self.await_topic(name, 0)
        self._await_leaders(name, partitions)
        return name

    def await_topic(self, name: str, code: int) -> None:
        """Wait until both brokers' metadata shows the topic with that error code (0: it is served)."""
        asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}

        def shown() -> bool:
            topics = [answer["topics"][0] for answer in self.both(ApiKey.METADATA, 5, asked)]
            states = [
                {entry["error_code"], *(part["error_code"] for part in entry["partitions"])}
                for entry in topics
            ]
            return all(state == {code} for state in states)

        wait_until(shown, 10, f"topic {name} has error code {code}")

    def _await_leaders(self, name: str, count: int) -> None:
        """With KRaft, metadata names a leader that does not know of it yet."""
        partitions = [{"partition_index": index, "timestamp": -1} for index in range(count)]
        asked = {"replica_id": -1, "topics": [{"name": name, "partitions": partitions}]}

        def lead() -> bool:
            return not any(
                item["error_code"]
                for answer in self.both(ApiKey.LIST_OFFSETS, 2, asked)
                for item in answer["topics"][0]["partitions"]
            )

        wait_until(lead, 10, f"the leaders of {name}")

    def ids(self, topic: str) -> dict[str, uuid.UUID]:
        """The topic's id on each side."""
        asked = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        return {
            side: connection.ask(ApiKey.METADATA, 12, asked)["topics"][0]["topic_id"]
            for side, connection in self.sides.items()
        }

    def versions(self, api_key: ApiKey, low: int = 0, high: int = 99) -> range:
        """The versions from `low` to `high` that our schemas and the genuine broker have."""
        known = schema_of(request_class(api_key)).versions
        first, last = self._genuine_versions[api_key]
        return range(max(known.low, first, low), min(known.high, last, high) + 1)

    def both(self, api_key: ApiKey, version: int, request: Plain | Side) -> list[Plain]:
        """(our answer, genuine answer), as they came; a closed connection shows as {"closed": True}."""
        answers: list[Plain] = []
        for side in self.sides:
            given = request(side) if callable(request) else request
            try:
                answers.append(self.sides[side].ask(api_key, version, given))
            except Closed:
                self.sides[side].close()
                self.sides[side] = Connection(self._addresses[side], source=self._host)
                answers.append({"closed": True})
        return answers

    def same(self, api_key: ApiKey, request: Plain | Side, versions: Iterable[int] | None = None) -> Plain:
        """Ask every version (or those given) on both; AssertionError lists all that differs.

        Returns our last answer, as it came.
        """
        found: list[str] = []
        answer: Plain = {}
        for version in self.versions(api_key) if versions is None else versions:
            answer, expected = self.both(api_key, version, request)
            shown = differences(neutral(answer, api_key), neutral(expected, api_key), api_key)
            found += [f"v{version}{line}" for line in shown]
        assert answer, f"{api_key.name}: no version was asked"
        assert not found, f"{api_key.name}:\n" + "\n".join(found[:60])
        return answer
