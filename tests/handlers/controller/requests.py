"""Requests to a controller listener, valid in form, with values that no node would send."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.handlers.served import CONTROLLER_SERVED
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import request_class
from kafka_compat.protocol.schema import Message, fields_of
from kafka_compat.quorum.metadata_partition import TOPIC, TOPIC_ID
from kafka_compat.security.broker_security import NONE, BrokerSecurity
from tests.protocol.random_messages import RandomMessages

RAFT_APIS = tuple(
    key for key in CONTROLLER_SERVED if key not in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
)
"""The APIs of controller listeners, without those of the login."""
_LIKELY: dict[str, tuple[Any, ...]] = {
    "topic_name": (TOPIC,),
    "name": (TOPIC,),
    "topic_id": (TOPIC_ID,),
    "partition": (0,),
    "partition_index": (0,),
    "max_wait_ms": (0, -1),
    "timeout_ms": (0, -1, 1),
}
"""Values of fields, without which most requests would be rejected for the same reason, or would wait."""


def client_of(port: int, security: BrokerSecurity = NONE) -> BrokerClient:
    return BrokerClient("127.0.0.1", port, "test", security=security, request_timeout_ms=20_000)


def strange_requests(
    api_key: ApiKey, cluster_id: str, epoch: int, seed: int, count: int
) -> Iterator[tuple[int, Any]]:
    """Yield versions and requests of an API with extreme and unlikely values. Epochs are near `epoch`: a
    request with a far higher one deposes any leader for good, as in Apache Kafka.
    """
    chance = random.Random(f"{api_key} {seed}")
    first, last = CONTROLLER_SERVED[api_key]
    for number in range(count):
        version = chance.randint(first, last)
        made = RandomMessages(f"{api_key} {seed} {number}", longest=1, full=True)
        request = made.message(request_class(api_key), version)
        _make_likely(request, cluster_id, epoch, chance)
        yield version, request


def _make_likely(message: Any, cluster_id: str, epoch: int, chance: random.Random) -> None:
    for name in [spec.name for spec in fields_of(type(message))]:
        value = getattr(message, name)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    _make_likely(each, cluster_id, epoch, chance)
        elif isinstance(value, Message):
            with contextlib.suppress(TypeError):  # a default, which all messages share
                _make_likely(value, cluster_id, epoch, chance)
        elif name == "cluster_id":
            message.cluster_id = chance.choice([cluster_id, cluster_id, cluster_id, None, "another"])
        elif name.endswith("epoch") and isinstance(value, int):
            setattr(message, name, chance.choice([-(2**31), -1, 0, epoch - 1, epoch, epoch + 1]))
        elif name.endswith("_id") and isinstance(value, int):
            setattr(message, name, chance.choice([value, -1, 101, 7]))
        elif name in _LIKELY:
            setattr(message, name, chance.choice(_LIKELY[name]))
