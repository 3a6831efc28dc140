"""Each request is served under the client ID in its own header, although connections remember the header."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from kafka_compat.api.api import Api
from kafka_compat.api.stages import Served
from kafka_compat.protocol.api_keys import ApiKey
from tests.network.embedded import serving

NAMES = b"\xff\xff", b"\0\1a", b"\0\1b", b"\0\0", b"\0\2ab"
"""Encoded client IDs: null, and strings."""


def header(version: int, name: bytes, tags: bytes = b"") -> bytes:
    return struct.pack(">hhi", ApiKey.API_VERSIONS, version, 7) + name + tags


async def test_the_client_id_of_each_header_is_used(tmp_path: Path) -> None:
    long_tags = b"\1\0" + b"\xd0\x0f" + bytes(2000)
    bodies = [header(0, name) for name in (*NAMES, *NAMES[::-1])]
    bodies += [header(3, name, b"\0") + b"\2a\2b\0" for name in NAMES]
    bodies += [header(3, b"\0\1a", long_tags) + b"\2a\2b\0", header(3, b"\0\1b", b"\0") + b"\2a\2b\0"]
    # The start of this body looks like the tagged fields of the previous header.
    bodies += [header(0, b"\0\1b") + b"\0", header(3, b"\0\1b", b"\0") + b"\2a\2b\0"]
    # Version 0 of this header has no client ID. The body is a broker ID.
    bodies += [struct.pack(">hhii", ApiKey.CONTROLLED_SHUTDOWN, 0, 7, 1), header(0, b"\0\1b")]
    expected = [None, "a", "b", "", "ab", "ab", "", "b", "a", None, None, "a", "b", "", "ab"]
    expected += ["a", "b", "b", "b", None, "b"]
    seen: list[Served] = []
    async with serving(tmp_path) as (broker, connection):
        broker.calls.add_account(seen.append)
        broker.calls.apis[ApiKey.CONTROLLED_SHUTDOWN] = Api(ApiKey.CONTROLLED_SHUTDOWN, 0, 3)
        for body in bodies:
            connection.send(struct.pack(">i", len(body)) + body)
            await asyncio.to_thread(connection.receive)
    assert [served.client_id for served in seen] == expected
