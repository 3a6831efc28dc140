"""Plans of kafka-reassign-partitions: their JSON form, their generation, and the replicas that a plan moves
and throttles. No I/O.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.tools import json_input
from kafka_compat.tools.failure import Failure, java_int
from kafka_compat.tools.json_input import admin_error
from kafka_compat.tools.show import name_of

Partition = tuple[str, int]
Replicas = dict[Partition, list[int]]
_ANY: Final = "any"


class Replica(NamedTuple):
    """A replica on one broker, ordered as in Kafka's output."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


class Plan(NamedTuple):
    """The target replicas of partitions, in the order of the file, and the target log directories."""

    partitions: list[tuple[Partition, list[int]]]
    folders: dict[Replica, str]


def failed(message: str) -> Failure:
    """Return the Failure for a rejected operation."""
    return Failure("org.apache.kafka.tools.AdminCommandFailedException", message)


def read_plan(text: str) -> Plan:
    """Parse a plan from the content of a --reassignment-json-file. Raises Failure if it is invalid."""
    value = json_input.parsed(text)
    if value is None:
        cause = Failure("com.fasterxml.jackson.core.JsonParseException", "the file is not JSON")
        raise Failure("org.apache.kafka.tools.AdminOperationException", str(cause), cause)
    top = json_input.first_version(value)
    plan = Plan([], {})
    for item in map(json_input.fields, json_input.items(top.get("partitions", []))):
        topic, index = json_input.field(item, "topic", str), json_input.field(item, "partition", int)
        brokers = json_input.field(item, "replicas", list, "JSON array")
        replicas = [int(json_input.field({"it": each}, "it", int)) for each in brokers]
        places = json_input.items(item.get("log_dirs", [_ANY] * len(replicas)))
        folders = [str(json_input.field({"it": each}, "it", str)) for each in places]
        if len(folders) != len(replicas):
            raise failed(
                f"The replicas {replicas} and the log dirs [{', '.join(folders)}] of partition "
                f"{topic}-{index} differ in number"
            )
        plan.partitions.append(((topic, index), replicas))
        for broker, folder in zip(replicas, folders, strict=True):
            if folder != _ANY:
                plan.folders[Replica(broker, topic, index)] = folder
    return plan


def _twice(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(each for each in items if items.count(each) > 1))


def check_plan(plan: Plan) -> Replicas:
    """Check a plan, and return the target replicas of its partitions. Raises Failure if it is invalid."""
    if not plan.partitions:
        raise failed("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.partitions):
        raise failed("Partition replica list cannot be empty")
    twice = _twice([partition for partition, _ in plan.partitions])
    if twice:
        names = ",".join(map(name_of, twice))
        raise failed(f"Partition reassignment contains duplicate topic partitions: {names}")
    doubled = [
        f"{name_of(partition)} contains multiple entries for {','.join(map(str, _twice(replicas)))}"
        for partition, replicas in plan.partitions
        if _twice(replicas)
    ]
    if doubled:
        raise failed(f"Duplicate replicas of a partition: {'. '.join(doubled)}")
    return dict(plan.partitions)


def read_topics(text: str) -> list[str]:
    """Parse topics from the content of a --topics-to-move-json-file. Raises Failure if it is invalid."""
    value = json_input.parsed(text)
    if value is None:
        raise admin_error("The file is not valid JSON")
    top = json_input.first_version(value)
    items = map(json_input.fields, json_input.items(top.get("topics", [])))
    topics = [json_input.field(item, "topic", str) for item in items]
    twice = _twice(topics)
    if twice:
        raise failed(f"Duplicate topics: [{', '.join(twice)}]")
    return topics


def read_brokers(text: str) -> list[int]:
    """Parse the brokers in --broker-list. Raises Failure if a broker is repeated or not a number."""
    found = [java_int(item) for item in text.split(",")]
    twice = _twice(found)
    if twice:
        raise failed(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return found


def proposal(current: Replicas, racks: Mapping[int, str | None], *, by_racks: bool) -> Replicas:
    """Assign the partitions in `current` to the brokers in `racks`. Raises Failure if this is impossible."""
    from kafka_compat.metadata.assignment import assign_replicas

    kept = {broker: rack if by_racks else None for broker, rack in racks.items()}
    known = [rack for rack in kept.values() if rack is not None]
    if known and len(known) < len(kept):
        raise admin_error(
            "Only some brokers have a rack. Set broker.rack on all, or specify --disable-rack-aware."
        )
    found: Replicas = {}
    for topic in dict.fromkeys(topic for topic, _ in current):
        mine = [replicas for (name, _), replicas in current.items() if name == topic]
        factor = len(mine[0])
        if factor > len(kept):
            reached = f"cannot be reached with {len(kept)} broker(s)."
            text = f"The target replication factor of {factor} {reached}"
            raise Failure(
                "org.apache.kafka.common.errors.InvalidReplicationFactorException",
                text if kept else "All brokers are currently fenced.",
            )
        for index, replicas in enumerate(assign_replicas(kept, len(mine), factor)):
            found[topic, index] = list(replicas)
    return found


def as_json(replicas: Replicas, folders: Mapping[Replica, str] | None = None) -> str:
    """Format a plan as the file for --execute. `folders` contains the known log directories of replicas."""
    known = folders or {}
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(found),
            "log_dirs": [known.get(Replica(broker, topic, index), _ANY) for broker in found],
        }
        for (topic, index), found in sorted(replicas.items())
    ]
    value = {"version": 1, "partitions": partitions}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Move(NamedTuple):
    """The brokers that a partition's data is copied from and to."""

    sources: set[int]
    destinations: set[int]


def moves(ongoing: Mapping[Partition, Any], proposed: Replicas, current: Replicas) -> dict[Partition, Move]:
    """Return the moves in progress and the moves to start, by partition."""
    found = {}
    for partition, one in ongoing.items():
        sources = set(one.replicas) - set(one.adding_replicas)
        found[partition] = Move(sources, set(one.adding_replicas))
    for partition, replicas in proposed.items():
        sources = found[partition].sources if partition in found else set(current[partition])
        found[partition] = Move(sources, set(replicas) - sources)
    return found


def throttled(found: Mapping[Partition, Move], topic: str) -> tuple[str, str]:
    """Return the values of {leader,follower}.replication.throttled.replicas for a topic."""
    mine = {index: move for (name, index), move in found.items() if name == topic}
    return (
        _listed((index, broker) for index, move in mine.items() for broker in move.sources),
        _listed(
            (index, broker)
            for index, move in mine.items()
            for broker in move.destinations
            if broker not in move.sources
        ),
    )


def _listed(pairs: Iterable[tuple[int, int]]) -> str:
    return ",".join(sorted({f"{index}:{broker}" for index, broker in pairs}))
