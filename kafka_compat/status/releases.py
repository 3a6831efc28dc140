"""Which Kafka a broker is like, by the versions of its APIs: brokers do not tell their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_compat.protocol.api_keys import ApiKey

_NEWEST_FIRST: Final = (
    (ApiKey.FETCH, 18, "4.1+"),
    (ApiKey.PRODUCE, 12, "4.0"),
    (ApiKey.FETCH, 17, "3.9"),
    (ApiKey.LIST_TRANSACTIONS, 1, "3.8"),
    (ApiKey.FETCH, 16, "3.7"),
    (ApiKey.FETCH, 15, "3.5-3.6"),
    (ApiKey.FETCH, 13, "3.1-3.4"),
    (ApiKey.LIST_OFFSETS, 7, "3.0"),
    (ApiKey.PRODUCE, 9, "2.8"),
    (ApiKey.FETCH, 12, "2.7"),
    (ApiKey.FETCH, 11, "2.3-2.6"),
)
"""An API, the version of it that a release brought, and the release."""
_OLDER: Final = "<2.3"


def newest_release(versions: Mapping[int, tuple[int, int]]) -> str:
    """The newest Kafka whose APIs a broker has, of the lowest and highest version of each of its APIs."""
    for key, version, release in _NEWEST_FIRST:
        if versions.get(key, (0, -1))[1] >= version:
            return release
    return _OLDER


def is_kraft(versions: Mapping[int, tuple[int, int]]) -> bool:
    """Whether a quorum of controllers leads the broker: with ZooKeeper none advertises what asks of it."""
    return ApiKey.DESCRIBE_QUORUM in versions
