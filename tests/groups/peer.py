"""One of two brokers that receive the same requests, and its responses."""

from __future__ import annotations

import re
from typing import Any

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import decode_response_header
from kafka_compat.protocol.messages import response_class
from tests.conformance.comparison import in_order
from tests.conformance.wire import Connection, Plain, encode, plain
from tests.groups.classic.transcript import subscription
from tests.support.servers import Server

TOPIC = "group-differential"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UNKNOWN_MEMBER_ID = 25

JOIN = {
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": subscription([TOPIC])}],
}


class Peer:
    """One of the two brokers, and all of its responses so far."""

    def __init__(self, server: Server) -> None:
        self._address = server.address
        self._port = server.port
        self._connections: dict[str, Connection] = {}
        self._under_way: dict[str, list[tuple[ApiKey, int]]] = {}
        self._ids: dict[str, str] = {}
        self.said: list[Any] = []

    def ask(self, api_key: ApiKey, version: int, *, who: str = "main", **request: Any) -> Plain:
        """Send a request on the connection `who`, and return the response."""
        self.send(api_key, version, who=who, **request)
        return self.receive(who)

    def send(self, api_key: ApiKey, version: int, *, who: str = "main", **request: Any) -> None:
        if who not in self._connections:
            self._connections[who] = Connection(self._address)
        self._connections[who].send(encode(api_key, version, request))
        self._under_way.setdefault(who, []).append((api_key, version))

    def receive(self, who: str) -> Plain:
        api_key, version = self._under_way[who].pop(0)
        frame = self._connections[who].receive()
        _, position = decode_response_header(api_key, version, frame)
        answer: Plain = plain(codec.decode(response_class(api_key), version, frame, position, exact=True))
        self.said.append((f"{api_key.name} v{version} {who}", self._neutral(answer, api_key)))
        return answer

    def _neutral(self, value: Any, api_key: ApiKey, name: str = "") -> Any:
        if name == "error_message":
            # Error messages differ between the brokers, but clients of versions 1 to 3 rely on this one.
            return value == "NONE"
        if isinstance(value, dict):
            return {field: self._neutral(one, api_key, field) for field, one in value.items()}
        if isinstance(value, list):
            return in_order([self._neutral(one, api_key) for one in value], api_key, name)
        if isinstance(value, str):
            return _UUID.sub(lambda match: self._ids.setdefault(match[0], f"ID{len(self._ids) + 1}"), value)
        return "PORT" if name == "port" and value == self._port else value

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    # Shortcuts for requests

    def join(
        self, version: int, group: str, *, who: str = "main", member_id: str = "", **changes: Any
    ) -> Plain:
        request = JOIN | {"group_id": group, "member_id": member_id} | changes
        return self.ask(ApiKey.JOIN_GROUP, version, who=who, **request)

    def join_known(self, version: int, group: str, *, who: str = "main", **changes: Any) -> Plain:
        """Send JoinGroup like a client: if a member id is required, join again with the returned id."""
        answer = self.join(version, group, who=who, **changes)
        if answer["error_code"] == 79:
            answer = self.join(version, group, who=who, member_id=answer["member_id"], **changes)
        return answer

    def sync(self, version: int, group: str, joined: Plain, *, who: str = "main", **changes: Any) -> Plain:
        return self.ask(ApiKey.SYNC_GROUP, version, who=who, **sync_request(version, group, joined) | changes)

    def member(self, group: str, *, who: str = "main", **changes: Any) -> Plain:
        """Become the only member of a stable group."""
        joined = self.join_known(5, group, who=who, **changes)
        instance = (
            {"group_instance_id": changes["group_instance_id"]} if "group_instance_id" in changes else {}
        )
        self.sync(3, group, joined, who=who, **instance)
        return joined

    def heartbeat(self, version: int, group: str, joined: Plain, **changes: Any) -> Plain:
        request = {
            "group_id": group,
            "generation_id": joined["generation_id"],
            "member_id": joined["member_id"],
        }
        return self.ask(ApiKey.HEARTBEAT, version, **request | changes)

    def commit(self, version: int, group: str, offsets: dict[tuple[str, int], Any], **changes: Any) -> Plain:
        topics = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": partition}
                    | (value if isinstance(value, dict) else {"committed_offset": value})
                ],
            }
            for (topic, partition), value in offsets.items()
        ]
        return self.ask(ApiKey.OFFSET_COMMIT, version, **{"group_id": group, "topics": topics} | changes)

    def fetch(self, version: int, group: str, partitions: list[int] | None, topic: str = TOPIC) -> Plain:
        topics = None if partitions is None else [{"name": topic, "partition_indexes": partitions}]
        if version >= 8:
            return self.ask(ApiKey.OFFSET_FETCH, version, groups=[{"group_id": group, "topics": topics}])
        return self.ask(ApiKey.OFFSET_FETCH, version, group_id=group, topics=topics)

    def describe(self, version: int, *groups: str, **changes: Any) -> Plain:
        return self.ask(ApiKey.DESCRIBE_GROUPS, version, groups=list(groups), **changes)

    def leave(self, version: int, group: str, **member: Any) -> Plain:
        if version < 3:
            return self.ask(ApiKey.LEAVE_GROUP, version, group_id=group, member_id=member["member_id"])
        return self.ask(ApiKey.LEAVE_GROUP, version, group_id=group, members=[member])


def sync_request(version: int, group: str, joined: Plain) -> Plain:
    request: Plain = {
        "group_id": group,
        "generation_id": joined["generation_id"],
        "member_id": joined["member_id"],
        "assignments": [
            {
                "member_id": one["member_id"],
                "assignment": b"the leader's" if one["member_id"] == joined["member_id"] else b"another's",
            }
            for one in joined["members"]
        ],
    }
    if version >= 5:
        request |= {"protocol_type": "consumer", "protocol_name": joined["protocol_name"]}
    return request


def prepare(peer: Peer) -> None:
    """Create the topic, wait for a coordinator for every group, and clear the responses."""
    topic = {"name": TOPIC, "num_partitions": 3, "replication_factor": 1}
    peer.ask(ApiKey.CREATE_TOPICS, 4, topics=[topic], timeout_ms=10_000)
    groups = {shard_of(f"probe-{number}", 50): f"probe-{number}" for number in range(500)}
    while groups:
        peer.ask(ApiKey.FIND_COORDINATOR, 4, coordinator_keys=["any"])
        groups = {
            shard: group
            for shard, group in groups.items()
            if peer.ask(ApiKey.HEARTBEAT, 0, group_id=group)["error_code"] != UNKNOWN_MEMBER_ID
        }
    peer.said.clear()
