"""A client on one side of a container's network: `python -m tests.network.one_side SERVERS NAME COUNT TOTAL`.

It writes COUNT records to the topic flights, reads TOTAL records, and prints the addresses of the brokers in
the cluster's metadata as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

_READ_S = 60


def main(servers: str, name: str, count: int, total: int) -> None:
    address: dict[str, Any] = {"bootstrap.servers": servers}
    producer = Producer(address)
    for number in range(count):
        producer.produce("flights", f"{name} {number}")
    assert producer.flush(_READ_S) == 0
    consumer = Consumer({**address, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe(["flights"])
    read = {message.value() for message in consumer.consume(total, _READ_S)}
    consumer.close()
    assert len(read) == total, f"{name} read {len(read)} records of {total}"
    brokers = AdminClient(address).list_topics(timeout=10).brokers.values()
    print(json.dumps([f"{broker.host}:{broker.port}" for broker in brokers]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
