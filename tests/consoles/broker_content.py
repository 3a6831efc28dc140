"""Content of the brokers that monitors and consoles show: the state from tests/tools, and in addition ACLs,
users, quotas, broker and topic settings, static members, and compressed records.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.java_tools import JavaTools
from tests.support.process import wait_until
from tests.tools.world import FIRST_MS, KEPT

SHOWN = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    # Our default differs.
    "queued.max.request.bytes": "500000000",
}
"""Settings of the brokers on both sides."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HOT, STATIC, DEFAULT = "hot", "static", "--entity-default"
_ALTERED = (
    ("brokers", ("--entity-name", "1"), "background.threads=7"),
    ("brokers", (DEFAULT,), "log.cleaner.backoff.ms=16000"),
    ("topics", ("--entity-name", HOT), "max.message.bytes=2000000,min.insync.replicas=1"),
    ("users", ("--entity-name", "ann"), "SCRAM-SHA-256=[iterations=4096,password=secret]"),
    ("users", ("--entity-name", "ann"), "producer_byte_rate=5000000"),
    ("clients", ("--entity-name", "app"), "consumer_byte_rate=7000000"),
    ("users", (DEFAULT,), "request_percentage=150"),
)


class Furniture:
    """Content created on brokers 1 to `brokers` at `address`. Group members stay until `close`."""

    def __init__(self, address: str, tools: JavaTools, brokers: int = 1) -> None:
        self._admin = AdminClient({"bootstrap.servers": address})
        self._address = address
        self._members: list[Consumer] = []
        self._make_topic(brokers)
        for kind, entity, added in _ALTERED:
            self._alter(tools, kind, entity, added)
        self._allow()
        self._join(("one", "two"))

    def _make_topic(self, brokers: int) -> None:
        places = [[1 + (first + n) % brokers for n in range(brokers)] for first in range(4)]
        config = {**KEPT, "cleanup.policy": "compact,delete"}
        new = NewTopic(HOT, 4, replica_assignment=places, config=config)
        self._admin.create_topics([new])[HOT].result(60)
        for number, codec in enumerate(CODECS):
            settings = {"bootstrap.servers": self._address, "compression.type": codec, "linger.ms": 50}
            producer = Producer(settings)
            for count in range(20):
                value = f'{{"codec": "{codec}", "number": {count}, "text": "{"é" * 40}"}}'
                producer.produce(
                    HOT,
                    value,
                    f"key {count}",
                    number % 3,
                    timestamp=FIRST_MS + 1000 * number + count,
                    headers={"codec": codec.encode(), "nothing": None, "bytes": b"\x00\xff"},
                )
            assert producer.flush(30) == 0

    def _alter(self, tools: JavaTools, kind: str, entity: Sequence[str], added: str) -> None:
        line = ("--alter", "--entity-type", kind, *entity, "--add-config", added)
        printed = tools.run("kafka-configs", "--bootstrap-server", self._address, *line)
        assert printed.code == 0, printed

    def _allow(self) -> None:
        allow = AclPermissionType.ALLOW
        bindings = [
            AclBinding(kind, name, pattern, principal, "*", operation, allow)
            for kind, name, pattern, principal, operation in (
                (ResourceType.TOPIC, HOT, ResourcePatternType.LITERAL, "User:ann", AclOperation.READ),
                (ResourceType.TOPIC, "h", ResourcePatternType.PREFIXED, "User:ben", AclOperation.WRITE),
                (ResourceType.GROUP, "*", ResourcePatternType.LITERAL, "User:*", AclOperation.DESCRIBE),
            )
        ]
        for future in self._admin.create_acls(bindings).values():
            future.result(60)

    def _join(self, names: Sequence[str]) -> None:
        """Start static members that own all partitions of HOT and have read some of their records."""
        for name in names:
            settings = {
                "bootstrap.servers": self._address,
                "group.id": STATIC,
                "group.instance.id": name,
                "client.id": f"reader {name}",
                "session.timeout.ms": 300_000,
                "max.poll.interval.ms": 600_000,
                "partition.assignment.strategy": "roundrobin",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
            self._members.append(Consumer(settings))
            self._members[-1].subscribe([HOT])

            # Members join one at a time, so that both sides have the same number of generations.
            wait_until(self._have_all, 60, "partition assignment of the static members")
        offsets = [TopicPartition(HOT, number, 5 * number) for number in range(4)]
        for member in self._members:
            mine = {place.partition for place in member.assignment()}
            chosen = [place for place in offsets if place.partition in mine]
            member.commit(offsets=chosen, asynchronous=False)

    def _have_all(self) -> bool:
        for member in self._members:
            member.poll(0.1)
        share = 4 // len(self._members)
        return all(len(member.assignment()) == share for member in self._members)

    def close(self) -> None:
        for member in self._members:
            member.close()
