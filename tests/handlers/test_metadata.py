"""Metadata responses are joined from topics that are encoded once, until the topic or the brokers change."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.api.api import Api
from kafka_compat.api.caller import Caller, Session
from kafka_compat.api.handler import RequestContext
from kafka_compat.api.stages import StagedContext, Stages
from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers import topic_encoder
from kafka_compat.long_work import LongWork
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.security.principal import Principal
from tests.conformance.wire import Connection

VERSIONS = range(14)
NOT_ASKED = -(2**31)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    config = BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "broker.id": "1"}
    )
    broker = standalone_broker(config)
    await broker.start()
    yield broker
    await broker.stop()


async def leaders(broker: Broker) -> dict[str, list[int]]:
    """Ask for all topics, and return the leaders of their partitions."""
    host, port = broker.addresses["PLAINTEXT"]
    connection = await asyncio.to_thread(Connection, f"{host}:{port}")
    answer = await asyncio.to_thread(connection.ask, ApiKey.METADATA, 8, {"topics": None})
    connection.close()
    return {
        topic["name"]: [partition["leader_id"] for partition in topic["partitions"]]
        for topic in answer["topics"]
    }


def kept(metadata: MetadataCache, name: str) -> bytes | None:
    """Return the kept bytes of a topic in version 8, or None."""
    known = metadata.topic_encoders[8].topics.get(name)
    return None if known is None else known[0]


async def test_topics_are_encoded_again_after_a_change(broker: Broker) -> None:
    topics, metadata = broker.services.topics, broker.services.metadata
    await topics.create("t", partitions=100, replication_factor=1)
    assert await leaders(broker) == {"t": [1] * 100}
    encoded = kept(metadata, "t")
    assert encoded is not None
    assert await leaders(broker) == {"t": [1] * 100}
    await topics.create("u", partitions=1, replication_factor=1)
    assert await leaders(broker) == {"t": [1] * 100, "u": [1]}
    assert kept(metadata, "t") is encoded
    await topics.create_partitions("u", 3, None, validate_only=False)
    assert await leaders(broker) == {"t": [1] * 100, "u": [1] * 3}
    topics.forget_leaders([("u", 1)])
    assert await leaders(broker) == {"t": [1] * 100, "u": [1, -1, 1]}
    await topics.delete("t")
    assert await leaders(broker) == {"u": [1, -1, 1]}
    assert kept(metadata, "t") is None
    change = metadata.change()
    change.set_brokers({})
    change.publish()
    assert not metadata.topic_encoders


async def test_a_topic_that_changes_while_it_is_encoded_is_not_kept(broker: Broker) -> None:
    """A long topic is encoded in steps, and the metadata may change between two steps."""
    await broker.services.topics.create("t", partitions=200, replication_factor=1)
    topics, metadata = broker.services.topics, broker.services.metadata
    steps = topic_encoder.topic_encoder(metadata, 8).encode(metadata.topics["t"])
    next(steps)
    next(steps)
    topics.forget_leaders([("t", 199)])
    for _ in steps:
        pass
    assert kept(metadata, "t") is None
    assert await leaders(broker) == {"t": [1] * 199 + [-1]}


# --- comparison with the ordinary encoder


class Services:
    """The services of the handler, with an authorizer that knows all operations that are allowed."""

    def __init__(self, cache: MetadataCache) -> None:
        self.metadata = cache
        self.long_work = LongWork(asyncio.get_running_loop())
        self.config = BrokerConfig.from_properties({"auto.create.topics.enable": "false"})
        self.authorizer: Some | None = None

    def address_for(self, broker: BrokerMetadata, caller: Caller) -> tuple[str, int]:
        return broker.endpoints[caller.listener_name]


class Some:
    """An authorizer that denies operations on some topics."""

    def __init__(self, denied: set[str]) -> None:
        self.denied = denied
        self.asked: list[str] = []

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        logged: bool = True,
    ) -> bool:
        if logged:
            self.asked.append(name)
        return name not in self.denied and operation != Operation.ALTER


class Line:
    """A connection, which this test does not use."""

    def mute(self, for_s: float) -> None: ...

    def unmute(self) -> None: ...

    def abort(self) -> None: ...


def operations_on(services: Services, resource_type: ResourceType, name: str) -> int:
    wanted = range(3, 12) if resource_type == ResourceType.TOPIC else (5, 7, 8, 9, 10, 11, 12)
    allowed = [
        one
        for one in wanted
        if one != Operation.CLUSTER_ACTION or resource_type == ResourceType.CLUSTER
        if services.authorizer is None
        or services.authorizer.allows(None, "", Operation(one), resource_type, name, logged=False)  # type: ignore[arg-type]
    ]
    return sum(1 << one for one in allowed)


def expected(services: Services, request: MetadataRequest, version: int, listener: str) -> MetadataResponse:
    """Return the response as plain objects, from the metadata and the documentation of the API."""
    cache, authorizer = services.metadata, services.authorizer
    denied = set() if authorizer is None else authorizer.denied

    def operations(name: str) -> int:
        if not request.include_topic_authorized_operations:
            return NOT_ASKED
        return operations_on(services, ResourceType.TOPIC, name)

    def described(topic: TopicMetadata) -> MetadataResponseTopic:
        partitions = []
        for each in topic.partitions:
            known = each.leader in cache.brokers
            away = [one for one in each.replicas if one not in cache.brokers or one in each.offline]
            partitions.append(
                MetadataResponsePartition(
                    error_code=0 if known else ErrorCode.LEADER_NOT_AVAILABLE,
                    partition_index=each.partition,
                    leader_id=each.leader if known else -1,
                    leader_epoch=each.leader_epoch,
                    replica_nodes=list(each.replicas),
                    isr_nodes=list(each.isr),
                    offline_replicas=away,
                )
            )
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name == "__consumer_offsets",
            partitions=partitions,
            topic_authorized_operations=operations(topic.name),
        )

    def asked(item: MetadataRequestTopic) -> MetadataResponseTopic:
        if item.topic_id.int:
            name = cache.topic_name(item.topic_id)
            if name is None or name in denied:
                code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return MetadataResponseTopic(error_code=code, name=None, topic_id=item.topic_id)
            return described(cache.topics[name])
        name = item.name or ""
        if name in denied:
            return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        if name in cache.topics:
            return described(cache.topics[name])
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            name=name,
            topic_authorized_operations=operations(name),
        )

    if request.topics is None or (version == 0 and not request.topics):
        topics = [described(topic) for topic in cache.topics.values() if topic.name not in denied]
    else:
        topics = [asked(item) for item in request.topics]
    cluster = NOT_ASKED
    if request.include_cluster_authorized_operations:
        cluster = operations_on(services, ResourceType.CLUSTER, "kafka-cluster")
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id,
                host=broker.endpoints[listener][0],
                port=broker.endpoints[listener][1],
                rack=broker.rack,
            )
            for broker in cache.brokers.values()
        ],
        cluster_id=cache.cluster_id,
        controller_id=cache.controller_id,
        topics=topics,
        cluster_authorized_operations=cluster,
    )


def codes_of(response: MetadataResponse) -> Counter[int]:
    found = Counter([response.error_code])
    for topic in response.topics:
        found[topic.error_code] += 1
        found.update(partition.error_code for partition in topic.partitions)
    return +found


class Cluster:
    """A metadata cache with random topics, and the API that describes them to clients of two listeners."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cache = MetadataCache("the-cluster", 1)
        self.services = Services(self.cache)
        self.api = Api(ApiKey.METADATA, 0, 13, is_watched=True)
        self.in_process = Session()
        self.network = Session(Line())
        self.set_brokers()
        for _ in range(self.chance.randint(1, 12)):
            self.put_topic()

    def set_brokers(self) -> None:
        change = self.cache.change()
        change.set_brokers(
            {
                number: BrokerMetadata(
                    number,
                    {"PLAIN": (f"plain-{number}", 9000 + number), "TLS": (f"tls-{number}", 9100 + number)},
                    self.chance.choice([None, "rack"]),
                )
                for number in self.chance.sample(range(1, 7), self.chance.randint(1, 6))
            }
        )
        change.set_controller(self.chance.randint(-1, 6))
        change.publish()
        self.api.forget_repeated()

    def partition(self, number: int) -> PartitionMetadata:
        replicas = tuple(self.chance.sample(range(1, 7), self.chance.randint(1, 4)))
        isr = tuple(self.chance.sample(replicas, self.chance.randint(1, len(replicas))))
        offline = tuple(self.chance.sample(replicas, self.chance.choice([0, 0, 0, 1])))
        leader = self.chance.choice([-1, *isr, *isr])
        return PartitionMetadata(number, leader, self.chance.randint(0, 2**31 - 1), replicas, isr, 0, offline)

    def put_topic(self) -> None:
        """Create, recreate or change a topic."""
        name = self.chance.choice(["__consumer_offsets", "a", "b.c", "x" * 249, "ü", *"defgh"])
        known = self.cache.topics.get(name)
        if known is None or self.chance.random() < 0.3:
            count = self.chance.choice([1, 1, 3, 10, 63, 64, 65, 126, 127, 128, 300])
            partitions = [self.partition(number) for number in range(count)]
            topic_id = UUID(int=self.chance.getrandbits(128))
        else:
            topic_id, partitions = known.topic_id, list(known.partitions)
            for _ in range(self.chance.randint(0, 2)):
                partitions.append(self.partition(len(partitions)))
            number = self.chance.randrange(len(partitions))
            partitions[number] = self.partition(number)
        self.cache.put_topic(TopicMetadata(name, topic_id, tuple(partitions)))
        self.api.forget_repeated()

    def remove_topic(self) -> None:
        change = self.cache.change()
        change.remove_topic(self.chance.choice([*self.cache.topics, "a"]))
        change.publish()
        self.api.forget_repeated()

    def set_authorizer(self) -> None:
        names = list(self.cache.topics)
        some = set(self.chance.sample(names, self.chance.randint(0, len(names))))
        self.services.authorizer = self.chance.choice([None, Some(some)])

    def request(self, version: int) -> MetadataRequest:
        names = [*self.cache.topics, "missing"]
        topics: list[MetadataRequestTopic] = []
        for name in self.chance.sample(names, self.chance.choice([0, 1, 1, 1, 2, len(names)])):
            known = self.cache.topics.get(name)
            if version >= 12 and self.chance.random() < 0.5:
                topic_id = UUID(int=7) if known is None else known.topic_id
                topics.append(MetadataRequestTopic(name=None, topic_id=topic_id))
            else:
                topics.append(MetadataRequestTopic(name=name))
        return MetadataRequest(
            topics=None if version and self.chance.random() < 0.2 else topics,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=8 <= version <= 10 and self.chance.random() < 0.2,
            include_topic_authorized_operations=version >= 8 and self.chance.random() < 0.2,
        )

    async def response(
        self, request: MetadataRequest, version: int, listener: str, session: Session
    ) -> MetadataResponse:
        caller = Caller(listener_name=listener)
        caller.session = session
        ctx = RequestContext(self.services, caller, self.api, version, True)  # type: ignore[arg-type]
        answer = self.api.handler(ctx, request)
        if not isinstance(answer, MetadataResponse):
            answer = await answer
        assert isinstance(answer, MetadataResponse)
        return answer

    def decoded(self, response: MetadataResponse, version: int = 12) -> MetadataResponse:
        frame = b"".join(bytes(part) for part in self.api.encode(version, 77, response))  # type: ignore[arg-type]
        return codec.decode(MetadataResponse, version, frame, 9 if version >= 9 else 8)

    async def check(self) -> None:
        """Compare the response to a random request, to a client and in this process, with `expected`."""
        version, listener = self.chance.choice(VERSIONS), self.chance.choice(["PLAIN", "TLS"])
        request = self.request(version)
        ordinary = expected(self.services, request, version, listener)
        body = codec.encode(ordinary, version)
        self.api.codes.good, self.api.codes.errors = 0, {}
        response = await self.response(request, version, listener, self.network)
        response.throttle_time_ms = ordinary.throttle_time_ms = 0
        frame = b"".join(bytes(part) for part in self.api.encode(version, 77, response))  # type: ignore[arg-type]
        header = 9 if version >= 9 else 8
        size, correlation_id = int.from_bytes(frame[:4]), int.from_bytes(frame[4:8])
        assert (size, correlation_id) == (len(frame) - 4, 77)
        assert frame[header:] == body
        counted = Counter(self.api.codes.errors)
        counted[0] = self.api.codes.good
        assert +counted == codes_of(ordinary)
        assert 0 not in self.api.codes.errors.values()
        plain = await self.response(request, version, listener, self.in_process)
        assert type(plain.topics) is list
        assert codec.encode(plain, version) == body


