"""A client scenario for brokers with ACLs: the operations of a user without permissions or with READ only."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.clients.lane import Lane, Observations, numbered
from tests.security.client_credentials import principal
from tests.support.process import wait_until

OWN = "bobs"
"""Prefix of the topics and groups that bob may read, and of the transactional ids that he may use."""
_EVERYTHING = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)


def settle_rights(address: str) -> None:
    """Allow alice all operations on topics, groups and transactional ids, and bob those on the prefix OWN."""
    wanted = []
    for way in ("SSL", "PLAIN"):
        alice, bob = principal(way, "alice"), principal(way, "bob")
        for kind in _EVERYTHING:
            wanted.append(_allow(kind, "*", ResourcePatternType.LITERAL, alice, AclOperation.ALL))
            may = AclOperation.WRITE if kind == ResourceType.TRANSACTIONAL_ID else AclOperation.READ
            wanted.append(_allow(kind, OWN, ResourcePatternType.PREFIXED, bob, may))
        # librdkafka requires a group.id from every consumer; those that use no group have "unused".
        unused = (ResourceType.GROUP, "unused", ResourcePatternType.LITERAL)
        wanted.append(_allow(*unused, bob, AclOperation.READ))
    admin = AdminClient({"bootstrap.servers": address})
    for stored in admin.create_acls(wanted).values():
        stored.result(30)


def _allow(kind: Any, name: str, pattern: Any, who: str, operation: Any) -> AclBinding:
    return AclBinding(kind, name, pattern, who, "*", operation, AclPermissionType.ALLOW)


def outcome(answer: dict[str, Any]) -> object:
    """The error code of the response, or of each record. Without errors, the whole response."""
    if "error" in answer:
        return answer["error"]
    if "results" in answer:
        return [each["error"] if isinstance(each, dict) else each for each in answer["results"]]
    return answer


class _Asked:
    """Calls a client program, and keeps the outcome of each call by its description."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.found: Observations = {}

    def __call__(self, what: str, verb: str, **arguments: Any) -> None:
        self.found[what] = outcome(self.lane.program.ask(verb, **arguments))


def no_right(lane: Lane) -> Observations:
    """Run bob's operations on a topic of alice, a missing topic, and resources that he may read."""
    ask = _Asked(lane)
    theirs, readable = lane.topic(2), lane.fresh(f"{OWN}-topic")
    lane.make_topic(readable, 2, {})
    absent, created = lane.fresh("absent"), lane.fresh("created")
    group, own_group = lane.fresh("group"), lane.fresh(f"{OWN}-group")
    records = numbered(2, 2)
    one = {"partitions": [0], "start": "earliest", "count": 1, "timeout_s": 2}

    for what, topic in {"theirs": theirs, "readable": readable, "absent": absent}.items():
        ask(f"produce to {what}", "produce", topic=topic, records=records)
        ask(f"consume {what}", "consume", topic=topic, **one)
        ask(f"last offset of {what}", "offsets", topic=topic, partitions=[0], at="latest")
        if lane.has("idempotent"):
            ask(f"produce once to {what}", "produce", topic=topic, records=records, idempotent=True)
    _groups(ask, {"theirs": theirs, "readable": readable}, {"group": group, "own group": own_group})
    if lane.has("topic_admin"):
        _administer(ask, {"theirs": theirs, "readable": readable}, created)
    if lane.has("group_admin"):
        for what, name in {"group": group, "own group": own_group}.items():
            ask(f"describe {what}", "describe_group", group=name)
            if lane.has("delete_group"):
                ask(f"delete {what}", "delete_group", group=name)
    if lane.has("transactions"):
        for what, topic in {"theirs": theirs, "readable": readable}.items():
            for whose, prefix in {"another's": "transaction", "own": f"{OWN}-transaction"}.items():
                given = {"id": lane.fresh(prefix), "topic": topic, "records": records, "end": "commit"}
                ask(f"{whose} transaction with {what}", "transaction", **given)
    for what, seen in ask.found.items():
        if what.startswith(("produce", "create", "set", "add", "delete")) or "transaction" in what:
            assert _failed(seen), f"{what}: {seen}"
    return ask.found


def _failed(seen: object) -> bool:
    """Whether every record failed. None stands for an expired record, or an error for which the client has no
    code.
    """
    return all(
        each is None or (isinstance(each, int) and each)
        for each in (seen if isinstance(seen, list) else [seen])
    )


def _groups(ask: _Asked, topics: dict[str, str], groups: dict[str, str]) -> None:
    for which, what in (("group", "readable"), ("own group", "theirs"), ("own group", "readable")):
        place = {"group": groups[which], "topic": topics[what]}
        ask(f"commit of {which} in {what}", "commit", offsets={"0": [0, ""]}, **place)
        ask(f"committed of {which} in {what}", "committed", partitions=[0, 1], **place)
    program, member = ask.lane.program, groups["group"]
    program.call("member_start", member=member, group=member, topics=[topics["readable"]])

    def failure() -> object:
        return program.call("member_state", member=member)["failure"]

    wait_until(failure, 30, "the member fails")
    ask.found["member of group"] = failure()
    program.call("member_stop", member=member)


def _administer(ask: _Asked, topics: dict[str, str], created: str) -> None:
    ask("create a topic", "create_topic", topic=created, partitions=1)
    for what, topic in topics.items():
        ask(f"describe {what}", "describe_topic", topic=topic)
        ask(f"configs of {what}", "topic_config", topic=topic)
        ask(f"set configs of {what}", "set_topic_config", topic=topic, configs={"retention.ms": "7200000"})
        ask(f"add partitions to {what}", "add_partitions", topic=topic, total=4)
        ask(f"delete records of {what}", "delete_records", topic=topic, before={"0": 0})
        ask(f"delete {what}", "delete_topic", topic=topic)
    listed = ask.lane.program.ask("list_topics")
    ask.found["list topics"] = sorted(set(listed["topics"]) & {created, *topics.values()})
