"""Random histories of a share group, played on our brokers and on Apache Kafka.

Members join, leave and die. Clients acquire records in both modes, acknowledge them in every way, rightly and
wrongly, disconnect, and let acquisition locks expire. Producers write plain, compressed and transactional
batches. Topics are created, grown and deleted, and offsets are altered and deleted. Both brokers get the same
requests, and their responses, descriptions, start offsets and stored states must be equal.

Our topics get Apache Kafka's IDs, by which assignors break ties. If both sides are Apache Kafka, IDs differ,
and assignments are not compared.

Time does not decide anything:

- Locks and sessions are long. A client whose locks expire acquires records while the lock duration of the
  group is short, and the dying member sends its last heartbeat while the session timeout is short.
- The leader of a partition reads its state when the first client fetches. The player waits for this with
  another client (`_prime`) before clients of the history fetch from the partition.
- Rejected records become dead letters, and are archived later than the acknowledgement is answered. Until
  then, start offsets do not advance. The player waits until no record is archiving (`_await_dead_letters`).
  Each dead letter is archived by a write of its own, and Apache Kafka may issue the next one before or after
  the former is stored. The stored start offset may therefore be behind the first record that is not finally
  delivered. With dead letters, that record is compared instead (`_finished`).
- A heartbeat causes the initialization of states. The player waits until they are initialized.
- When a connection closes and no member of the group has a session, leaders forget what they have read, soon
  but not at once. The next fetch would return the partitions that have been read again first. Therefore,
  another client keeps a session, without partitions, until the end of the history.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.kinds import CompressionType
from tests.conformance.batches import batch
from tests.conformance.wire import Connection, Plain
from tests.groups.consumer.brokers import OurBrokers
from tests.share_groups.side import DEADLINE_S, Partition, ShareSide, kafka_id
from tests.support.process import wait_until

LONG_MS, SHORT_MS = 600_000, 2_000
SHORT_SESSION_MS = 5_000
WIRE_SETTINGS = {
    "group.coordinator.append.linger.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": "4",
    "group.share.session.timeout.ms": str(LONG_MS),
    "group.share.max.session.timeout.ms": str(LONG_MS),
    "group.share.min.session.timeout.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.record.lock.duration.ms": str(LONG_MS),
    "group.share.max.record.lock.duration.ms": str(LONG_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
HAS_DEAD_LETTERS = True
LOCK, SESSION, INTERVAL = (
    f"share.{each}.ms" for each in ("record.lock.duration", "session.timeout", "heartbeat.interval")
)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_ACKNOWLEDGED, _ARCHIVING, _ARCHIVED = 2, 3, 4
_WAIT_MS = 300
"""How long a fetch waits for records if there are none."""
_FIRST_WAIT_MS = 5_000
"""How long the leader may take to read the state of a partition."""
_RESETS = ("earliest",) * 5 + ("latest", "by_duration:PT2H", "by_duration:PT30M")
_RECENT = 3_000
"""Records with this number and later ones have timestamps of the last half hour. Others are an hour old."""
_QUIET_S = 0.5
"""How much later than the share coordinator the leader may know that a state is stored."""
_ATTEMPTS = 4


_TOO_SLOW = "The brokers were too slow."


class TooSlow(Exception):
    """The brokers took so long that time might have decided something."""


def play_at_once(
    theirs: str, ours: OurBrokers | str, seeds: Iterable[int], at_once: int, run: str = ""
) -> dict[int, str]:
    """Play histories, several at once, and return the differences by seed. If `ours` is an address, the
    brokers there are Apache Kafka, too.

    Under load, Apache Kafka may be late with something that the player does not wait for. Therefore a
    history that differs is played again. It counts as different only if it differs again, or if many
    histories differed once.
    """

    def attempt(seed: int, number: int) -> str:
        history: ShareHistory | None = None
        try:
            history = ShareHistory(theirs, ours, seed, f"{run}-{number}")
            history.play()
            return ""
        except TooSlow:
            return _TOO_SLOW
        except Exception:
            return f"{history.story if history else seed}\n{traceback.format_exc()}"
        finally:
            if history is not None:
                history.close()

    def play(seed: int) -> list[str]:
        """Return the difference of each attempt."""
        found: list[str] = []
        for number in range(_ATTEMPTS):
            found.append(attempt(seed, number))
            if not found[-1] or sum(each != _TOO_SLOW for each in found) == 2:
                break
        return found

    chosen = list(seeds)
    with ThreadPoolExecutor(at_once) as pool:
        found = dict(zip(chosen, pool.map(play, chosen), strict=True))
    different = {seed: attempts[-1] for seed, attempts in found.items() if attempts[-1]}
    once = {
        seed: next(each for each in attempts if each not in ("", _TOO_SLOW))
        for seed, attempts in found.items()
        if not attempts[-1] and not {"", _TOO_SLOW}.issuperset(attempts)
    }
    if len(once) > max(1, len(chosen) // 25):
        return different | once
    return different


class KafkaFailed(Exception):
    """Apache Kafka has failed a request because of an error of its own. The history ends."""


class Client:
    """A member of the group, and its share session with the leader of all partitions, on both sides."""

    def __init__(self, number: int, sides: tuple[ShareSide, ShareSide]) -> None:
        self.number = number
        self.member_id = ""
        self.epoch: int | None = None
        """The member epoch, or None if it is not a member."""
        self.names: list[str] = []
        self.session_epoch = 0
        """The epoch of the next request. 0 opens a session."""
        self.session: list[Partition] = []
        self.held: dict[Partition, dict[int, int]] = {}
        """The delivery counts of the records that it has acquired and not acknowledged."""
        self.fetched_nothing = False
        self.deleted: list[tuple[UUID, UUID, int]] = []
        """Partitions of the session that have been deleted: the topic IDs on both sides, and the number."""
        self._sides = sides
        self._ids = 0
        self.connections: list[Connection] = []
        self.new_id()

    def new_id(self) -> None:
        self._ids += 1
        name = f"{self.number}-{self._ids}"
        self.member_id = kafka_id(uuid5(NAMESPACE_DNS, name))
        self.forget_session()

    def forget_session(self) -> None:
        self.session_epoch, self.session, self.held, self.deleted = 0, [], {}, []

    def connect(self) -> list[Connection]:
        if not self.connections:
            self.connections = [Connection(each.leader_address, DEADLINE_S) for each in self._sides]
        return self.connections

    def disconnect(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections = []

    def forget(self, partition: Partition) -> None:
        self.held.pop(partition, None)


class ShareHistory:
    """One share group on our brokers and on Apache Kafka."""

    def __init__(self, theirs: str, ours: OurBrokers | str, seed: int, run: str = "") -> None:
        """`run` distinguishes runs with the same brokers."""
        self._seed = seed
        self._choose = random.Random(seed)
        self._told: list[str] = []
        self._is_same_kind = isinstance(ours, str)
        group, prefix = f"share-{seed}{run}", f"topic-{seed}{run}-"
        if isinstance(ours, str):
            mine = ShareSide(ours, f"{group}-2", f"{prefix}2-")
        else:
            mine = ShareSide(ours.address, group, prefix, ours)
        self._ours, self._theirs = self._sides = (mine, ShareSide(theirs, group, prefix))
        self._names = list("abc"[: self._choose.randint(1, 3)])
        self._sizes: dict[str, int] = {}
        self._primed: set[Partition] = set()
        self._stale: set[Partition] = set()
        """Partitions whose leader may have a former state."""
        self._fresh: set[Partition] = set()
        """Partitions whose records nobody has acquired yet."""
        self._primers = 0
        self._written: dict[Partition, int] = {}
        self._in_transaction: set[Partition] = set()
        self._has_transaction = False
        self._limit = 5
        self._may_be_archiving = False
        self._configure()
        for name in self._names:
            if self._choose.random() < 0.85 or not self._sizes:
                self._create(name, self._choose.randint(1, 3))
        self._clients = [Client(number, self._sides) for number in range(self._choose.randint(2, 5))]
        self._keeper = Client(-1, self._sides)
        for side, connection in zip(self._sides, self._keeper.connect(), strict=True):
            answer = connection.ask(ApiKey.SHARE_FETCH, 2, _empty_fetch(side, self._keeper.member_id))
            assert not answer["error_code"], answer

    def close(self) -> None:
        for client in (*self._clients, self._keeper):
            client.disconnect()
        for side in self._sides:
            side.close()

    @property
    def story(self) -> str:
        return f"seed {self._seed}\n" + "\n".join(self._told)

    def play(self) -> None:
        for step in range(self._choose.randint(25, 70)):
            try:
                self._act()
            except KafkaFailed:
                return
            self._await_dead_letters()
            self._compare_groups()
            if step % 4 == 0:
                self._compare_offsets()
        if self._has_transaction:
            self._end_transaction()
        if self._has_dead_letters:
            self._compare_dead_letters()
        self._compare_offsets()
        self._compare_states()
        for side in self._sides:
            side.delete_all(self._sizes)

    def _act(self) -> None:
        client = self._choose.choice(self._clients)
        actions: list[tuple[float, Callable[[], object]]] = [
            (10, partial(self._some_heartbeat, client)),
            (30, partial(self._some_fetch, client)),
            (14, partial(self._some_acknowledgement, client)),
            (14, self._produce),
            (3, self._change_transaction),
            (3, partial(self._disconnect, client)),
            (2, partial(self._let_locks_expire, client)),
            (1, partial(self._die, client)),
            (3, partial(self._change_topic, self._choose.choice(self._names))),
            (2, self._alter_offsets),
            (2, self._delete_offsets),
            (1, self._delete_group),
            (2, self._list),
            (1, self._delete_records),
            (3, partial(self._wait_for_records, client)),
            (3, self._leave_all),
            (1, self._change_limit),
        ]
        weights = [weight for weight, _ in actions]
        (action,) = self._choose.choices([each for _, each in actions], weights)
        action()

    # Comparison

    def _tell(self, text: str) -> None:
        self._told.append(text)

    def _compare(self, found: object, expected: object, what: str) -> None:
        assert found == expected, f"{self.story}\n{what}\nours:   {found}\ntheirs: {expected}"

    def _both(self, ask: Callable[[ShareSide], Any]) -> tuple[Any, Any]:
        return ask(self._ours), ask(self._theirs)

    def _compare_groups(self) -> None:
        found, expected = self._both(
            lambda side: side.shown_group(side.describe(), with_assignment=not self._is_same_kind)
        )
        self._compare(found, expected, "description")

    def _compare_offsets(self) -> None:
        found, expected = self._both(lambda side: self._offsets(side, None))
        self._tell(f"offsets {expected}")
        self._compare(found, expected, "offsets of the group")

    def _offsets(self, side: ShareSide, names: dict[str, list[int]] | None, version: int = 1) -> Plain:
        shown = side.shown_offsets(side.offsets(names, version))
        if self._has_dead_letters:
            for name, parts in shown["topics"].items():
                shown["topics"][name] = [
                    (number, start + (_finished(side.state((name, number))) if start >= 0 else 0), *others)
                    for number, start, *others in parts
                ]
        return shown

    def _compare_states(self) -> None:
        for name, size in self._sizes.items():
            for number in range(size):
                each = (name, number)
                found, expected = self._both(lambda side, each=each: self._summary(side, each))  # type: ignore[misc]
                self._compare(found, expected, f"summary of {each}")
                found, expected = self._both(lambda side, each=each: self._state(side, each))  # type: ignore[misc]
                self._compare(found, expected, f"state of {each}")

    def _summary(self, side: ShareSide, partition: Partition) -> Plain:
        summary = _comparable(side.summary(partition))
        if self._has_dead_letters:
            finished = _finished(side.state(partition))
            summary["start_offset"] += finished
            summary["delivery_complete_count"] -= finished
        return summary

    def _state(self, side: ShareSide, partition: Partition) -> Plain:
        state = _comparable(side.state(partition))
        if self._has_dead_letters:
            start = state["start_offset"] = state["start_offset"] + _finished(state)
            state["state_batches"] = [each for each in state["state_batches"] if each["last_offset"] >= start]
        return state

    def _is_archiving(self, side: ShareSide) -> bool:
        return any(
            batch["delivery_state"] == _ARCHIVING
            for each in self._partitions()
            for batch in side.state(each)["state_batches"]
        )

    def _await_dead_letters(self) -> None:
        """Wait until no record is archiving, if records may be since the last call."""
        if not self._has_dead_letters or not self._may_be_archiving:
            return
        self._may_be_archiving = False
        if any(self._both(self._is_archiving)):
            self._await(lambda side: not self._is_archiving(side), "the dead letters", 30)
        time.sleep(_QUIET_S)  # The leader learns later than the share coordinator that records are archived.

    def _compare_dead_letters(self) -> None:
        found, expected = self._both(lambda side: side.dead_letters())
        self._tell(f"{len(expected)} dead letters, such as {expected[:3]}")
        self._compare(found, expected, "dead letters")

    def _await(self, holds: Callable[[ShareSide], bool], what: str, within_s: float = DEADLINE_S) -> None:
        """Wait until the condition holds on both sides."""
        for side, name in ((self._theirs, "Apache Kafka"), (self._ours, "our brokers")):
            try:
                wait_until(partial(holds, side), within_s, f"{what} in {name}", 0.05)
            except AssertionError as error:
                raise AssertionError(f"{self.story}\n{error}") from error

    # Settings and topics

    def _configure(self) -> None:
        chance = self._choose.random
        self._reset = self._choose.choice(_RESETS)
        self._is_committed = chance() < 0.3
        values: dict[str, str | None] = {"share.auto.offset.reset": self._reset}
        if self._is_committed:
            values["share.isolation.level"] = "read_committed"
        if chance() < 0.7:
            self._limit = self._choose.choice((2, 3, 4, 6, 10))
            values["share.delivery.count.limit"] = str(self._limit)
        if chance() < 0.2:
            values["share.partition.max.record.locks"] = "100"
        if chance() < 0.15:
            values["share.renew.acknowledge.enable"] = "false"
        self._has_dead_letters = chance() < 0.25 and HAS_DEAD_LETTERS
        copies = self._choose.choice(("true", "false"))
        self._tell(f"{values} {f'dead letters, copied: {copies}' if self._has_dead_letters else ''}")
        for side in self._sides:
            if self._has_dead_letters:
                side.create_dead_letters()
                values["errors.deadletterqueue.topic.name"] = side.dead_letter_topic
                values["errors.deadletterqueue.copy.record.enable"] = copies
            side.configure(values)

    def _change_limit(self) -> None:
        self._limit = self._choose.choice((2, 3, 5, 8))
        self._tell(f"the delivery count limit is {self._limit}")
        for side in self._sides:
            side.configure({"share.delivery.count.limit": str(self._limit)})

    def _create(self, name: str, size: int) -> None:
        self._theirs.create(name, size)
        self._ours.create(name, size, self._theirs.ids[name])
        self._sizes[name] = size
        ids = " and ".join(dict.fromkeys(str(side.ids[name]) for side in self._sides))
        self._tell(f"created {name} with {size} partitions, ID {ids}")
        for number in range(size):
            self._begin_log((name, number))

    def _begin_log(self, partition: Partition) -> None:
        self._written[partition] = 0
        self._fresh.add(partition)
        self._primed.discard(partition)
        if self._choose.random() < 0.8:
            self._write(partition, 1)

    def _change_topic(self, name: str) -> None:
        size = self._sizes.get(name, 0)
        chance = self._choose.random()
        if not size:
            self._create(name, self._choose.randint(1, 3))
        elif chance < 0.6:
            more = self._choose.randint(1, 2)
            self._sizes[name] = size + more
            for side in (self._theirs, self._ours):
                side.grow(name, size + more)
            self._tell(f"{name} has {size + more} partitions")
            for number in range(size, size + more):
                self._begin_log((name, number))
        elif not any(each[0] == name for each in self._in_transaction):
            del self._sizes[name]
            self._tell(f"deleted {name}")
            for side in (self._theirs, self._ours):
                side.delete(name)
            for number in range(size):
                self._forget((name, number))
            self._await(
                lambda side: all(each[0] != name for each in side.initialized()), "the deletion of states"
            )
            ids = self._ours.ids[name], self._theirs.ids[name]
            for client in self._clients:
                client.deleted += ((*ids, number) for topic, number in client.session if topic == name)
                client.session = [each for each in client.session if each[0] != name]

    def _forget(self, partition: Partition) -> None:
        """The leader has forgotten what clients have acquired."""
        self._primed.discard(partition)
        self._stale.discard(partition)
        for client in self._clients:
            client.forget(partition)

    def _partitions(self) -> list[Partition]:
        return [(name, number) for name, size in self._sizes.items() for number in range(size)]

    # Records

    def _produce(self) -> None:
        partitions = self._partitions()
        if partitions:
            self._write(self._choose.choice(partitions), self._choose.randint(1, 3))

    def _write(self, partition: Partition, batches: int) -> None:
        """Write batches, some of them in the open transaction."""
        for _ in range(batches):
            count = self._choose.choice((1, 1, 2, 3, 5, 8, 13, 30))
            codec = self._choose.choice((CompressionType.NONE,) * 3 + (CompressionType.GZIP,))
            is_in_transaction = self._has_transaction and self._choose.random() < 0.6
            if is_in_transaction and partition not in self._in_transaction:
                for side in self._sides:
                    side.add_to_transaction(partition)
                self._in_transaction.add(partition)
            found: list[tuple[int, int]] = []
            start = self._written[partition]
            if self._choose.random() < 0.3:
                start += _RECENT
            for side in self._sides:
                if is_in_transaction:
                    fields = side.transactional_fields(partition, count)
                    data = batch(count, start=start, compression=codec, **fields)
                    answer = side.produce_in_transaction(partition, data)
                else:
                    answer = side.produce(partition, batch(count, start=start, compression=codec))
                found.append((answer["error_code"], answer["base_offset"]))
            self._written[partition] += count
            kind = "transactional " if is_in_transaction else ""
            self._tell(f"wrote {count} {kind}{codec.name} records to {partition} at {found[1][1]}")
            self._compare(found[0], found[1], "produced")

    def _change_transaction(self) -> None:
        if self._has_transaction:
            self._end_transaction()
            return
        for side in self._sides:
            side.begin()
        self._has_transaction = True
        self._tell("a transaction begins")
        if partitions := self._partitions():
            self._write(self._choose.choice(partitions), self._choose.randint(1, 3))

    def _end_transaction(self) -> None:
        is_committed = self._choose.random() < 0.5
        partitions = sorted(self._in_transaction)
        self._tell(f"the transaction of {partitions} is {'committed' if is_committed else 'aborted'}")
        if partitions:
            for side in self._sides:
                side.end(partitions, is_committed)
        for each in partitions:
            self._written[each] += 1
        self._has_transaction, self._in_transaction = False, set()

    def _delete_records(self) -> None:
        partitions = [each for each in self._partitions() if self._written[each]]
        if not partitions:
            return
        partition = self._choose.choice(partitions)
        offset = self._choose.randint(0, self._theirs.end_of(partition, 1))
        self._tell(f"delete records of {partition} before {offset}")
        found, expected = self._both(lambda side: side.delete_records(partition, offset))
        self._compare(found, expected, "deletion of records")

    # Members

    def _some_heartbeat(self, client: Client) -> None:
        chance = self._choose.random()
        if client.epoch is None:
            if chance < 0.1:
                self._heartbeat(client, {"member_epoch": self._choose.choice((-1, 1, 3))})
            else:
                self._join(client)
        elif chance < 0.12:
            self._heartbeat(client, {"member_epoch": -1})
        elif chance < 0.2:
            self._heartbeat(client, {"member_epoch": client.epoch + self._choose.choice((-2, -1, 1, 2))})
        elif chance < 0.27:
            self._join(client)
        elif chance < 0.4:
            names = self._some_names()
            self._heartbeat(client, {"member_epoch": client.epoch, "subscribed_topic_names": names})
        else:
            self._heartbeat(client, {"member_epoch": client.epoch})

    def _some_names(self) -> list[str]:
        return self._choose.sample(self._names, self._choose.randint(1, len(self._names)))

    def _join(self, client: Client) -> None:
        request: Plain = {"member_epoch": 0, "subscribed_topic_names": self._some_names()}
        if self._choose.random() < 0.05:
            del request["subscribed_topic_names"]
        if self._choose.random() < 0.2:
            request["rack_id"] = "rack"
        self._heartbeat(client, request)

    def _heartbeat(self, client: Client, request: Plain) -> Plain:
        fields = {"member_id": client.member_id, **request}
        raw = self._both(lambda side: side.heartbeat(fields))
        found, expected = (
            side.shown_heartbeat(answer, with_assignment=not self._is_same_kind)
            for side, answer in zip(self._sides, raw, strict=True)
        )
        self._tell(f"client {client.number} heartbeat {request}\n  <- {expected}")
        self._compare(found, expected, "heartbeat")
        answer: Plain = raw[1]
        if answer["error_code"]:
            if answer["error_code"] in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
                client.epoch, client.names = None, []
            return answer
        if answer["member_epoch"] < 0:
            client.epoch, client.names = None, []
            return answer
        client.epoch = answer["member_epoch"]
        client.names = request.get("subscribed_topic_names") or client.names
        self._await_initialization()
        return answer

    def _await_initialization(self) -> None:
        """Wait until the states of all subscribed partitions are initialized."""
        subscribed = {
            one.removeprefix(self._theirs.real(""))
            for each in self._theirs.describe()["members"]
            for one in each["subscribed_topic_names"]
        }
        wanted = {each for each in self._partitions() if each[0] in subscribed}
        self._await(lambda side: side.initialized() >= wanted, f"the initialization of {wanted}")

    def _leave_all(self) -> None:
        if self._choose.random() < 0.4:
            for client in self._clients:
                if client.epoch is not None:
                    self._heartbeat(client, {"member_epoch": -1})

    def _die(self, client: Client) -> None:
        """Let the session of a member expire."""
        if client.epoch is None:
            return
        short: dict[str, str | None] = {SESSION: str(SHORT_SESSION_MS), INTERVAL: "100"}
        for side in self._sides:
            side.configure(short)
        self._tell(f"client {client.number} dies")
        until_s = time.monotonic() + 30
        while True:
            answers = self._both(
                lambda side: side.heartbeat({"member_id": client.member_id, "member_epoch": client.epoch})
            )
            if any(each["error_code"] for each in answers):
                self._compare(answers[0]["error_code"], answers[1]["error_code"], "last heartbeat")
                break
            if {each["heartbeat_interval_ms"] for each in answers} == {100}:
                break
            if time.monotonic() > until_s:
                raise TooSlow
        for side in self._sides:
            side.configure(dict.fromkeys(short))
        if not answers[1]["error_code"]:
            self._await(lambda side: client.member_id not in side.member_ids(), "the end of the session")
            client.epoch, client.names = None, []
            # The remaining members are sent the long interval again.
            others = [each for each in self._clients if each.epoch is not None]
            for each in others[:1]:
                self._await_interval(each)

    def _await_interval(self, client: Client) -> None:
        request = {"member_id": client.member_id, "member_epoch": client.epoch}

        def is_long(side: ShareSide) -> bool:
            return bool(side.heartbeat(request)["heartbeat_interval_ms"] != 100)

        self._await(is_long, "the long interval")
        self._await_initialization()

    # Fetches

    def _some_fetch(self, client: Client) -> None:
        known = self._partitions()
        if not known:
            return
        chance = self._choose.random()
        if not client.session_epoch:
            if chance < 0.05:
                self._fetch(client, epoch=self._choose.choice((-1, 1, 4)))
                return
            chosen = self._choose.sample(known, self._choose.randint(1, min(4, len(known))))
            acks = {}
            if chance < 0.09:
                acks = {chosen[0]: [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [ACCEPT]}]}
            self._fetch(client, adds=chosen, acks=acks)
            return
        if chance < 0.05:
            self._fetch(client, epoch=client.session_epoch + self._choose.choice((-1, 1)))
            return
        if chance < 0.11:
            self._fetch(client, epoch=-1, acks=self._some_acks(client) if self._choose.random() < 0.6 else {})
            return
        if chance < 0.15:
            # A new session while the former is open.
            chosen = self._choose.sample(known, self._choose.randint(1, min(4, len(known))))
            self._fetch(client, adds=chosen, epoch=0)
            return
        adds = [self._choose.choice(known)] if self._choose.random() < 0.2 else []
        forgets = []
        if client.session and self._choose.random() < 0.12:
            forgets = [self._choose.choice(client.session)]
        acks = self._some_acks(client) if self._choose.random() < 0.6 else {}
        self._fetch(client, adds=adds, acks=acks, forgets=forgets)

    def _limits(self) -> Plain:
        choose = self._choose
        return {
            "max_wait_ms": _WAIT_MS,
            "min_bytes": choose.choice((0, 1, 1, 1, 1)),
            # Kafka gives the rest of the division by the number of partitions to a random one.
            "max_bytes": choose.choice((1, 120, 420, 840, 1 << 20, 1 << 20, 1 << 20)),
            "max_records": choose.choice((1, 2, 3, 5, 10, 50, 500)),
            "batch_size": choose.choice((1, 2, 5, 10, 500, 500)),
            "share_acquire_mode": choose.choice((0, 1)),
        }

    def _fetch(
        self,
        client: Client,
        *,
        adds: list[Partition] | None = None,
        acks: dict[Partition, list[Plain]] | None = None,
        forgets: list[Partition] | None = None,
        epoch: int | None = None,
        limits: Plain | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Plain:
        """Send a ShareFetch, and do something while it waits."""
        adds, acks, forgets = adds or [], acks or {}, forgets or []
        epoch = client.session_epoch if epoch is None else epoch
        limits = limits or self._limits()
        version = self._choose.choice((1, 2, 2, 2))
        if version == 1:
            limits = {**limits, "share_acquire_mode": 0}
        is_renewing = any(RENEW in each["acknowledge_types"] for one in acks.values() for each in one)
        if is_renewing and version == 2 and self._choose.random() < 0.9:
            limits = {**limits, "is_renew_ack": True}
            if self._choose.random() < 0.9:
                limits |= dict.fromkeys(("max_wait_ms", "min_bytes", "max_records", "batch_size"), 0)
                limits["max_bytes"] = 0
        if epoch >= 0:
            former = client.session if epoch else []
            self._prime(
                [each for each in {**dict.fromkeys(former), **dict.fromkeys(adds)} if each not in forgets]
            )
            # The leader may or may not find out that a state is not initialized before the fetch ends.
            adds = [each for each in adds if each in self._primed]
            forgets += [each for each in former if each not in self._primed and each not in forgets]
        shown = {"epoch": epoch, "adds": adds, "acks": acks, "forgets": forgets, **limits}
        self._tell(f"client {client.number} ShareFetch v{version} {shown}")
        connections = client.connect()
        deleted = client.deleted if epoch > 0 else []
        for index, (side, connection) in enumerate(zip(self._sides, connections, strict=True)):
            parts: dict[Partition, list[Plain]] = {each: acks.get(each, []) for each in (*adds, *acks)}
            request = {
                "group_id": side.group_id,
                "member_id": client.member_id,
                "share_session_epoch": epoch,
                "topics": _topics(side, parts),
                "forgotten_topics_data": [
                    {"topic_id": side.ids[name], "partitions": [number]} for name, number in forgets
                ]
                + [{"topic_id": ids[index], "partitions": [number]} for *ids, number in deleted],
                **limits,
            }
            connection.begin(ApiKey.SHARE_FETCH, version, request)
        if meanwhile is not None:
            meanwhile()
        found, expected = (
            side.shown_fetch(connection.finish(ApiKey.SHARE_FETCH, version))
            for side, connection in zip(self._sides, connections, strict=True)
        )
        if self._is_same_kind:
            # The order depends on hashes of topic IDs.
            for each in (found, expected):
                each["responses"].sort(key=lambda one: one["partition"])
                for one in each["responses"]:
                    one["batches"] = [batch[:2] for batch in one["batches"] if batch[0] >= 0]
        self._tell(f"  <- {expected}")
        self._check_failure(expected, acks)
        self._compare(found, expected, "response to ShareFetch")
        self._learn_session(client, expected, epoch, adds, forgets)
        errors = {each["partition"]: each["acknowledge_error"] for each in expected["responses"]}
        if not expected["error"]:
            self._learn_acks(client, acks, errors)
        client.fetched_nothing = not expected["error"]
        for each in expected["responses"]:
            if each["error"]:
                self._learn_error(each["partition"], each["error"])
            for first, last, count in each["acquired"]:
                client.fetched_nothing = False
                held = client.held.setdefault(each["partition"], {})
                held.update(dict.fromkeys(range(first, last + 1), count))
        if epoch < 0 and not expected["error"]:
            # The response does not wait for the release of the acquired records.
            acquired = client.held
            client.forget_session()
            self._await_release(acquired)
        return expected

    def _learn_session(
        self, client: Client, answer: Plain, epoch: int, adds: list[Partition], forgets: list[Partition]
    ) -> None:
        if answer["error"]:
            if answer["error"] == ErrorCode.SHARE_SESSION_NOT_FOUND:
                client.forget_session()
            return
        if epoch == 0:
            client.session = []
        client.deleted = []
        if epoch >= 0:
            client.session_epoch = epoch + 1
            client.session = [each for each in client.session if each not in forgets]
            client.session += [each for each in dict.fromkeys(adds) if each not in client.session]

    def _learn_error(self, partition: Partition, error: int) -> None:
        if error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            self._forget(partition)
        elif error == ErrorCode.UNKNOWN_SERVER_ERROR:
            # The state is not initialized.
            self._primed.discard(partition)

    def _learn_acks(
        self, client: Client, acks: dict[Partition, list[Plain]], errors: dict[Partition, int]
    ) -> None:
        self._may_be_archiving = True
        for partition, batches in acks.items():
            error = errors.get(partition, 0)
            if error:
                self._learn_error(partition, error)
                continue
            held = client.held.get(partition, {})
            for each in batches:
                types = each["acknowledge_types"]
                offsets = range(each["first_offset"], each["last_offset"] + 1)
                for index, offset in enumerate(offsets):
                    kind = types[0] if len(types) == 1 else types[index]
                    if kind != RENEW:
                        held.pop(offset, None)

    def _prime(self, partitions: Iterable[Partition]) -> None:
        """Wait until the leader has read the states of partitions: fetch with another client."""
        new = [each for each in partitions if each not in self._primed and each[0] in self._sizes]
        if not new:
            return
        found, expected = self._both(lambda side: side.initialized())
        self._compare(found, expected, "initialized partitions")
        for each in new:
            self._primers += 1
            member_id = kafka_id(uuid5(NAMESPACE_DNS, f"primer-{self._primers}"))
            if each in expected:
                self._prime_one(each, member_id)
            elif self._choose.random() < 0.3:
                # The leader finds no state.
                self._prime_one(each, member_id, within_s=60)

    def _prime_one(self, partition: Partition, member_id: str, within_s: float = 0) -> None:
        """Fetch until there is an error or a record. If there may be none, fetch once."""
        if not within_s and partition in self._fresh:
            if self._reset.startswith("by_duration"):
                within_s = 15
            elif self._reset == "earliest" and self._theirs.end_of(partition, int(self._is_committed)):
                within_s = 60
        connections = [Connection(side.leader_address, DEADLINE_S) for side in self._sides]
        until_s = time.monotonic() + within_s
        try:
            shown = []
            for side, connection in zip(self._sides, connections, strict=True):
                connection.begin(ApiKey.SHARE_FETCH, 2, _first_fetch(side, member_id, partition))
            for side, connection in zip(self._sides, connections, strict=True):
                answer = side.shown_fetch(connection.finish(ApiKey.SHARE_FETCH, 2))
                while _has_nothing(answer) and time.monotonic() < until_s:
                    request = _first_fetch(side, member_id, partition)
                    answer = side.shown_fetch(connection.ask(ApiKey.SHARE_FETCH, 2, request))
                shown.append(answer)
            self._tell(f"first fetch of {partition}\n  <- {shown[1]}")
            self._compare(shown[0], shown[1], f"first fetch of {partition}")
            if any(one["error"] for one in shown[1]["responses"]):
                return
            self._primed.add(partition)
            self._fresh.discard(partition)
            closed = [
                connection.ask(ApiKey.SHARE_FETCH, 2, _last_fetch(side, member_id))["error_code"]
                for side, connection in zip(self._sides, connections, strict=True)
            ]
            self._compare(closed[0], closed[1], f"end of the first fetch of {partition}")
        finally:
            for connection in connections:
                connection.close()
        acquired = {
            offset: count
            for one in shown[1]["responses"]
            for first, last, count in one["acquired"]
            for offset in range(first, last + 1)
        }
        self._await_release({partition: acquired})

    def _wait_for_records(self, client: Client) -> None:
        """Fetch without available records, and write records while the fetch waits."""
        partitions = [
            each for each in client.session if each in self._primed and each not in self._in_transaction
        ]
        if not client.session_epoch or not partitions or self._has_transaction or self._stale:
            return
        limits = {"max_records": 500, "batch_size": 500, "max_wait_ms": _WAIT_MS, "min_bytes": 1}
        for _ in range(6):
            self._fetch(client, limits=limits)
            if client.fetched_nothing or not client.session_epoch:
                break
        if not client.fetched_nothing or not client.session_epoch:
            return
        partition = self._choose.choice(partitions)

        def write() -> None:
            time.sleep(0.2)  # The fetches shall wait already. If they do not, they find the records.
            self._write(partition, 1)

        self._fetch(client, limits={**limits, "max_wait_ms": 2_000}, meanwhile=write)

    # Acknowledgements

    def _some_acks(self, client: Client, share: float = 0.7) -> dict[Partition, list[Plain]]:
        acks: dict[Partition, list[Plain]] = {}
        for partition, held in client.held.items():
            if partition[0] in self._sizes and held and self._choose.random() < share:
                acks[partition] = self._batches(sorted(held))
        if self._choose.random() < 0.08 and (known := self._partitions()):
            partition = self._choose.choice(known)
            if partition in self._primed:
                acks[partition] = [*acks.get(partition, []), self._wrong_batch(partition)]
        return acks

    def _check_failure(self, answer: Plain, acks: dict[Partition, list[Plain]]) -> None:
        """Raise KafkaFailed after acknowledgements of offsets before and after the start offset while nothing
        is in flight: a NullPointerException fails the whole request.
        """
        if answer["error"] != ErrorCode.UNKNOWN_SERVER_ERROR:
            return
        for partition, batches in acks.items():
            state = self._theirs.state(partition)
            start = state["start_offset"] + _finished(state)
            if any(each["first_offset"] < start <= each["last_offset"] for each in batches):
                self._tell(f"Apache Kafka failed because of {partition}")
                raise KafkaFailed

    def _batches(self, offsets: list[int]) -> list[Plain]:
        choose = self._choose
        batches = []
        for first, last in _ranges(offsets):
            if choose.random() < 0.2:
                continue
            if choose.random() < 0.4:
                first = choose.randint(first, last)
            if choose.random() < 0.4:
                last = choose.randint(first, last)
            kinds = (ACCEPT,) * 4 + (RELEASE,) * 3 + (REJECT, GAP, RENEW)
            if choose.random() < 0.6:
                types = [choose.choice(kinds)]
            else:
                weights = kinds if choose.random() < 0.2 else tuple(each for each in kinds if each != RENEW)
                types = [choose.choice(weights) for _ in range(last - first + 1)]
            batches.append({"first_offset": first, "last_offset": last, "acknowledge_types": types})
            if choose.random() < 0.03:
                batches.append(dict(batches[-1]))
        if choose.random() < 0.05:
            choose.shuffle(batches)
        return batches

    def _wrong_batch(self, partition: Partition) -> Plain:
        choose = self._choose
        end = self._written[partition]
        first = choose.choice((0, choose.randint(0, end + 1), end, end + 5, -1))
        last = first + choose.choice((-1, 0, 0, 1, 3))
        types = choose.choice(([ACCEPT], [RELEASE], [REJECT], [RENEW], [5], [-1], [], [ACCEPT, RELEASE]))
        return {"first_offset": first, "last_offset": last, "acknowledge_types": types}

    def _some_acknowledgement(self, client: Client) -> None:
        chance = self._choose.random()
        acks = self._some_acks(client, 0.9)
        if not acks and chance < 0.7:
            return
        if chance < 0.04:
            self._acknowledge(client, acks, 0)
        elif chance < 0.08:
            self._acknowledge(client, acks, client.session_epoch + 1)
        elif chance < 0.15:
            self._acknowledge(client, acks, -1)
        else:
            self._acknowledge(client, acks, client.session_epoch)

    def _acknowledge(self, client: Client, acks: dict[Partition, list[Plain]], epoch: int) -> None:
        version = self._choose.choice((1, 2, 2, 2))
        request: Plain = {"member_id": client.member_id, "share_session_epoch": epoch}
        is_renewing = any(RENEW in each["acknowledge_types"] for one in acks.values() for each in one)
        if is_renewing and version == 2 and self._choose.random() < 0.9:
            request["is_renew_ack"] = True
        self._tell(f"client {client.number} ShareAcknowledge v{version} {request} {acks}")
        found, expected = (
            side.shown_acknowledge(
                connection.ask(
                    ApiKey.SHARE_ACKNOWLEDGE,
                    version,
                    {**request, "group_id": side.group_id, "topics": _topics(side, acks)},
                )
            )
            for side, connection in zip(self._sides, client.connect(), strict=True)
        )
        if self._is_same_kind:
            for each in (found, expected):
                each["responses"].sort(key=lambda one: one["partition"])
        self._tell(f"  <- {expected}")
        self._check_failure(expected, acks)
        self._compare(found, expected, "response to ShareAcknowledge")
        if expected["error"]:
            if expected["error"] == ErrorCode.SHARE_SESSION_NOT_FOUND:
                client.forget_session()
            return
        self._learn_acks(client, acks, {each["partition"]: each["error"] for each in expected["responses"]})
        if epoch < 0:
            held = client.held
            client.forget_session()
            self._await_release(held)
        elif epoch:
            client.session_epoch = epoch + 1

    # Clients that are gone

    def _disconnect(self, client: Client) -> None:
        if not client.connections:
            return
        self._tell(f"client {client.number} disconnects with {client.held}")
        held, had_session = client.held, client.session_epoch
        client.disconnect()
        self._await_release(held)
        client.held = {}
        if self._choose.random() < 0.5 and had_session:
            # Its session has ended.
            time.sleep(0.5)  # Brokers notice the end of a connection without records only internally.
            self._fetch(client)
        client.forget_session()
        if self._choose.random() < 0.5:
            client.new_id()
            if client.epoch is not None:
                client.epoch, client.names = None, []

    def _await_release(self, held: dict[Partition, dict[int, int]]) -> None:
        """Wait until acquired records are available again, archived, or archiving."""
        self._may_be_archiving = True
        has_waited = False
        for partition, counts in held.items():
            if not counts or partition[0] not in self._sizes:
                continue
            if partition in self._stale:
                time.sleep(1.0)  # The share coordinator rejects this release.
                continue
            has_waited = True

            def is_released(side: ShareSide, partition=partition, counts=counts) -> bool:  # type: ignore[no-untyped-def]
                return _is_released(side.state(partition), counts)

            with suppress(AssertionError):
                self._await(is_released, f"the release of {partition}", 20)
        if has_waited:
            time.sleep(_QUIET_S)  # a second release, which nobody reports, would come by then

    def _let_locks_expire(self, client: Client) -> None:
        if not client.session_epoch or not client.session or client.held:
            return
        short: dict[str, str | None] = {LOCK: str(SHORT_MS)}
        for side in self._sides:
            side.configure(short)
        time.sleep(0.2)  # Parts of a broker may learn of a setting later than others.
        self._tell(f"client {client.number} lets its locks expire")
        limits = {"max_records": 500, "batch_size": 500, "max_wait_ms": _WAIT_MS, "min_bytes": 1}
        started_s = time.monotonic()
        answer = self._fetch(client, limits=limits)
        if time.monotonic() > started_s + SHORT_MS / 1000 + 8:
            raise TooSlow
        for side in self._sides:
            side.configure({LOCK: None})
        if not answer["error"] and answer["lock_ms"] != SHORT_MS:
            raise TooSlow
        held = client.held
        time.sleep(SHORT_MS / 1000 + 0.5)  # the duration of the locks
        self._await_release(held)
        if self._choose.random() < 0.5:
            # Late acknowledgements are rejected.
            self._acknowledge(client, self._some_acks(client), client.session_epoch)
        client.held = {}

    # Offsets and groups

    def _alter_offsets(self) -> None:
        known = self._partitions()
        if not known:
            return
        starts: dict[str, dict[int, int]] = {}
        for name, number in self._choose.sample(known, self._choose.randint(1, len(known))):
            end = self._written[name, number]
            starts.setdefault(name, {})[number] = self._choose.choice((0, end, self._choose.randint(0, end)))
        if self._choose.random() < 0.15:
            starts["unknown"] = {0: 0}
        if self._choose.random() < 0.15:
            starts[self._choose.choice(list(starts))][99] = 0
        self._tell(f"alter offsets {starts}")
        found, expected = self._both(lambda side: side.shown_topics(side.alter(starts)))
        self._tell(f"  <- {expected}")
        self._compare(found, expected, "response to AlterShareGroupOffsets")
        if not expected["error"]:
            for topic in expected["topics"]:
                for number, error, _ in topic["partitions"]:
                    if not error:
                        self._stale.add((topic["name"], number))
            self._compare_offsets()

    def _delete_offsets(self) -> None:
        names = self._choose.sample(self._names, self._choose.randint(1, len(self._names)))
        self._tell(f"delete offsets {names}")
        found, expected = self._both(lambda side: side.shown_topics(side.delete_offsets(names)))
        self._tell(f"  <- {expected}")
        self._compare(found, expected, "response to DeleteShareGroupOffsets")
        if not expected["error"]:
            self._stale |= {each for each in self._partitions() if each[0] in names}
            self._compare_offsets()

    def _delete_group(self) -> None:
        if self._choose.random() < 0.5:
            for client in self._clients:
                if client.epoch is not None:
                    self._heartbeat(client, {"member_epoch": -1})
        found, expected = self._both(lambda side: side.delete_group())
        self._tell(f"delete the group <- {expected}")
        self._compare(found, expected, "response to DeleteGroups")
        if not expected:
            self._stale |= set(self._partitions())
            for client in self._clients:
                client.epoch, client.names = None, []

    def _list(self) -> None:
        states = self._choose.choice(([], ["Empty"], ["stable"], ["Dead"], ["Stable", "Empty"]))
        types = self._choose.choice(([], ["share"], ["Share"], ["consumer"], ["classic", "share"]))
        found, expected = (
            [{**each, "group_id": ""} for each in groups]
            for groups in self._both(lambda side: side.listed(states, types))
        )
        self._tell(f"list {states} {types} <- {expected}")
        self._compare(found, expected, "response to ListGroups")
        names = {
            each: [0, self._choose.choice((0, 0, 0, 7))] for each in self._some_names() if each in self._sizes
        }
        version = self._choose.choice((0, 1))
        found, expected = self._both(lambda side: self._offsets(side, names, version))
        self._tell(f"offsets of {names} v{version} <- {expected}")
        self._compare(found, expected, "some offsets")


def _topics(side: ShareSide, parts: dict[Partition, list[Plain]]) -> list[Plain]:
    return [
        {
            "topic_id": side.ids[name],
            "partitions": [
                {"partition_index": number, "acknowledgement_batches": parts[name, number]}
                for _, number in each
            ],
        }
        for name, each in groupby(parts, key=lambda partition: partition[0])
    ]


def _first_fetch(side: ShareSide, member_id: str, partition: Partition) -> Plain:
    return {
        "group_id": side.group_id,
        "member_id": member_id,
        "share_session_epoch": 0,
        "max_wait_ms": _FIRST_WAIT_MS,
        "min_bytes": 1,
        "max_records": 1,
        "batch_size": 1,
        "share_acquire_mode": 1,
        "topics": _topics(side, {partition: []}),
    }


def _empty_fetch(side: ShareSide, member_id: str) -> Plain:
    """Open a session without partitions."""
    return {
        "group_id": side.group_id,
        "member_id": member_id,
        "share_session_epoch": 0,
        "max_bytes": 1,
        "max_records": 1,
    }


def _last_fetch(side: ShareSide, member_id: str) -> Plain:
    return {"group_id": side.group_id, "member_id": member_id, "share_session_epoch": -1, "max_bytes": 0}


def _has_nothing(answer: Plain) -> bool:
    return all(not each["acquired"] and not each["error"] for each in answer["responses"])


def _ranges(offsets: list[int]) -> list[tuple[int, int]]:
    """Return ranges of adjacent offsets."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset - 1:
            found[-1] = found[-1][0], offset
        else:
            found.append((offset, offset))
    return found


def _is_released(state: Plain, counts: dict[int, int]) -> bool:
    """Return whether the stored state contains the deliveries of these records."""
    for offset, count in counts.items():
        if offset < state["start_offset"]:
            continue
        batches = [
            each for each in state["state_batches"] if each["first_offset"] <= offset <= each["last_offset"]
        ]
        if not batches or batches[0]["delivery_count"] < count:
            return False
    return True


def _finished(state: Plain) -> int:
    """Return the number of records from the start offset on that are acknowledged or archived."""
    start = offset = state["start_offset"]
    for each in state["state_batches"]:
        if each["first_offset"] != offset or each["delivery_state"] not in (_ACKNOWLEDGED, _ARCHIVED):
            break
        offset = each["last_offset"] + 1
    return int(offset - start)


def _comparable(state: Plain) -> Plain:
    return {**state, "error_message": state["error_message"] is not None}
