"""`python -m tests.docs.pictures`: retakes the screenshots of the web console for docs/page.md. Requires
Chromium.

The screenshots show the topics of a shop and its groups, some of them lagging, on three brokers in one
process.
"""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_compat.page.rendering import Templates
from kafka_compat.testing import KafkaCluster
from tests.page.browser import PHONE, Watched, chromium
from tests.page.rendered import hour_data, rendered, served
from tests.page.site import PAGE, Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
_DESK = (1120, 760)
_TOPICS = {"orders": 6, "payments": 6, "clicks": 12, "stock": 3, "mails": 3}
_RECORDS = {"orders": 3_000, "payments": 2_400, "clicks": 20_000, "stock": 800, "mails": 300}
_READ = {
    ("billing", "orders"): 0.7,
    ("warehouse", "orders"): 1.0,
    ("warehouse", "stock"): 1.0,
    ("fraud", "payments"): 0.4,
    ("trends", "clicks"): 0.9,
    ("postman", "mails"): 1.0,
}
"""The share of the topic that the group has read, by (group, topic)."""


def _payment(chance: random.Random) -> tuple[bytes, bytes, dict[str, str | bytes | None]]:
    order = chance.randrange(10_000)
    value = {"order": order, "customer": f"c{chance.randrange(400):03}", "cents": order * 7 % 90_000}
    return str(order).encode(), json.dumps(value).encode(), {"origin": b"web" if order % 3 else b"app"}


def _fill(cluster: KafkaCluster, producer: Producer, chance: random.Random) -> list[Consumer]:
    """Fill the topics, and return consumers that stay members of their groups until they are closed."""
    for topic, partitions in _TOPICS.items():
        cluster.create_topic(topic, partitions=partitions, replication_factor=3)
    begun_ms = cluster.control.now_ms() - 240_000
    for topic, count in _RECORDS.items():
        for number in range(count):
            key, value, headers = _payment(chance)
            time_ms = begun_ms + number * 240_000 // count
            producer.produce(topic, value, key, timestamp=time_ms, headers=headers)
    assert producer.flush(60) == 0
    members: dict[str, Consumer] = {}
    for (group, topic), share in _READ.items():
        member = members.get(group)
        if member is None:
            member = members[group] = Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap_servers,
                    "group.id": group,
                    "client.id": f"{group}-1",
                    "enable.auto.commit": False,
                }
            )
            member.subscribe([each for one, each in _READ if one == group])
            while not member.assignment():
                member.poll(0.1)
        offsets = []
        for partition in range(_TOPICS[topic]):
            end = member.get_watermark_offsets(TopicPartition(topic, partition))[1]
            offsets.append(TopicPartition(topic, partition, int(end * share)))
        member.commit(offsets=offsets, asynchronous=False)
    return list(members.values())


def _sell(producer: Producer, chance: random.Random, closed: threading.Event) -> None:
    """Produce records until `closed` is set."""
    while not closed.wait(0.02):
        for topic, count in _RECORDS.items():
            for _ in range(count // 600):
                key, value, headers = _payment(chance)
                producer.produce(topic, value, key, headers=headers)
        producer.poll(0)
    producer.flush(30)


def _picture_of_an_hour(browser: Browser) -> None:
    """Take the screenshot of the charts, which would take an hour with these brokers."""
    templates = Templates()
    pages = {"hour": rendered(templates, "hour", hour_data(long_name=False))}
    with served(pages, templates.style) as url:
        tab = Watched(browser, url, size=_DESK)
        tab.go("hour")
        tab.page.screenshot(path=PICTURES / "page-hour.png")


def main() -> None:
    """Take the screenshots."""
    chance = random.Random(7)
    with KafkaCluster(3, PAGE) as cluster, chromium() as browser:
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "client.id": "shop",
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        members = _fill(cluster, producer, chance)
        url = cluster.control.url
        closed = threading.Event()
        selling = threading.Thread(target=_sell, args=(producer, chance, closed))
        selling.start()
        desk = Watched(browser, url, size=_DESK)
        # The overview needs two measurements to show a rate.
        desk.go("overview")
        while Site(url).data("overview")["records_per_second"] is None:
            closed.wait(1)
        for name, view in (
            ("overview", "overview"),
            ("group", "group?name=fraud"),
            ("messages", "messages?name=payments&value=c017"),
        ):
            desk.go(view)
            desk.page.screenshot(path=PICTURES / f"page-{name}.png")
        phone = Watched(browser, url, scheme="dark", size=PHONE)
        phone.go("groups?sort=-lag")
        phone.page.screenshot(path=PICTURES / "page-phone.png")
        _picture_of_an_hour(browser)
        closed.set()
        selling.join()
        for member in members:
            member.close()


if __name__ == "__main__":
    main()
