"""The protocol between brokers at each inter.broker.protocol.version (Kafka's MetadataVersion). No I/O.

Brokers send each other requests without asking for the supported versions first. The setting therefore names
the oldest Kafka version in the cluster, and every broker uses the requests and nodes of that version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka_compat.config.keys import ConfigError

SETTING: Final = "inter.broker.protocol.version"
Version = tuple[int, int, int]
OLDEST: Final[Version] = (2, 8, 1)
"""The oldest supported version, as (major, minor, IV number). Kafka 2.8.0 was released with 2.8-IV1."""
_LAST_IV: Final = {
    (2, 8): 1,
    (3, 0): 1,
    (3, 1): 0,
    (3, 2): 0,
    (3, 3): 3,
    (3, 4): 0,
    (3, 5): 2,
    (3, 6): 2,
    (3, 7): 4,
    (3, 8): 0,
    (3, 9): 0,
}
"""The last IV number of each Kafka version."""
_PARTS: Final = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?(?:-IV(\d+))?")


class InterBrokerProtocol(NamedTuple):
    """The versions of requests and nodes that a broker uses. The defaults are those of Kafka 3.9."""

    name: str = "3.9-IV0"
    fetch: int = 17
    """The version of followers' Fetch requests for topics with IDs."""
    list_offsets: int = 9
    leader_and_isr: int = 7
    update_metadata: int = 8
    stop_replica: int = 4
    alter_partition: int = 3
    add_partitions_to_txn: int | None = 5
    """The version of requests that verify a transaction (KIP-890), or None to ask each coordinator, because
    brokers of this version do not verify transactions, or not all of them do."""
    controller_allocates_producer_ids: bool = True
    """Whether the controller allocates producer IDs (KIP-730), rather than each broker in ZooKeeper."""
    recovers_leaders: bool = True
    """Whether the state of a partition says that its leader was elected uncleanly (KIP-704)."""
    feature_node: int = 2
    """The format of the node /feature."""


def inter_broker_protocol(text: str) -> InterBrokerProtocol:
    """Return the protocol of a version such as 3.3 or 3.3-IV1. Raises ConfigError for a version that this
    broker does not support.
    """
    version = parse_version(text)
    if version is None or version < OLDEST or version[:2] not in _LAST_IV:
        old = version is not None and version < OLDEST
        reason = (
            "is older than 2.8, the oldest protocol of this broker"
            if old
            else "is not a protocol of Kafka 3.9"
        )
        raise ConfigError(SETTING, text, reason, "expected 2.8 to 3.9, and the same on all brokers")
    # Named as Kafka names it: 3.3 is 3.3-IV3.
    major, minor, iv = version
    return InterBrokerProtocol(
        name=f"{major}.{minor}-IV{iv}",
        fetch=_at(version, 12, {(3, 1, 0): 13, (3, 5, 0): 14, (3, 5, 1): 15, (3, 7, 4): 16, (3, 9, 0): 17}),
        list_offsets=_at(version, 6, {(3, 0, 1): 7, (3, 5, 0): 8, (3, 9, 0): 9}),
        leader_and_isr=_at(version, 5, {(3, 2, 0): 6, (3, 4, 0): 7}),
        update_metadata=8 if version >= (3, 4, 0) else 7,
        stop_replica=4 if version >= (3, 4, 0) else 3,
        # Kafka asks the controller for its versions instead. These are the ones that each release knows.
        alter_partition=_at(version, 0, {(3, 2, 0): 1, (3, 3, 0): 2, (3, 5, 0): 3}),
        add_partitions_to_txn=5 if version >= (3, 8, 0) else None,
        controller_allocates_producer_ids=version >= (3, 0, 0),
        recovers_leaders=version >= (3, 2, 0),
        feature_node=2 if version >= (3, 3, 0) else 1,
    )


def parse_version(text: str) -> Version | None:
    """Return (major, minor, IV number), with the last IV number if `text` has none, or None if it is not a
    version.
    """
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    major, minor = int(found[1]), int(found[2])
    last = _LAST_IV.get((major, minor), 0)
    iv = last if found[3] is None else int(found[3])
    return None if (major, minor) in _LAST_IV and iv > last else (major, minor, iv)


def _at(version: Version, before: int, since: Mapping[Version, int]) -> int:
    """Return the value at a version: `before` the first key of `since`, otherwise that of the last key
    reached.
    """
    return max([before, *(value for first, value in since.items() if version >= first)])


LATEST: Final = InterBrokerProtocol()
"""The protocol of Kafka 3.9. Brokers without ZooKeeper always use it."""
