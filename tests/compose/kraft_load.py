"""A client inside the containers' network, which writes records with acks=all while containers are killed.

    python kraft_load.py BOOTSTRAP REPLICAS CLIENT_SETTINGS_AS_JSON

It creates a topic, and obeys the lines of standard input. Each line is answered with one line of JSON.

count    the number of acknowledged records
leader   the leader of partition 0
isr      the number of replicas in sync of each partition
end      stops writing, reads the topic, and tells how many records are acknowledged, lost and duplicated

It runs in a container of the broker's image with kafka-python mounted.
"""

import json
import sys
import threading
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.structs import TopicPartition

TOPIC = "orders"
PARTITIONS = 3
bootstrap, replicas = sys.argv[1].split(","), int(sys.argv[2])
settings = {"bootstrap_servers": bootstrap, **json.loads(sys.argv[3])}
acknowledged: list[int] = []
ending = threading.Event()


def admin() -> KafkaAdminClient:
    until = time.monotonic() + 60
    while True:
        try:
            return KafkaAdminClient(**settings)
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # Nothing tells when the brokers are ready.


def create() -> None:
    """Create the topic. Fewer brokers than replicas may be registered at first."""
    until = time.monotonic() + 60
    while True:
        try:
            client.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)])
            return
        except Exception as error:
            if "TopicAlreadyExists" in type(error).__name__:
                return
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # Nothing tells when the brokers are ready.


def write() -> None:
    producer = KafkaProducer(**settings, acks="all", enable_idempotence=True, delivery_timeout_ms=240_000)
    number = 0
    while not ending.is_set():
        sent = producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        sent.add_callback(lambda _, own=number: acknowledged.append(own))
        number += 1
        time.sleep(0.002)  # Limits the load.
    producer.flush(120)
    producer.close()


def partitions() -> list[dict[str, Any]]:
    (topic,) = client.describe_topics([TOPIC])
    found = topic["partitions"]
    return sorted(found, key=lambda each: each.get("partition_index", each.get("partition")))


def read() -> list[int]:
    consumer = KafkaConsumer(**settings, auto_offset_reset="earliest", enable_auto_commit=False)
    places = [TopicPartition(TOPIC, each) for each in range(PARTITIONS)]
    consumer.assign(places)
    ends = consumer.end_offsets(places)
    found: list[int] = []
    until = time.monotonic() + 60
    while any(consumer.position(place) < ends[place] for place in places) and time.monotonic() < until:
        for records in consumer.poll(500).values():
            found += [int(record.value) for record in records]
    consumer.close()
    return found


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


client = admin()
create()
writer = threading.Thread(target=write, daemon=True)
writer.start()
say("ready")
for line in sys.stdin:
    word = line.strip()
    try:
        if word == "count":
            say(len(acknowledged))
        elif word == "leader":
            first = partitions()[0]
            say(first.get("leader_id", first.get("leader")))
        elif word == "isr":
            say([len(each.get("isr_nodes") or each["isr"]) for each in partitions()])
        elif word == "end":
            ending.set()
            writer.join(180)
            values = read()
            say(
                {
                    "acknowledged": len(acknowledged),
                    "lost": len({*acknowledged} - {*values}),
                    "duplicated": len(values) - len({*values}),
                }
            )
            break
    except Exception as error:
        say({"error": repr(error)})
