"""A worker of Kafka Connect in distributed mode, and its REST API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.others import java_programs
from tests.others.program import WAIT_S, Program
from tests.support import kafka_jars
from tests.support.ports import free_port
from tests.support.process import wait_until


def started(name: str, version: str, settings: Mapping[str, str], log: Path) -> Program:
    """Start a program of Kafka Connect. The file with its settings is written beside its log."""
    file = log.with_suffix(".properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    class_path = f"{kafka_jars.connect(version)}/*"
    return java_programs.started(name, class_path, log, str(file), heap="512M")


class ConnectWorker:
    """The only worker of a group. It keeps its port and its group when it is killed and started again."""

    def __init__(self, directory: Path, version: str, address: str, group: str) -> None:
        self._directory = directory
        self._version = version
        self._port = free_port()
        self._program: Program | None = None
        storages = ("config", "offset", "status")
        self._settings = {
            "bootstrap.servers": address,
            "group.id": group,
            **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in storages},
            **{f"{kind}.storage.replication.factor": "1" for kind in storages},
            "exactly.once.source.support": "enabled",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "listeners": f"http://127.0.0.1:{self._port}",
            "offset.flush.interval.ms": "1000",
            "session.timeout.ms": "10000",
        }

    def start(self) -> None:
        """Start the worker, and wait until it serves requests."""
        self._program = self._new_program()
        wait_until(self._responds, WAIT_S, "Kafka Connect's response", 0.5)

    def kill(self) -> None:
        """Kill the worker with kill -9."""
        if self._program is not None:
            self._program.kill()

    def configure(self, connector: str, settings: Mapping[str, str]) -> None:
        """Create a connector, and wait until all its tasks run."""
        self._retried("PUT", f"connectors/{connector}/config", settings)
        self.await_state(connector, "RUNNING", tasks=1)

    def stop(self, connector: str) -> None:
        """Stop a connector, and wait until it has no tasks."""
        self._retried("PUT", f"connectors/{connector}/stop")
        self.await_state(connector, "STOPPED", tasks=0)

    def resume(self, connector: str) -> None:
        """Start a stopped connector again."""
        self._retried("PUT", f"connectors/{connector}/resume")
        self.await_state(connector, "RUNNING", tasks=1)

    def offsets(self, connector: str) -> list[dict[str, Any]]:
        """Return the offsets of a connector."""
        found: list[dict[str, Any]] = self._retried("GET", f"connectors/{connector}/offsets")["offsets"]
        return found

    def reset_offsets(self, connector: str) -> None:
        """Delete the offsets of a stopped connector."""
        self._retried("DELETE", f"connectors/{connector}/offsets")

    def delete(self, connector: str) -> None:
        """Delete a connector."""
        self._retried("DELETE", f"connectors/{connector}")

    def connectors(self) -> list[str]:
        """Return the names of all connectors."""
        found: list[str] = self._retried("GET", "connectors")
        return found

    def await_state(self, connector: str, state: str, *, tasks: int) -> None:
        """Wait until the connector and its tasks are in a state."""

        def is_reached() -> bool:
            found = self._retried("GET", f"connectors/{connector}/status")
            if found is None:
                return False
            states = [found["connector"]["state"], *(task["state"] for task in found["tasks"])]
            return states == [state] * (tasks + 1)

        wait_until(is_reached, WAIT_S, f"{connector} {state}", 0.5)

    def _new_program(self) -> Program:
        name = "org.apache.kafka.connect.cli.ConnectDistributed"
        return started(name, self._version, self._settings, self._directory / "worker.log")

    def _responds(self) -> bool:
        assert self._program is not None and self._program.running, "Kafka Connect ended"
        try:
            self._request("GET", "connectors")
        except OSError:
            return False
        return True

    def _retried(self, method: str, path: str, body: Any = None) -> Any:
        """Repeat a request until it succeeds: during a rebalance, workers respond with errors."""
        response: list[Any] = []

        def succeeds() -> bool:
            try:
                response.append(self._request(method, path, body))
            except urllib.error.HTTPError as error:
                if error.code == 404 and method == "GET":
                    response.append(None)
                    return True
                if error.code not in (404, 409, 500, 503):
                    raise AssertionError(f"{method} {path}: {error.read().decode()}") from error
                return False
            except OSError:
                return False
            return True

        wait_until(succeeds, WAIT_S, f"{method} {path}", 0.5)
        return response[-1]

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/{path}",
            data,
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=95) as response:
            text = response.read()
        return json.loads(text) if text else None
