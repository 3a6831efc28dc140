"""kminion, Burrow and Redpanda Console as servers, and their responses."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from tests.consoles.sides import Side
from tests.support.ports import free_port
from tests.support.programs import program, serving

_RECORDS_S = 15


@contextmanager
def kminion(side: Side, folder: Path, **settings: str) -> Iterator[str]:
    """Run kminion with `settings` as environment variables, and yield its URL."""
    port = free_port()
    environment = {
        "KAFKA_BROKERS": side.address,
        "EXPORTER_HOST": "127.0.0.1",
        "EXPORTER_PORT": str(port),
        **settings,
    }
    log = folder / f"kminion-{side.name}.log"
    with serving([program("kminion")], log, f"http://127.0.0.1:{port}", "/ready", environment) as url:
        yield url


@contextmanager
def burrow(side: Side, folder: Path) -> Iterator[str]:
    port = free_port()
    home = folder / f"burrow-{side.name}"
    home.mkdir()
    servers = json.dumps(side.address.split(","))
    (home / "burrow.toml").write_text(
        f"""
        [general]
        pidfile = "{home}/pid"
        [logging]
        filename = "{home}/log"
        [client-profile.own]
        client-id = "burrow"
        kafka-version = "3.6.0"
        [cluster.local]
        class-name = "kafka"
        client-profile = "own"
        servers = {servers}
        topic-refresh = 10
        offset-refresh = 1
        [consumer.local]
        class-name = "kafka"
        cluster = "local"
        client-profile = "own"
        servers = {servers}
        [storage.own]
        class-name = "inmemory"
        min-distance = 1
        [httpserver.own]
        address = "127.0.0.1:{port}"
        """
    )
    command = [program("burrow"), "--config-dir", str(home)]
    with serving(command, home / "out", f"http://127.0.0.1:{port}", "/burrow/admin/ready") as url:
        yield url


@contextmanager
def redpanda_console(side: Side, folder: Path) -> Iterator[str]:
    port = free_port()
    file = folder / f"console-{side.name}.json"
    address = {"listenAddress": "127.0.0.1", "listenPort": port}
    file.write_text(
        json.dumps({"kafka": {"brokers": side.address.split(",")}, "server": address, "serveFrontend": False})
    )
    command = [program("redpanda-console"), f"--config.filepath={file}"]
    with serving(command, file.with_suffix(".log"), f"http://127.0.0.1:{port}", "/admin/startup") as url:
        yield url


def ask(url: str, method: str, path: str, body: Any = None) -> str:
    """Return the status and text of the response, or only the text if the status is 200."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        given = None if body is None else json.dumps(body)
        connection.request(method, path, given, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    return text if response.status == 200 else json.dumps({"status": response.status, "text": text})


def records(url: str, topic: str, **search: Any) -> str:
    """Return the records that Redpanda Console finds in a topic, one JSON message each."""

    async def found() -> list[Any]:
        shown: list[Any] = []
        try:
            async with (
                asyncio.timeout(_RECORDS_S),
                aiohttp.ClientSession() as session,
                session.ws_connect(f"{url}/api/topics/{topic}/messages") as socket,
            ):
                await socket.send_json({"topicName": topic, **search})
                async for message in socket:
                    answer = json.loads(message.data)
                    if answer["type"] in ("message", "error"):
                        shown.append(answer)
                    if answer["type"] in ("done", "error"):
                        break
        except TimeoutError:
            shown.append("does not end")
        return shown

    return json.dumps(asyncio.run(found()))
