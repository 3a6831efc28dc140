"""Produce a record to a topic."""

import random
from typing import Final, NamedTuple

from kafka_compat.client.partitioner import partition_of
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode
from kafka_compat.http.routes import CONFLICT, NOT_FOUND, UNAVAILABLE, BadCall
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.page import fields
from kafka_compat.page.views.topics import known_topic, named_topic
from kafka_compat.page.visit import Data, Done, Visit, path_of
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.storage.records.records import Record, build_batch

BODY: Final = {
    "name": "string: topic",
    "partition": "integer: partition; default: by the key, as Kafka's clients choose it",
    "key": "string: default: null",
    "key_as": f"string: format of the key: {', '.join(fields.CONTENT_FORMATS)} (no bytes)",
    "value": "string: default: null",
    "value_as": "string: format of the value, as key_as",
    "headers": "an object, or an array of arrays of a name and a value",
    "timestamp_ms": "integer: timestamp of the record; default: now",
}


async def see(visit: Visit) -> Data:
    """Return the topic and its partitions, for the form."""
    topic = known_topic(visit)
    return {"name": topic.name, "partitions": [each.partition for each in topic.partitions]}


async def act(visit: Visit) -> Done:
    """Produce the record in the fields of the request."""
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
                raise BadCall(f"no partition of {topic.name} has a leader now", UNAVAILABLE)
            partition = random.choice(led)
    record = Record(0, visit.cluster.now_ms() if time_ms is None else time_ms, key, value, headers)
    appended = await append(visit, topic.name, partition, build_batch([record]))
    place = {"name": topic.name, "partition": appended.partition, "offset": appended.offset}
    return Done(place, path_of("/message", **place))


# --- producing to partition leaders, like a client


_VERSION: Final = 9
_ACKS_ALL: Final = -1
_TIMEOUT_MS: Final = 20_000


class NotAppended(BadCall):
    """Raised if the leader rejects a batch and stores no records."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message, CONFLICT)
        self.code = code


class Appended(NamedTuple):
    """The partition and the first offset of an appended batch."""

    partition: int
    offset: int


async def append(visit: Visit, topic: str, partition: int, batch: bytes) -> Appended:
    """Produce a batch with acks=all. Raises NotAppended if it was not stored, or BadCall on other errors."""
    from kafka_compat.protocol.messages.produce import PartitionProduceData, TopicProduceData

    visit.rights.require(Operation.WRITE, ResourceType.TOPIC, topic)
    leader = leader_of(visit, topic, partition)
    data = PartitionProduceData(index=partition, records=memoryview(bytearray(batch)))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    answer = await visit.ask(
        ApiKey.PRODUCE, _VERSION, leader, acks=_ACKS_ALL, timeout_ms=_TIMEOUT_MS, topic_data=topics
    )
    result = answer.responses[0].partition_responses[0]
    if result.error_code:
        code = ErrorCode(result.error_code)
        reasons = [each.batch_index_error_message or "" for each in result.record_errors]
        said = "; ".join(filter(None, reasons)) or result.error_message or STANDARD_MESSAGES.get(code, "")
        text = f"{topic}-{partition} rejected it: {code.name} {said}".strip()
        if code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            raise BadCall(f"{text} (its leader may still have written it)", UNAVAILABLE)
        raise NotAppended(code, text)
    return Appended(partition, result.base_offset)


def leader_of(visit: Visit, topic: str, partition: int) -> int:
    """Return the leader of a partition. Raises BadCall if the partition has no leader."""
    known = visit.cluster.metadata.partition(topic, partition)
    if known is None:
        raise BadCall(f"{topic} has no partition {partition}", NOT_FOUND)
    leader = visit.cluster.metadata.reachable_leader(known)
    if leader is None:
        raise BadCall(f"{topic}-{partition} has no leader now", UNAVAILABLE)
    return leader


def led_partitions(visit: Visit, topic: TopicMetadata) -> list[int]:
    """Return the topic's partitions that have a leader."""
    metadata = visit.cluster.metadata
    return [each.partition for each in topic.partitions if metadata.reachable_leader(each) is not None]
