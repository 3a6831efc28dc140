"""Scenarios with consumer groups; see scenarios.py."""

from __future__ import annotations

from typing import Any

from tests.clients.lane import Lane, Observations, numbered
from tests.clients.programs import ClientProgram
from tests.support.process import wait_until

SESSION_TIMEOUT_MS = 1500


class _Group:
    """A group whose members run in one or several programs of a lane."""

    def __init__(self, lane: Lane, topics: list[str], **settings: Any) -> None:
        self.lane, self.topics, self.settings = lane, topics, settings
        self.name = lane.fresh("group")
        self.programs: dict[str, ClientProgram] = {}
        self.gone: list[list[Any]] = []

    def join(self, member: str, program: ClientProgram | None = None, **settings: Any) -> None:
        self.programs[member] = program or self.lane.program
        self.programs[member].call(
            "member_start",
            member=f"{self.name}-{member}",
            group=self.name,
            topics=self.topics,
            **{"session_timeout_ms": SESSION_TIMEOUT_MS, **self.settings, **settings},
        )

    def state(self, member: str) -> dict[str, Any]:
        return self.programs[member].call("member_state", member=f"{self.name}-{member}")

    def commit_all(self, topic: str, partitions: int, offset: int) -> None:
        """Commit the members' positions until the group has committed `offset` for every partition."""

        def done() -> bool:
            for member, program in self.programs.items():
                code = program.code("member_commit", member=f"{self.name}-{member}")
                assert code in (0, 22, 25, 27), f"commit: error {code}"  # a rebalance may be in progress
            place = {"group": self.name, "topic": topic, "partitions": list(range(partitions))}
            committed = self.lane.program.call("committed", **place)["committed"]
            return all(hit is not None and hit[0] == offset for hit in committed.values())

        wait_until(done, 20, f"commits of {self.name}", interval_s=0.2)

    def leave(self, member: str) -> None:
        self.gone += self.state(member)["received"]
        self.programs.pop(member).call("member_stop", member=f"{self.name}-{member}")

    def die(self, member: str) -> None:
        self.gone += self.state(member)["received"]
        self.programs.pop(member).kill()

    def received(self) -> list[list[Any]]:
        """Return (topic, partition, offset) of all records received by current and former members."""
        return self.gone + [place for member in self.programs for place in self.state(member)["received"]]

    def shares(self) -> list[int]:
        """Return the number of partitions of each member, or an empty list while two members have the same
        partition.
        """
        held = [self.state(member)["assignment"] for member in self.programs]
        every = [tuple(part) for assignment in held for part in assignment]
        return sorted(len(assignment) for assignment in held) if len(set(every)) == len(every) else []

    def await_shares(self, *expected: int) -> None:
        wait_until(
            lambda: self.shares() == sorted(expected),
            self.lane.program.kind.patience_s,
            f"shares {expected} of {self.name}",
            interval_s=0.05,
        )

    def await_received(self, count: int) -> None:
        def enough() -> bool:
            return len({tuple(place) for place in self.received()}) >= count

        wait_until(enough, 30, f"{count} records for {self.name}", interval_s=0.05)


def _group_life(lane: Lane, strategy: str) -> Observations:
    topic = lane.topic(6)
    lane.program.call("produce", topic=topic, records=numbered(60, 6))
    group = _Group(lane, [topic], strategy=strategy)
    elsewhere = lane.new_program()
    try:
        group.join("first")
        group.await_shares(6)
        group.join("second")
        group.await_shares(3, 3)
        group.join("third", elsewhere)
        group.await_shares(2, 2, 2)
        group.await_received(60)
        group.commit_all(topic, 6, 10)
        group.leave("first")
        group.await_shares(3, 3)
        group.die("third")
        group.await_shares(6)
    finally:
        elsewhere.close()
    described = None
    if lane.has("group_admin"):
        described = lane.program.call("describe_group", group=group.name)
        assert described["state"] == "stable"
    group.leave("second")

    lane.program.call("produce", topic=topic, records=numbered(6, 6))
    follower = _Group(lane, [topic], strategy=strategy)
    follower.name = group.name
    follower.join("fourth")
    follower.await_received(6)
    resumed = sorted([partition, offset] for _, partition, offset in follower.received())
    assert resumed == [[partition, 10] for partition in range(6)], (
        "the group must resume at the committed offsets"
    )
    follower.leave("fourth")
    return {"resumed": resumed, "described": described}


