"""One classic group as its coordinator sees it: the rebalance machine together with the group's offsets.

Rules
- A member commits in its own generation, and not between the end of a rebalance and its assignment.
- Group-less ("simple") commits, generation -1, are for groups without members.
- Offsets show once their records are committed. Deleting writes tombstones, and what they delete goes once
  they are committed; an offset that was committed again meanwhile stays.
- A group without members and offsets is deleted: when its last offset expires, or when asked to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.machine import COMPLETING_REBALANCE, EMPTY, STABLE, STORE_ERRORS, RebalanceMachine
from kafka_compat.groups.model import (
    CONSUMER_PROTOCOL_TYPE,
    Commit,
    GroupDescription,
    GroupOverview,
    GroupRecord,
    GroupSettings,
    GroupSnapshot,
    Member,
    MemberDescription,
    Now,
    OffsetAndMetadata,
    OffsetRecord,
    OffsetsStored,
    Output,
    PartitionErrors,
    Purpose,
    Record,
    TombstonesStored,
    TopicPartition,
    Waiter,
    Write,
)
from kafka_compat.groups.offsets import GroupOffsets

_OFFSET_STORE_ERRORS: Final = STORE_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


class Group(RebalanceMachine):
    """A whole group. Whoever runs it carries out the writes of each Output and reports them to `written`."""

    def __init__(
        self, group_id: str, settings: GroupSettings, new_member_id: Callable[[str], str], now: Now
    ) -> None:
        super().__init__(group_id, settings, new_member_id, now)
        self.offsets = GroupOffsets()

    def commit_offsets(self, request: Commit, waiter: Waiter, now: Now) -> Output:
        """OffsetCommit, a sign of life as well when it comes from a member; or TxnOffsetCommit (KIP-447),
        which is none and may come in the middle of a rebalance.
        """
        out = self._begin()
        error = self._check_commit(request)
        if not error and self.state is COMPLETING_REBALANCE and request.producer is None:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            self._respond(waiter, dict.fromkeys(request.offsets, error))
            return out
        if self.state is not EMPTY and request.producer is None:
            self._restart_session(self.roster.members[request.member_id], now)
        most = self._settings.offset_metadata_max_bytes
        fitting: dict[TopicPartition, OffsetAndMetadata] = {}
        errors: PartitionErrors = {}
        for partition, value in request.offsets.items():
            if java_length(value.metadata) <= most:
                fitting[partition] = value
            else:
                errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        if not fitting:
            self._respond(waiter, errors)
            return out
        if request.producer is None:
            self.offsets.stage(fitting)
        else:
            self.offsets.stage_transactional(request.producer.producer_id, fitting)
        records: list[Record] = [
            OffsetRecord(self.group_id, topic, partition, value)
            for (topic, partition), value in fitting.items()
        ]
        stored = OffsetsStored(waiter, fitting, errors, request.producer)
        out.writes.append(Write(records, stored, request.producer))
        return out

    def _check_commit(self, request: Commit) -> ErrorCode:
        if request.generation_id < 0 and self.state is EMPTY:
            return ErrorCode.NONE
        if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
            # Transactional producers from before KIP-447 do not say who they are.
            allowed = self.state is EMPTY or request.producer is not None
            return ErrorCode.NONE if allowed else ErrorCode.UNKNOWN_MEMBER_ID
        error = self._check_member(request.member_id, request.group_instance_id)
        if not error and request.generation_id != self.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    def delete_offsets(self, partitions: Iterable[TopicPartition], waiter: Waiter) -> Output:
        """OffsetDelete (KIP-496): not of topics that the group's members subscribe to."""
        out = self._begin()
        if self.state is not EMPTY and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            self._respond(waiter, ErrorCode.NON_EMPTY_GROUP)
            return out
        answer = {
            partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if self._consumes(partition[0]) else ErrorCode.NONE
            for partition in partitions
        }
        self._write_tombstones(
            [partition for partition, error in answer.items() if not error], waiter, answer
        )
        return out

    def _consumes(self, topic: str) -> bool:
        return self.state is not EMPTY and (self.subscribed_topics is None or topic in self.subscribed_topics)

    def delete(self, waiter: Waiter) -> Output:
        """DeleteGroups: an empty group with all its offsets."""
        out = self._begin()
        if self.state is EMPTY:
            self._write_tombstones(self.offsets.partitions, waiter, ErrorCode.NONE)
        else:
            self._respond(waiter, ErrorCode.NON_EMPTY_GROUP)
        return out

    def forget_partitions(self, partitions: Collection[TopicPartition]) -> Output:
        """Their topic has been deleted: so are the offsets, subscribed or not."""
        out = self._begin()
        self.offsets.drop_transactional(partitions)
        self._write_tombstones(partitions, None, ErrorCode.NONE)
        return out

    def expire_offsets(self, now: Now) -> Output:
        """offsets.retention.minutes."""
        out = self._begin()
        expired = self.offsets.expired(
            now.wall_ms,
            self._settings.offsets_retention_ms,
            state=self.state,
            state_timestamp_ms=self.state_timestamp_ms,
            protocol_type=self.protocol_type,
            subscribed_topics=self.subscribed_topics,
        )
        self._write_tombstones(expired, None, ErrorCode.NONE)
        return out

    def _write_tombstones(
        self, partitions: Iterable[TopicPartition], waiter: Waiter | None, answer: PartitionErrors | ErrorCode
    ) -> None:
        offsets = self.offsets.select(partitions)
        records: list[Record] = [
            OffsetRecord(self.group_id, topic, partition, None) for topic, partition in offsets
        ]
        whole_group = self.state is EMPTY and self.offsets.would_be_empty_without(offsets)
        if whole_group and self.generation_id > 0:
            records.append(GroupRecord(self.group_id, None))
        purpose = TombstonesStored(offsets, whole_group, waiter, answer)
        if records:
            self._out.writes.append(Write(records, purpose))
        else:
            # Nothing of this has ever reached the log.
            self._tombstones_written(purpose, ErrorCode.NONE)

    def written(self, purpose: Purpose, error: ErrorCode, log_offset: int, now: Now) -> Output:
        """The records of a Write are committed, or (error) are not. `log_offset` is the one after its last
        record.
        """
        out = self._begin()
        if isinstance(purpose, OffsetsStored):
            self._offsets_written(purpose, error, log_offset)
        elif isinstance(purpose, TombstonesStored):
            self._tombstones_written(purpose, error)
        else:
            self._group_written(purpose, error, now)
        return out

    def _offsets_written(self, purpose: OffsetsStored, error: ErrorCode, log_offset: int) -> None:
        if purpose.producer is not None:
            producer_id = purpose.producer.producer_id
            self.offsets.settle_transactional(producer_id, purpose.offsets, None if error else log_offset)
        elif error:
            self.offsets.unstage(purpose.offsets)
        else:
            self.offsets.commit(purpose.offsets, log_offset)
        error = _OFFSET_STORE_ERRORS.get(error, error)
        self._respond(purpose.waiter, purpose.errors | dict.fromkeys(purpose.offsets, error))

    def _tombstones_written(self, purpose: TombstonesStored, error: ErrorCode) -> None:
        if not error:
            self.offsets.remove(purpose.offsets)
            if purpose.whole_group and self.state is EMPTY and not self.offsets.any:
                self._note(f"deleted in generation {self.generation_id}")
                self._die()
        if purpose.waiter is not None:
            self._respond(purpose.waiter, STORE_ERRORS.get(error, error) if error else purpose.answer)

    def restore(self, snapshot: GroupSnapshot, now: Now) -> Output:
        """Take the state that the log holds: stable, every member with a full session ahead of it."""
        out = self._begin()
        self.state = STABLE if snapshot.members else EMPTY
        self.state_timestamp_ms = snapshot.state_timestamp_ms
        self.generation_id = snapshot.generation_id
        self.protocol_type = snapshot.protocol_type or None
        self.protocol_name = snapshot.protocol_name
        for stored in snapshot.members:
            member = Member(
                member_id=stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                session_timeout_ms=stored.session_timeout_ms,
                rebalance_timeout_ms=stored.rebalance_timeout_ms,
                protocols=((snapshot.protocol_name or "", stored.subscription),),
                assignment=stored.assignment,
            )
            self.roster.add(member)
            self._restart_session(member, now)
        self.roster.leader_id = snapshot.leader_id
        self._learn_subscription()
        if len(self.roster) > self._settings.group_max_size:
            self._prepare_rebalance("the loaded group has more members than group.max.size", now)
        return out

    def unload(self) -> Output:
        """This broker is no longer the coordinator: whoever waits must look for another one."""
        out = self._begin()
        for member_id in self.roster.members:
            self._answer_parked(member_id, ErrorCode.NOT_COORDINATOR, member_id)
        self._die()
        return out

    def describe(self) -> GroupDescription:
        """DescribeGroups; only a stable group shows subscriptions and assignments."""
        stable = self.state is STABLE
        return GroupDescription(
            self.state,
            self.protocol_type or "",
            (self.protocol_name or "") if stable else "",
            tuple(
                MemberDescription(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.metadata(self.protocol_name) if stable else b"",
                    member.assignment if stable else b"",
                )
                for member in self.roster.members.values()
            ),
        )

    def overview(self) -> GroupOverview:
        """ListGroups."""
        return GroupOverview(self.group_id, self.protocol_type or "", self.state)


def java_length(text: str) -> int:
    """The length that Kafka compares with offset.metadata.max.bytes: UTF-16 code units, whatever the name
    says.
    """
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
