"""The log of a broker, and waiting for its lines."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.process import wait_until
from tests.support.servers import Server


def lines_with(server: Server, text: str) -> list[str]:
    """Return the lines of the broker's log that contain `text`."""
    return [line for line in server.log.read_text().splitlines() if text in line]


def wait_for(server: Server, text: str, count: int = 1) -> list[str]:
    """Wait until `count` lines contain `text`, and return them."""
    wait_until(lambda: len(lines_with(server, text)) >= count, 20, f"{count} lines with {text!r}", 0.02)
    return lines_with(server, text)


def entries(server: Server) -> list[dict[str, Any]]:
    """Return all entries written by a broker with kafka.compat.log.format=json."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def make_topic(server: Server, name: str, partitions: int = 1) -> None:
    """Create a topic, and wait until it exists."""
    admin = AdminClient({"bootstrap.servers": server.address, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions)])[name].result(20)
