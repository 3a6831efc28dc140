"""A cluster of three broker processes on a real ZooKeeper, of this project or Apache Kafka, and raw requests
to the brokers.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import Record, build_batch, iter_records
from tests.conformance.wire import Closed, Connection, Plain
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper

SETTINGS = {
    "replica.lag.time.max.ms": "10000",
    "controlled.shutdown.enable": "false",
    "offsets.topic.num.partitions": "1",
    "auto.leader.rebalance.enable": "false",
}
SETTLE_S = 60.0
_ELECTION = {"preferred": 0, "unclean": 1}
_SET = 0
_TOPIC = 2


class ThreeBrokers:
    """Brokers 1, 2 and 3 as processes that can be killed, paused and restarted."""

    def __init__(
        self, directory: Path, *, genuine: bool = False, settings: dict[str, str] | None = None
    ) -> None:
        """`settings` apply to all brokers; "{id}" in a value is replaced by the broker id."""
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        # A JVM that is starting on a busy machine may not send heartbeats for several seconds.
        self.session_timeout_ms = 10_000 if genuine else 2000
        self.brokers: dict[int, Server] = {}
        self._paused: set[int] = set()
        for broker_id in (1, 2, 3):
            folder = directory / f"broker-{broker_id}"
            overrides = {
                **SETTINGS,
                "broker.id": str(broker_id),
                "zookeeper.session.timeout.ms": str(self.session_timeout_ms),
                "zookeeper.connect": f"{self.zookeeper.address}/cluster",
                **{name: value.format(id=broker_id) for name, value in (settings or {}).items()},
            }
            self.brokers[broker_id] = (
                GenuineKafka(folder, overrides, zookeeper=self.zookeeper)
                if genuine
                else KafkaCompatBroker(folder, overrides)
            )

    def start(self) -> None:
        self.zookeeper.start()
        self.start_again(*self.brokers)
        wait_until(lambda: self.living() == set(self.brokers), SETTLE_S, "three live brokers in Metadata")

    def stop(self) -> None:
        for broker_id in list(self._paused):
            self.resume(broker_id)
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
        self.zookeeper.kill()

    # --- failures

    def kill(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.brokers[broker_id].kill()

    def start_again(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.brokers[broker_id].launch()
        for broker_id in broker_ids:
            self.brokers[broker_id].wait_ready(90)

    def pause(self, broker_id: int) -> None:
        """Pause brokers with SIGSTOP."""
        os.kill(self.brokers[broker_id].pid, signal.SIGSTOP)
        self._paused.add(broker_id)

    def resume(self, broker_id: int) -> None:
        os.kill(self.brokers[broker_id].pid, signal.SIGCONT)
        self._paused.discard(broker_id)

    @property
    def asked(self) -> int:
        """The first running broker, which serves the requests that any broker can serve."""
        return next(
            broker_id
            for broker_id, broker in self.brokers.items()
            if broker.running and broker_id not in self._paused
        )

    @property
    def addresses(self) -> str:
        """bootstrap.servers of the running brokers."""
        return ",".join(broker.address for broker in self.brokers.values() if broker.running)

    def connect(self, broker_id: int) -> Connection:
        return Connection(self.brokers[broker_id].address, 2 * SETTLE_S)

    def ask(self, broker_id: int, key: ApiKey, version: int, request: Plain) -> Plain:
        with self.connect(broker_id) as connection:
            return connection.ask(key, version, request)

    def metadata(self, broker_id: int, topics: list[str] | None = None) -> Plain:
        wanted = [{"name": name} for name in topics or ()]
        request = {"topics": wanted, "allow_auto_topic_creation": False}
        return self.ask(broker_id, ApiKey.METADATA, 7, request)

    def living(self) -> set[int]:
        """The live brokers, according to the first running broker."""
        try:
            return {broker["node_id"] for broker in self.metadata(self.asked)["brokers"]}
        except (OSError, Closed):
            return set()

    def controller(self) -> int:
        return int(self.metadata(self.asked)["controller_id"])

    def state(self, broker_id: int, topic: str) -> tuple[ErrorCode, int, set[int]]:
        """Return (error, leader, in-sync replicas) of partition 0, as one broker returns them in Metadata."""
        found = self.metadata(broker_id, [topic])["topics"][0]
        if found["error_code"]:
            return ErrorCode(found["error_code"]), -1, set()
        partition = found["partitions"][0]
        return ErrorCode(partition["error_code"]), partition["leader_id"], set(partition["isr_nodes"])

    def await_state(self, topics: Iterable[str], leader: int, isr: set[int], at: int | None = None) -> None:
        """Wait until Metadata from one broker (the leader, or broker `at`) shows this state for all
        topics.
        """
        asked = leader if at is None else at
        for topic in topics:
            wait_until(
                lambda: self._state_or_none(asked, topic) == (leader, isr),  # noqa: B023
                SETTLE_S,
                f"leader {leader} and in-sync replicas {isr} of {topic}",
                0.05,
            )

    def _state_or_none(self, broker_id: int, topic: str) -> tuple[int, set[int]] | None:
        try:
            return self.state(broker_id, topic)[1:]
        except (OSError, Closed):
            return None

    def create_topic(self, name: str, replicas: list[int], configs: dict[str, str]) -> None:
        """Create a topic with one partition on these brokers. The first one is the preferred leader."""
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": replicas}],
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        request = {"topics": [topic], "timeout_ms": 20_000}
        answer = self.ask(self.controller(), ApiKey.CREATE_TOPICS, 5, request)
        assert answer["topics"][0]["error_code"] == 0, answer
        self.await_state([name], replicas[0], set(replicas))

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        resource = {
            "resource_type": _TOPIC,
            "resource_name": topic,
            "configs": [{"name": name, "config_operation": _SET, "value": value}],
        }
        answer = self.ask(self.asked, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        assert answer["responses"][0]["error_code"] == 0, answer

    def elect(self, kind: str, *topics: str) -> dict[str, ErrorCode]:
        """Elect leaders for partition 0 of these topics. Map each topic to its error code."""
        request = {
            "election_type": _ELECTION[kind],
            "topic_partitions": [{"topic": topic, "partitions": [0]} for topic in topics],
            "timeout_ms": 20_000,
        }
        answer = self.ask(self.controller(), ApiKey.ELECT_LEADERS, 2, request)
        assert answer["error_code"] == 0, answer
        return {
            result["topic"]: ErrorCode(result["partition_result"][0]["error_code"])
            for result in answer["replica_election_results"]
        }

    def produce(self, broker_id: int, topic: str, acks: int, *, timeout_ms: int = 5000) -> str:
        """Produce one record, and return the error name. With acks=0, which has no response, return "open" or
        "closed" for the state of the connection afterwards.
        """
        with self.connect(broker_id) as connection:
            connection.begin(ApiKey.PRODUCE, 7, produce_request(topic, acks, timeout_ms))
            if acks:
                return produce_outcome(connection)
            try:
                # The broker handles the requests of a connection in order.
                connection.ask(ApiKey.API_VERSIONS, 0, {})
            except Closed:
                return "closed"
            return "open"

    def read(self, broker_id: int, topic: str, offset: int = 0) -> tuple[str, list[bytes]]:
        """Return (error name, values), as a consumer reads them from this broker."""
        data = self.fetch(broker_id, topic, offset)
        return ErrorCode(data["error_code"]).name, values(data["records"])

    def stored(self, broker_id: int, topic: str) -> int:
        """Return the leader's log end offset, including uncommitted records (replica id -2, the debugging
        consumer).
        """
        partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
        request = {"replica_id": -2, "topics": [{"name": topic, "partitions": [partition]}]}
        answer = self.ask(broker_id, ApiKey.LIST_OFFSETS, 4, request)
        return int(answer["topics"][0]["partitions"][0]["offset"])

    def fetch(
        self,
        broker_id: int,
        topic: str,
        offset: int,
        rack: str = "",
        *,
        version: int = 11,
        leader_epoch: int = -1,
        replica_id: int = -1,
    ) -> Plain:
        """Return the Fetch response for partition 0, without waiting, to a consumer or to the follower
        `replica_id`.
        """
        request = {
            "replica_id": replica_id,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 2**30,
            "session_id": 0,
            "session_epoch": -1,
            "rack_id": rack,
            "topics": [
                {
                    "topic": topic,
                    "partitions": [
                        {
                            "partition": 0,
                            "current_leader_epoch": leader_epoch,
                            "fetch_offset": offset,
                            "log_start_offset": -1,
                            "partition_max_bytes": 2**20,
                        }
                    ],
                }
            ],
        }
        answer = self.ask(broker_id, ApiKey.FETCH, version, request)
        found: Plain = answer["responses"][0]["partitions"][0]
        return found


def produce_request(topic: str, acks: int, timeout_ms: int) -> Plain:
    """A Produce request with one record for partition 0."""
    record = Record(timestamp=time.time_ns() // 1_000_000, value=b"acks=%d" % acks)
    batch = memoryview(build_batch([record]))
    return {
        "acks": acks,
        "timeout_ms": timeout_ms,
        "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}],
    }


def produce_outcome(connection: Connection) -> str:
    """Return the error name in the response to `produce_request`."""
    answer = connection.finish(ApiKey.PRODUCE, 7)
    return ErrorCode(answer["responses"][0]["partition_responses"][0]["error_code"]).name


def values(records: bytes | None) -> list[bytes]:
    """Return the record values in a Fetch response."""
    found: list[bytes] = []
    position = 0
    for header in read_headers(memoryview(records or b"")):
        batch = memoryview(records or b"")[position : position + header.size_bytes]
        found.extend(bytes(record.value or b"") for record in iter_records(batch))
        position += header.size_bytes
    return found


def eventually(outcome: Callable[[], str], expected: str) -> str:
    """Return `expected` as soon as `outcome` returns it, or the last outcome after SETTLE_S."""
    deadline = time.monotonic() + SETTLE_S
    while (seen := outcome()) != expected and time.monotonic() < deadline:
        time.sleep(0.1)  # interval of polling
    return seen
