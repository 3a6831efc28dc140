"""Views of the web console for brokers with real clients; each view is also available as JSON."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kafka_compat.testing import KafkaBroker
from tests.metrics.groups import commit, produce, transaction
from tests.page.site import PAGE, Site
from tests.support.process import wait_until

HOSTILE = "<b>x</b>/&?'\" ü"
VIEWS = [
    ("overview", {}),
    ("hour", {}),
    ("chart", {"chart": "requests"}),
    ("topics", {}),
    ("topic", {"name": "orders"}),
    ("topic-settings", {"name": "orders"}),
    ("groups", {}),
    ("group", {"name": "billing"}),
    ("transactions", {}),
    ("brokers", {}),
    ("broker", {"id": 1}),
    ("disks", {}),
    ("clients", {}),
    ("refused", {}),
    ("logs", {}),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(PAGE, verbose=True) as running:
        now_ms = running.control.now_ms()
        running.create_topic("orders", partitions=3, config={"retention.ms": 86_400_000})
        running.create_topic("returns")
        address = running.bootstrap_servers
        produce(address, "orders", [now_ms - 60_000, now_ms - 50_000, now_ms - 40_000])
        commit(address, "billing", {("orders", 0): 1})
        commit(address, HOSTILE, {("orders", 0): 3, ("returns", 0): 0})
        yield running
        assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def site(broker: KafkaBroker) -> Site:
    return Site.of(broker)


def row(rows: list[dict[str, Any]], **wanted: object) -> dict[str, Any]:
    (found,) = (each for each in rows if wanted.items() <= each.items())
    return found


@pytest.mark.parametrize(("path", "query"), VIEWS, ids=[path for path, _ in VIEWS])
def test_each_view_is_available_as_html_and_json(site: Site, path: str, query: dict[str, object]) -> None:
    page = site.get(path, **query)
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'; style-src 'self'" in page.headers["Content-Security-Policy"]
    assert "<script" not in page.text and "style=" not in page.text
    assert f'href="/ui/{path}.json' in page.text
    assert isinstance(site.data(path, **query), dict)


def test_the_start_page_is_the_overview(site: Site) -> None:
    for path in ("/", "/ui"):
        answer = site.ask("GET", path)
        assert (answer.status, answer.headers["Location"]) == (303, "/ui/overview")
    assert "/ui/topics.json" in site.ask("GET", "/api").text


def test_the_overview_counts_brokers_topics_and_groups(site: Site, broker: KafkaBroker) -> None:
    told = site.data("overview")
    assert told["is_well"] and told["problems"] == [] and told["not_ready"] == []
    assert (told["brokers"], told["controller"]) == (1, 1)
    assert told["topics"] >= 2 and told["groups"] == 2 and told["groups_behind"] == 1
    behind = row(told["groups_most_behind"], name="billing")
    assert behind["lag"] == 2 and 50 <= behind["lag_seconds"] < 500
    assert told["disks"][0]["usable_share"] > 0
    assert "Healthy." in site.get("overview").shown


def test_the_topic_list_shows_sizes_and_can_be_filtered(site: Site) -> None:
    rows = site.rows("topics", "topics")
    orders = row(rows, name="orders")
    assert (orders["partitions"], orders["replication_factor"], orders["records"]) == (3, 1, 3)
    assert orders["size_bytes"] > 50 and not orders["is_internal"]
    assert row(rows, name="__consumer_offsets")["is_internal"]
    assert [each["name"] for each in site.rows("topics", "topics", q="ORD")] == ["orders"]
    assert site.get("topics", sort="weight").status == 400


def test_the_topic_page_lists_the_partitions_and_groups(site: Site) -> None:
    told = site.data("topic", name="orders")
    first = row(told["list"]["rows"], partition=0)
    assert (first["leader"], first["replicas"], first["in_sync_replicas"]) == (1, [1], [1])
    assert (first["start_offset"], first["end_offset"], first["records"]) == (0, 3, 3)
    assert {group["name"] for group in told["groups"]} == {"billing", HOSTILE}
    nothing = site.get("topic", name="nope")
    assert nothing.status == 404 and "unknown topic nope" in nothing.shown
    assert site.get("topic").status == 400


def test_the_group_page_shows_the_lag_per_topic(site: Site) -> None:
    told = site.data("group", name=HOSTILE)
    assert [(each["topic"], each["partitions"], each["lag"]) for each in told["topics"]] == [
        ("orders", 1, 0),
        ("returns", 1, 0),
    ]
    (billing,) = site.data("group", name="billing")["topics"]
    assert billing["lag"] == 2 and 50 <= billing["lag_seconds"] < 500
    assert "orders 1 2" in site.get("group", name="billing").shown


def test_settings_are_shown_with_their_source(site: Site) -> None:
    settings = site.data("topic-settings", name="orders")["settings"]
    retention = row(settings, name="retention.ms")
    assert (retention["value"], retention["source"]) == ("86400000", "the topic")
    assert row(settings, name="cleanup.policy")["source"] == "default"
    assert settings[0]["is_set"], "explicitly set settings must come first"
    of_broker = site.data("broker", id=1)["settings"]
    assert row(of_broker, name="kafka.compat.http.page.enable")["source"] == "the broker's settings"
    assert row(of_broker, name="ssl.keystore.password")["value"] is None


def test_the_group_page_lists_the_members(site: Site, broker: KafkaBroker) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "client.id": "reader-1",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    try:
        assert consumer.poll(30) is not None
        consumer.commit(asynchronous=False)
        told = site.data("group", name="readers")
        assert (told["state"], told["coordinator"]) == ("Stable", 1)
        (member,) = told["members"]
        assert member["client_id"] == "reader-1"
        assert member["partitions"] == [{"topic": "orders", "partitions": [0, 1, 2]}]
        first = row(told["list"]["rows"], partition=0)
        assert (first["committed_offset"], first["end_offset"], first["lag"]) == (1, 3, 2)
        assert 50 <= first["lag_seconds"] < 500 and first["member_id"] == member["member_id"]
        assert row(told["list"]["rows"], partition=1)["lag"] is None
        assert told["lag"] == 2
    finally:
        consumer.close()
    assert site.data("group", name="readers")["members"] == []


def test_the_group_page_lists_the_epochs_and_assignments_of_a_consumer_group(
    site: Site, broker: KafkaBroker
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "modern",
            "group.protocol": "consumer",
            "group.instance.id": "first",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    try:
        assert consumer.poll(30) is not None
        consumer.commit(asynchronous=False)
        told = site.data("group", name="modern")
        assert (told["type"], told["state"], told["assignor"]) == ("consumer", "Stable", "uniform")
        assert (told["epoch"], told["target_epoch"]) == (2, 2)
        (member,) = told["members"]
        assert (member["instance_id"], member["epoch"]) == ("first", 2)
        assert member["partitions"] == member["target"] == [{"topic": "orders", "partitions": [0, 1, 2]}]
        assert row(told["list"]["rows"], partition=0)["member_id"] == member["member_id"]
        shown = site.get("group", name="modern").shown
        assert "Epoch of the assignment" in shown and "Target" in shown
        found = row(site.rows("groups", "groups"), name="modern")
        assert (found["type"], found["state"], found["members"]) == ("consumer", "Stable", 1)
    finally:
        consumer.close()


def test_hostile_names_are_shown_as_text(site: Site) -> None:
    for page in (site.get("groups"), site.get("topic", name="orders"), site.get("group", name=HOSTILE)):
        assert page.status == 200
        assert HOSTILE in page.shown and "<b>x" not in page.text
    assert site.data("group", name=HOSTILE)["lag"] == 0
    echoed = site.get("topics", q="<b>x").text
    assert "&lt;b&gt;x" in echoed and "<b>x" not in echoed


def test_a_topic_view_lists_its_consumer_groups(site: Site) -> None:
    assert [each["name"] for each in site.rows("groups", "groups", topic="returns")] == [HOSTILE]
    page = site.get("groups", topic="returns", q="nobody")
    assert "Groups with committed offsets for returns" in page.shown and "No matching groups" in page.shown


def test_the_transaction_list_shows_states_and_partitions(site: Site, broker: KafkaBroker) -> None:
    open_one = transaction(broker.bootstrap_servers, "returns", [broker.control.now_ms()], end="open")
    told = row(site.rows("transactions", "transactions"), name="id-open-returns")
    assert (told["state"], told["coordinator"], told["epoch"]) == ("Ongoing", 1, 0)
    assert told["partitions"] == [{"topic": "returns", "partitions": [0]}]
    assert 0 <= told["seconds"] < 60
    open_one.abort_transaction(30)
    done = row(site.rows("transactions", "transactions", q="id-open"), name="id-open-returns")
    assert (done["state"], done["seconds"]) == ("CompleteAbort", None)


def test_brokers_are_shown_with_their_disks(site: Site, broker: KafkaBroker) -> None:
    (told,) = site.data("brokers")["brokers"]
    assert told["is_up"] and told["is_controller"] and told["is_here"]
    assert told["listeners"][0]["address"] == broker.bootstrap_servers
    assert told["leads"] == told["replicas"] > 3 and told["replicas_not_in_sync"] == 0
    (disk,) = site.data("disks")["disks"]
    assert disk["replicas"] == told["replicas"] and disk["total_bytes"] > disk["usable_bytes"] > 0
    assert site.get("broker", id=7).status == 404


def test_connected_clients_are_listed_with_their_software(site: Site, broker: KafkaBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": HOSTILE})
    producer.produce("orders", b"x", partition=2)
    assert producer.flush(30) == 0
    told = row(site.rows("clients", "clients"), client_id=HOSTILE)
    assert told["software"] == "confluent-kafka-python" and "rdkafka" in told["version"]
    assert (told["principal"], told["host"], told["listener"]) == ("User:ANONYMOUS", "127.0.0.1", "PLAINTEXT")
    assert told["connections"] >= 1
    assert HOSTILE in site.get("clients").shown
    del producer


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "this looks like an HTTP request"),
        (b"\x16\x03\x01\x00\xff", "this looks like a TLS handshake"),
        (b"\0\0\0\x0c\x7f\xff\0\0\0\0\0\0\xff\xff\0\0", "API key 32767 is not supported"),
        (b"\0\0\0\x0c\0\x03\x7f\xff\0\0\0\0\xff\xff\0\0", "METADATA version 32767 is not supported"),
    ],
)
def test_rejected_clients_are_listed(site: Site, broker: KafkaBroker, sent: bytes, reason: str) -> None:
    for times in (1, 2):
        with socket.create_connection((broker.host, broker.port), 20) as stranger:
            stranger.sendall(sent)
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(100) == b""
        (told,) = (one for one in site.rows("refused", "refused") if reason in one["reason"])
        assert (told["host"], told["times"]) == ("127.0.0.1", times)
        assert told["first_ms"] <= told["last_ms"]
    assert reason in site.get("refused").shown


def test_the_log_can_be_filtered_by_level_and_text(site: Site, broker: KafkaBroker) -> None:
    broker.create_topic("logged")
    made = "Created topic logged (1 partition, 1 replica each)"
    told = row(site.rows("logs", "lines", q="logged"), text=made)
    assert (told["level"], told["logger"]) == ("INFO", "kafka_compat.metadata.topic_log")
    assert made in site.get("logs", level="INFO").shown
    assert made not in site.get("logs", level="WARN").shown
    assert site.get("logs", level="LOUD").status == 400


def test_the_record_rate_of_a_topic_is_shown(site: Site, broker: KafkaBroker) -> None:
    def comes() -> bool:
        produce(broker.bootstrap_servers, "returns", [broker.control.now_ms()] * 20)
        told = row(site.rows("topics", "topics"), name="returns")
        return (told["records_per_second"] or 0) > 5

    wait_until(comes, 60, "the record rate")
    assert row(site.data("overview")["busiest_topics"], name="returns")


def test_requests_that_would_change_data_are_rejected(site: Site) -> None:
    answer = site.ask("POST", "/ui/topics", "{}")
    assert answer.status == 405
    assert "read-only" in site.get("overview").shown


def test_unknown_pages_and_parameters_are_rejected(site: Site) -> None:
    page = site.ask("GET", "/ui/nope")
    assert page.status == 404 and "unknown page /ui/nope" in page.shown
    assert site.ask("GET", "/ui/nope.json").status == 404
    assert site.ask("GET", "/ui/topics?color=red").status == 400