@pytest.mark.parametrize("seed", range(6))
async def test_joined_responses_are_the_same_as_those_of_the_encoder(seed: int) -> None:
    """Topics change between the requests, and the requests differ in version, topics, listener and caller."""
    cluster = Cluster(seed)
    changes: list[Callable[[], None]] = [
        cluster.put_topic,
        cluster.put_topic,
        cluster.remove_topic,
        cluster.set_brokers,
        cluster.set_authorizer,
    ]
    for _ in range(40):
        cluster.chance.choice(changes)()
        for _ in range(cluster.chance.randint(1, 8)):
            await cluster.check()


async def test_responses_of_many_topics_and_partitions_are_complete() -> None:
    cluster = Cluster(1)
    for number in range(4_100):
        cluster.cache.put_topic(
            TopicMetadata(f"many-{number}", UUID(int=number + 1), (cluster.partition(0),))
        )
    partitions = tuple(map(cluster.partition, range(10_000)))
    cluster.cache.put_topic(TopicMetadata("wide", UUID(int=9_999), partitions))
    for version in (0, 4, 8, 12):
        request = MetadataRequest(topics=None if version else [])
        response = await cluster.response(request, version, "TLS", cluster.network)
        frame = b"".join(bytes(part) for part in cluster.api.encode(version, 77, response))  # type: ignore[arg-type]
        ordinary = codec.encode(expected(cluster.services, request, version, "TLS"), version)
        assert frame[9 if version >= 9 else 8 :] == ordinary


