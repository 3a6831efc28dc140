"""Our broker with a test Authorizer, and Apache Kafka with its AclAuthorizer, on one ZooKeeper."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from kafka_compat.broker import Broker, cluster_broker, standalone_broker
from kafka_compat.cluster.zookeeper_sessions import zookeeper_sessions
from kafka_compat.config import BrokerConfig
from kafka_compat.protocol.api_keys import ApiKey
from tests.authorization.policies import ADMIN_HOST, ANONYMOUS, GUEST_HOST, GuestAuthorizer, Policy
from tests.conformance.differential import Pair
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, ZooKeeper

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
"""Settings of both brokers. `_SMALL` keeps Apache Kafka's internal topics small."""
_SMALL = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
}
_EVERYTHING = (("Topic", "*"), ("Group", "*"), ("TransactionalId", "*"), ("Cluster", "kafka-cluster"))


class OurBroker:
    """A broker in this process, with its event loop in a separate thread. With `zookeeper`, the broker is a
    member of a cluster; otherwise it is standalone."""

    def __init__(self, directory: Path, authorizer: GuestAuthorizer, zookeeper: str | None = None) -> None:
        self.authorizer = authorizer
        self.port = free_port()
        self._settings = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory),
            **SETTINGS,
            **_SMALL,
        }
        if zookeeper is not None:
            self._settings |= {"zookeeper.connect": zookeeper, "zookeeper.session.timeout.ms": "30000"}
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60), "startup of our broker"
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        config = BrokerConfig.from_properties(self._settings)
        broker: Broker = (
            cluster_broker(config, zookeeper_sessions(config))
            if config.str("zookeeper.connect")
            else standalone_broker(config)
        )
        await broker.start()
        broker.services.authorizer = self.authorizer
        self._started.set()
        await self._stopping.wait()
        await broker.stop()


_DENIED = re.compile(
    r"Principal = User:ANONYMOUS is Denied operation = (\w+) from host = (\S+) "
    r"on resource = (\w+):LITERAL:(.*) for request = (\w+) with resourceRefCount",
    re.IGNORECASE,
)
"""A line of Apache Kafka's audit log."""


Denials = dict[str, set[tuple[str, str, str]]]
"""Denials in an audit log by API: the names of operation, resource type and resource."""


class World:
    """Both brokers, with connections of an administrator (`admin`) and of a guest (`guest`)."""

    def __init__(self, ours: OurBroker, genuine: GenuineKafka) -> None:
        self.authorizer = ours.authorizer
        self.admin = Pair(ours.address, genuine.address)
        self.guest = Pair(ours.address, genuine.address, host=GUEST_HOST)
        self._log = genuine.log
        self._told_of = 0
        self._tell_of_denials()

    def _tell_of_denials(self) -> None:
        level = {"name": "kafka.authorizer.logger", "value": "INFO", "config_operation": 0}
        logger = {"resource_type": 8, "resource_name": "1", "configs": [level]}
        asked = {"resources": [logger]}
        answer = self.admin.sides["genuine"].ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, asked)
        assert answer["responses"][0]["error_code"] == 0, answer

    def denied_aloud(self) -> Denials:
        """Return the guest's denials in Apache Kafka's audit log since the last call, by API name in lower
        case."""
        last = self.guest.name("last")
        self.guest.sides["genuine"].ask(ApiKey.HEARTBEAT, 0, {"group_id": last})
        wait_until(lambda: f"LITERAL:{last} " in self._untold(), 10, "the last request in the audit log")
        found: Denials = {}
        text = self._untold()
        self._told_of += len(text.encode())
        for operation, host, kind, name, api in _DENIED.findall(text):
            if host == GUEST_HOST and name != last:
                found.setdefault(api.lower(), set()).add((_constant(operation), _constant(kind), name))
        return found

    def _untold(self) -> str:
        with self._log.open("rb") as file:
            file.seek(self._told_of)
            text = file.read()
        return text[: text.rfind(b"\n") + 1].decode()

    def close(self) -> None:
        self.admin.close()
        self.guest.close()

    def set_policy(self, policy: Policy) -> None:
        """Set the guest's permissions on both brokers."""
        self.authorizer.policy = policy
        genuine = self.admin.sides["genuine"]
        everything = {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": GUEST_HOST,
            "operation": 1,
            "permission_type": 1,
        }
        answer = genuine.ask(ApiKey.DELETE_ACLS, 3, {"filters": [everything]})
        assert [item["error_code"] for item in answer["filter_results"]] == [0], answer
        acls = policy.acls()
        answer = genuine.ask(ApiKey.CREATE_ACLS, 3, {"creations": acls})
        assert [item["error_code"] for item in answer["results"]] == [0] * len(acls), answer


def _constant(name: str) -> str:
    """Convert a name like ClusterAction to CLUSTER_ACTION."""
    return name if name.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


@contextmanager
def world(directory: Path) -> Iterator[World]:
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    _let_others_do_everything(zookeeper)
    genuine = GenuineKafka(
        directory / "genuine",
        {**SETTINGS, **_SMALL, "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"},
        zookeeper=zookeeper,
    )
    ours = OurBroker(directory / "ours", GuestAuthorizer(), f"{zookeeper.address}/ours")
    genuine.launch()
    try:
        ours.start()
        genuine.wait_ready()
        found = World(ours, genuine)
        yield found
        found.close()
    finally:
        ours.stop()
        genuine.stop()
        zookeeper.stop()


def _let_others_do_everything(zookeeper: ZooKeeper) -> None:
    """Create Apache Kafka's ACL nodes in ZooKeeper, so that all clients other than the guest may do
    everything."""
    client = KazooClient(zookeeper.address)
    client.start(20)
    granted = {"principal": ANONYMOUS, "permissionType": "Allow", "operation": "All", "host": ADMIN_HOST}
    for kind, name in _EVERYTHING:
        node = json.dumps({"version": 1, "acls": [granted]}).encode()
        client.create(f"/kafka-acl/{kind}/{name}", node, makepath=True)
    client.create("/ours")
    client.stop()
    client.close()
