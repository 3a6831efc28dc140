"""Produce a record to a topic."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from kafka_compat.client.partitioner import partition_of
from kafka_compat.http.routes import BadCall
from kafka_compat.page import fields
from kafka_compat.page.producing import append, led_partitions
from kafka_compat.page.view import Done
from kafka_compat.page.views.topic import known_topic, named_topic
from kafka_compat.page.visit import path_of
from kafka_compat.storage.records.records import Record, build_batch

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

BODY: Final = {
    "name": "string: of which topic",
    "partition": "integer: its partition; without it the one that the key falls to with Kafka's own clients",
    "key": "string: nothing is null",
    "key_as": f"string: what the key is written as: {', '.join(fields.CONTENT_FORMATS)} (no bytes)",
    "value": "string: nothing is null",
    "value_as": "string: as key_as",
    "headers": "an object, or an array of arrays of a name and a value",
    "timestamp_ms": "integer: the record's time; without it the present",
}


async def see(visit: Visit) -> Data:
    """What the form needs."""
    topic = known_topic(visit)
    return {"name": topic.name, "partitions": [each.partition for each in topic.partitions]}


async def act(visit: Visit) -> Done:
    """Append it."""
    topic = named_topic(visit, fields.needed(visit.body, "name"))
    key, value = fields.content(visit.body, "key"), fields.content(visit.body, "value")
    headers = fields.headers(visit.body)
    time_ms = fields.whole_number(visit.body, "timestamp_ms")
    partition = fields.whole_number(visit.body, "partition")
    if partition is None:
        if key is not None:
            partition = partition_of(key, len(topic.partitions))
        else:
            led = led_partitions(visit, topic)
            if not led:
                raise BadCall(f"nobody leads any partition of {topic.name} now", 503)
            partition = random.choice(led)
    record = Record(0, visit.cluster.now_ms() if time_ms is None else time_ms, key, value, headers)
    appended = await append(visit, topic.name, partition, build_batch([record]))
    place = {"name": topic.name, "partition": appended.partition, "offset": appended.offset}
    return Done(place, path_of("/message", **place))
