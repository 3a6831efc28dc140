"""Random histories of a group, played on our brokers and on Apache Kafka.

Members join, leave, die, pause, revoke partitions too slowly, and change their subscriptions and regular
expressions. Topics are created, grown and deleted. Old and new clients commit offsets. Both clusters get the
same requests, and after each request their responses and descriptions of the group must be equal.

Our topics get Apache Kafka's IDs, by which assignors break ties. Brokers choose the member IDs of classic
members, so groups with such members use the range assignor, which depends only on the order of the IDs, and
of static members only on the order of their instance IDs. Therefore only static members use the classic
protocol in a consumer group.

Time does not decide anything:

- Sessions are long. The member that dies sends its last heartbeat while the group's session timeout is
  short, so only this member's session expires.
- The rebalance timeout is short only in a heartbeat of a member that then does not revoke its partitions.
- Brokers match regular expressions at most every ten seconds, on a heartbeat. The player sends no heartbeat
  close to the end of this time, and starts the history again if a response has taken too long.
"""

from __future__ import annotations

import math
import random
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any
from uuid import UUID

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.records import GroupRecord
from kafka_compat.groups.consumer.embedded_protocol import read_assignment
from kafka_compat.groups.consumer.records import RegexRecord
from kafka_compat.groups.records import Record
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from tests.conformance.record_requests import offsets_request
from tests.conformance.wire import Connection
from tests.groups.consumer.brokers import OurBrokers
from tests.groups.consumer.histories import SETTINGS, comparable_description
from tests.groups.consumer.mixed_histories import (
    MixedTheirs,
    Partitions,
    assignment,
    comparable_batches,
    comparable_classic,
    comparable_classic_description,
    subscription,
)
from tests.groups.sides import Plain, comparable
from tests.support.process import wait_until

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
LONG_MS, SHORT_MS = 600_000, 5_000
SHORT_INTERVAL_MS = 100
WIRE_SETTINGS = {
    **SETTINGS,
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": str(LONG_MS),
    "group.consumer.max.session.timeout.ms": str(LONG_MS),
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": str(SHORT_INTERVAL_MS),
}
_GROUP = 32
_SET, _DELETE = 0, 1
_LATEST = -1
_VERSIONS = {
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
}
_RANDOM_PART = re.compile("-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_LEADER: Plain = {"leader": "", "members": []}
_REFRESH_S = 10.0
"""The shortest time in which a broker matches regular expressions again."""
_MARGIN_S = 0.5
_DEADLINE_S = 60.0
_QUIET_S = 0.3
_ATTEMPTS = 5


class TooSlow(Exception):
    """The brokers took so long that time might have decided something."""


class Aliases:
    """Names for the member IDs that the brokers of the two clusters chose for the same members."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def add(self, ours: str, theirs: str) -> None:
        if ours != theirs and ours and theirs and theirs not in self._names:
            self._names[ours] = self._names[theirs] = f"created-{len(self._names) // 2}"

    def replaced(self, value: Any) -> Any:
        """Return a value with names instead of the IDs."""
        if isinstance(value, str):
            # A member that waits for its first generation has no name yet.
            return self._names.get(value) or _RANDOM_PART.sub("", value)
        if isinstance(value, dict):
            return {self.replaced(key): self.replaced(each) for key, each in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return value._make(map(self.replaced, value))
        if isinstance(value, list | tuple | frozenset):
            return type(value)(map(self.replaced, value))
        return value


class WireGroup(MixedTheirs):
    """A group on running brokers."""

    def __init__(self, address: str, group: str, ours: OurBrokers | None = None) -> None:
        """Without `ours`, the brokers are Apache Kafka."""
        controller = Connection(address, _DEADLINE_S)
        self._ours = ours
        key = {"key_type": 0, "coordinator_keys": [group]}
        found: Plain = {}

        def is_found() -> bool:
            answer = controller.ask(ApiKey.FIND_COORDINATOR, 6, key)
            found.update(answer["coordinators"][0])
            return not found["error_code"]

        wait_until(is_found, _DEADLINE_S, "the coordinator of the group")
        self.address = f"{found['host']}:{found['port']}"
        super().__init__(Connection(self.address, _DEADLINE_S), group, controller)
        self.wait_ready()
        end = offsets_request(OFFSETS_TOPIC, _LATEST, partition=shard_of(group, 50))
        (topic,) = self._connection.ask(ApiKey.LIST_OFFSETS, 7, end)["topics"]
        self._next_offset = topic["partitions"][0]["offset"]

    def close(self) -> None:
        self._controller.close()
        self._connection.close()

    def create_with_id(self, name: str, topic_id: UUID, size: int) -> None:
        assert self._ours is not None
        self._ours.create(name, topic_id, size)
        request = {"topics": [{"topic_id": ZERO_UUID, "name": name}], "allow_auto_topic_creation": False}

        def knows_topic() -> bool:
            (found,) = self._controller.ask(ApiKey.METADATA, 12, request)["topics"]
            return bool(found["topic_id"] == topic_id)

        wait_until(knows_topic, _DEADLINE_S, "the new topic at the controller", 0.05)
        wait_until(lambda: self._known([name]) == {topic_id: size}, _DEADLINE_S, "the new topic", 0.05)

    def delete(self, topic: str) -> None:
        super().delete(topic)
        ours = self._ours
        if ours is not None:
            wait_until(lambda: not ours.has_topic(topic), _DEADLINE_S, "the deletion of the topic", 0.05)

    def delete_all(self, topics: list[str]) -> None:
        """Delete topics without waiting, so that the brokers do not have the topics of all histories."""
        request = {"topics": [{"name": name} for name in topics], "timeout_ms": 30_000}
        self._controller.ask(ApiKey.DELETE_TOPICS, 6, request)

    def set_session(self, is_short: bool) -> None:
        values = {SESSION: SHORT_MS, HEARTBEAT: SHORT_INTERVAL_MS}
        configs = [
            {
                "name": name,
                "config_operation": _SET if is_short else _DELETE,
                "value": str(value) if is_short else None,
            }
            for name, value in values.items()
        ]
        resource = {"resource_type": _GROUP, "resource_name": self._group, "configs": configs}
        answer = self._controller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        assert not answer["responses"][0]["error_code"], answer

    def session_ms(self) -> int:
        resource = {
            "resource_type": _GROUP,
            "resource_name": self._group,
            "configuration_keys": [SESSION],
        }
        answer = self._connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})
        return int(answer["results"][0]["configs"][0]["value"])

    def committed(self) -> object:
        """Return all committed offsets of the group."""
        group = {"group_id": self._group, "topics": None}
        (found,) = self._connection.ask(ApiKey.OFFSET_FETCH, 9, {"groups": [group]})["groups"]
        topics = {
            topic["name"]: sorted(map(str, topic["partitions"]))
            for topic in found["topics"]
            if topic["partitions"]
        }
        return found["error_code"], sorted(topics.items())

    def member_ids(self) -> list[str]:
        group = self.describe()
        return [] if group["error_code"] else [each["member_id"] for each in group["members"]]

    def resolutions(self) -> tuple[Counter[str], set[str]]:
        """Return how often each regular expression has been resolved, and those that are resolved now."""
        found: Counter[str] = Counter()
        known: set[str] = set()
        for batch in self.batches():
            for record in batch:
                if isinstance(record, RegexRecord):
                    found[record.regex] += record.value is not None
                    (known.discard if record.value is None else known.add)(record.regex)
        return found, known


def play_at_once(
    theirs: str, ours: OurBrokers, seeds: Iterable[int], at_once: int, run: str = ""
) -> dict[int, str]:
    """Play histories, several at once, and return the differences by seed."""

    def play(seed: int) -> str:
        for attempt in range(_ATTEMPTS):
            history = WireHistory(theirs, ours, seed, f"{run}-{attempt}")
            try:
                history.play()
                return ""
            except TooSlow:
                continue
            except Exception:
                return f"{history.story}\n{traceback.format_exc()}"
            finally:
                history.close()
        return f"seed {seed}: the brokers were too slow {_ATTEMPTS} times"

    chosen = list(seeds)
    with ThreadPoolExecutor(at_once) as pool:
        found = dict(zip(chosen, pool.map(play, chosen), strict=True))
    return {seed: difference for seed, difference in found.items() if difference}


class Client:
    """What a client knows of its membership, on our brokers and on Apache Kafka.

    `uses_classic` is None if it is not in the group.
    """

    def __init__(self, number: int, groups: tuple[WireGroup, WireGroup], more_static: int) -> None:
        self.number = number
        self.instance_id = f"instance-{number}" if number < 2 + more_static else None
        self._groups = groups
        self.connections: list[Connection] = []
        self.ids = ["", ""]
        self.uses_classic: bool | None = None
        self.epoch = self.last_epoch = 0
        self.must_join = True
        self.must_sync = False
        self.is_pending = False
        """Whether it has a member ID with which it has not joined. Versions of Kafka differ if it leaves."""
        self.is_removed = False
        """Whether the group has removed the member, and the client has not noticed."""
        self.leads: list[list[str]] = []
        """The IDs of the members in both clusters, in the same order, if it leads a generation."""
        self.names: list[str] = []
        self.owned: Partitions = {}
        self.held: list[Plain] = []
        self.protocol = ""
        self.waits_for: ApiKey | None = None
        self.answers: list[Plain | None] = [None, None]
        self.connect(f"client-{number}")

    def connect(self, client_id: str) -> None:
        """Connect again, with this client ID."""
        self.close()
        self.connections = [Connection(each.address, _DEADLINE_S, client_id) for each in self._groups]

    def close(self) -> None:
        for connection in self.connections:
            connection.close()

    def real_answers(self) -> tuple[Plain, Plain]:
        """Return the responses of both clusters."""
        ours, theirs = self.answers
        assert ours is not None and theirs is not None
        return ours, theirs

    def forget(self) -> None:
        self.uses_classic, self.ids, self.epoch = None, ["", ""], 0
        self.must_join, self.must_sync, self.is_pending, self.is_removed = True, False, False, False
        self.owned, self.held = {}, []


class WireHistory:
    """One group on our brokers and on Apache Kafka."""

    def __init__(self, theirs: str, ours: OurBrokers, seed: int, run: str = "") -> None:
        """`run` distinguishes runs with the same brokers."""
        self._seed = seed
        self._choose = random.Random(seed)
        self._has_old_clients = seed % 3 == 0
        self._has_regexes = seed % 3 == 1
        self._prefix = f"topic-{seed}{run}-"
        self._names = [f"{self._prefix}{name}" for name in "abc"[: self._choose.randint(1, 3)]]
        self._group = f"group-{seed}{run}"
        self._ours = WireGroup(ours.address, self._group, ours)
        self._theirs = WireGroup(theirs, self._group)
        self._ids: dict[str, UUID] = {}
        self._sizes: dict[str, int] = {}
        for name in self._names:
            if self._choose.random() < 0.8:
                self._create(name, self._choose.randint(1, 7))
        both = (self._ours, self._theirs)
        self._clients = [
            Client(number, both, 2 * self._has_old_clients) for number in range(self._choose.randint(2, 5))
        ]
        self._aliases = Aliases()
        self._told: list[str] = []
        self._joined = 0
        self._extra_topics = 0
        self._is_over = False
        self._resolved_s = (0.0, 0.0)
        """The earliest and the latest time of the last resolution of regular expressions."""
        self._resolved: Counter[str] = Counter()
        self._must_resolve = False
        self._intervals: set[int] = set()

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for group in (self._ours, self._theirs):
            group.close()

    @property
    def story(self) -> str:
        return f"seed {self._seed}\n" + "\n".join(self._told)

    def play(self) -> None:
        for _ in range(self._choose.randint(20, 70)):
            free = [client for client in self._clients if client.waits_for is None]
            if not free or self._is_over:
                break
            if self._choose.random() < 0.06:
                self._change_topic(self._choose.choice(self._names))
            self._act(self._choose.choice(free))
            self._compare_descriptions()
        self._compare_offsets()
        self._compare_records()
        for group in (self._theirs, self._ours):
            group.delete_all(list(self._sizes))

    # Comparison

    def _compare(self, found: object, expected: object, what: str) -> None:
        assert found == expected, f"{self.story}\n{what}\nours:   {found}\ntheirs: {expected}"

    def _compare_descriptions(self) -> None:
        found, expected = self._description(self._ours), self._description(self._theirs)
        if found != expected and self._has_old_clients:
            # JoinGroup and SyncGroup may be answered before their records are committed, or later.
            with suppress(AssertionError):
                wait_until(lambda: self._description(self._ours) == self._description(self._theirs), 10, "")
            found, expected = self._description(self._ours), self._description(self._theirs)
        self._compare(found, expected, "description")

    def _description(self, group: WireGroup) -> object:
        described = _described(self._aliases.replaced(group.describe()))
        if not self._has_old_clients:
            return described
        return described, comparable_classic_description(self._aliases.replaced(group.describe_classic()))

    def _compare_offsets(self) -> None:
        self._compare(self._ours.committed(), self._theirs.committed(), "committed offsets")

    def _compare_records(self) -> None:
        found, expected = (
            comparable_batches(_without_leaders(self._aliases.replaced(each.batches())))
            for each in (self._ours, self._theirs)
        )
        if self._has_old_clients:
            # Kafka writes the records of a conversion in the order of the hashes of the member IDs.
            for batch in (*found, *expected):
                batch.sort()
        for number, (one, other) in enumerate(zip_longest(found, expected)):
            self._compare(one, other, f"batch {number}")

    def _await(self, holds: Callable[[WireGroup], bool], what: str) -> None:
        """Wait until the condition holds for the group in both clusters."""
        for group, name in ((self._theirs, "Apache Kafka"), (self._ours, "our brokers")):
            try:
                wait_until(partial(holds, group), _DEADLINE_S, f"{what} in {name}", 0.02)
            except AssertionError as error:
                raise AssertionError(f"{self.story}\n{error}") from error

    # Topics

    def _create(self, name: str, size: int) -> None:
        self._ids |= self._theirs.create({name: size})
        self._ours.create_with_id(name, self._ids[name], size)
        self._sizes[name] = size

    def _change_topic(self, name: str) -> None:
        size = self._sizes.get(name, 0)
        if not size:
            self._create(name, self._choose.randint(1, 3))
        elif self._choose.random() < 0.7:
            self._sizes[name] = size + self._choose.randint(1, 3)
            for group in (self._theirs, self._ours):
                group.grow(name, self._ids[name], self._sizes[name])
        else:
            del self._sizes[name]
            for group in (self._theirs, self._ours):
                group.delete(name)
            self._await(lambda group: name not in str(group.committed()), "the deletion of offsets")
        self._told.append(f"{name} now has {self._sizes.get(name, 0)} partitions")
        self._compare_offsets()

    # What clients do

    def _act(self, client: Client) -> None:
        chance = self._choose.random()
        if client.uses_classic is None:
            if chance < 0.08:
                self._commit(client, self._some_partitions())
            elif chance < 0.6 and self._may_use_classic(client):
                self._join(client, rejoins=False)
            else:
                self._consumer_join(client)
        elif client.uses_classic:
            self._act_classic(client, chance)
        else:
            self._act_consumer(client, chance)

    def _act_classic(self, client: Client, chance: float) -> None:
        if chance < 0.06 and not client.is_pending:
            self._leave(client)
        elif chance < 0.09 and client.instance_id is not None:
            self._join(client, rejoins=False)
        elif chance < 0.12 and client.instance_id is not None:
            self._consumer_join(client)
        elif chance < 0.14:
            self._classic_heartbeat(client, client.epoch + self._choose.choice((-1, 1)))
        elif chance < 0.16:
            self._sync(client)
        elif chance < 0.2 and not client.is_pending and self._is_consumer_group():
            self._die_classic(client)
        elif client.must_join and chance < 0.9:
            self._join(client, rejoins=True)
        elif client.must_sync and chance < 0.9:
            self._sync(client)
        elif chance < 0.3 and client.owned:
            self._commit(client, client.owned)
        elif chance < 0.4:
            if self._choose.random() < 0.5:
                client.names = self._some_names()
            self._join(client, rejoins=True)
        else:
            self._classic_heartbeat(client, client.epoch)

    def _act_consumer(self, client: Client, chance: float) -> None:
        common: Plain = {"instance_id": client.instance_id}
        stay = {**common, "member_epoch": client.epoch}
        if chance < 0.07:
            epoch = -2 if client.instance_id is not None and self._choose.random() < 0.6 else -1
            self._heartbeat(client, {**common, "member_epoch": epoch})
        elif chance < 0.09 and self._has_old_clients:
            self._leave(client)
        elif chance < 0.12 and self._has_old_clients:
            # A dynamic member changes its protocol and keeps its ID.
            self._join(client, rejoins=client.instance_id is None)
        elif chance < 0.14 and not client.is_removed:
            self._die(client, stay)
        elif chance < 0.18 and not client.is_removed:
            self._revoke_slowly(client, stay)
        elif chance < 0.21:
            self._consumer_join(client)
        elif chance < 0.24:
            self._heartbeat(client, {**stay, "member_epoch": client.epoch + self._choose.randint(1, 3)})
        elif chance < 0.27:
            old = {"member_epoch": client.last_epoch, "topic_partitions": client.held}
            self._heartbeat(client, {**common, **old})
        elif chance < 0.37:
            held = {each["topic_id"]: each["partitions"] for each in client.held}
            names = {name: held[self._ids[name]] for name in self._sizes if self._ids[name] in held}
            self._commit(client, names if names and self._choose.random() < 0.9 else self._some_partitions())
        elif chance < 0.4:
            self._fetch(client)
        elif chance < 0.5:
            self._heartbeat(client, {**stay, **self._some_subscription()})
        elif chance < 0.53 and not self._has_old_clients:
            assignor = self._choose.choice(("range", "uniform", "none"))
            self._heartbeat(client, {**stay, "server_assignor": assignor})
        elif chance < 0.63:
            self._heartbeat(client, stay)
        else:
            self._heartbeat(client, {**stay, "topic_partitions": client.held})

    def _some_names(self) -> list[str]:
        return self._choose.sample(self._names, self._choose.randint(1, len(self._names)))

    def _some_subscription(self) -> Plain:
        names = self._some_names()
        if not self._has_regexes or self._choose.random() < 0.3:
            return {"subscribed_topic_names": names}
        endings = ("[ab]", ".*", "b|c", "[^a]", "a", "(a|b", "")
        ending = self._choose.choice(endings)
        regex = f"{self._prefix}{ending}" if ending else ""
        found: Plain = {"subscribed_topic_regex": regex}
        if self._choose.random() < 0.3 or not regex:
            found["subscribed_topic_names"] = names
        return found

    def _some_partitions(self) -> Partitions:
        names = [name for name in self._names if name in self._sizes]
        if not names:
            return {}
        name = self._choose.choice(names)
        return {name: [self._choose.randrange(self._sizes[name])]}

    def _may_use_classic(self, client: Client) -> bool:
        is_static = client.instance_id is not None
        return self._has_old_clients and (is_static or not self._is_consumer_group())

    def _is_consumer_group(self) -> bool:
        return not self._theirs.describe()["error_code"]

    # Members that use the consumer protocol

    def _consumer_join(self, client: Client) -> None:
        if client.uses_classic is not False or self._choose.random() < 0.3:
            self._joined += 1
            client.ids = [f"consumer-{self._seed}-{client.number}-{self._joined}"] * 2
            client.is_removed = False
        request: Plain = {
            "instance_id": client.instance_id,
            "member_epoch": 0,
            "rebalance_timeout_ms": LONG_MS,
            "topic_partitions": [],
            **self._some_subscription(),
        }
        if self._has_old_clients:
            request["server_assignor"] = "range"
        elif self._choose.random() < 0.2:
            request["server_assignor"] = self._choose.choice(("range", "uniform"))
        self._heartbeat(client, request)

    def _heartbeat(self, client: Client, request: Plain, window_s: float = 0.6 * _REFRESH_S) -> Plain:
        """Send a heartbeat, and wait until regular expressions are resolved if they must be. Return the
        response. Let the brokers resolve them if the last resolution is older than `window_s`.
        """
        started_s = time.monotonic()
        if self._has_regexes:
            started_s = self._before_heartbeat(window_s)
        fields = {"group_id": self._group, **request}
        answer = self._ask(
            client,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            lambda side: {**fields, "member_id": client.ids[side]},
            request,
        )
        assert answer is not None
        if self._has_regexes:
            self._after_heartbeat(started_s, not answer["error_code"] and request["member_epoch"] >= 0)
        return answer

    def _before_heartbeat(self, window_s: float) -> float:
        """Avoid the time when brokers may or may not match regular expressions. Return the time."""
        earliest_s, latest_s = self._resolved_s
        now_s = time.monotonic()
        self._resolved, known = self._theirs.resolutions()
        if not known:
            self._must_resolve = True
        elif now_s > earliest_s + window_s:
            # Sleep: this is the time that the brokers wait. A new topic makes them match again.
            time.sleep(max(0.0, latest_s + _REFRESH_S + _MARGIN_S - now_s))
            self._extra_topics += 1
            self._create(f"{self._prefix}x{self._extra_topics}", 1)
            self._must_resolve = True
        else:
            self._must_resolve = False
        return time.monotonic()

    def _after_heartbeat(self, started_s: float, is_accepted: bool) -> None:
        if not self._must_resolve:
            if time.monotonic() > self._resolved_s[0] + _REFRESH_S - _MARGIN_S:
                raise TooSlow
            return
        if not is_accepted:
            return
        members = self._theirs.describe()["members"]
        wanted = {each["subscribed_topic_regex"] for each in members} - {None, ""}
        if not wanted:
            return

        def is_resolved(group: WireGroup) -> bool:
            found, _ = group.resolutions()
            return all(found[regex] > self._resolved[regex] for regex in wanted)

        self._await(is_resolved, f"the resolution of {wanted}")
        self._resolved_s = started_s, time.monotonic()
        self._told.append(f"  resolved {sorted(wanted)}")

    def _die(self, client: Client, stay: Plain) -> None:
        """Let the session of a member expire. The client returns later, or joins again."""
        if self._heartbeat(client, stay, 1)["error_code"]:
            return
        self._told.append(f"client {client.number} dies")
        for group in (self._ours, self._theirs):
            group.set_session(is_short=True)
        self._await(lambda group: group.session_ms() == SHORT_MS, "the short session")
        while True:
            answer = self._heartbeat(client, {**stay, "member_epoch": client.epoch}, math.inf)
            if answer["error_code"] or self._intervals == {SHORT_INTERVAL_MS}:
                break
        for group in (self._ours, self._theirs):
            group.set_session(is_short=False)
        if not answer["error_code"]:
            self._await_removal(client)
        self._await(lambda group: group.session_ms() == LONG_MS, "the long session")

    def _await_removal(self, client: Client) -> None:
        ids = dict(zip((self._ours, self._theirs), client.ids, strict=True))
        self._await(lambda group: ids[group] not in group.member_ids(), f"the removal of {client.number}")
        self._told.append(f"  the group removed client {client.number}")
        client.is_removed = True
        if self._choose.random() < 0.5:
            client.forget()

    def _revoke_slowly(self, client: Client, stay: Plain) -> None:
        if self._revokes(client):
            return
        fields = {"topic_partitions": client.held}
        answer = self._heartbeat(client, {**stay, **fields, "rebalance_timeout_ms": SHORT_MS})
        if answer["error_code"]:
            return
        if self._revokes(client):
            self._await_removal(client)
        else:
            self._heartbeat(
                client,
                {
                    **stay,
                    "member_epoch": client.epoch,
                    "topic_partitions": client.held,
                    "rebalance_timeout_ms": LONG_MS,
                },
            )

    def _revokes(self, client: Client) -> bool:
        """Return whether the member must revoke partitions that it has not revoked."""
        held = {(each["topic_id"], one) for each in client.held for one in each["partitions"]}
        for member in self._theirs.describe()["members"]:
            if member["member_id"] == client.ids[1]:
                shown = {
                    (each["topic_id"], one)
                    for each in member["assignment"]["topic_partitions"]
                    for one in each["partitions"]
                }
                return bool(shown - held)
        return False

    # Members that use the classic protocol

    def _join(self, client: Client, *, rejoins: bool, session_ms: int = LONG_MS) -> Plain | None:
        if rejoins:
            group = self._theirs.describe()
            if not group["error_code"] and not group["members"]:
                # Apache Kafka would forget the group until it loads the log again.
                return None
        else:
            client.names = self._some_names()
            self._joined += 1
            client.connect(f"classic-{self._seed}-{client.number}-{self._joined}")
        version = self._choose.choice((0, 1, 3))
        owned = client.owned if self._choose.random() < 0.8 else {}
        metadata = subscription(version, client.names, owned)
        names = self._choose.choice(
            (["range"], ["range"], ["cooperative-sticky", "range"], ["range", "sticky"])
        )
        if self._choose.random() < 0.03 and session_ms == LONG_MS:
            names = ["unknown"]
        request = {
            "group_id": self._group,
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": LONG_MS,
            "group_instance_id": client.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": metadata} for name in names],
        }
        ids = client.ids if rejoins else ["", ""]
        return self._ask(
            client,
            ApiKey.JOIN_GROUP,
            lambda side: {**request, "member_id": ids[side]},
            {"names": client.names, "protocols": names, "ids": ids, "session": session_ms},
        )

    def _die_classic(self, client: Client) -> None:
        """Let the session of a member expire, in a group that completes joins at once."""
        self._told.append(f"client {client.number} dies")
        answer = self._join(client, rejoins=True, session_ms=SHORT_MS)
        if answer is not None and not answer["error_code"] and self._is_consumer_group():
            self._await_removal(client)

    def _sync(self, client: Client) -> None:
        chosen: list[tuple[int, bytes]] = []
        if client.leads:
            partitions: list[Partitions] = [{} for _ in client.leads[0]]
            for name, size in self._sizes.items():
                for partition in range(size):
                    self._choose.choice(partitions).setdefault(name, []).append(partition)
            version = self._choose.choice((0, 1, 3))
            user_data = b"custom" if self._choose.random() < 0.05 else None
            chosen = [
                (number, assignment(version, each, user_data))
                for number, each in enumerate(partitions)
                if self._choose.random() < 0.95
            ]

        def build(side: int) -> Plain:
            members = client.leads[side] if client.leads else []
            return {
                "group_id": self._group,
                "generation_id": client.epoch,
                "member_id": client.ids[side],
                "group_instance_id": client.instance_id,
                "protocol_type": "consumer",
                "protocol_name": client.protocol,
                "assignments": [
                    {"member_id": members[number], "assignment": data} for number, data in chosen
                ],
            }

        self._ask(client, ApiKey.SYNC_GROUP, build, {"generation": client.epoch, "leads": client.leads})

    def _classic_heartbeat(self, client: Client, generation_id: int) -> None:
        request = {
            "group_id": self._group,
            "generation_id": generation_id,
            "group_instance_id": client.instance_id,
        }
        self._ask(client, ApiKey.HEARTBEAT, lambda side: {**request, "member_id": client.ids[side]}, request)

    def _leave(self, client: Client) -> None:
        leaving = {client.number: client}
        others = [
            each for each in self._clients if each.ids[0] and each.waits_for is None and not each.is_pending
        ]
        if self._choose.random() < 0.15:
            other = self._choose.choice(others)
            leaving[other.number] = other
        hides = [each.instance_id and self._choose.random() < 0.3 for each in leaving.values()]

        def build(side: int) -> Plain:
            members = [
                {"member_id": "" if hidden else each.ids[side], "group_instance_id": each.instance_id}
                for each, hidden in zip(leaving.values(), hides, strict=True)
            ]
            return {"group_id": self._group, "members": members}

        self._ask(client, ApiKey.LEAVE_GROUP, build, {"leaving": list(leaving)})
        for each in leaving.values():
            each.forget()

    # Offsets

    def _commit(self, client: Client, partitions: Partitions) -> None:
        """Commit as an old or a new client, or without being a member."""
        if not partitions:
            return
        version = self._choose.choice((5, 8, 9, 9, 10, 10))
        epoch = client.epoch + self._choose.choice((0, 0, 0, -1, -2, 1))
        ids = client.ids
        if self._choose.random() < 0.1 or client.uses_classic is None:
            epoch, ids = -1, ["", ""]
        offset = self._choose.randrange(100)
        topics: list[Plain] = [
            {
                "name": name,
                "topic_id": self._ids[name],
                "partitions": [{"partition_index": each, "committed_offset": offset} for each in numbers],
            }
            for name, numbers in partitions.items()
            if name in self._ids
        ]
        request = {
            "group_id": self._group,
            "generation_id_or_member_epoch": epoch,
            "topics": topics,
        }
        self._told.append(f"client {client.number} commits {partitions} with {epoch} v{version}")
        found, expected = self._ask_now(
            client, ApiKey.OFFSET_COMMIT, version, lambda side: {**request, "member_id": ids[side]}
        )
        self._told.append(f"  <- {expected}")
        self._compare(found, expected, "commit")
        self._compare_offsets()

    def _fetch(self, client: Client) -> None:
        """Fetch all offsets as a member."""
        version = self._choose.choice((9, 10))
        epoch = client.epoch + self._choose.choice((0, 0, -1, 1))
        self._told.append(f"client {client.number} fetches with {epoch} v{version}")
        fields = {"group_id": self._group, "member_epoch": epoch, "topics": None}
        found, expected = self._ask_now(
            client,
            ApiKey.OFFSET_FETCH,
            version,
            lambda side: {"groups": [{**fields, "member_id": client.ids[side]}]},
        )
        self._compare(_fetched(found), _fetched(expected), "fetch")

    def _ask_now(
        self, client: Client, api: ApiKey, version: int, build: Callable[[int], Plain]
    ) -> tuple[Plain, Plain]:
        found, expected = (
            connection.ask(api, version, build(side)) for side, connection in enumerate(client.connections)
        )
        return found, expected

    # Requests and responses of both clusters

    def _ask(self, client: Client, api: ApiKey, build: Callable[[int], Plain], shown: Plain) -> Plain | None:
        """Send a request to both clusters, and compare the responses to it and to requests of other clients
        that it completes. Return Apache Kafka's response, or None if the request waits.
        """
        for side, connection in enumerate(client.connections):
            connection.begin(api, _VERSIONS[api], build(side))
        client.waits_for, client.answers = api, [None, None]
        self._told.append(f"client {client.number} {client.ids[1]} {api.name} {shown}")
        deadline_s = time.monotonic() + _DEADLINE_S
        quiet_since_s = time.monotonic()
        while True:
            waiting = [each for each in self._clients if each.waits_for is not None]
            if any([self._receive(each) for each in waiting]):
                quiet_since_s = time.monotonic()
            now_s = time.monotonic()
            others = [each for each in waiting if each is not client]
            is_half = any(None in each.answers and each.answers != [None, None] for each in waiting)
            may_wait = api in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
            is_answered = None not in client.answers
            if not is_half and (is_answered or may_wait):
                if is_answered and not others:
                    break
                if now_s > quiet_since_s + _QUIET_S:
                    break
            if now_s > deadline_s:
                missing = {each.number: each.answers for each in waiting}
                raise AssertionError(f"{self.story}\nno response (ours, theirs): {missing}")
            client.connections[0].hears_nothing(0.005)
        answered = [each for each in waiting if each.answers != [None, None]]
        for each in answered:
            self._aliases.add(*(answer.get("member_id") or "" for answer in each.real_answers()))
        for each in answered:
            self._finish(each, shown)
        return client.answers[1]

    def _receive(self, client: Client) -> bool:
        api = client.waits_for
        assert api is not None
        has_received = False
        for side, connection in enumerate(client.connections):
            if client.answers[side] is None and not connection.hears_nothing(0):
                client.answers[side] = connection.finish(api, _VERSIONS[api])
                has_received = True
        return has_received

    def _finish(self, client: Client, request: Plain) -> None:
        api, (ours, theirs) = client.waits_for, client.real_answers()
        assert api is not None
        ours, theirs = self._aliases.replaced(ours), self._aliases.replaced(theirs)
        if api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._intervals = {each["heartbeat_interval_ms"] for each in (ours, theirs)}
            found, expected = comparable(ours), comparable(theirs)
            if SHORT_INTERVAL_MS in self._intervals:
                # The setting reaches the two clusters at different times.
                found["heartbeat_interval_ms"] = expected["heartbeat_interval_ms"]
        else:
            found, expected = comparable_classic(api, ours), comparable_classic(api, theirs)
        self._told.append(f"  {client.number} <- {api.name} {expected}")
        if api is ApiKey.JOIN_GROUP and {**found, **_LEADER} == {**expected, **_LEADER}:
            # If the leader has not rejoined, Apache Kafka elects one in the order of a hash table.
            self._is_over = self._is_over or found != expected
        else:
            self._compare(found, expected, f"response to {api.name}")
        client.waits_for = None
        self._learn(client, api, *client.real_answers(), request)

    def _learn(self, client: Client, api: ApiKey, ours: Plain, theirs: Plain, request: Plain) -> None:
        error = ErrorCode(theirs["error_code"])
        if api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._learn_heartbeat(client, theirs, error)
        elif api is ApiKey.JOIN_GROUP:
            self._learn_join(client, ours, theirs, error)
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif error:
            client.must_join = True
        elif api is ApiKey.SYNC_GROUP:
            client.must_sync = False
            data = bytes(theirs["assignment"])
            owned = read_assignment(data).partitions if data else {}
            client.owned = {topic: list(numbers) for topic, numbers in owned.items()}

    def _learn_join(self, client: Client, ours: Plain, theirs: Plain, error: ErrorCode) -> None:
        ids = [ours["member_id"], theirs["member_id"]]
        if error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS):
            client.uses_classic, client.ids, client.must_join = True, ids, True
            client.is_pending = error is ErrorCode.MEMBER_ID_REQUIRED
        elif error:
            if client.uses_classic:
                client.forget()
        else:
            client.uses_classic, client.ids = True, ids
            client.epoch, client.protocol = theirs["generation_id"], theirs["protocol_name"]
            client.must_join, client.must_sync, client.is_pending = False, True, False
            members = [
                sorted((each["member_id"] for each in side["members"]), key=self._aliases.replaced)
                for side in (ours, theirs)
            ]
            client.leads = members if all(members) else []
            client.held = []

    def _learn_heartbeat(self, client: Client, answer: Plain, error: ErrorCode) -> None:
        if error:
            lasting = (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                ErrorCode.INVALID_REGULAR_EXPRESSION,
            )
            if client.uses_classic is None or (not client.uses_classic and error not in lasting):
                client.forget()
            return
        if answer["member_epoch"] < 0:
            client.forget()
            return
        if client.uses_classic is not False:
            client.last_epoch = 0
        client.uses_classic, client.is_removed, client.owned = False, False, {}
        if answer["member_epoch"] != client.epoch:
            client.last_epoch, client.epoch = client.epoch, answer["member_epoch"]
        if answer["assignment"] is not None:
            client.held = answer["assignment"]["topic_partitions"]


def _described(group: Plain) -> Plain:
    """Return what both clusters must describe alike."""
    shown = comparable_description(group)
    if not group["error_code"]:
        shown["subscriptions"] = sorted(
            (each["member_id"], each["instance_id"], each["subscribed_topic_regex"])
            for each in group["members"]
        )
    return shown


def _without_leaders(batches: list[list[Record]]) -> list[list[Record]]:
    """Return records without the leaders of classic groups, whom a conversion chooses by the member IDs."""
    return [
        [
            record._replace(value=record.value._replace(leader_id=""))
            if isinstance(record, GroupRecord) and record.value is not None
            else record
            for record in batch
        ]
        for batch in batches
    ]


def _fetched(answer: Plain) -> object:
    (group,) = answer["groups"]
    for topic in group["topics"]:
        topic["partitions"].sort(key=str)
    return group["error_code"], sorted(map(str, group["topics"]))
