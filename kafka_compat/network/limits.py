"""What a server grants its clients."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

UNLIMITED = 2**31 - 1
"""What Kafka's settings have for a rate, or a number of connections, without a bound."""


class Limits(NamedTuple):
    """What a server grants its clients.

    `frame_deadline_ms` bounds how long a frame may stay unfinished: a client that sends half a frame and
    waits would otherwise hold a buffer for the whole of connections.max.idle.ms. `request_memory_bytes` and
    `answer_memory_bytes` are for all connections together, see budget.py. Listeners without a limit of their
    own have the server's.
    """

    request_max_bytes: int
    idle_max_ms: int
    connections_max: int
    connections_per_ip_max: int
    frame_deadline_ms: int
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    connections_per_ip_overrides: Mapping[str, int] = MappingProxyType({})
    request_memory_bytes: int = sys.maxsize
    answer_memory_bytes: int = sys.maxsize
    connections_per_listener: Mapping[str, int] = MappingProxyType({})
    inter_broker_listener: str = ""


def bound(setting_bytes: int) -> int:
    """The bound that a setting means: none where it is not positive, as in Kafka."""
    return setting_bytes if setting_bytes > 0 else sys.maxsize
