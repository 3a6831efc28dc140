"""What a handler says of itself."""

from __future__ import annotations

from typing import NamedTuple

from kafka_compat.protocol.api_keys import ApiKey


class Declaration(NamedTuple):
    """What a handler says of itself: its API, its first and last version, and whether only a broker of a
    cluster serves it.
    """

    api_key: ApiKey
    low: int
    high: int
    cluster: bool
