"""HTTP listeners of the processes of `serve --processes N`: each serves its metrics and health, and the web
console of the whole cluster.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.metrics.scraping import Scrape, get_json
from tests.page.site import PAGE, Site
from tests.processes.command import Command
from tests.processes.topics import TOPIC, create_topic, fill
from tests.support.ports import adjacent_ports
from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat

LISTENER = "kafka.compat.http.listener"


def urls(command: Command) -> dict[int, str]:
    """Return the last HTTP address that each broker printed."""
    return {int(number): url for number, url in re.findall(r"Broker (\d+) HTTP on (\S+)", command.said)}


def is_ready(url: str) -> bool:
    """Return whether the broker at this URL is ready."""
    return get_json(url, "/ready") == (200, {"ready": True})


def test_each_process_serves_http_on_the_same_port_after_a_restart(tmp_path: Path) -> None:
    settings = {**PAGE, LISTENER: "http://127.0.0.1:0"}
    with Command(tmp_path, 2, settings) as command:
        before = urls(command)
        assert len({urlsplit(url).port for url in before.values()}) == 2
        create_topic(command)
        load = fill(command)

        scrapes = [Scrape(url) for url in before.values()]
        taken = [
            scrape.value("kafka_server_brokertopicmetrics_messagesin_total", topic=TOPIC) or 0
            for scrape in scrapes
        ]
        assert sum(taken) == len(load.acknowledged)
        assert all(taken)
        for site in map(Site, before.values()):
            assert TOPIC in site.get("topics").shown
            assert {row["id"] for row in site.data("brokers")["brokers"]} == {1, 2}

        command.kill(2)
        command.wait_for(r"Broker 2 ready", times=2)
        command.wait_for(r"Broker 2 HTTP on", times=2)
        assert urls(command) == before
        wait_until(lambda: is_ready(before[2]), 30, "broker 2 is ready")
        assert is_ready(before[1])
        assert command.stop() == 0


def test_the_web_console_reports_that_another_broker_is_down(tmp_path: Path) -> None:
    """A paused broker is down until it is killed. A killed broker restarts before anyone can see that it is
    down.
    """
    settings = {**PAGE, LISTENER: "http://127.0.0.1:0", "zookeeper.session.timeout.ms": "2000"}
    with Command(tmp_path, 3, settings) as command:
        command.wait_registered({1, 2, 3})
        create_topic(command)
        at = urls(command)
        page = Site(at[1])

        def up() -> set[int]:
            return {row["id"] for row in page.data("brokers")["brokers"] if row["is_up"]}

        assert up() == {1, 2, 3}
        stopped = command.pid_of(2)
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: up() == {1, 3}, 60, "the web console shows broker 2 as down")
        wait_until(lambda: is_ready(at[1]) and is_ready(at[3]), 60, "brokers 1 and 3 are ready without it")
        os.kill(stopped, signal.SIGKILL)
        command.wait_for(r"Broker 2 HTTP on", times=2)
        assert urls(command) == at
        wait_until(lambda: up() == {1, 2, 3}, 60, "the web console shows broker 2 as up")
        wait_until(lambda: is_ready(at[2]), 60, "broker 2 is ready")


def test_http_ports_are_consecutive(tmp_path: Path) -> None:
    port = adjacent_ports(2)
    with Command(tmp_path, 2, {LISTENER: f"http://127.0.0.1:{port}"}) as command:
        assert urls(command) == {1: f"http://127.0.0.1:{port}", 2: f"http://127.0.0.1:{port + 1}"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            ["listeners=PLAINTEXT://127.0.0.1:9092", f"{LISTENER}=http://127.0.0.1:9093"],
            "2 processes need 2 consecutive ports, which overlap with those of PLAINTEXT at 9093",
        ),
        ([f"{LISTENER}=127.0.0.1:9093"], "expected for example http://127.0.0.1:8080"),
        (
            [f"{LISTENER}=http://127.0.0.1:0", "kafka.compat.control.enable=true"],
            "use --brokers instead of --processes",
        ),
        (["kafka.compat.http.page.enable=true"], "requires an HTTP listener"),
    ],
)
def test_invalid_http_settings_are_rejected(tmp_path: Path, settings: list[str], told: str) -> None:
    given = [f"--override={each}" for each in [f"log.dirs={tmp_path}", *settings]]
    found = run_kafka_compat("serve", "--processes", "2", *given)
    assert found.returncode == 2
    assert told in found.stderr
