"""The same conversations with our coordinator and with Kafka 3.9.1's, answer by answer, in every version.

Ids that a broker makes up are compared by their order of appearance; members of a group in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.groups.peer import JOIN, TOPIC, Peer, prepare, sync_request
from tests.groups.transcript import subscription
from tests.support.servers import Server

Conversation = Callable[[Peer], None]
CONVERSATIONS: list[Conversation] = []


def conversation(function: Conversation) -> Conversation:
    CONVERSATIONS.append(function)
    return function


@pytest.mark.parametrize("talk", CONVERSATIONS, ids=lambda talk: talk.__name__)
def test_every_conversation_gets_the_same_responses_as_from_genuine_kafka(
    talk: Conversation, shared_broker: Server, genuine: Server
) -> None:
    sides = []
    for server in (shared_broker, genuine):
        peer = Peer(server)
        prepare(peer)
        try:
            talk(peer)
        finally:
            peer.close()
        sides.append(peer.said)
    ours, theirs = sides
    for mine, expected in zip(ours, theirs, strict=True):
        assert mine == expected


def each(api_key: ApiKey) -> range:
    last = {
        ApiKey.JOIN_GROUP: 9,
        ApiKey.SYNC_GROUP: 5,
        ApiKey.HEARTBEAT: 4,
        ApiKey.LEAVE_GROUP: 5,
        ApiKey.OFFSET_COMMIT: 9,
        ApiKey.OFFSET_FETCH: 9,
        ApiKey.LIST_GROUPS: 5,
        ApiKey.DESCRIBE_GROUPS: 5,
        ApiKey.DELETE_GROUPS: 2,
        ApiKey.FIND_COORDINATOR: 6,
    }
    return range(last[api_key] + 1)


@conversation
def the_life_of_a_member_in_every_version(peer: Peer) -> None:
    for version in each(ApiKey.JOIN_GROUP):
        group = f"life-{version}"
        joined = peer.join_known(version, group)
        peer.sync(min(version, 5), group, joined)
        peer.heartbeat(min(version, 4), group, joined)
        member = {"member_id": joined["member_id"]}
        membership = member | {"generation_id_or_member_epoch": joined["generation_id"]}
        peer.commit(max(version, 1), group, {(TOPIC, 0): version}, **membership)
        peer.fetch(max(version, 1), group, [0, 1])
        peer.describe(min(version, 5), group)
        peer.leave(min(version, 5), group, **member)
        peer.describe(min(version, 5), group)
        peer.ask(ApiKey.DELETE_GROUPS, min(version, 2), groups_names=[group])


@conversation
def nobody_is_nameless(peer: Peer) -> None:
    peer.join(9, "")
    peer.ask(ApiKey.SYNC_GROUP, 3, group_id="", generation_id=1, member_id="m")
    peer.ask(ApiKey.HEARTBEAT, 3, group_id="", generation_id=1, member_id="m")
    peer.leave(3, "", member_id="m")
    peer.leave(1, "", member_id="m")
    peer.ask(ApiKey.OFFSET_DELETE, 0, group_id="", topics=[])
    # The empty id is a group like any other for simple commits.
    peer.fetch(7, "", [0])
    peer.describe(5, "")
    peer.commit(8, "", {(TOPIC, 0): 1})
    peer.fetch(7, "", None)
    peer.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[""])


@conversation
def groups_that_do_not_exist(peer: Peer) -> None:
    for version in each(ApiKey.HEARTBEAT):
        peer.ask(ApiKey.HEARTBEAT, version, group_id="none", generation_id=1, member_id="m")
    for version in each(ApiKey.SYNC_GROUP):
        stranger = {"generation_id": 1, "member_id": "m", "protocol_name": "range", "members": []}
        peer.sync(version, "none", stranger)
    for version in each(ApiKey.LEAVE_GROUP):
        peer.leave(version, "none", member_id="m")
    for version in each(ApiKey.JOIN_GROUP):
        peer.join(version, "none", member_id="stranger")
    for version in range(1, 10):
        peer.commit(version, "none", {(TOPIC, 0): 5}, generation_id_or_member_epoch=3, member_id="m")
    for version in range(1, 10):
        peer.fetch(version, "none", [0, 7], topic=TOPIC)
        peer.fetch(version, "none", [0], topic="no-such-topic")
    for version in range(2, 10):
        peer.fetch(version, "none", None)
    for version in each(ApiKey.DESCRIBE_GROUPS):
        peer.describe(version, "none")
    for version in each(ApiKey.DELETE_GROUPS):
        peer.ask(ApiKey.DELETE_GROUPS, version, groups_names=["none", "none", "nothing"])
    topics = [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]
    peer.ask(ApiKey.OFFSET_DELETE, 0, group_id="none", topics=topics)


@conversation
def joining_wrongly(peer: Peer) -> None:
    for version in each(ApiKey.JOIN_GROUP):
        peer.join(version, "wrong", session_timeout_ms=999)
        peer.join(version, "wrong", session_timeout_ms=1_800_001)
        peer.join(version, "wrong", protocols=[])
        peer.join(version, "wrong", protocol_type="")
    joined = peer.member("right")
    for version in each(ApiKey.JOIN_GROUP):
        peer.join(version, "right", protocols=[{"name": "sticky", "metadata": b""}])
        peer.join(version, "right", protocol_type="connect")
        peer.join(version, "right", member_id="stranger")
        if version >= 5:
            peer.join(version, "right", member_id="stranger", group_instance_id="i")
            peer.join(version, "right", member_id=joined["member_id"], group_instance_id="i")
    peer.describe(5, "wrong", "right")
    peer.leave(5, "right", member_id=joined["member_id"])


@conversation
def generations_and_strangers(peer: Peer) -> None:
    joined = peer.member("generations")
    for generation_id in (0, -1, joined["generation_id"] + 1):
        for version in each(ApiKey.HEARTBEAT):
            peer.heartbeat(version, "generations", joined, generation_id=generation_id)
        for version in each(ApiKey.SYNC_GROUP):
            peer.sync(version, "generations", joined, generation_id=generation_id)
        for version in range(1, 10):
            peer.commit(
                version,
                "generations",
                {(TOPIC, 0): 1},
                member_id=joined["member_id"],
                generation_id_or_member_epoch=generation_id,
            )
    for version in (3, 4):
        peer.heartbeat(version, "generations", joined, group_instance_id="i")
    for version in (3, 4, 5):
        peer.sync(version, "generations", joined, group_instance_id="i")
    peer.sync(5, "generations", joined, protocol_type=None)
    peer.sync(5, "generations", joined, protocol_name=None)
    peer.sync(5, "generations", joined, protocol_type="connect")
    peer.sync(5, "generations", joined, protocol_name="sticky")
    peer.sync(5, "generations", joined)
    # A simple commit into a group with members, and a member's into a group without.
    for version in range(1, 10):
        peer.commit(version, "generations", {(TOPIC, 0): 1})
    peer.leave(3, "generations", member_id="m")
    peer.leave(3, "generations", member_id="", group_instance_id="i")
    peer.leave(3, "generations", member_id="")
    peer.leave(3, "generations", member_id=joined["member_id"], group_instance_id="i")
    peer.ask(ApiKey.LEAVE_GROUP, 3, group_id="generations", members=[])
    members = [{"member_id": "m"}, {"member_id": joined["member_id"]}, {"member_id": joined["member_id"]}]
    peer.ask(ApiKey.LEAVE_GROUP, 4, group_id="generations", members=members)
    peer.commit(
        5,
        "generations",
        {(TOPIC, 0): 1},
        member_id=joined["member_id"],
        generation_id_or_member_epoch=joined["generation_id"],
    )
    peer.commit(5, "generations", {(TOPIC, 0): 1}, member_id=joined["member_id"])


@conversation
def two_members(peer: Peer) -> None:
    group = "two"
    first = peer.member(group, who="first")
    second = peer.join(5, group, who="second")
    peer.send(ApiKey.JOIN_GROUP, 5, who="second", **JOIN, group_id=group, member_id=second["member_id"])
    while peer.heartbeat(3, group, first, who="first")["error_code"] != 27:
        peer.said.pop()
    peer.describe(5, group)
    peer.sync(3, group, first, who="first")
    commit = {"member_id": first["member_id"], "generation_id_or_member_epoch": first["generation_id"]}
    peer.commit(8, group, {(TOPIC, 0): 3}, **commit)
    first = peer.join(5, group, who="first", member_id=first["member_id"])
    second = peer.receive("second")
    peer.describe(5, group)
    commit = {"member_id": first["member_id"], "generation_id_or_member_epoch": first["generation_id"]}
    peer.commit(8, group, {(TOPIC, 0): 4}, **commit)
    peer.heartbeat(3, group, second)
    # Repeated joins before and after the assignment.
    peer.join(5, group, member_id=second["member_id"])
    peer.join(5, group, member_id=first["member_id"])
    peer.send(ApiKey.SYNC_GROUP, 3, who="second", **sync_request(3, group, second))
    peer.sync(3, group, first, who="first")
    peer.receive("second")
    peer.join(7, group, member_id=second["member_id"])
    peer.sync(5, group, second | {"protocol_name": "range"})
    peer.describe(5, group)
    peer.leave(1, group, member_id=second["member_id"])
    peer.heartbeat(3, group, second)
    peer.heartbeat(3, group, first)
    peer.join(9, group, member_id=first["member_id"], reason="because")
    peer.leave(5, group, member_id=first["member_id"], reason="because")
    peer.describe(5, group)


@conversation
def the_vote_on_the_protocol(peer: Peer) -> None:
    group = "vote"
    sticky_first = [{"name": name, "metadata": subscription([TOPIC])} for name in ("sticky", "range")]
    range_first = sticky_first[::-1]
    first = peer.member(group, who="first", protocols=sticky_first)
    for who, protocols in (("second", range_first), ("third", range_first)):
        given = peer.join(5, group, who=who, protocols=protocols)
        request = JOIN | {"group_id": group, "member_id": given["member_id"], "protocols": protocols}
        peer.send(ApiKey.JOIN_GROUP, 5, who=who, **request)
    while peer.heartbeat(3, group, first)["error_code"] != 27:
        peer.said.pop()
    joined = peer.join(5, group, who="first", member_id=first["member_id"], protocols=sticky_first)
    peer.receive("second")
    peer.receive("third")
    peer.sync(3, group, joined, who="first")
    peer.describe(4, group)


@conversation
def static_members(peer: Peer) -> None:
    group = "static"
    one = {"group_instance_id": "one"}
    first = peer.member(group, **one)
    peer.describe(4, group)
    # It comes back without its id, and its former self is fenced.
    for version in (5, 6, 7, 8, 9):
        again = peer.join(version, group, **one)
        peer.heartbeat(3, group, first, **one)
        peer.sync(3, group, first, **one)
        peer.join(version, group, member_id=first["member_id"], **one)
        membership = {
            "member_id": first["member_id"],
            "generation_id_or_member_epoch": first["generation_id"],
        }
        peer.commit(7, group, {(TOPIC, 0): 3}, **membership, **one)
        peer.commit(7, group, {(TOPIC, 0): 3}, **membership)
        peer.leave(3, group, member_id=first["member_id"], **one)
        peer.sync(3, group, again, **one)
        peer.heartbeat(3, group, again, **one)
        first = again
    peer.describe(5, group)
    peer.leave(3, group, member_id="", group_instance_id="two")
    peer.leave(5, group, member_id="", group_instance_id="one", reason="removed")
    peer.describe(5, group)


@conversation
def simple_commits_in_every_version(peer: Peer) -> None:
    for version in range(1, 10):
        group = f"simple-{version}"
        offsets: dict[tuple[str, int], Any] = {
            (TOPIC, 0): {"committed_offset": version, "committed_metadata": "text ü"},
            (TOPIC, 1): {
                "committed_offset": 1 << 40,
                "committed_metadata": None,
                "committed_leader_epoch": 5,
            },
            (TOPIC, 2): {"committed_offset": -1},
            (TOPIC, 3): 9,
            (TOPIC, -1): 9,
            ("no-such-topic", 0): 9,
        }
        peer.commit(version, group, offsets)
        for fetch_version in range(1, 10):
            peer.fetch(fetch_version, group, [0, 1, 2, 3, -1])
        for fetch_version in range(2, 10):
            peer.fetch(fetch_version, group, None)
        peer.commit(version, group, {("no-such-topic", 0): 9})
        peer.ask(ApiKey.OFFSET_COMMIT, version, group_id=group, topics=[])
        peer.describe(5, group)


@conversation
def offsets_of_the_oldest_clients(peer: Peer) -> None:
    """Version 0 has no coordinator and an offset store of its own."""
    partitions = {(TOPIC, 0): 7, (TOPIC, 1): 8, (TOPIC, 99): 9, ("no-such-topic", 0): 9}
    for group in ("oldest", "an/oldest", "old est", ".", "", "..", "/o", "o/", "o\x1fo", "ö", "😀"):
        peer.fetch(0, group, [0, 1, 99])
        peer.commit(0, group, partitions)
        peer.fetch(0, group, [1, 0, 99])
        peer.commit(
            0, group, {(TOPIC, 1): 3, (TOPIC, 0): {"committed_offset": -5, "committed_metadata": None}}
        )
        peer.fetch(0, group, [0, 1])
    for length in (4096, 4097):
        value = {"committed_offset": length, "committed_metadata": "x" * length}
        peer.commit(0, "oldest", {(TOPIC, 0): value})
        peer.fetch(0, "oldest", [0])
    peer.fetch(0, "oldest", [])
    peer.ask(ApiKey.OFFSET_COMMIT, 0, group_id="oldest", topics=[])
    # Neither kind sees the other's offsets.
    peer.fetch(1, "oldest", [0, 1])
    peer.commit(1, "newer", {(TOPIC, 0): 4})
    peer.fetch(0, "newer", [0])
    peer.describe(5, "oldest")


@conversation
def metadata_of_commits(peer: Peer) -> None:
    for length in (4095, 4096, 4097):
        for text in ("x" * length, "😀" * (length // 2)):
            value = {"committed_offset": length, "committed_metadata": text}
            peer.commit(8, "metadata", {(TOPIC, 0): value, (TOPIC, 1): length})
            peer.commit(8, "metadata", {(TOPIC, 2): value})
            peer.fetch(8, "metadata", None)


@conversation
def several_groups_in_one_fetch(peer: Peer) -> None:
    peer.commit(8, "several-1", {(TOPIC, 0): 1, (TOPIC, 1): 2})
    for version in (8, 9):
        topics = [{"name": TOPIC, "partition_indexes": [0, 2]}]
        groups = [
            {"group_id": "several-1", "topics": topics},
            {"group_id": "several-1", "topics": None},
            {"group_id": "several-2", "topics": topics},
            {"group_id": "several-2", "topics": None},
            {"group_id": "several-1", "topics": []},
        ]
        for require_stable in (False, True):
            peer.ask(ApiKey.OFFSET_FETCH, version, groups=groups, require_stable=require_stable)
    peer.ask(ApiKey.OFFSET_FETCH, 7, group_id="several-1", topics=None, require_stable=True)
    peer.ask(ApiKey.OFFSET_FETCH, 7, group_id="several-1", topics=[])


@conversation
def deleting_offsets_and_groups(peer: Peer) -> None:
    group = "deleting"
    joined = peer.member(group)
    offsets = {(TOPIC, 0): 1}
    membership = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    peer.commit(8, group, offsets, **membership)
    other = "group-differential-other"
    topic = {"name": other, "num_partitions": 1, "replication_factor": 1}
    peer.ask(ApiKey.CREATE_TOPICS, 4, topics=[topic], timeout_ms=10_000)
    peer.said.clear()
    while peer.commit(8, group, {(other, 0): 2}, **membership)["topics"][0]["partitions"][0]["error_code"]:
        peer.said.pop()
    partitions = [{"partition_index": 0}, {"partition_index": 1}, {"partition_index": 99}]
    topics = [{"name": name, "partitions": partitions} for name in (TOPIC, other, "no-such-topic")]
    peer.ask(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=topics)
    peer.fetch(7, group, None)
    for version in each(ApiKey.DELETE_GROUPS):
        peer.ask(ApiKey.DELETE_GROUPS, version, groups_names=[group])
    peer.leave(3, group, member_id=joined["member_id"])
    peer.ask(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=[])
    peer.commit(8, group, {(TOPIC, 1): 5})
    peer.ask(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=topics[:1])
    peer.fetch(7, group, None)
    peer.describe(5, group)
    peer.commit(8, group, {(TOPIC, 1): 5})
    peer.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[group, "none"])
    peer.fetch(7, group, None)
    peer.describe(5, group)
    # A group that is not a consumers' one.
    joined = peer.member("connect", protocol_type="connect")
    peer.ask(ApiKey.OFFSET_DELETE, 0, group_id="connect", topics=topics)
    peer.leave(3, "connect", member_id=joined["member_id"])


@conversation
def listing_and_describing(peer: Peer) -> None:
    def listed(version: int, **filters: Any) -> None:
        peer.ask(ApiKey.LIST_GROUPS, version, **filters)
        _, answer = peer.said[-1]
        answer["groups"] = [one for one in answer["groups"] if one["group_id"].startswith("listed-")]

    peer.member("listed-stable")
    peer.join(5, "listed-pending")
    peer.commit(8, "listed-simple", {(TOPIC, 0): 1})
    for version in each(ApiKey.LIST_GROUPS):
        listed(version)
    for state in ("Stable", "stable", "EMPTY", "Dead", "nonsense", ""):
        listed(4, states_filter=[state])
        listed(5, states_filter=[state, "PreparingRebalance"])
    for kind in ("classic", "Classic", "consumer", "nonsense"):
        listed(5, types_filter=[kind])
        listed(5, types_filter=[kind, "consumer"], states_filter=["Stable", "Empty"])
    for version in each(ApiKey.DESCRIBE_GROUPS):
        peer.describe(version, "listed-stable", "listed-pending", "listed-simple", "none", "listed-stable")
        peer.describe(version)
        if version >= 3:
            peer.describe(version, "listed-stable", "none", include_authorized_operations=True)


@conversation
def finding_coordinators(peer: Peer) -> None:
    for version in range(4):
        peer.ask(ApiKey.FIND_COORDINATOR, version, key="group")
        peer.ask(ApiKey.FIND_COORDINATOR, version, key="")
        if version >= 1:
            peer.ask(ApiKey.FIND_COORDINATOR, version, key="group", key_type=2)
            peer.ask(ApiKey.FIND_COORDINATOR, version, key="group", key_type=9)
    for version in range(4, 7):
        peer.ask(ApiKey.FIND_COORDINATOR, version, coordinator_keys=["group", "", "ü", "group"])
        peer.ask(ApiKey.FIND_COORDINATOR, version, coordinator_keys=[])
        if version < 6:
            # Share groups begin with version 6, which Kafka 3.9 knows but cannot serve.
            peer.ask(ApiKey.FIND_COORDINATOR, version, coordinator_keys=["group"], key_type=2)
        peer.ask(ApiKey.FIND_COORDINATOR, version, coordinator_keys=["group"], key_type=9)


@conversation
def offsets_of_version_0(peer: Peer) -> None:
    peer.commit(0, "ancient", {(TOPIC, 0): 5, ("no-such-topic", 0): 6, (TOPIC, 9): 7})
    peer.fetch(0, "ancient", [0, 1, 9])
    peer.fetch(0, "ancient", [0], topic="no-such-topic")
    peer.commit(0, "ancient", {(TOPIC, 1): {"committed_offset": 5, "committed_metadata": "x" * 4097}})
