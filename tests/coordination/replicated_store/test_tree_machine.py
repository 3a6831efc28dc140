"""The tree machine: each rule of docs/design/quorum.md that is decided when a record is applied."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.coordination.replicated_store import records, tree_machine
from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord
from kafka_compat.coordination.replicated_store.record_frames import unframe
from kafka_compat.coordination.replicated_store.records import (
    BadRecord,
    CloseSession,
    OpenSession,
    Transaction,
)
from kafka_compat.coordination.replicated_store.tree_machine import Applied, Ended, TreeMachine
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import Create, Delete, Event, EventKind, SetData
from tests.coordination.replicated_store import model


class Log:
    """A log that one machine applies."""

    def __init__(self) -> None:
        self.machine = TreeMachine()
        self.values: list[bytes] = [b""]

    def add(self, change: OpenSession | CloseSession | Transaction) -> Applied:
        self.values.append(change.framed())
        return self.machine.apply(unframe(len(self.values) - 1, self.values[-1]))

    def open(self, token: str, node_id: int = 1, incarnation: str = "first", directory: str = "d") -> int:
        opened = self.add(OpenSession(token, node_id, directory, incarnation, 1000)).opened
        return opened.session_id if opened else 0

    def call(self, session: int, number: int, *operations: stores.Operation, first: int = 1) -> Applied:
        return self.add(Transaction(session, number, first, 5, operations))

    def restored(self) -> TreeMachine:
        """Return a machine that was restored from a snapshot."""
        return restored(self.machine.end_offset, list(self.machine.snapshot()))


def restored(offset: int, saved: list[bytes]) -> TreeMachine:
    machine = TreeMachine()
    for _ in machine.restore(offset, [unframe(0, value) for value in saved]):
        pass
    return machine


def test_transaction_ids_and_session_ids_are_offsets() -> None:
    log = Log()
    session = log.open("t")
    assert session == 1
    log.call(session, 1, Create("/a", b"1", ephemeral=True))
    applied = log.call(session, 2, SetData("/a", b"2"))
    assert applied.outcome is not None
    assert applied.outcome.results == [stores.Stat(2, 3, 1, 0, session, 0, 5, 5)]
    assert applied.events == [Event(EventKind.CHANGED, "/a")]


def test_only_the_next_call_of_a_session_has_an_effect() -> None:
    log = Log()
    session = log.open("t")
    assert log.call(session, 2, Create("/early")) == tree_machine.NOTHING
    assert log.call(session, 1, Create("/a")).outcome is not None
    assert log.call(session, 1, Create("/again")) == tree_machine.NOTHING
    assert log.call(session + 1, 1, Create("/unknown")) == tree_machine.NOTHING
    assert sorted(log.machine.tree.nodes) == ["/", "/a"]
    failed = log.call(session, 2, Create("/b"), Create("/a")).outcome
    assert failed is not None
    error = failed.error()
    assert error is not None
    assert (error.index, type(error.cause)) == (1, stores.NodeExists)
    assert sorted(log.machine.tree.nodes) == ["/", "/a"]
    assert log.call(session, 3).outcome == records.Outcome(3, [])


def test_a_session_is_opened_once_for_each_token() -> None:
    log = Log()
    first = log.open("t")
    assert log.open("t") == 0
    assert log.open("u") > first
    assert len(log.machine.sessions) == 2


@pytest.mark.parametrize("reason", ["closed", "expired"])
def test_the_end_of_a_session_deletes_its_ephemeral_nodes(reason: records.CloseReason) -> None:
    log = Log()
    one, two = log.open("t"), log.open("u")
    log.call(one, 1, Create("/a", ephemeral=True), Create("/b"), Create("/b/c", ephemeral=True))
    log.call(two, 1, Create("/d", ephemeral=True))
    log.call(two, 2, Delete("/b/c"), Create("/b/c", ephemeral=True))
    if reason == "closed":
        assert log.add(CloseSession(one, "closed", 3)) == tree_machine.NOTHING
    applied = log.add(CloseSession(one, reason, 2 if reason == "closed" else None))
    assert applied.ended == [Ended(one, reason == "closed")]
    assert applied.events == [Event(EventKind.DELETED, "/a"), Event(EventKind.CHILDREN, "/")]
    assert sorted(log.machine.tree.nodes) == ["/", "/b", "/b/c", "/d"]
    assert log.call(one, 3, Create("/late")) == tree_machine.NOTHING


def test_a_new_incarnation_ends_the_sessions_of_the_earlier_one_in_the_same_step() -> None:
    log = Log()
    old, other, elsewhere = log.open("t"), log.open("u", 2), log.open("v", 1, "first", "another")
    log.call(old, 1, Create("/a", ephemeral=True))
    applied = log.add(OpenSession("w", 1, "d", "second", 1000))
    assert applied.ended == [Ended(old, False)]
    assert "/a" not in log.machine.tree.nodes
    assert set(log.machine.sessions) == {other, elsewhere, len(log.values) - 1}
    late = log.add(OpenSession("x", 1, "d", "first", 1000))
    assert late == Applied(refused_token="x")
    assert log.open("y", 1, "second") > 0


def test_outcomes_are_kept_until_their_owner_knows_them() -> None:
    log = Log()
    session = log.open("t")
    for number in range(1, 4):
        log.call(session, number)
    assert [outcome.call for outcome in log.machine.sessions[session].outcomes] == [1, 2, 3]
    log.call(session, 4, first=4)
    assert [outcome.call for outcome in log.machine.sessions[session].outcomes] == [4]
    for number in range(5, 5 + 2 * tree_machine.OUTCOMES_KEPT):
        log.call(session, number)
    assert len(log.machine.sessions[session].outcomes) == tree_machine.OUTCOMES_KEPT


def test_incarnations_of_a_node_are_limited() -> None:
    log = Log()
    for number in range(30):
        log.open(f"t{number}", 1, str(number))
    assert len(log.machine.sessions) == 1
    assert len(log.machine.incarnations[1]) == tree_machine.INCARNATIONS_KEPT


def test_a_snapshot_shows_one_moment_although_the_tree_changes_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree_machine, "NODES_PER_RECORD", 2)
    log = Log()
    session = log.open("t")
    log.call(session, 1, *(Create(f"/{number}", b"%d" % number) for number in range(9)))
    log.call(session, 2, Create("/2/below", ephemeral=True), first=2)
    before, offset = log.machine.digest(), log.machine.end_offset
    snapshot = log.machine.snapshot()
    saved = [next(snapshot) for _ in range(4)]
    log.call(session, 3, SetData("/8", b"new"), Delete("/0"), Create("/0/again"), first=3)
    log.call(session, 4, Delete("/2/below"), Delete("/2"), Delete("/7"), Create("/7", b"new"), first=4)
    log.add(CloseSession(session, "closed", 5))
    saved += snapshot
    assert restored(offset, saved).digest() == before
    assert log.machine.tree.image is None


def test_a_truncated_snapshot_is_rejected() -> None:
    log = Log()
    log.call(log.open("t"), 1, Create("/a"))
    saved = list(log.machine.snapshot())
    with pytest.raises(BadRecord, match="instead of"):
        restored(9, saved[:-1])
    with pytest.raises(BadRecord, match="malformed"):
        restored(9, [saved[0], saved[-1], saved[-1].replace(b'"/a"', b'"/b/a"')])


def test_a_replaced_tree_is_freed_in_steps() -> None:
    log = Log()
    session = log.open("t")
    log.call(session, 1, Create("/a"), *(Create(f"/a/{number}") for number in range(2500)))
    assert sum(1 for _ in log.machine.dismantle()) == 3
    assert list(log.machine.tree.nodes) == ["/"]


@pytest.mark.parametrize(
    "record",
    [
        AppliedRecord(3, 12, 0, b"\x00"),
        AppliedRecord(3, records.TRANSACTION, 1, b"[]"),
        AppliedRecord(3, records.TRANSACTION, 0, b"[1]"),
        AppliedRecord(3, records.TRANSACTION, 0, b"\xff"),
        AppliedRecord(3, records.TRANSACTION, 0, b'[1,1,1,0,[["create","no path",null,false,false]]]'),
        AppliedRecord(3, records.SUMMARY, 0, b"[1,0]"),
    ],
)
def test_unknown_and_malformed_records_are_reported_without_an_effect(record: AppliedRecord) -> None:
    machine = TreeMachine()
    before = machine.digest()
    with pytest.raises(BadRecord, match="offset 3"):
        machine.apply(record)
    assert machine.digest() == before


def test_the_frame_is_that_of_kafka() -> None:
    framed = CloseSession(5, "expired").framed()
    assert framed == b'\x01\xe9\x07\x00[5,"expired",null]'
    assert unframe(8, framed) == AppliedRecord(8, 1001, 0, b'[5,"expired",null]')


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
DATA = st.none() | st.binary(max_size=4)
VERSIONS = st.sampled_from([-1, -1, 0, 1])
OPERATIONS: st.SearchStrategy[stores.Operation] = st.one_of(
    st.builds(Create, PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(stores.Check, PATHS, VERSIONS),
)
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.just("end") | st.just("repeat") | st.lists(OPERATIONS, max_size=4)),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 25))
def test_the_machine_agrees_with_a_model_and_with_a_machine_restored_midway(
    steps: list[tuple[int, str | list[stores.Operation]]], middle: int
) -> None:
    log = Log()
    state = model.EMPTY
    sessions = [(log.open(f"first {number}", number), 0) for number in range(3)]
    copy = TreeMachine()
    snapshot: list[bytes] = []
    for index, (number, step) in enumerate(steps):
        if index == middle:
            snapshot, split = list(log.machine.snapshot()), len(log.values)
        session, last = sessions[number]
        if step == "repeat":
            assert log.call(session, last, Create("/again")) == tree_machine.NOTHING
        elif step == "end":
            log.add(CloseSession(session, "expired"))
            state = model.end(state, session)
            sessions[number] = log.open(f"{index}", number), 0
        else:
            assert not isinstance(step, str)
            outcome = log.call(session, last + 1, *step, first=last + 1).outcome
            assert outcome is not None
            state, expected = model.multi(state, session, step)
            error = outcome.error()
            assert expected == (
                (error.index, type(error.cause))
                if error
                else tuple(
                    item.version if isinstance(item, stores.Stat) else item for item in outcome.results
                )
            )
            sessions[number] = session, last + 1
    found = {
        path: model.Value(node.data, node.version, node.owner, node.created_children)
        for path, node in log.machine.tree.nodes.items()
    }
    assert found == state
    if snapshot:
        copy = restored(split, snapshot)
        for offset in range(split, len(log.values)):
            copy.apply(unframe(offset, log.values[offset]))
        assert copy.digest() == log.machine.digest()
    assert log.restored().digest() == log.machine.digest()
