"""Changes through the web console: producing records, copying topics, and setting group offsets, with and
without permission.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.control.clients import Serving, produce, producer
from tests.control.contents import commit_position, committed, fill, held
from tests.page.browsing import WRITING, Asked
from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat

T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(WRITING) as running:
        yield running


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, {**WRITING, "min.insync.replicas": 2}) as running:
        yield running


@pytest.fixture
def page(broker: KafkaBroker) -> Asked:
    return Asked(broker.control.url)


@pytest.fixture
def name() -> str:
    return f"n-{uuid4().hex[:8]}"


def records(broker: Serving, topic: str) -> list[tuple[bytes | None, bytes | None, object]]:
    """Return key, value and headers of all records, as a consumer receives them."""
    client = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.partition.eof": True}
    )
    partitions = client.list_topics(topic, 20).topics[topic].partitions
    client.assign([TopicPartition(topic, index, 0) for index in partitions])
    found: list[tuple[bytes | None, bytes | None, object]] = []
    ends = 0
    while ends < len(partitions):
        message = client.poll(20)
        assert message is not None
        if message.error() is not None:
            ends += 1
        else:
            found.append((message.key(), message.value(), message.headers()))
    client.close()
    return found


# --- records


def test_a_produced_record_has_the_entered_content(broker: KafkaBroker, page: Asked, name: str) -> None:
    broker.create_topic(name)
    wanted: list[tuple[dict[str, object], tuple[bytes | None, bytes | None, object]]] = [
        ({"key": "k", "value": "größer"}, (b"k", "größer".encode(), None)),
        ({"key": "", "value": ""}, (None, None, None)),
        ({"key_as": "empty", "value_as": "empty"}, (b"", b"", None)),
        ({"key": "7", "key_as": "long", "value": base64.b64encode(b"\0\xff").decode(), "value_as": "base64"},
         (b"\0\0\0\0\0\0\0\7", b"\0\xff", None)),
        ({"value": "00 ff", "value_as": "hex", "headers": {"a": "1", "b": None}},
         (None, b"\0\xff", [("a", b"1"), ("b", None)])),
        ({"value": "v", "headers": "x: 1\nx: 2: 3\nn"},
         (None, b"v", [("x", b"1"), ("x", b"2: 3"), ("n", None)])),
    ]  # fmt: skip
    for offset, (fields, _) in enumerate(wanted):
        assert page.act("produce", name=name, **fields) == {"name": name, "partition": 0, "offset": offset}
    assert records(broker, name) == [record for _, record in wanted]
    told = page.act("produce", name=name, value="v", timestamp_ms=T0_MS)
    shown = page.data("message", **told)
    assert shown["timestamp_ms"] == T0_MS and shown["timestamp_type"] == "CreateTime"


def test_the_console_assigns_keys_to_the_same_partitions_as_clients(
    broker: KafkaBroker, page: Asked, name: str
) -> None:
    broker.create_topic(name, 7)
    client = producer(broker, partitioner="murmur2_random")
    sent: dict[str, int] = {}

    def told(error: object, message: object) -> None:
        assert error is None
        sent[message.key().decode()] = message.partition()  # type: ignore[attr-defined]

    for number in range(30):
        client.produce(name, b"", f"key-{number}", on_delivery=told)
    assert client.flush(20) == 0
    for key, partition in sent.items():
        assert page.act("produce", name=name, key=key, value="v")["partition"] == partition
    assert page.act("produce", name=name, key="key-0", value="v", partition=6)["partition"] == 6


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"partition": 9}, 404, "has no partition 9"),
        ({"partition": "first"}, 400, "partition=first: expected a whole number of at least 0"),
        ({"key": "x", "key_as": "long"}, 400, "key: 'x' is not a valid long (8 bytes)"),
        ({"key": "x", "key_as": "empty"}, 400, "empty is selected, but 'x' is given"),
        ({"value_as": "xml"}, 400, "value_as=xml: expected one of text, hex"),
        ({"headers": [["a"]]}, 400, "headers: ['a'] is not a name and a value"),
        ({"value": "v" * 5000}, 409, "MESSAGE_TOO_LARGE"),
        ({"colour": "red"}, 400, "unknown field 'colour'"),
    ],
)
def test_invalid_records_are_rejected_with_a_reason(
    broker: KafkaBroker, page: Asked, fields: dict[str, object], status: int, reason: str
) -> None:
    if "small" not in broker.topics():
        broker.create_topic("small", config={"max.message.bytes": 1000})
    found, told = page.try_act("produce", name="small", **fields)
    assert (found, reason in told["detail"]) == (status, True), told
    assert records(broker, "small") == []


def test_records_are_validated_against_the_topics_settings(
    broker: KafkaBroker, page: Asked, name: str
) -> None:
    broker.create_topic(name, config={"cleanup.policy": "compact"})
    status, told = page.try_act("produce", name=name, value="no key")
    assert status == 409 and "INVALID_RECORD" in told["detail"] and "compacted" in told["detail"].lower()
    assert page.try_act("produce", name="nowhere", value="v")[0] == 404
    broker.create_topic(f"{name}-o")
    commit_position(broker, "of-internal", f"{name}-o", 0)
    status, told = page.try_act("produce", name="__consumer_offsets", value="v", partition=0)
    assert status == 409 and "INVALID_TOPIC_EXCEPTION" in told["detail"]


def test_a_record_is_acknowledged_by_all_replicas(cluster: KafkaCluster, name: str) -> None:
    cluster.create_topic(name, 3)
    page = Asked(cluster.control.url)
    for partition in range(3):
        page.act("produce", name=name, value="v", partition=partition)
    assert len(records(cluster, name)) == 3
    cluster.create_topic(f"{name}-5", 1, replication_factor=1, config={"min.insync.replicas": 1})
    page.act("produce", name=f"{name}-5", value="v")


# --- copies


def test_copying_a_topic_on_a_standalone_broker_creates_a_fork(
    broker: KafkaBroker, page: Asked, name: str
) -> None:
    broker.create_topic(name, 3)
    fill(broker, name)
    commit_position(broker, f"{name}-g", name, 5)
    told = page.act("copy", name=name, target=f"{name}-copy", groups=True)
    assert told["state"] == "done" and told["groups"] == [f"{name}-g"]
    assert held(broker, f"{name}-copy") == held(broker, name)
    assert committed(broker, f"{name}-g", f"{name}-copy") == 5
    assert page.try_act("copy", name=name, target=f"{name}-copy")[0] == 409
    assert page.try_act("copy", name=name, target="a/b")[0] == 409
    assert page.act("copy", name=name, target=f"{name}-bare")["groups"] == []


def test_copying_a_topic_in_a_cluster_copies_each_record(cluster: KafkaCluster, name: str) -> None:
    page = Asked(cluster.control.url)
    cluster.create_topic(name, 3, config={"retention.ms": "-1", "segment.bytes": "16384"})
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        client = producer(cluster, **{"compression.type": codec, "linger.ms": 20})
        for number in range(200):
            headers: list[tuple[str, str | bytes | None]] = [("n", f"{number}")]
            client.produce(
                name, b"v" * 100, f"{codec}-{number}", number % 3, timestamp=T0_MS + number, headers=headers
            )
        assert client.flush(20) == 0
    for end in ("commit", "abort", "abort again"):
        transactional = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": f"{name}-{end}"}
        )
        transactional.init_transactions(20)
        transactional.begin_transaction()
        transactional.produce(name, b"v", end, 0)
        if end == "commit":
            transactional.commit_transaction(20)
        else:
            transactional.flush(20)
            transactional.abort_transaction(20)
    told = page.act("copy", name=name, target=f"{name}-copy")
    assert told["target"] == f"{name}-copy"

    def done() -> bool:
        (copy,) = page.data("copy", name=name)["copies"]
        assert copy["state"] != "failed", copy
        return bool(copy["state"] == "done")

    wait_until(done, 30, "the copy of the topic", 0.05)

    def without_offsets(topic: str) -> list[tuple[object, ...]]:
        return [(one[0], *one[2:]) for one in held(cluster, topic)]

    assert without_offsets(f"{name}-copy") == without_offsets(name)
    assert len(without_offsets(name)) == 1001
    assert sorted(map(repr, records(cluster, f"{name}-copy"))) == sorted(map(repr, records(cluster, name)))
    settings = {each["name"]: each for each in page.data("topic-settings", name=f"{name}-copy")["settings"]}
    assert settings["retention.ms"]["value"] == "-1" and settings["retention.ms"]["source"] == "the topic"
    (copy,) = page.data("copy", name=name)["copies"]
    assert (copy["records"], copy["done"]) == (1001, copy["total"])
    assert page.try_act("copy", name=name, target=f"{name}-copy")[0] == 409
    assert "alone" in page.try_act("copy", name=name, target="x", groups=True)[1]["detail"]


# --- offsets


@pytest.fixture(scope="module")
def read(broker: KafkaBroker) -> tuple[str, str]:
    """A topic with three partitions of ten records each, where the first records of partition 1 are
    deleted.
    """
    broker.create_topic("read", 3)
    client = producer(broker)
    for number in range(30):
        client.produce("read", b"v", None, number % 3, timestamp=T0_MS + 1000 * number)
    assert client.flush(20) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition("read", 1, 4)]).values():
        future.result(20)
    return "read", "group"


@pytest.mark.parametrize(
    ("to", "value", "wanted"),
    [
        ("earliest", "", {0: 0, 1: 4, 2: 0}),
        ("latest", "", {0: 10, 1: 10, 2: 10}),
        ("offset", "3", {0: 3, 1: 4, 2: 3}),
        ("offset", "99", {0: 10, 1: 10, 2: 10}),
        ("time", f"{T0_MS + 13_500}", {0: 5, 1: 5, 2: 4}),
        ("time", "2033-01-01T00:00:00Z", {0: 10, 1: 10, 2: 10}),
        ("shift", "-2", {0: 4, 1: 4, 2: 4}),
        ("shift", "100", {0: 10, 1: 10, 2: 10}),
    ],
)
def test_offset_changes_are_previewed_before_they_are_applied(
    broker: KafkaBroker, page: Asked, read: tuple[str, str], to: str, value: str, wanted: dict[int, int]
) -> None:
    topic, group = read
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    start = [TopicPartition(topic, partition, 6) for partition in range(3)]
    client.commit(offsets=start, asynchronous=False)
    plan = page.act("offsets-plan", name=group, to=to, value=value)
    assert {each["partition"]: each["new_offset"] for each in plan["partitions"]} == wanted
    assert all(each["old_offset"] == 6 and each["old_lag"] == 4 for each in plan["partitions"])
    assert all(each["new_lag"] == 10 - each["new_offset"] for each in plan["partitions"])
    assert [one.offset for one in client.committed(start, 20)] == [6, 6, 6]
    assert page.act("offsets", name=group, offsets=plan["offsets"]) == {"name": group, "changed": 3}
    assert {one.partition: one.offset for one in client.committed(start, 20)} == wanted
    client.close()


def test_offsets_can_be_set_for_some_partitions_of_a_topic_that_the_group_has_not_read(
    broker: KafkaBroker, page: Asked, read: tuple[str, str]
) -> None:
    broker.create_topic("fresh", 4)
    produce(broker, "fresh", 20)
    plan = page.act("offsets-plan", name="group", topic="fresh", partitions="1,3", to="latest")
    assert [(each["partition"], each["old_offset"]) for each in plan["partitions"]] == [(1, None), (3, None)]
    plan = page.act("offsets-plan", name="group", topic="fresh", to="shift", value="1")
    assert plan["offsets"] == [] and "no committed offset" in plan["partitions"][0]["note"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_group_with_members_cannot_be_changed(
    broker: KafkaBroker, page: Asked, name: str, protocol: str
) -> None:
    broker.create_topic(name)
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": name,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )
    client.subscribe([name])
    wait_until(
        lambda: client.poll(0.1) is None and bool(client.assignment()), 20, "the group's assignment", 0.01
    )
    client.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
    plan = page.act("offsets-plan", name=name, to="latest")
    reason = f"Offsets can only be reset while the group '{name}' is inactive; its state is Stable."
    assert (plan["members"], plan["problem"]) == (1, reason)
    status, told = page.try_act("offsets", name=name, offsets=plan["offsets"])
    assert (status, told["detail"]) == (409, reason)
    shown = page.get("offsets", name=name).shown
    assert f"{reason} Stop its members first (now 1)" in shown
    tool = ("consumer-groups", "--bootstrap-server", broker.bootstrap_servers, "--group", name)
    reset = run_kafka_compat(*tool, "--reset-offsets", "--all-topics", "--to-latest", "--execute")
    assert reason in reset.stdout
    client.close()
    page.act("offsets", name=name, offsets=plan["offsets"])


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"to": "yesterday"}, 400, "to=yesterday: expected one of earliest, latest, offset, time, shift"),
        ({"to": "offset"}, 400, "value is missing"),
        ({"to": "offset", "value": "-1"}, 400, "value=-1"),
        ({"to": "time", "value": "noon"}, 400, "value=noon: expected a time"),
        ({"topic": "nowhere"}, 404, "unknown topic nowhere"),
        ({"topic": "read", "partitions": "8"}, 400, "read has no partition 8"),
        ({"partitions": "1"}, 400, "partitions are given without a topic"),
        ({"name": "nobody"}, 404, "unknown group nobody"),
    ],
)
def test_invalid_offset_changes_are_rejected_with_a_reason(
    broker: KafkaBroker,
    page: Asked,
    read: tuple[str, str],
    fields: dict[str, object],
    status: int,
    reason: str,
) -> None:
    commit_position(broker, "planned", read[0], 0)
    found, told = page.try_act("offsets-plan", **{"name": "planned", **fields})
    assert (found, reason in told["detail"]) == (status, True), told


def test_forms_submitted_by_a_browser_have_the_same_effect(
    broker: KafkaBroker, page: Asked, name: str
) -> None:
    broker.create_topic(name)
    fields = {"key": "k", "key_as": "text", "value": "v", "value_as": "text", "headers": "a: 1"}
    shown = page.get("produce", name=name)
    sent = page.submit(shown, "produce", name=name, partition="", timestamp_ms="", **fields)
    assert sent.status == 303
    assert sent.headers["Location"] == f"/ui/message?name={name}&partition=0&offset=0"
    commit_position(broker, name, name, 1)
    fields = {"topic": "", "partitions": "", "to": "earliest", "value": ""}
    plan = page.submit(page.get("offsets", name=name), "offsets-plan", name=name, **fields)
    assert plan.status == 200 and "No offsets have been changed yet" in plan.shown
    offsets = json.dumps([{"topic": name, "partition": 0, "offset": 0}])
    sent = page.submit(plan, "offsets", name=name, offsets=offsets)
    assert (sent.status, sent.headers["Location"]) == (303, f"/ui/offsets?name={name}&moved=1")
    assert committed(broker, name, name) == 0
    sent = page.submit(page.get("copy", name=name), "copy", name=name, target=f"{name}-c", groups="on")
    assert (sent.status, sent.headers["Location"]) == (303, f"/ui/topic?name={name}-c")
    refused = page.post_form("produce", {"name": name, "value": "v"})
    assert refused.status == 403 and "this form is outdated" in refused.shown


# --- permissions


def test_changes_must_be_enabled_by_a_setting() -> None:
    with KafkaBroker({"kafka.compat.http.page.enable": "true"}) as running:
        page = Asked(running.control.url)
        running.create_topic("t")
        commit_position(running, "g", "t", 0)
        for action, fields in (
            ("produce", {"name": "t", "value": "v"}),
            ("copy", {"name": "t", "target": "u"}),
            ("offsets", {"name": "g", "offsets": []}),
            ("offsets-plan", {"name": "g", "to": "latest"}),
        ):
            status, told = page.try_act(action, **fields)
            assert status == 403 and "page.write.enable=true" in told["detail"]
        for view, query in (("produce", "t"), ("copy", "t"), ("offsets", "g")):
            html = page.html(view, name=query)
            assert "The web console is read-only" in html and 'method="post"' not in html
        assert records(running, "t") == [] and running.topics() == ["t"]


def test_changes_need_permission() -> None:
    settings = {
        **WRITING,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
        "kafka.compat.http.page.principal": "User:page",
    }
    with KafkaBroker(settings) as running:
        page = Asked(running.control.url)
        running.create_topic("t")
        produce(running, "t", 3)
        commit_position(running, "g", "t", 1)
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})

        def allow(kind: ResourceType, name: str, operation: AclOperation) -> None:
            literal, may = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
            acl = AclBinding(kind, name, literal, "User:page", "*", operation, may)
            for future in admin.create_acls([acl]).values():
                future.result(20)

        def refused(what: str, *told: object) -> None:
            status, detail = told
            assert status == 403 and what in detail["detail"], told  # type: ignore[index]

        refused("DESCRIBE the topic t", *page.try_data("messages", name="t"))
        allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE)
        refused("READ the topic t", *page.try_data("messages", name="t"))
        refused("READ the topic t", *page.try_data("message", name="t", partition=0, offset=0))
        assert page.get("message-data", name="t", partition=0, offset=0, part="value").status == 403
        refused("WRITE the topic t", *page.try_act("produce", name="t", value="v"))
        refused("READ the topic t", *page.try_act("copy", name="t", target="u"))
        allow(ResourceType.TOPIC, "t", AclOperation.READ)
        assert len(page.data("messages", name="t")["records"]) == 3
        refused("DESCRIBE_CONFIGS the topic t", *page.try_act("copy", name="t", target="u"))
        allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE_CONFIGS)
        refused("WRITE the topic u", *page.try_act("copy", name="t", target="u"))
        allow(ResourceType.TOPIC, "u", AclOperation.WRITE)
        refused("CREATE the topic u", *page.try_act("copy", name="t", target="u"))
        allow(ResourceType.TOPIC, "u", AclOperation.CREATE)
        assert page.act("copy", name="t", target="u", groups=True)["groups"] == []
        allow(ResourceType.TOPIC, "t", AclOperation.WRITE)
        assert page.act("produce", name="t", value="v")["offset"] == 3
        refused("DESCRIBE the group g", *page.try_act("offsets-plan", name="g", to="latest"))
        allow(ResourceType.GROUP, "g", AclOperation.DESCRIBE)
        plan = page.act("offsets-plan", name="g", to="latest")
        assert len(plan["offsets"]) == 1
        refused("READ the group g", *page.try_act("offsets", name="g", offsets=plan["offsets"]))
        allow(ResourceType.GROUP, "g", AclOperation.READ)
        page.act("offsets", name="g", offsets=plan["offsets"])
        assert committed(running, "g", "t") == 4
