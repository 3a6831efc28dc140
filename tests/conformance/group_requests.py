"""Requests of consumer group members."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain


def join(group: str, **more: Any) -> Plain:
    protocols = [{"name": "range", "metadata": b"\0\0"}]
    request = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
    }
    return request | {"protocol_type": "consumer", "protocols": protocols} | more


def ready_group(pair: Pair) -> str:
    """Return a new group name for which both brokers have an available coordinator."""
    group = pair.name("group")
    for connection in pair.sides.values():
        for _ in range(2000):
            found = connection.ask(ApiKey.FIND_COORDINATOR, 2, {"key": group, "key_type": 0})
            probe = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
            if found["error_code"] == 0 and connection.ask(ApiKey.HEARTBEAT, 1, probe)["error_code"] == 25:
                break
        else:
            pytest.fail("group coordinators")
    return group
