"""Apicurio Registry with its schemas in a topic: none is lost when the broker and the registry are killed."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.others import scenarios
from tests.others.program import WAIT_S, Program
from tests.others.servers import kill_and_start
from tests.others.suite import Outcomes, Side, Suite
from tests.pipelines.decode.apicurio import VERSION, java_21, program
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import Server

_SCHEMAS = 30


class _Registry:
    """A registry, which keeps its port when it is killed and started again."""

    def __init__(self, directory: Path, address: str) -> None:
        self._directory = directory
        self._port = free_port()
        self._settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(self._port),
            "quarkus.management.enabled": "false",
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": address,
        }
        self._program: Program | None = None

    def start(self) -> None:
        """Start the registry, and wait until it serves requests."""
        options = [f"-D{name}={value}" for name, value in self._settings.items()]
        jar = str(program() / "quarkus-run.jar")
        line = [str(java_21()), "-Xmx512m", *options, "-jar", jar]
        self._program = Program(self._directory / "registry.log", line, environment={"JAVA_HOME": ""})
        wait_until(self._responds, WAIT_S, "the registry's response", 0.5)

    def kill(self) -> None:
        """Kill the registry with kill -9."""
        if self._program is not None:
            self._program.kill()

    def register(self, number: int) -> None:
        """Register a schema. Repeats the request until it succeeds."""
        schema = json.dumps({"type": "record", "name": f"Record{number}", "fields": []})
        body = json.dumps({"schema": schema}).encode()

        def succeeds() -> bool:
            try:
                self._request(f"subjects/subject-{number}/versions", body)
            except OSError:
                return False
            return True

        wait_until(succeeds, WAIT_S, f"registration of schema {number}", 0.5)

    def subjects(self) -> set[str]:
        """Return the names of all subjects."""
        return set(self._request("subjects"))

    def name(self, number: int) -> str:
        """Return the name of the record in the first version of a schema."""
        found = self._request(f"subjects/subject-{number}/versions/1")["schema"]
        return str(json.loads(found)["name"])

    def _responds(self) -> bool:
        assert self._program is not None and self._program.running, "the registry ended"
        try:
            self._request("subjects")
        except OSError:
            return False
        return True

    def _request(self, path: str, body: bytes | None = None) -> Any:
        url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7/{path}"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)


def _schemas_stay(broker: Server, directory: Path) -> None:
    registry = _Registry(directory, broker.address)
    try:
        registry.start()
        for number in range(_SCHEMAS):
            if number == _SCHEMAS // 3:
                kill_and_start(broker)
            if number == _SCHEMAS * 2 // 3:
                registry.kill()
                registry.start()
            registry.register(number)
        registry.kill()
        registry.start()
        expected = {f"subject-{number}" for number in range(_SCHEMAS)}
        wait_until(lambda: registry.subjects() == expected, WAIT_S, "all subjects", 1.0)
        assert [registry.name(number) for number in range(_SCHEMAS)] == [
            f"Record{number}" for number in range(_SCHEMAS)
        ]
    finally:
        registry.kill()


def run(side: Side, directory: Path) -> Outcomes:
    """Play the scenario on one broker."""
    name = "schemas stay when the broker and the registry are killed"
    return scenarios.play_on_one_broker({name: _schemas_stay}, side, directory)


SUITE = Suite(
    name="Apicurio Registry",
    version=VERSION,
    source="Maven Central",
    servers=f"Kafka {NEWEST_VERSION}, one broker",
    run=run,
    link="https://github.com/Apicurio/apicurio-registry",
    tests="scenarios",
)
