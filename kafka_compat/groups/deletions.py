"""Deletions of one group's offsets, and of the group: the checks, the tombstones, and the responses.

A response is sent when the tombstones are committed. An offset that was stored in the meantime is kept.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import STORE_ERRORS
from kafka_compat.coordinator_runtime.machine import Outbox, Waiter, Write
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.records import OffsetRecord, Record
from kafka_compat.groups.requests import PartitionErrors, TopicPartition
from kafka_compat.groups.typed_group import TypedGroup


class TombstonesStored(NamedTuple):
    """A deletion of committed offsets and, if `whole_group` is true, of their group.

    The tombstones are being written. On success, `answer` is passed to `waiter` (None for expired offsets).
    """

    whole_group: bool
    waiter: Waiter | None
    answer: PartitionErrors | ErrorCode


class Deletions:
    """The deletions of one group. The typed group is the one to which its members belong."""

    __slots__ = ("_counts", "_group_id", "_offsets", "_outbox")

    def __init__(self, group_id: str, offsets: GroupOffsets, outbox: Outbox, counts: GroupCounts) -> None:
        self._group_id = group_id
        self._offsets = offsets
        self._outbox = outbox
        self._counts = counts

    def check(
        self, group: TypedGroup, partitions: Collection[TopicPartition], waiter: Waiter
    ) -> tuple[list[TopicPartition], PartitionErrors] | None:
        """Check an OffsetDelete request. Return the partitions whose offsets are to be deleted, and the
        response, or None if the request has been answered.
        """
        if error := group.offset_deletion_error:
            self._outbox.respond(waiter, error)
            return None
        subscribed = group.subscribed({topic for topic, _ in partitions})
        answer = {
            partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if partition[0] in subscribed else ErrorCode.NONE
            for partition in partitions
        }
        deleted = [partition for partition, error in answer.items() if not error]
        if not deleted:
            # Keep the group, even if it is empty and is waiting for its first member.
            self._outbox.respond(waiter, answer)
            return None
        self._counts.offset_deletions += len(self._offsets.known(deleted))
        return deleted, answer

    def write(
        self,
        group: TypedGroup,
        partitions: Iterable[TopicPartition],
        waiter: Waiter | None,
        answer: PartitionErrors | ErrorCode,
        *,
        may_end: bool,
    ) -> bool:
        """Delete offsets and, if `may_end`, a group that then has no offsets. As in Kafka, only DeleteGroups
        and the check for expired offsets delete an empty consumer group. Return whether the group must be
        deleted at once, because the log contains nothing of it.
        """
        deleted = dict.fromkeys(self._offsets.known(partitions))
        records: list[Record] = [
            OffsetRecord(self._group_id, topic, partition, None) for topic, partition in deleted
        ]
        whole_group = may_end and self._offsets.would_be_empty_without(deleted)
        if whole_group:
            records += group.tombstones()
        if records:
            self._outbox.write(Write(records, TombstonesStored(whole_group, waiter, answer)))
            return False
        # The log contains nothing to delete, unless earlier tombstones are not committed yet.
        if waiter is not None:
            self._outbox.respond_when_committed(waiter, answer, _store_error)
        return whole_group

    def written(self, purpose: TombstonesStored, error: ErrorCode) -> bool:
        """Respond to a deletion. Return whether the whole group has been deleted."""
        if purpose.waiter is not None:
            self._outbox.respond(purpose.waiter, _store_error(error) if error else purpose.answer)
        return not error and purpose.whole_group


def _store_error(error: ErrorCode) -> ErrorCode:
    return STORE_ERRORS.get(error, error)
