"""A broker whose web console requires a token."""

from __future__ import annotations

from pathlib import Path

from tests.page.site import PAGE, Site
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker

TOKEN = "a secret tökén"


def started(folder: Path, **settings: str) -> tuple[KafkaCompatBroker, Site]:
    port = free_port()
    broker = KafkaCompatBroker(
        folder, {**PAGE, "kafka.compat.http.listener": f"http://127.0.0.1:{port}", **settings}
    )
    broker.start()
    return broker, Site(f"http://127.0.0.1:{port}")
