"""Streamed responses, which are sent while they are generated."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from kafka_compat.config import BrokerConfig
from kafka_compat.http.listener import HttpListener
from kafka_compat.http.routes import Answer, Call, Route, Stream


def _read(url: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


async def test_a_response_that_fails_midway_is_detected_as_incomplete(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def pieces(*, fails: bool) -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"piece %d\n" % number
        if fails:
            raise RuntimeError("failed midway")

    async def whole(call: Call) -> Answer:
        return Stream(pieces(fails=False), "text/plain; charset=utf-8")

    async def broken(call: Call) -> Answer:
        return Stream(pieces(fails=True), "text/plain; charset=utf-8")

    listener = HttpListener(
        BrokerConfig.from_properties({"kafka.compat.http.listener": "http://127.0.0.1:0"})
    )
    await listener.serve([Route("GET", "/whole", whole, "x"), Route("GET", "/broken", broken, "x")])
    try:
        assert await asyncio.to_thread(_read, listener.url, "/whole") == b"piece 0\npiece 1\npiece 2\n"
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            await asyncio.to_thread(_read, listener.url, "/broken")
    finally:
        await listener.close()
    assert "GET /broken failed" in caplog.text
