"""Every kind of fault, requested over HTTP by programs in Go and Node, and observed by real clients."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import KafkaCluster
from tests.conformance.wire import Closed, Connection
from tests.control.clients import produce, producer
from tests.control.values import sent
from tests.support import campaign
from tests.support.process import wait_until

RELAYS = Path(__file__).with_name("relays")
COMMANDS = {"node": ["node", str(RELAYS / "relay.js")], "go": ["go", "run", str(RELAYS / "relay.go")]}
PATIENCE_S = 20
EVERY = [1, 2, 3]


class Asking:
    """A program in another language that sends requests to a cluster's control API."""

    def __init__(self, cluster: KafkaCluster, language: str) -> None:
        self.cluster = cluster
        self._child = subprocess.Popen(
            COMMANDS[language], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, method: str, path: str, **body: object) -> Any:
        requests, answers = self._child.stdin, self._child.stdout
        assert requests is not None and answers is not None
        url = f"{self.cluster.control.url}/control/v1{path}"
        requests.write(json.dumps([method, url, body or None]) + "\n")
        requests.flush()
        status, answer = json.loads(answers.readline())
        assert status < 300, (path, body, answer)
        return answer

    def close(self) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        assert self._child.wait(PATIENCE_S) == 0
        self._child.stdout.close()

    def produced(self, **settings: object) -> list[str | None]:
        """Produce a record, and return its error, if any."""
        client = producer(self.cluster, **{"message.timeout.ms": 1500, "retry.backoff.ms": 10, **settings})
        return sent(client, "t", b"1")

    def partition(self) -> dict[str, Any]:
        found: dict[str, Any] = self("GET", "/topics/t/partitions/0")
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        yield cluster


@pytest.fixture(params=list(COMMANDS))
def asking(request: pytest.FixtureRequest, cluster: KafkaCluster) -> Iterator[Asking]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    if request.param == "go" and not campaign.enabled():
        pytest.skip("only in campaigns; normal runs use the program of docs/testing.md")
    cluster.create_topic("t")
    produce(cluster, "t")
    asking = Asking(cluster, request.param)
    yield asking
    asking.close()
    cluster.reset()


def test_go_and_node_programs_inject_request_faults(asking: Asking) -> None:
    address = asking.cluster.bootstrap_servers.split(",")[0]
    asking("POST", "/faults", api="Produce", topic="t", partition=0, error="INVALID_RECORD", count=1)
    assert asking.produced() == ["INVALID_RECORD"]
    made = asking("POST", "/faults", api="Produce", delay_ms=400, count=1)
    began_s = time.monotonic()
    assert asking.produced() == [None]
    assert time.monotonic() - began_s >= 0.4
    assert asking("GET", f"/faults/{made['number']}/await?hits=1")["hits"] == 1
    count = asking("GET", "/topics/t/await?records=0")["records"]
    once = {"enable.idempotence": False, "retries": 0}
    for kind, stored in (("drop", 0), ("lose_answer", 1), ("cut", 1)):
        asking("POST", "/faults", api="Produce", count=1, **{kind: True})
        assert asking.produced(**once) != [None]
        count += stored
        assert asking("GET", "/topics/t/await?records=0")["records"] == count, kind
    connection = Connection(address)
    asking("POST", "/faults", api="Metadata", cut=True, count=1, client_id="conformance")
    with pytest.raises(Closed):
        connection.ask(ApiKey.METADATA, 4, {"topics": []})
    connection.close()
    connection = Connection(address)
    answers = []
    for how in ({"skip": 1}, {}):
        asking("POST", "/faults", api="ListGroups", corrupt=True, seed=7, count=1, **how)
        connection.begin(ApiKey.LIST_GROUPS, 2, {})
        answers.append(connection.receive()[4:])
    assert answers[0] != answers[1] and len(answers[0]) == len(answers[1])
    connection.close()
    assert len(asking("GET", "/faults")) == 8
    asking("DELETE", "/faults")
    assert asking("GET", "/faults") == []


def test_go_and_node_programs_fill_and_slow_down_disks(asking: Asking) -> None:
    assert {disk["broker"] for disk in asking("POST", "/disks", full=True) if disk["full"]} == set(EVERY)
    assert asking.produced() == ["_MSG_TIMED_OUT"]
    asking("DELETE", "/disks")
    assert asking.produced() == [None]
    asking("POST", "/disks", broker=asking.partition()["leader"], slow_ms=300)
    began_s = time.monotonic()
    assert asking.produced() == [None]
    assert time.monotonic() - began_s >= 0.3
    assert not any(disk["slow_ms"] for disk in asking("DELETE", "/disks"))


def test_go_and_node_programs_pause_and_isolate_brokers(asking: Asking) -> None:
    leader = asking.partition()["leader"]
    asking("POST", f"/brokers/{leader}/pause")
    assert asking.produced() == ["_MSG_TIMED_OUT"]
    asking("POST", f"/brokers/{leader}/resume")
    assert asking.produced() == [None]
    follower = next(each for each in EVERY if each != leader)
    assert asking("POST", f"/brokers/{leader}/cut", **{"from": follower})["cut_from"] == [follower]
    assert asking.produced() == ["_MSG_TIMED_OUT"], "while the follower is in the ISR"
    asking("POST", f"/brokers/{leader}/mend")
    assert asking.produced(**{"message.timeout.ms": 10_000}) == [None]
    asking("POST", f"/brokers/{leader}/cut", coordination=True)
    asking("POST", "/time", advance_ms=20_000)
    wait_until(lambda: asking.partition()["leader"] != leader, PATIENCE_S, "a new leader")
    asking("POST", f"/brokers/{leader}/mend")
    wait_until(lambda: asking.partition()["isr"] == EVERY, PATIENCE_S, "all replicas in sync again")
    anew = f"The metadata session expired; registering broker {leader} again"
    before = asking.cluster.log.count(anew)
    asking("POST", f"/brokers/{leader}/expire")
    wait_until(lambda: asking.cluster.log.count(anew) > before, PATIENCE_S, "a new registration")


def test_go_and_node_programs_move_leaders_and_shrink_the_isr(asking: Asking) -> None:
    leader = asking.partition()["leader"]
    one, other = (each for each in EVERY if each != leader)
    assert asking("POST", "/topics/t/partitions/0/leader", broker=one)["leader"] == one
    assert asking("POST", "/topics/t/partitions/0/shrink", broker=other)["isr"] == sorted({leader, one})
    assert asking("POST", "/topics/t/partitions/0/restore", broker=other)["isr"] == EVERY
    assert asking.produced() == [None]