def group_life(lane: Lane) -> Observations:
    """Members join, leave and die. Each partition has one owner, and its next owner resumes at the committed
    offset.
    """
    return _group_life(lane, "range")


def cooperative_group_life(lane: Lane) -> Observations:
    """Like `group_life`, but with cooperative rebalancing."""
    return _group_life(lane, "cooperative-sticky")


def round_robin_over_two_topics(lane: Lane) -> Observations:
    """A group with two members on two topics. Partitions that are added to a topic are assigned."""
    topics = [lane.topic(3), lane.topic(1)]
    group = _Group(lane, topics, strategy="roundrobin")
    group.join("first")
    group.join("second")
    group.await_shares(2, 2)
    if lane.has("topic_admin"):
        lane.program.call("add_partitions", topic=topics[1], total=3)
        group.await_shares(3, 3)
    for topic in topics:
        lane.program.call("produce", topic=topic, records=numbered(12, 3 if topic == topics[0] else 1))
    group.await_received(24)
    # Ignore duplicates: a member that discovers the new partitions late triggers another rebalance, and
    # without commits, records are read again.
    received = sorted(
        {(topics.index(topic), partition, offset) for topic, partition, offset in group.received()}
    )
    group.leave("first")
    group.leave("second")
    return {"received": [list(place) for place in received]}


def static_member(lane: Lane) -> Observations:
    """A static member that returns before its session expires gets its partitions without a rebalance."""
    topic = lane.topic(4)
    group = _Group(lane, [topic], session_timeout_ms=20_000)
    elsewhere = lane.new_program()
    group.join("stays", instance="instance-1")
    group.join("restarts", elsewhere, instance="instance-2")
    group.await_shares(2, 2)
    held = group.state("restarts")["assignment"]
    others = group.state("stays")["assignment"]
    group.die("restarts")
    successor = lane.new_program()
    try:
        group.join("restarts", successor, instance="instance-2")
        group.await_shares(2, 2)
        assert sorted(group.state("restarts")["assignment"]) == sorted(held)
        assert sorted(group.state("stays")["assignment"]) == sorted(others)
    finally:
        successor.close()
    group.programs.pop("restarts")
    group.leave("stays")
    return {"held": [partition for _, partition in sorted(held)]}


def group_admin(lane: Lane) -> Observations:
    """List and describe groups with their members, and delete empty groups."""
    topic = lane.topic(2)
    lane.program.call("produce", topic=topic, records=numbered(4, 2))
    group = _Group(lane, [topic])
    group.join("only")
    group.commit_all(topic, 2, 2)
    call, code = lane.program.call, lane.program.code
    assert group.name in call("list_groups")["groups"]
    stable = call("describe_group", group=group.name)
    assert (stable["state"], stable["hosts"]) == ("stable", 1)
    offsets = [[number, at] for _, number, at in call("group_offsets", group=group.name)["offsets"]]
    assert offsets == [[0, 2], [1, 2]]
    refused = code("delete_group", group=group.name) if lane.has("delete_group") else None
    group.leave("only")
    empty = call("describe_group", group=group.name)
    observed = {"stable": stable, "offsets": offsets, "refused": refused, "empty": empty}
    if lane.has("delete_group"):
        assert refused == 68
        call("delete_group", group=group.name)
        assert group.name not in call("list_groups")["groups"]
        observed["deleted twice"] = code("delete_group", group=group.name)
    return observed