@pytest.mark.interpreted("a constant is replaced")
async def test_the_size_of_the_kept_topics_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(2)
    monkeypatch.setattr(topic_encoder, "KEPT_BYTES_MAX", 300_000)
    largest = 0
    for _ in range(100):
        cluster.put_topic()
        await cluster.check()
        encoders = cluster.cache.topic_encoders.values()
        size_bytes = sum(len(known[0]) for each in encoders for known in each.topics.values())
        assert size_bytes <= sum(each.encoded_bytes for each in encoders) <= 300_000
        largest = max(largest, size_bytes)
    assert largest > 50_000


async def test_a_repeated_response_is_authorized_for_each_client() -> None:
    cluster = Cluster(4)
    name = "t"
    cluster.cache.put_topic(TopicMetadata(name, UUID(int=1), (cluster.partition(0),)))
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])

    async def ask(authorizer: Some | None) -> MetadataResponse:
        cluster.services.authorizer = authorizer
        return await cluster.response(request, 12, "PLAIN", cluster.network)

    allowing, denying = Some(set()), Some({name})
    for _ in range(2):
        denied = await ask(denying)
        assert [topic.error_code for topic in cluster.decoded(denied).topics] == [29]
    allowed = await ask(allowing)
    assert await ask(allowing) is allowed
    assert await ask(None) is allowed
    denied = await ask(denying)
    assert [topic.error_code for topic in cluster.decoded(denied).topics] == [29]
    # Each request is logged once in the audit log.
    assert denying.asked == [name] * 3
    assert allowing.asked == [name] * 2


async def test_middleware_receives_topics_as_objects() -> None:
    cluster = Cluster(5)
    caller = Caller(listener_name="PLAIN")
    caller.session = cluster.network
    for middleware, is_encoded in ((), True), ((lambda ctx, request, go_on: go_on(ctx, request),), False):
        ctx = StagedContext(cluster.services, caller, cluster.api, 8, True)  # type: ignore[arg-type]
        ctx.stages = Stages(lambda ctx, request: None, middleware=middleware)
        response = cluster.api.handler(ctx, MetadataRequest(topics=None))
        if not isinstance(response, MetadataResponse):
            response = await response
        assert (type(response.topics) is list) is not is_encoded
        assert len(cluster.decoded(response, 8).topics) == len(cluster.cache.topics)
